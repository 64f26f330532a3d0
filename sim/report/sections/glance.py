"""The flip table: every plan in every scenario on one row."""

from sim.answers.comparison import Comparison
from sim.report.content import Cell, Paragraph, Section, Table
from sim.report.figures.mean_latency import mean_latency
from sim.report.sections.decision import price_drawing
from sim.report.shown import BLANK, ms_estimate, number_estimate, percent_estimate
from sim.report.words import decision_cell, delivered_cell, delivered_share, plan_cell
from sim.result.plan_result import PlanResult
from sim.result.result import Result

HEADINGS = (
    "Scenario",
    "Plan",
    "Mean latency, ms",
    "p95, ms",
    "Cost per delivered request, micros",
    "Utilisation",
    "Stability",
    "Decision",
)


def glance(comparison: Comparison) -> Section:
    """Return the flip table and its drawing."""
    plans = [(result, plan) for result in comparison.results for plan in result.plans]
    some_fail = any(delivered_share(plan.estimates) < 1 for _, plan in plans)
    table = Table(
        "Scenarios and plans side by side",
        "llrr" + "r" * some_fail + "rrll",
        tuple(Cell(text) for text in (*HEADINGS[:4], *["Delivered"] * some_fail, *HEADINGS[4:])),
        tuple(row(result, plan, some_fail) for result, plan in plans),
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
        ms_estimate(figures["latency_ms_mean"]),
        ms_estimate(figures["latency_ms_p95"]),
        *[delivered_cell(figures)] * some_fail,
        number_estimate(figures["cost_micros_per_success"]),
        percent_estimate(figures["utilisation"]),
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
