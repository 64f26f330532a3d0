"""What binds, as tables and sentences for the terminal."""

import math
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table

from sim.cli.terminal import new_table
from sim.plan.constraint import Constraint
from sim.result.capacity import Arriving, PlanCapacity, StretchCapacity
from sim.scenario import Scenario
from sim.statistics.digits import decimals_of, fixed, trimmed, typed

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


def answer(stretch: StretchCapacity, several: bool) -> str:
    """Return what binds, and whether there is a steady state."""
    bound = stretch.binding
    if bound is None:
        return "nothing is asked for"
    words = f"binding: {named(bound, several)}, loaded to {percent(bound.load)}"
    if stretch.overloaded:
        words += "; no steady state"
    elif bound.is_reached():
        words += "; users wait"
    others = {way: load for way, load in stretch.load_by_way.items() if load != stretch.load}
    return words + "".join(f" (all in {way}: {percent(load)})" for way, load in others.items())


def workload_lines(scenario: Scenario, stretch: StretchCapacity, one: Arriving) -> Iterator[str]:
    """Yield the largest sustainable rate of a workload, or its knee."""
    of = f"{one.name}: " if len(scenario.parts) > 1 else ""
    if one.users is None:
        most = stretch.largest_rate_per_s(one)
        yield f"{of}{number(one.rate_per_s)} requests/s; largest sustainable rate {number(most)} requests/s"
        return
    pause = f" + {number(one.think_ms)} ms pause" if one.think_ms else ""
    yield (
        f"{of}{number(one.users)} users; knee at {number(stretch.knee_users(one))} users"
        f" ({number(one.unloaded_ms)} ms unloaded{pause});"
        f" at most {number(stretch.throughput_per_s(one))} requests/s"
    )


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


def named(one: Constraint, several: bool) -> str:
    """Return a constraint's name, with the provider's where there are several."""
    return f"{one.name} of {one.provider}" if several else one.name


def number(value: float | None) -> str:
    """Return a number as text, whole where it is but for its last bits."""
    if value is None or math.isinf(value):
        return "without end"
    return f"{value:,.0f}" if math.isclose(value, round(value)) else shown(value)


def percent(share: float) -> str:
    """Return a share as text."""
    return f"{shown(100 * share)} %"


def shown(value: float) -> str:
    """Return a number as text, with more decimals where it is small."""
    return typed(fixed(value, decimals_of(value)))
