"""What binds each plan, by arithmetic: the first table of a report."""

from collections.abc import Iterator

from sim.answers.comparison import Comparison
from sim.report.content import Cell, Section, table_of
from sim.result.binding import named, number, percent
from sim.result.plan_result import PlanResult
from sim.result.result import Result
from sim.statistics.digits import BLANK

HEADINGS = ("Scenario", "Plans", "Binding", "Offered", "Capacity", "Unit", "Load", "Largest rate or knee")


def capacity(comparison: Comparison) -> Section:
    """Return what is loaded most; plans of which the same holds share a row."""
    rows = (row for result in comparison.results for row in rows_of(result))
    table = table_of("What binds, by arithmetic", "lllrrlrr", HEADINGS, rows)
    return Section("capacity", "What binds", (table,))


def rows_of(result: Result) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each answer, at the time of the highest load where that changes."""
    plans: dict[tuple[str, ...], list[str]] = {}
    for plan in result.plans:
        plans.setdefault(texts(result, plan), []).append(plan.label)
    for found, labels in plans.items():
        yield tuple(map(Cell, (result.scenario.name, ", ".join(labels), *found)))


def texts(result: Result, plan: PlanResult) -> tuple[str, ...]:
    """Return the binding constraint, what is asked of it, and how much more would do."""
    stretch = plan.capacity.worst
    bound = stretch.binding
    if bound is None:
        return (BLANK,) * (len(HEADINGS) - 2)
    when = f", {stretch.stretch.name}" if stretch.stretch.name else ""
    most = (
        f"{number(stretch.largest_rate_per_s(one))} requests/s"
        if one.users is None
        else f"{number(stretch.knee_users(one))} users"
        for one in stretch.workloads
    )
    return (
        named(bound, len(result.scenario.providers) > 1) + when,
        number(bound.offered),
        number(bound.capacity),
        bound.unit,
        percent(bound.load),
        ", ".join(most),
    )
