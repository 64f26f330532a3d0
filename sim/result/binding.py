"""What binds, in words: one or two lines before everything else."""

import math
from collections.abc import Iterator, Sequence

from sim.plan.constraint import Constraint
from sim.result.capacity import Arriving, PlanCapacity, StretchCapacity
from sim.scenario import Scenario
from sim.statistics.digits import decimals_of, fixed, typed


def binding_lines(scenario: Scenario, found: Sequence[PlanCapacity]) -> list[str]:
    """Return what binds, and the largest sustainable rate or the knee; plans alike together.

    Of a load that changes it is the stretch with the highest load.
    """
    several = len(scenario.providers) > 1
    plans: dict[str, list[str]] = {}
    for plan in found:
        stretch = plan.worst
        when = f" ({stretch.stretch.name})" if stretch.stretch.name else ""
        rates = (line for one in stretch.workloads for line in workload_lines(scenario, stretch, one))
        plans.setdefault("; ".join([f"{answer(stretch, several, by_way=False)}{when}", *rates]), []).append(
            plan.label
        )
    return [words if len(plans) == 1 else f"{', '.join(labels)}: {words}" for words, labels in plans.items()]


def answer(stretch: StretchCapacity, several: bool, *, by_way: bool = True) -> str:
    """Return what binds, and whether there is a steady state."""
    bound = stretch.binding
    if bound is None:
        return "nothing is asked for"
    words = f"binding: {named(bound, several)}, loaded to {percent(bound.load)}"
    if stretch.overloaded:
        words += "; no steady state"
    elif bound.is_reached():
        words += "; users wait"
    ways = stretch.load_by_way if by_way else {}
    others = {way: load for way, load in ways.items() if load != stretch.load}
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
    return "without end" if math.isinf(share) else f"{shown(100 * share)} %"


def shown(value: float) -> str:
    """Return a number as text, with more decimals where it is small."""
    return typed(fixed(value, decimals_of(value)))
