"""What binds, as tables and sentences for the terminal."""

import math
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table

from sim.cli.terminal import new_table
from sim.plan.constraint import Constraint
from sim.result.binding import answer, named, number, percent, shown, workload_lines
from sim.result.capacity import PlanCapacity, StretchCapacity
from sim.scenario import Scenario
from sim.statistics.digits import trimmed

BAR, MOST_BEYOND = 20, 10
"""Characters for a load of 100 %, and most of them beyond it."""


def capacity_parts(
    scenario: Scenario, found: Sequence[PlanCapacity], target_load: float
) -> Iterator[RenderableType]:
    """Yield, for each plan and each stretch of the load, the answer, the table and what to buy."""
    yield f"{scenario.name} ({scenario.path}): by arithmetic, nothing simulated"
    for plan in found:
        for stretch in plan.stretches:
            yield ""
            yield from stretch_parts(title(plan, stretch), scenario, stretch, target_load)
    yield from assumption_lines(found)


def assumption_lines(found: Sequence[PlanCapacity]) -> Iterator[str]:
    """Yield what was assumed, each once, with the plans where it is not all of them."""
    holders: dict[str, list[str]] = {}
    for plan in found:
        for words in plan.assumptions:
            holders.setdefault(words, []).append(plan.label)
    yield from [""] * bool(holders)
    for words, labels in holders.items():
        only = "" if len(labels) == len(found) else f" ({', '.join(labels)})"
        yield f"assumed: {words}{only}"


def title(plan: PlanCapacity, stretch: StretchCapacity) -> str:
    """Return what a table is about."""
    period = stretch.stretch
    return (
        plan.label
        if period.name is None
        else f"{plan.label}, {period.name}, {period.from_s:g} to {period.to_s:g} s"
    )


def stretch_parts(
    about: str, scenario: Scenario, stretch: StretchCapacity, target_load: float
) -> Iterator[RenderableType]:
    """Yield the answer of one stretch, its table, its steps and what to buy."""
    several = len(scenario.providers) > 1
    yield f"{about}: {answer(stretch, several)}"
    yield from (f"  {words}" for one in stretch.workloads for words in workload_lines(scenario, stretch, one))
    yield constraints_table(stretch, several)
    for one in stretch.constraints:
        yield from (f"  {words}" for words in step_lines(one, several))
    yield from (f"  to buy: {buying(one, several, target_load)}" for one in stretch.to_buy(target_load))


def constraints_table(stretch: StretchCapacity, several: bool) -> Table:
    """Return one row for each constraint, the binding one marked."""
    table = new_table(
        "constraint", "offered", "capacity", "unit", "load, %", "load, | is 100 %", words=1, last_words=1
    )
    for one in stretch.constraints:
        mark = " <- binds" if one is stretch.binding else ""
        table.add_row(
            named(one, several),
            number(one.offered),
            number(one.capacity),
            one.unit,
            shown(100 * one.load),
            bar(one.load) + mark,
        )
    return table


def bar(load: float) -> str:
    """Return a bar as long as a load, with a mark at 100 %; one that is cut ends in an arrow."""
    length = BAR + MOST_BEYOND + 1 if math.isinf(load) else math.floor(BAR * load + 0.5)
    within, beyond = min(length, BAR), max(0, length - BAR)
    cut = "#" * min(beyond, MOST_BEYOND) + ">" * (beyond > MOST_BEYOND)
    return f"{'#' * within}{' ' * (BAR - within)}|{cut}"


def step_lines(one: Constraint, several: bool) -> Iterator[str]:
    """Yield the load on each of a constraint's capacities; the last one stays."""
    for step in one.steps:
        last = "the last step, " if step is one.steps[-1] else ""
        at = f"{named(one, several)} from {step.from_s:g} s"
        yield f"{at}: {last}{step.capacity:g}, loaded to {percent(one.load_on(step))}"


def buying(one: Constraint, several: bool, target_load: float) -> str:
    """Return the smallest stated value that brings the load to the target."""
    needed = one.needed(target_load)
    if needed is None:
        return f"no {named(one, several)} is enough"
    return f"{named(one, several)} {needed:,} for a load of {trimmed(100 * target_load)} %"
