"""The flip table: every plan in every scenario on one row."""

from sim.answers.comparison import Comparison
from sim.contract.figure import COST_PER_SUCCESS, MEAN_LATENCY, P95_LATENCY, UTILISATION
from sim.report.content import Cell, Paragraph, Section, table_of
from sim.report.figures.mean_latency import mean_latency
from sim.report.sections.decision import price_drawing
from sim.report.shown import columns, figure_cells
from sim.report.words import decision_cell, delivered_cell, delivered_share, plan_cell
from sim.result.plan_result import PlanResult
from sim.result.result import Result
from sim.statistics.digits import BLANK

TIMES, MEANS = (MEAN_LATENCY, P95_LATENCY), (COST_PER_SUCCESS, UTILISATION)


def glance(comparison: Comparison) -> Section:
    """Return the flip table and its drawing."""
    plans = [(result, plan) for result in comparison.results for plan in result.plans]
    some_fail = any(delivered_share(plan.estimates) < 1 for _, plan in plans)
    delivered = ["Delivered"] * some_fail
    headings = ("Scenario", "Plan", *columns(TIMES), *delivered, *columns(MEANS), "Stability", "Decision")
    table = table_of(
        "Scenarios and plans side by side",
        "llrr" + "r" * some_fail + "rrll",
        headings,
        (row(result, plan, some_fail) for result, plan in plans),
    )
    return Section(
        "glance",
        "At a glance",
        (
            mean_latency(comparison.results),
            *price_drawing(comparison.results),
            table,
            Paragraph(uncertainty_words(comparison)),
        ),
    )


def row(result: Result, plan: PlanResult, some_fail: bool) -> tuple[Cell, ...]:
    """Return one plan's figures; the decision stands beside the scenario's first plan."""
    figures = plan.estimates
    first = plan is result.plans[0]
    return (
        Cell(result.scenario.name),
        plan_cell(plan, plan.label),
        *figure_cells(figures, TIMES),
        *[delivered_cell(figures)] * some_fail,
        *figure_cells(figures, MEANS),
        Cell(plan.stability.label, "overloaded" if plan.stability.label == "overloaded" else ""),
        decision_cell(result.decision.decision) if first else Cell(""),
    )


def uncertainty_words(comparison: Comparison) -> str:
    """Return how sure the figures are, and what a blank means."""
    words = []
    for result in comparison.results:
        name = result.scenario.name
        if result.deterministic:
            words.append(f"{name} is deterministic: its figures are exact and have no interval.")
        elif result.replications == 1:
            words.append(f"{name} ran once: one replication gives no interval.")
        else:
            words.append(
                f"{name}: means over {result.replications:,} replications ± half-width of the 95 % interval."
            )
    return " ".join([*words, f"A figure that cannot be shown is {BLANK}, with its reason below the table."])
