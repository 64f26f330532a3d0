"""Paired differences between plans and between scenarios."""

import math

from sim.answers.comparison import Comparison, PlanDifference
from sim.contract.figure import FIGURES
from sim.report.content import Cell, Paragraph, Section, Table, table_of
from sim.report.shown import Show, missing, ms
from sim.report.words import CHEAPER
from sim.statistics.digits import BLANK, MINUS, decimals_of, fixed, plus_minus, trimmed
from sim.statistics.interval import Difference
from sim.statistics.stability import OVERLOADED

HEADINGS = ("Scenario", "Compared", "Figure", "Difference", "95 % interval", "In words", "Variance reduction")
PAIRING_WORDS = (
    "Differences are paired by replication: both sides met the same arrivals and the same service times. "
    "Variance reduction says how many times more replications independent draws would take for the same "
    "interval; below 1 pairing did harm."
)


def differences(comparison: Comparison) -> Section | None:
    """Return the tables of differences; None where there is one plan in one scenario."""
    tables = []
    if comparison.between_plans:
        tables.append(table(comparison, "Plans against each other", comparison.between_plans))
    if comparison.between_scenarios:
        tables.append(table(comparison, "Scenarios against each other", comparison.between_scenarios))
    if not tables:
        return None
    return Section("differences", "Paired differences", (*tables, Paragraph(PAIRING_WORDS)))


def table(comparison: Comparison, caption: str, pairs: tuple[PlanDifference, ...]) -> Table:
    """Return one difference on each row."""
    return table_of(caption, "lllrrlr", HEADINGS, (row(comparison, pair) for pair in pairs))


def row(comparison: Comparison, pair: PlanDifference) -> tuple[Cell, ...]:
    """Return one difference."""
    figure, difference = FIGURES[pair.figure], pair.difference
    show = ms if figure.kind == "time" else trimmed
    compared = Cell(f"{pair.plan} {MINUS} {pair.against}")
    if is_overloaded(comparison, pair):
        compared = Cell(f"{compared.text} ⚠ {OVERLOADED}", OVERLOADED)
    return (
        Cell(pair.scenario),
        compared,
        Cell(figure.words),
        difference_cell(difference, show),
        interval_cell(difference, show),
        Cell(words_of(pair)),
        reduction_cell(difference),
    )


def words_of(pair: PlanDifference) -> str:
    """Return the outcome in words that fit the figure: a lower cost is cheaper, not faster."""
    words = pair.difference.words
    return CHEAPER.get(words, words) if FIGURES[pair.figure].unit == "micros" else words


def is_overloaded(comparison: Comparison, pair: PlanDifference) -> bool:
    """Return whether one of the compared plans was overloaded; the warnings at the top say why."""
    by_name = {result.scenario.name: result for result in comparison.results}
    both_plans = pair.against not in by_name
    sides = (
        [(pair.scenario, pair.plan), (pair.scenario, pair.against)]
        if both_plans
        else [(pair.scenario, pair.plan), (pair.against, pair.plan)]
    )
    return any(by_name[name].plan(label).stability.label == OVERLOADED for name, label in sides)


def difference_cell(difference: Difference, show: Show) -> Cell:
    """Return the mean difference with its sign."""
    if math.isnan(difference.mean):
        return missing(difference.reason)
    sign = "+" if difference.mean > 0 else ""
    if difference.half_width is None or show is trimmed:
        return Cell(sign + show(difference.mean))
    return Cell(sign + plus_minus(difference.mean, difference.half_width, decimals_of(difference.mean)))


def interval_cell(difference: Difference, show: Show) -> Cell:
    """Return both ends of the interval."""
    if difference.low is None or difference.high is None:
        return Cell(BLANK, note=f"no interval: {difference.reason}")
    return Cell(f"{show(difference.low)} to {show(difference.high)}")


def reduction_cell(difference: Difference) -> Cell:
    """Return the variance reduction against independent draws."""
    if difference.variance_reduction is None:
        return Cell(BLANK)
    return Cell(f"{fixed(difference.variance_reduction, 1)} x")
