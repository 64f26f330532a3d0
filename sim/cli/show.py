"""Results as tables and sentences for the terminal."""

import math
from collections.abc import Iterable, Sequence

from rich.console import RenderableType
from rich.table import Table

from sim.check import CheckReport
from sim.cli.terminal import new_table
from sim.decide import Criterion
from sim.decision import Decision
from sim.interval import Difference, Estimate
from sim.plan_result import PeriodResult, PlanResult
from sim.result import Result
from sim.scenario import Scenario
from sim.scenario.load import ClosedLoad, OpenLoad, StepsLoad, TraceLoad
from sim.units import round_half_away

BLANK = "-"
OVERLOADED = "overloaded"
MOST_DECIMALS = 6
ORDER = {"parallel": 0, "serial": 1, "adaptive": 2, "warm_first": 3}
"""Plans in tables: the question, what it is held against, the mixture of both, and the lead for a cache."""

TIME, SHARE, NUMBER = "time", "share", "number"
FIGURES = {
    "latency_ms_mean": ("latency mean, ms", TIME),
    "latency_ms_p50": ("latency p50, ms", TIME),
    "latency_ms_p90": ("latency p90, ms", TIME),
    "latency_ms_p95": ("latency p95, ms", TIME),
    "latency_ms_p99": ("latency p99, ms", TIME),
    "latency_ms_max": ("latency max, ms", TIME),
    "waiting_ms_mean": ("waiting of a call, mean, ms", TIME),
    "waiting_ms_p95": ("waiting of a call, p95, ms", TIME),
    "waiting_ms_max": ("waiting of a call, max, ms", TIME),
    "utilisation": ("utilisation, %", SHARE),
    "throughput_per_s": ("throughput, requests/s", TIME),
    "active_requests_mean": ("active requests, mean", TIME),
    "parallel_share": ("requests run in parallel, %", SHARE),
    "cost_micros_per_request": ("cost per request, micros", NUMBER),
}


def number(value: float, decimals: int | None = None) -> str:
    """Return a number as text, with more decimals where it is small."""
    if math.isnan(value):
        return BLANK
    places = decimals_of(value) if decimals is None else decimals
    return f"{round_half_away(value, places):,.{places}f}"


def decimals_of(value: float) -> int:
    """Return how many decimals a number is shown with."""
    size = abs(value)
    return 1 if size >= 10 or size == 0 else 2 if size >= 1 else 3


def whole(value: float) -> str:
    """Return a number with no decimals where it has none."""
    return f"{value:,.0f}" if value == int(value) else number(value)


def estimate(figure: Estimate | Difference, kind: str = TIME) -> str:
    """Return a mean with the half-width of its interval, unless that is 0; a blank where it is missing."""
    if math.isnan(figure.mean):
        return BLANK
    scale = 100 if kind == SHARE else 1
    mean, half_width = scale * figure.mean, scale * (figure.half_width or 0)
    if not half_width:
        return whole(mean) if kind == NUMBER else number(mean)
    decimals = decimals_of(mean)
    while half_width < 0.5 * 10**-decimals and decimals < MOST_DECIMALS:
        decimals += 1
    return f"{number(mean, decimals)} ± {number(half_width, decimals)}"


def in_order(plans: Iterable[PlanResult]) -> list[PlanResult]:
    """Return plans as tables show them."""
    return sorted(plans, key=lambda plan: ORDER[plan.plan.plan])


def heading(plan: PlanResult) -> str:
    """Return a plan's label, with a word where its figures are no steady state."""
    return f"{plan.label} ({OVERLOADED})" if plan.stability.label == OVERLOADED else plan.label


def load_words(scenario: Scenario) -> str:
    """Return the load in a few words."""
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
        f"{scenario.name} ({scenario.path}): {scenario.provider.concurrency:,} slots "
        f"{scenario.provider.allocation}; load {load_words(scenario)}; {runs}; "
        f"seed {scenario.experiment.seed}; engine {result.engine}"
    )


def run_parts(result: Result) -> list[RenderableType]:
    """Return everything about one simulated scenario: the verdict first."""
    return [
        header(result),
        *decision_lines(result.decision),
        "",
        figures_table(result),
        *missing_lines(result),
        "",
        bounds_table(result),
        *periods_parts(result),
        "",
        *(f"{plan.label}: {plan.stability.label}: {plan.stability.reason}" for plan in result.plans),
        f"checks: {checks_words(result.checks)}",
        *slo_lines(result),
        *(f"note: {note}" for note in result.notes),
    ]


def figures_table(result: Result) -> Table:
    """Return the figures, one a row, and the plans, one a column."""
    plans = in_order(result.plans)
    table = new_table("", *(heading(plan) for plan in plans))
    attained = [name for name in plans[0].estimates if name.startswith("share_within_")]
    shown = FIGURES | {
        name: (f"{name.removeprefix('share_').removesuffix('_ms').replace('_', ' ')} ms, %", SHARE)
        for name in attained
    }
    for name, (words, kind) in shown.items():
        table.add_row(words, *(estimate(plan.estimates[name], kind) for plan in plans))
    table.add_row("requests counted", *(whole(plan.estimates["requests"].mean) for plan in plans))
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
        for name in FIGURES:
            figure = plan.estimates[name]
            if math.isnan(figure.mean):
                reasons.setdefault(f"{name}: {figure.reason}", []).append(plan.label)
    return [f"{reason} ({', '.join(plans)})" for reason, plans in reasons.items()]


def decision_lines(decision: Decision) -> list[str]:
    """Return the decision and its criteria, and what the plan arithmetic says."""
    measured = decision.measured
    criteria = measured.verdict.criteria if measured and measured.verdict else ()
    lines = [decision.reason, *(criterion_line(one) for one in criteria)]
    for at in decision.arithmetic:
        each = slots_words(at.evaluation.concurrency)
        lines.append(
            f"by arithmetic at {at.active_requests:,} active requests, {each} each: {at.evaluation.reason}"
        )
    lines += [f"{name}: {each.reason}" for name, each in decision.by_period.items()]
    return lines


def criterion_line(criterion: Criterion) -> str:
    """Return one of the four criteria with its outcome."""
    return f"  {'pass' if criterion.passed else 'FAIL'}  {criterion.words}"


def slots_words(slots: int) -> str:
    """Return a number of slots in words."""
    return f"{slots:,} slot{'' if slots == 1 else 's'}"


def bounds_table(result: Result) -> Table:
    """Return what first principles and theory say of the same figures."""
    plans = in_order(result.plans)
    rows: dict[tuple[str, str, str], dict[str, float]] = {}
    for plan in plans:
        for item in plan.expected:
            rows.setdefault((item.figure, item.kind, item.why), {})[plan.label] = item.value
    table = new_table("bounds and theory", *(plan.label for plan in plans))
    for (figure, kind, why), values in rows.items():
        words, _ = FIGURES[figure]
        table.add_row(
            f"{words}, {kind} ({why})", *(number(values.get(plan.label, math.nan)) for plan in plans)
        )
    return table


def periods_parts(result: Result) -> list[RenderableType]:
    """Return the periods of a load that changes, each plan after the other; nothing for other loads."""
    if not result.plans[0].periods:
        return []
    columns = {
        "latency_ms_mean": TIME,
        "latency_ms_p95": TIME,
        "latency_ms_max": TIME,
        "waiting_ms_mean": TIME,
        "utilisation": SHARE,
    }
    table = new_table(
        "plan",
        "period",
        "requests",
        *(FIGURES[name][0] for name in columns),
        "active",
        "stability",
        words=2,
        last_words=1,
    )
    for plan in in_order(result.plans):
        for period in plan.periods:
            figures = (estimate(period.estimates[name], kind) for name, kind in columns.items())
            table.add_row(plan.label, *period_words(period), *figures, *backlog_words(period))
    return ["", table]


def period_words(period: PeriodResult) -> tuple[str, str]:
    """Return the name of a period and how many requests arrived in it."""
    return period.period.name, whole(period.estimates["requests"].mean)


def backlog_words(period: PeriodResult) -> tuple[str, str]:
    """Return the active requests at both ends of a period, and its label."""
    ends = (whole(period.estimates[f"active_at_{end}"].mean) for end in ("start", "end"))
    return " -> ".join(ends), period.stability.label


def checks_words(checks: CheckReport) -> str:
    """Return what the checks of the runs counted."""
    return (
        f"{checks.requests:,} requests: {checks.requests_exact:,} exact, "
        f"{checks.requests_bounded:,} bounded, {checks.requests_violated:,} violated; "
        f"{checks.calls_conserved:,} calls conserved; "
        f"{checks.isolated_replays:,} isolated replays; Little's law exact"
    )


def slo_lines(result: Result) -> list[str]:
    """Return each rule of the SLO with its verdict."""
    return [
        f"slo: {verdict.rule} on {verdict.plan}: {verdict.verdict}"
        f" ({estimate(verdict.value)}{f'; {verdict.reason}' if verdict.reason else ''})"
        for verdict in result.slo
    ]
