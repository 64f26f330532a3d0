"""Simulated scenarios as tables and sentences for the terminal."""

import math
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table

from sim.check import CheckReport
from sim.cli.figures import estimate, heading, in_order, number, rows_of, text_of, whole
from sim.cli.show_breakdown import periods_parts, workloads_parts
from sim.cli.show_time import time_parts
from sim.cli.terminal import new_table
from sim.contract.figure import FIGURES, REQUESTS, figure_of
from sim.contract.plan import ADAPTIVE
from sim.plan.criteria import Criterion
from sim.result.binding import binding_lines
from sim.result.result import Result
from sim.scenario import Scenario
from sim.scenario.load import ClosedLoad, OpenLoad, StepsLoad, TraceLoad
from sim.statistics.stability import COLLAPSED, OVERLOADED


def load_words(scenario: Scenario) -> str:
    """Return the load in a few words, that of each workload where there are several."""
    if len(scenario.parts) > 1:
        return " | ".join(f"{part.part_name} {part_load_words(part)}" for part in scenario.parts)
    return part_load_words(scenario)


def part_load_words(scenario: Scenario) -> str:
    """Return the load of one workload."""
    load = scenario.load
    if isinstance(load, ClosedLoad):
        return f"closed, {load.active_requests:,} active requests"
    if isinstance(load, OpenLoad):
        return f"open, {load.rate_per_s:g} requests/s {load.arrivals}"
    if isinstance(load, TraceLoad):
        return f"trace of {len(scenario.trace.arrival_ns):,} requests"
    if isinstance(load, StepsLoad):
        levels = [step.active_requests if load.is_closed else step.rate_per_s for step in load.steps]
        unit = "active requests" if load.is_closed else "requests/s"
        return f"steps, {' -> '.join(f'{level:g}' for level in levels if level is not None)} {unit}"
    return f"profile of {load.end_s - load.first_s:g} s"


def header(result: Result) -> str:
    """Return what was simulated, in one line."""
    scenario = result.scenario
    runs = "deterministic" if result.deterministic else f"{result.replications:,} replications"
    if result.replications == 1 and not result.deterministic:
        runs = "1 replication, so no intervals"
    return (
        f"{scenario.name} ({scenario.path}): {scenario.slots_words}; load {load_words(scenario)}; {runs}; "
        f"seed {scenario.experiment.seed}; engine {result.engine}"
    )


def run_parts(result: Result) -> list[RenderableType]:
    """Return everything about one simulated scenario: the verdict first."""
    return [
        header(result),
        *top_lines(result),
        *decision_lines(result),
        "",
        figures_table(result),
        *missing_lines(result),
        *bounds_parts(result),
        *periods_parts(result),
        *workloads_parts(result),
        *time_parts(result),
        "",
        *stability_lines(result, at_top=False),
        f"checks: {checks_words(result.checks)}",
        *slo_lines(result),
        *(f"note: {note}" for note in result.notes),
    ]


def top_lines(result: Result) -> list[str]:
    """Return what binds, and which plans have no steady state."""
    binding = binding_lines(result.scenario, [plan.capacity for plan in result.plans])
    return [*binding, *stability_lines(result, at_top=True)]


def stability_lines(result: Result, *, at_top: bool) -> list[str]:
    """Return how steady the plans are, each reason once; overload and collapse are said at the top."""
    plans: dict[str, list[str]] = {}
    for plan in result.plans:
        found = plan.stability
        if at_top == (found.label in (OVERLOADED, COLLAPSED)):
            plans.setdefault(f"{found.label}: {found.reason}", []).append(plan.label)
    return [f"{', '.join(labels)}: {words}" for words, labels in plans.items()]


def figures_table(result: Result) -> Table:
    """Return the figures, one a row, and the plans, one a column."""
    plans = in_order(result.plans)
    table = new_table("", *(heading(plan) for plan in plans))
    for name in rows_of(plans):
        table.add_row(figure_of(name).words, *(text_of(plan.estimates, name) for plan in plans))
    table.add_row(FIGURES[REQUESTS].words, *(whole(plan.estimates[REQUESTS].mean) for plan in plans))
    table.add_row("left out as warm-up", *(spread(plan.dropped) for plan in plans))
    table.add_row("stability", *(plan.stability.label for plan in plans))
    return table


def spread(counts: Sequence[int]) -> str:
    """Return one count, or the least and the greatest of several."""
    least, greatest = min(counts), max(counts)
    return f"{least:,}" if least == greatest else f"{least:,}..{greatest:,}"


def missing_lines(result: Result) -> list[str]:
    """Return why figures of the table are blank, each reason once."""
    reasons: dict[str, list[str]] = {}
    for plan in in_order(result.plans):
        for name in rows_of(result.plans):
            figure = plan.estimates[name]
            if math.isnan(figure.mean):
                reasons.setdefault(f"{name}: {figure.reason}", []).append(plan.label)
    return [f"{reason} ({', '.join(plans)})" for reason, plans in reasons.items()]


def decision_lines(result: Result) -> list[str]:
    """Return the decision and its criteria, and what the plan arithmetic says."""
    decision = result.decision
    measured = decision.measured
    criteria = measured.verdict.criteria if measured and measured.verdict else ()
    lines = [decision.reason, *(criterion_line(one) for one in criteria)]
    for at in decision.arithmetic:
        each = slots_words(at.evaluation.concurrency)
        lines.append(
            f"by arithmetic at {at.active_requests:,} active requests, {each} each: {at.evaluation.reason}"
        )
    return [*lines, *other_decision_lines(result)]


def other_decision_lines(result: Result) -> Iterator[str]:
    """Yield the decision about other plans than parallel, in each period, and for each workload."""
    decision = result.decision
    for label, about in decision.by_plan.items():
        if about is not decision.measured and result.plan(label).plan.plan != ADAPTIVE:
            yield f"{label}: {about.reason}"
    for name, about in (decision.by_period | decision.by_workload).items():
        yield f"{name}: {about.reason}"


def criterion_line(criterion: Criterion) -> str:
    """Return one of the four criteria with its outcome."""
    return f"  {'pass' if criterion.passed else 'FAIL'}  {criterion.words}"


def slots_words(slots: int) -> str:
    """Return a number of slots in words."""
    return f"{slots:,} slot{'' if slots == 1 else 's'}"


def bounds_parts(result: Result) -> list[RenderableType]:
    """Return what first principles and theory say of the same figures; nothing where they do not apply."""
    plans = in_order(result.plans)
    rows: dict[tuple[str, str, str], dict[str, float]] = {}
    for plan in plans:
        for item in plan.expected:
            rows.setdefault((item.figure, item.kind, item.why), {})[plan.label] = item.value
    table = new_table("bounds and theory", *(plan.label for plan in plans))
    for (figure, kind, why), values in rows.items():
        figures = (number(values.get(plan.label, math.nan)) for plan in plans)
        table.add_row(f"{figure_of(figure).words}, {kind} ({why})", *figures)
    return ["", table] if rows else []


def checks_words(checks: CheckReport) -> str:
    """Return what the checks of the runs counted."""
    spread = ", at a spread of slot numbers" if checks.slot_numbers_left_out else ""
    return (
        f"{checks.requests:,} requests: {checks.requests_exact:,} exact, "
        f"{checks.requests_bounded:,} bounded, {checks.requests_violated:,} violated; "
        f"{checks.calls_conserved:,} calls conserved; "
        f"{checks.replays_words} isolated replays{spread}; Little's law exact; "
        f"by the {checks.run_by_words} check{'s' * (len(checks.run_by) > 1)}"
    )


def slo_lines(result: Result) -> list[str]:
    """Return each rule of the SLO with its verdict."""
    several = len(result.scenario.parts) > 1
    return [
        f"slo: {f'{one.workload}: ' if several else ''}{one.rule} on {one.plan}: {one.verdict}"
        f" ({estimate(one.value)}{f'; {one.reason}' if one.reason else ''})"
        for one in result.slo
    ]
