"""Answers about capacity in words, for the terminal and for reports alike."""

import math

from sim.answers.policy import PolicyPeriod, PolicyResult
from sim.answers.policy_table import PolicyLevel
from sim.answers.sensitivity import ARITHMETIC, BreakEven, InputSensitivity, Sensitivity
from sim.answers.size import CONFIDENCE, Sizing
from sim.answers.size_search import NextSlot
from sim.statistics.digits import fixed, trimmed, typed
from sim.statistics.interval import Difference
from sim.units import round_half_away

NOWHERE = "-"


def decimal(value: float, decimals: int) -> str:
    """Return a number with at most so many decimals; a blank where there is none."""
    return typed(trimmed(value, decimals))


def size_of(difference: Difference) -> str:
    """Return the size of a difference in ms, with its half-width where it has one."""
    size, width = fixed(abs(difference.mean), 1), difference.half_width
    return size if width is None else f"{size} ± {fixed(width, 1)}"


# Sizing


def anomaly_words(sizing: Sizing) -> list[str]:
    """Return where a value that should do better does worse, and from where on none misses."""
    words = [anomaly.words for anomaly in sizing.anomalies]
    if sizing.safe_from not in (sizing.answer, None):
        way = "down" if sizing.largest else "up"
        words.append(f"every value simulated from {sizing.safe_from:g} {way} meets the rules")
    return words


def missing_words(sizing: Sizing) -> list[str]:
    """Return why figures could not be shown, once for each rule."""
    reasons = {
        held.rule.subject: held.reason
        for point in sizing.points
        for held in point.rules
        if math.isnan(held.figure.mean)
    }
    return [f"{subject}: {reason}" for subject, reason in reasons.items()]


def theory_words(sizing: Sizing) -> str:
    """Return what bounds and theory say of the answer."""
    if sizing.by_theory is None:
        return "bounds rule out every value of the range"
    if sizing.by_theory == sizing.values[0]:
        return "bounds and theory rule out no value of the range"
    which = "at most" if sizing.largest else "at least"
    return f"by bounds and theory the answer is {which} {sizing.by_theory:g}"


def effort_words(sizing: Sizing) -> str:
    """Return how many runs it took, and what the verdicts mean."""
    runs = f"{sizing.runs:,} runs of {len(sizing.points):,} of {len(sizing.values):,} values"
    if all(held.figure.deterministic for point in sizing.points for held in point.rules):
        return f"{runs}; deterministic"
    return (
        f"{runs}; a verdict is {100 * CONFIDENCE:g} % sure: the whole two-sided interval keeps or breaks the "
        f"rule, over all looks at up to {sizing.most_replications:,} replications"
    )


def next_slot_words(next_slot: NextSlot) -> str:
    """Return what one more slot saves, and whether it is worth its price."""
    does = "loses" if next_slot.saved_ms < 0 else "saves"
    words = (
        f"with {next_slot.slots:,} slots the mean latency {does} {size_of(next_slot.difference)} ms, "
        f"worth {decimal(next_slot.worth_micros_per_hour, 0)} micros an hour at what a saved ms may cost"
    )
    price = next_slot.price_micros_per_hour
    if price is None:
        return words
    return f"{words}; the slot costs {decimal(price, 0)}: it {'pays' if next_slot.pays else 'does not pay'}"


# Sensitivity


def verdict_now(sensitivity: Sensitivity) -> str:
    """Return the decision as it is, in a few words."""
    base, price = sensitivity.base, sensitivity.base.micros_per_saved_ms
    costs = "" if price is None else f" at {decimal(price, 3)} micros per ms"
    return f"now {base.decision}: {decimal(base.saved_ms, 2)} ms saved{costs}"


def flips_words(flips: tuple[BreakEven, ...], one: InputSensitivity) -> str:
    """Return the break-even values; those found by simulation as the values around them."""
    if one.basis == ARITHMETIC:
        words = [in_unit(flip.value, one.unit) for flip in flips]
    else:
        ends = [sorted((flip.holds_at, flip.fails_at)) for flip in flips]
        words = [f"{in_unit(low, one.unit)} to {in_unit(high, one.unit)}" for low, high in ends]
    return ", ".join(words) or NOWHERE


def in_unit(value: float, unit: str) -> str:
    """Return a value with its unit; a share as a percentage."""
    return f"{decimal(100 * value, 2)} %" if unit == "%" else f"{decimal(value, 3)} {unit}".rstrip()


# Policies


def active_words(level: PolicyLevel) -> str:
    """Return the active requests of a level."""
    if level.active_to is None:
        return f"{level.active_from:,} and more"
    return f"{level.active_from:,} to {level.active_to:,}"


def above_words(period: PolicyPeriod) -> str:
    """Return how the policy stands against the better fixed plan."""
    if math.isnan(period.above_better_share):
        return NOWHERE
    text = f"{round_half_away(100 * period.above_better_share, 2):+.2f}"
    return f"{'0.00' if text in ('+0.00', '-0.00') else text} % ({period.better_fixed})"


def difference_words(result: PolicyResult, label: str) -> str:
    """Return by how much the policy is faster than a fixed plan over the whole load."""
    one = result.differences[label]
    if math.isnan(one.mean):
        return f"the policy cannot be held against always {label}: the difference is {one.reason}"
    which = "slower" if one.mean > 0 else "faster"
    return f"on average the policy is {size_of(one)} ms {which} than always {label}"
