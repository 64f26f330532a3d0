"""Prefix reuse where it is a result: what a provider's cache served, beside the ratio that breaks even."""

from collections.abc import Iterator

from sim.answers.comparison import Comparison
from sim.report.content import Cell, Paragraph, Section, Table
from sim.report.shown import BLANK, fixed, missing, number_estimate, percent_estimate
from sim.report.words import plan_cell, setting_words
from sim.result.plan_result import PlanResult
from sim.result.result import Result

REUSE = "prefix_reuse_ratio"
HEADINGS = (
    "Scenario",
    "Load",
    "Plan",
    "Prefix reuse",
    "Break-even",
    "Result",
    "Cost per delivered request, micros",
)
WORDS = (
    "Reuse is the share of calls with a shared prefix that found it in the provider's cache. It depends on "
    "the load, which keeps the prefix in the cache, and on the plan: calls that start together miss "
    "together. Break-even is the ratio from which on the plan's saving is worth its copies."
)


def reuse(comparison: Comparison) -> Section | None:
    """Return reuse by scenario and plan; None where no provider has a cache."""
    rows = [
        row(result, plan) for result in comparison.results for plan in result.plans if REUSE in plan.estimates
    ]
    if not rows:
        return None
    table = Table("Prefix reuse by load and plan", "lllrrlr", tuple(map(Cell, HEADINGS)), tuple(rows))
    return Section("reuse", "Prefix reuse", (table, Paragraph(WORDS)))


def row(result: Result, plan: PlanResult) -> tuple[Cell, ...]:
    """Return what one plan found in the cache, and whether that is enough."""
    return (
        Cell(result.scenario.name),
        Cell(setting_words(result.scenario)),
        plan_cell(plan, plan.label),
        percent_estimate(plan.estimates[REUSE]),
        *break_even_cells(result, plan),
        number_estimate(plan.estimates["cost_micros_per_success"]),
    )


def break_even_cells(result: Result, plan: PlanResult) -> Iterator[Cell]:
    """Yield the break-even ratio of a plan, and whether its reuse reaches it; blanks for serial."""
    measured = result.decision.by_plan.get(plan.label)
    if measured is None or measured.verdict is None:
        yield missing("serial is what the others are held against") if measured is None else Cell(BLANK)
        yield Cell("")
        return
    criterion = next(one for one in measured.verdict.criteria if one.name == REUSE)
    yield Cell(BLANK if criterion.bound is None else f"{fixed(100 * criterion.bound, 2)} %")
    yield Cell("reached", "good") if criterion.passed else Cell("not reached", "bad")
