"""The answer of a sizing: how it was found, the curve, and what the next slot is worth."""

from sim.objective import MET, MISSED
from sim.report.content import Bullets, Cell, Figure, Mark, Section, Table
from sim.report.figures.size_curve import size_curve
from sim.report.sections.evidence import slo_value
from sim.report.shown import BLANK, plus_minus, trimmed
from sim.size_search import FOUND, NextSlot, SizePoint
from sim.sizing import CONFIDENCE, Sizing

MARKS: dict[str, Mark] = {MET: "good", MISSED: "bad"}


def answer(sizing: Sizing) -> Section:
    """Return what was found, and what it rests on."""
    return Section("answer", "Answer", (Bullets(tuple(answer_words(sizing))), curve(sizing)))


def curve(sizing: Sizing) -> Figure:
    """Return the drawing."""
    return size_curve(sizing)


def answer_words(sizing: Sizing) -> list[str]:
    """Return the answer and its reservations, one sentence each."""
    words = [f"{sizing.sentence}."]
    words += [f"{line}." for line in anomaly_words(sizing)]
    if sizing.next_slot is not None:
        words.append(next_slot_words(sizing.next_slot))
    words += [f"{theory_words(sizing)}.", f"{effort_words(sizing)}."]
    return words


def anomaly_words(sizing: Sizing) -> list[str]:
    """Return where a value that should do better does worse, and from where on none misses."""
    words = [anomaly.words for anomaly in sizing.anomalies]
    if sizing.safe_from not in (sizing.answer, None):
        way = "down" if sizing.largest else "up"
        words.append(f"every value simulated from {sizing.safe_from:g} {way} meets the rules")
    return words


def theory_words(sizing: Sizing) -> str:
    """Return what bounds and theory say of the answer."""
    if sizing.by_theory is None:
        return "bounds rule out every value of the range"
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
    width = next_slot.difference.half_width
    saved = (
        f"slot {next_slot.slots:,} saves {plus_minus(next_slot.saved_ms, width, 1)} ms on the mean latency"
    )
    worth = f"worth {trimmed(next_slot.worth_micros_per_hour, 0)} micros an hour at the price of a saved ms"
    price = next_slot.price_micros_per_hour
    if price is None:
        return f"{saved}, {worth}."
    return (
        f"{saved}, {worth}; it costs {trimmed(price, 0)}: it {'pays' if next_slot.pays else 'does not pay'}."
    )


def candidates(sizing: Sizing) -> Section:
    """Return every candidate that was simulated."""
    rules = [str(rule) for _, rule in sizing.asked.rules]
    headings = (sizing.path, "Verdict", *rules, *(f"Theory: {rule}" for rule in rules), "Replications")
    table = Table(
        f"{sizing.path}: what was simulated",
        "rl" + "r" * (2 * len(rules) + 1),
        tuple(Cell(text) for text in headings),
        tuple(row(point, sizing) for point in sizing.points),
    )
    return Section("candidates", "Candidates", (table,))


def row(point: SizePoint, sizing: Sizing) -> tuple[Cell, ...]:
    """Return one candidate."""
    mark = " ←" if sizing.status == FOUND and point.value == sizing.answer else ""
    return (
        Cell(f"{point.value:g}{mark}"),
        Cell(point.verdict, MARKS.get(point.verdict, "unsure")),
        *(slo_value(held.rule.metric, held.figure) for held in point.rules),
        *(Cell(f"{bound[0]} {trimmed(bound[1])}" if bound else BLANK) for bound in point.bounds),
        Cell(f"{point.replications:,}"),
    )
