"""When a simulated figure agrees with theory: the rule of the validation table, with words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sim.statistics.interval import DETERMINISTIC, Estimate, Value, estimate

MIN_REPLICATIONS = 20
CONFIDENCE = 0.999


@dataclass(frozen=True, slots=True)
class Precision:
    """How narrow an interval must be to prove anything: half-width under `ratio` x the mean of `quantity`."""

    ratio: float
    quantity: str


OF_MEAN_LATENCY = Precision(0.02, "mean latency")
# 2 % of a wait much shorter than the service would take over ten million requests.
OF_MEAN_WAIT = Precision(0.10, "mean wait")


@dataclass(frozen=True, slots=True)
class Verdict:
    """One line of the validation table: theory (from `low` to `high` where it is a band) and the result."""

    passed: bool
    low: float
    high: float
    simulated: Estimate
    words: str


def validates(
    theory: float,
    values: Sequence[Value],
    scale: float,
    precision: Precision = OF_MEAN_LATENCY,
    confidence: float = CONFIDENCE,
) -> Verdict:
    """Hold an exact theoretical value against independent replications.

    Parameters
    ----------
    theory : the value that theory gives
    values : the simulated figure, one per replication, same unit
    scale : the theoretical mean of `precision.quantity`, same unit
    precision : how narrow the interval has to be; a wide one would agree with anything
    confidence : of the Student-t interval in which theory has to lie

    Returns
    -------
    Verdict
        Passed with 20 replications or more, theory inside the interval, and a half-width under the precision.
    """
    simulated = estimate(values, confidence)
    if simulated.half_width is None:
        return Verdict(False, theory, theory, simulated, simulated.reason or "")
    faults = _evidence_faults(simulated)
    interval = _interval_in_words(simulated.mean, simulated.half_width, confidence)
    if abs(theory - simulated.mean) > simulated.half_width:
        faults.append(f"theory {theory:.6g} lies outside {interval}")
    if not simulated.half_width < precision.ratio * scale:
        faults.append(
            f"half-width {simulated.half_width:.4g} is not under {100 * precision.ratio:g} % "
            f"of the {precision.quantity} {scale:.6g}"
        )
    words = "; ".join(faults) or f"theory {theory:.6g} lies within {interval}"
    return Verdict(not faults, theory, theory, simulated, words)


def validates_band(
    low: float, high: float, values: Sequence[Value], confidence: float = CONFIDENCE
) -> Verdict:
    """Hold a band (a bound, or an approximation with a stated margin) against independent replications.

    Passed with at least 20 replications whose whole interval lies from `low` to `high`.
    """
    simulated = estimate(values, confidence)
    if simulated.half_width is None:
        return Verdict(False, low, high, simulated, simulated.reason or "")
    faults = _evidence_faults(simulated)
    interval = _interval_in_words(simulated.mean, simulated.half_width, confidence)
    band = f"the band {low:.6g} to {high:.6g}"
    if simulated.mean - simulated.half_width < low or simulated.mean + simulated.half_width > high:
        faults.append(f"{interval} leaves {band}")
    words = "; ".join(faults) or f"{interval} lies within {band}"
    return Verdict(not faults, low, high, simulated, words)


def validates_exactly(theory: float, values: Sequence[float], tolerance: float = 0.0) -> Verdict:
    """Hold a deterministic value against every single value simulated; each must be within `tolerance`."""
    mean = math.fsum(values) / len(values) if values else math.nan
    simulated = Estimate(mean, None, len(values), DETERMINISTIC, deterministic=True)
    if not values:
        return Verdict(False, theory, theory, simulated, "no values")
    wrong = [value for value in values if not abs(value - theory) <= tolerance]
    if wrong:
        words = (
            f"{len(wrong)} of {len(values)} values differ from theory {theory:.10g}, first {wrong[0]:.10g}"
        )
    else:
        words = (
            "every value equals theory"
            if tolerance == 0
            else f"every value is within {tolerance:g} of theory"
        )
    return Verdict(not wrong, theory, theory, simulated, words)


def _evidence_faults(simulated: Estimate) -> list[str]:
    if simulated.replications >= MIN_REPLICATIONS:
        return []
    return [f"needs {MIN_REPLICATIONS} replications, has {simulated.replications}"]


def _interval_in_words(mean: float, half_width: float, confidence: float) -> str:
    return f"the {100 * confidence:g} % interval {mean - half_width:.6g} to {mean + half_width:.6g}"
