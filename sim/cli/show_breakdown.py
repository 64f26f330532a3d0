"""Periods and workloads of a simulated scenario as tables for the terminal."""

from rich.console import RenderableType

from sim.cli.figures import heading, in_order, text_of, whole
from sim.cli.terminal import new_table
from sim.contract import figure as named
from sim.contract.figure import FIGURES
from sim.result.plan_result import PeriodResult
from sim.result.result import Result

PERIOD_FIGURES = (*named.LATENCIES, named.MEAN_WAIT, named.UTILISATION)
WORKLOAD_FIGURES = (*named.LATENCIES, named.MAX_WAIT, named.SLOT_SHARE, named.SUCCEEDED_SHARE)


def periods_parts(result: Result) -> list[RenderableType]:
    """Return the periods of a load that changes, each plan after the other; nothing for other loads."""
    if not result.plans[0].periods:
        return []
    names = (FIGURES[name].words for name in PERIOD_FIGURES)
    table = new_table("plan", "period", "requests", *names, "active", "stability", words=2, last_words=1)
    for plan in in_order(result.plans):
        for period in plan.periods:
            requests = whole(period.estimates[named.REQUESTS].mean)
            figures = (text_of(period.estimates, name) for name in PERIOD_FIGURES)
            table.add_row(plan.label, period.period.name, requests, *figures, *backlog_words(period))
    return ["", table]


def backlog_words(period: PeriodResult) -> tuple[str, str]:
    """Return the active requests at both ends of a period, and its label."""
    ends = (whole(period.estimates[name].mean) for name in (named.ACTIVE_AT_START, named.ACTIVE_AT_END))
    return " -> ".join(ends), period.stability.label


def workloads_parts(result: Result) -> list[RenderableType]:
    """Return the workloads that share the provider, each plan after the other; nothing for one alone."""
    if not result.plans[0].workloads:
        return []
    names = (FIGURES[name].words for name in WORKLOAD_FIGURES)
    table = new_table("plan", "workload", "requests", *names, words=2)
    for plan in in_order(result.plans):
        for one in plan.workloads:
            requests = whole(one.estimates[named.REQUESTS].mean)
            figures = (text_of(one.estimates, name) for name in WORKLOAD_FIGURES)
            table.add_row(heading(plan), one.name, requests, *figures)
    return ["", table]
