"""Periods and workloads of a simulated scenario as tables for the terminal."""

from rich.console import RenderableType

from sim.cli.figures import FIGURES, SHARE, TIME, estimate, heading, in_order, whole
from sim.cli.terminal import new_table
from sim.result.plan_result import PeriodResult
from sim.result.result import Result

PERIOD_FIGURES = {
    "latency_ms_mean": TIME,
    "latency_ms_p95": TIME,
    "latency_ms_max": TIME,
    "waiting_ms_mean": TIME,
    "utilisation": SHARE,
}
WORKLOAD_FIGURES = {
    "latency_ms_mean": ("latency mean, ms", TIME),
    "latency_ms_p95": ("latency p95, ms", TIME),
    "latency_ms_max": ("latency max, ms", TIME),
    "waiting_ms_max": ("longest wait of a call, ms", TIME),
    "slot_share": ("slot-time of all, %", SHARE),
    "succeeded_share": ("succeeded, %", SHARE),
}


def periods_parts(result: Result) -> list[RenderableType]:
    """Return the periods of a load that changes, each plan after the other; nothing for other loads."""
    if not result.plans[0].periods:
        return []
    names = (FIGURES[name][0] for name in PERIOD_FIGURES)
    table = new_table("plan", "period", "requests", *names, "active", "stability", words=2, last_words=1)
    for plan in in_order(result.plans):
        for period in plan.periods:
            requests = whole(period.estimates["requests"].mean)
            figures = (estimate(period.estimates[name], kind) for name, kind in PERIOD_FIGURES.items())
            table.add_row(plan.label, period.period.name, requests, *figures, *backlog_words(period))
    return ["", table]


def backlog_words(period: PeriodResult) -> tuple[str, str]:
    """Return the active requests at both ends of a period, and its label."""
    ends = (whole(period.estimates[f"active_at_{end}"].mean) for end in ("start", "end"))
    return " -> ".join(ends), period.stability.label


def workloads_parts(result: Result) -> list[RenderableType]:
    """Return the workloads that share the provider, each plan after the other; nothing for one alone."""
    if not result.plans[0].workloads:
        return []
    names = (words for words, _ in WORKLOAD_FIGURES.values())
    table = new_table("plan", "workload", "requests", *names, words=2)
    for plan in in_order(result.plans):
        for one in plan.workloads:
            requests = whole(one.estimates["requests"].mean)
            figures = (estimate(one.estimates[name], kind) for name, (_, kind) in WORKLOAD_FIGURES.items())
            table.add_row(heading(plan), one.name, requests, *figures)
    return ["", table]
