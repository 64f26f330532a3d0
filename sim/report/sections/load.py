"""Latency against the level of load: where the best plan changes, under each allocation."""

import math

from sim.answers.flip import LEVEL_WORDS, FlipTable, Level
from sim.contract.allocation import allocation_named
from sim.contract.plan import FIXED_PLANS
from sim.report.content import Bullets, Cell, Paragraph, Section, table_of
from sim.report.figures.load_curve import load_curve
from sim.report.shown import estimate_cell, missing, ms
from sim.report.words import decision_cell, level_cell
from sim.statistics.digits import trimmed

NO_BOUND = "the bounds are those of a plain provider: no failures, limits, cache or ranks"
RANGE_WORDS = "In brackets: the range over requests, where they differ and there is no interval."
BOUND_WORDS = (
    " No parallel request answers faster than its critical path and join, no serial one faster than the sum "
    "of its branches, and no plan has a mean latency below active requests x work / slots."
)


def load(table: FlipTable) -> Section:
    """Return the curve, the sentences and the levels."""
    labels = tuple(table.levels[0].plans)
    bounded = tuple(label for label in labels if label in FIXED_PLANS)
    headings = (
        "Allocation",
        LEVEL_WORDS[table.level].capitalize(),
        *(f"{label}, ms" for label in labels),
        *(f"{label} at least, ms" for label in bounded),
        "Best mean",
        "Decision",
    )
    levels = table_of(
        f"Mean latency by {LEVEL_WORDS[table.level]}",
        "lr" + "r" * (len(labels) + len(bounded)) + "ll",
        headings,
        (row(level, labels, bounded) for level in table.levels),
    )
    has_bounds = any(
        not math.isnan(level.plans[label].bound_ms) for level in table.levels for label in labels
    )
    words = RANGE_WORDS + BOUND_WORDS * has_bounds
    return Section(
        "load",
        f"Latency against {LEVEL_WORDS[table.level]}",
        (load_curve(table), Bullets(tuple(table.sentences())), levels, Paragraph(words)),
    )


def row(level: Level, labels: tuple[str, ...], bounded: tuple[str, ...]) -> tuple[Cell, ...]:
    """Return one level of load under one allocation."""
    return (
        Cell(allocation_named(level.allocation).words),
        Cell(trimmed(level.value)),
        *(mean_cell(level, label) for label in labels),
        *(bound_cell(level.plans[label].bound_ms) for label in bounded),
        Cell(level.best),
        decision_cell(level.decision),
    )


def bound_cell(bound_ms: float) -> Cell:
    """Return the bound of a mean latency; blank where there is none."""
    return missing(NO_BOUND) if math.isnan(bound_ms) else Cell(ms(bound_ms))


def mean_cell(level: Level, label: str) -> Cell:
    """Return a plan's mean latency with its interval, or the range over requests where there is none."""
    figure = level.plans[label]
    text = estimate_cell(figure.mean).text
    if figure.mean.half_width is None and figure.least_ms < figure.greatest_ms:
        text = f"{text} [{ms(figure.least_ms)}..{ms(figure.greatest_ms)}]"
    return level_cell(figure, text)
