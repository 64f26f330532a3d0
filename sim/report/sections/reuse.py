"""Prefix reuse where it is a result: what a provider's cache served, beside the ratio that breaks even."""

from collections.abc import Iterator

from sim.answers.comparison import Comparison
from sim.contract.figure import COST_PER_SUCCESS, FIGURES, PREFIX_REUSE
from sim.report.content import Cell, Paragraph, Section, table_of
from sim.report.shown import figure_cells, missing
from sim.report.words import plan_cell, setting_words
from sim.result.plan_result import PlanResult
from sim.result.result import Result
from sim.statistics.digits import BLANK, fixed

HEADINGS = (
    "Scenario",
    "Load",
    "Plan",
    FIGURES[PREFIX_REUSE].title,
    "Break-even",
    "Result",
    FIGURES[COST_PER_SUCCESS].title,
)
WORDS = (
    "Reuse is the share of calls with a shared prefix that found it in the provider's cache. It depends on "
    "the load, which keeps the prefix in the cache, and on the plan: calls that start together miss "
    "together. Break-even is the ratio from which on the plan's saving is worth its copies."
)


def reuse(comparison: Comparison) -> Section | None:
    """Return reuse by scenario and plan; None where no provider has a cache."""
    rows = [
        row(result, plan)
        for result in comparison.results
        for plan in result.plans
        if PREFIX_REUSE in plan.estimates
    ]
    if not rows:
        return None
    table = table_of("Prefix reuse by load and plan", "lllrrlr", HEADINGS, rows)
    return Section("reuse", "Prefix reuse", (table, Paragraph(WORDS)))


def row(result: Result, plan: PlanResult) -> tuple[Cell, ...]:
    """Return what one plan found in the cache, and whether that is enough."""
    return (
        Cell(result.scenario.name),
        Cell(setting_words(result.scenario)),
        plan_cell(plan, plan.label),
        *figure_cells(plan.estimates, (PREFIX_REUSE,)),
        *break_even_cells(result, plan),
        *figure_cells(plan.estimates, (COST_PER_SUCCESS,)),
    )


def break_even_cells(result: Result, plan: PlanResult) -> Iterator[Cell]:
    """Yield the break-even ratio of a plan, and whether its reuse reaches it; blanks for serial."""
    measured = result.decision.by_plan.get(plan.label)
    if measured is None or measured.verdict is None:
        yield missing("serial is what the others are held against") if measured is None else Cell(BLANK)
        yield Cell("")
        return
    criterion = next(one for one in measured.verdict.criteria if one.name == PREFIX_REUSE)
    yield Cell(BLANK if criterion.bound is None else f"{fixed(100 * criterion.bound, 2)} %")
    yield Cell("reached", "good") if criterion.passed else Cell("not reached", "bad")
