"""Human review after the answer: how long it takes, and whether the reviewers keep up."""

import math
from collections.abc import Sequence

from sim.comparison import Comparison
from sim.interval import Estimate
from sim.plan_result import PlanResult
from sim.report.content import Cell, Paragraph, Section, Table
from sim.report.figures.review import review_backlog
from sim.report.shown import fixed, missing, number_estimate, trimmed
from sim.report.words import plan_cell
from sim.result import Result
from sim.scenario import Scenario

HEADINGS = (
    "Scenario",
    "Workload",
    "Plan",
    "Turnaround, mean, minutes",
    "Turnaround, p95, minutes",
    "Backlog at half time",
    "Backlog at the end",
    "Reviewers needed",
    "Reviewers",
    "Backlog",
)
WORDS = (
    "Reviews begin at the join and are never part of the latency. Turnaround is from the join to the end of "
    "the review. The backlog is what waits or is under way; the end is the last arrival. Reviewers needed: "
    "review time asked for per time; with fewer the backlog grows as long as the load lasts."
)
MS_PER_MINUTE = 60_000


def review(comparison: Comparison, names: Sequence[str]) -> Section | None:
    """Return turnaround and backlog; None where nobody reviews. `names` begin the files of the figures."""
    pairs = [
        (result, name)
        for result, name in zip(comparison.results, names, strict=True)
        if any(part.workflow.follow_up for part in result.scenario.parts)
    ]
    if not pairs:
        return None
    rows = [
        row(result, plan, part, index)
        for result, _ in pairs
        for index, part in enumerate(result.scenario.parts)
        if part.workflow.follow_up
        for plan in result.plans
    ]
    table = Table("Turnaround and backlog of reviews", "lllrrrrrrl", tuple(map(Cell, HEADINGS)), tuple(rows))
    figures = [review_backlog(result, name) for result, name in pairs]
    return Section("review", "Human review", (*figures, Paragraph(WORDS), table))


def row(result: Result, plan: PlanResult, part: Scenario, index: int) -> tuple[Cell, ...]:
    """Return how one workload's reviews went under one plan."""
    figures = plan.workloads[index].estimates if plan.workloads else plan.estimates
    reviewers = part.workflow.follow_up.reviewers if part.workflow.follow_up else 0
    needed = figures["follow_up_reviewers_needed"]
    keeps_up = Cell("grows", "bad") if needed.mean > reviewers else Cell("keeps up", "good")
    is_known = not math.isnan(needed.mean)
    return (
        Cell(result.scenario.name),
        Cell(part.part_name),
        plan_cell(plan, plan.label),
        minutes_cell(figures["follow_up_ms_mean"]),
        minutes_cell(figures["follow_up_ms_p95"]),
        number_estimate(figures["follow_up_backlog_at_half"]),
        number_estimate(figures["follow_up_backlog_at_end"]),
        Cell(trimmed(needed.mean)) if is_known else missing(needed.reason),
        Cell(f"{reviewers:,}"),
        keeps_up if is_known else missing(needed.reason),
    )


def minutes_cell(figure: Estimate) -> Cell:
    """Return a time in minutes with its half-width; blank with the reason where it is missing."""
    if figure.mean != figure.mean:
        return missing(figure.reason)
    half_width = "" if figure.half_width is None else f" ± {fixed(figure.half_width / MS_PER_MINUTE, 1)}"
    return Cell(f"{fixed(figure.mean / MS_PER_MINUTE, 1)}{half_width}")
