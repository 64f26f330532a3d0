"""The answer of a sizing: how it was found, the curve, and what the next slot is worth."""

from sim.answers.size import Sizing
from sim.answers.size_search import FOUND, SizePoint
from sim.answers.words import (
    anomaly_words,
    effort_words,
    missing_words,
    next_slot_words,
    theory_words,
)
from sim.contract.figure import FIGURES
from sim.report.content import Bullets, Cell, Mark, Section, table_of
from sim.report.figures.size_curve import size_curve
from sim.report.shown import estimate_cell
from sim.result.objective import MET, MISSED
from sim.statistics.digits import BLANK, trimmed

MARKS: dict[str, Mark] = {MET: "good", MISSED: "bad"}


def answer(sizing: Sizing) -> Section:
    """Return what was found, and what it rests on."""
    return Section("answer", "Answer", (Bullets(tuple(answer_words(sizing))), size_curve(sizing)))


def answer_words(sizing: Sizing) -> list[str]:
    """Return the answer and its reservations, one sentence each."""
    words = [*sizing.binding, sizing.sentence, *missing_words(sizing), *anomaly_words(sizing)]
    if sizing.next_slot is not None:
        words.append(next_slot_words(sizing.next_slot))
    words += [theory_words(sizing), effort_words(sizing)]
    return [f"{line}." for line in words]


def candidates(sizing: Sizing) -> Section:
    """Return every candidate that was simulated."""
    rules = [str(rule) for _, rule in sizing.asked.rules]
    headings = (sizing.path, "Verdict", *rules, *(f"Theory: {rule}" for rule in rules), "Replications")
    table = table_of(
        f"{sizing.path}: what was simulated",
        "rl" + "r" * (2 * len(rules) + 1),
        headings,
        (row(point, sizing) for point in sizing.points),
    )
    return Section("candidates", "Candidates", (table,))


def row(point: SizePoint, sizing: Sizing) -> tuple[Cell, ...]:
    """Return one candidate."""
    mark = " ←" if sizing.status == FOUND and point.value == sizing.answer else ""
    return (
        Cell(f"{point.value:g}{mark}"),
        Cell(point.verdict, MARKS.get(point.verdict, "unsure"), note=point.reason),
        *(estimate_cell(held.figure, FIGURES[held.rule.metric].kind) for held in point.rules),
        *(Cell(f"{bound[0]} {trimmed(bound[1])}" if bound else BLANK) for bound in point.bounds),
        Cell(f"{point.replications:,}"),
    )
