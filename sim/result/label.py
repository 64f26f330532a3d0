"""Whether a plan's run has a steady state, from what binds by arithmetic and from what was measured."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sim.contract.figure import FAILED_SHARE, MEAN_WAIT, REJECTED_SHARE, TIMED_OUT_SHARE, UTILISATION
from sim.draws.drawing import is_closed, is_deterministic
from sim.plan.constraint import ROUNDING, Constraint
from sim.result.binding import named, percent
from sim.result.capacity import PlanCapacity, StretchCapacity
from sim.result.constraints import SLOTS
from sim.run.measure import Measured, MeasuredPeriod
from sim.scenario import Scenario
from sim.scenario.load import ClosedLoad, OpenLoad
from sim.statistics.figures import Figures
from sim.statistics.stability import (
    COLLAPSED,
    DETERMINISTIC,
    LIMITED_BY,
    NEAR,
    NEAR_SATURATION,
    OVERLOADED,
    STABLE,
    Backlog,
    Stability,
    rise_in_words,
    rises,
)

WORST_FIRST = (OVERLOADED, COLLAPSED, LIMITED_BY, NEAR, STABLE, DETERMINISTIC)
DELIVERED_LEAST = 0.9
"""Less than this share of what the unloaded system would deliver is a collapse."""
WAIT_LEAST, REJECTED_LEAST = 0.1, 0.01
"""A collapse comes of waiting, as a share of the unloaded latency, or of calls that were turned away."""


def label_run(scenario: Scenario, capacity: PlanCapacity, measured: Sequence[Measured]) -> Stability:
    """Return the label of a plan's runs; a changing load is as steady as its worst period."""
    if scenario.rates is not None and scenario.periods:
        parts = zip(*(one.periods for one in measured), strict=True)
        labels = [(part[0].period.name, label_period(scenario, capacity, part)) for part in parts]
        name, worst = min(labels, key=lambda item: _place(item[1]))
        return replace(worst, reason=f"{name}: {worst.reason}")
    figures, backlogs = [one.figures for one in measured], [one.backlog for one in measured]
    # A profile without periods has its whole first; of users who come and go the most are looked at.
    stretch = capacity.worst if scenario.rates is None else capacity.stretches[0]
    return label_of(scenario, stretch, figures, backlogs)


def label_period(scenario: Scenario, capacity: PlanCapacity, parts: Sequence[MeasuredPeriod]) -> Stability:
    """Return the label of one period of a changing load, over the replications."""
    period = parts[0].period
    found = (
        one
        for one in capacity.stretches
        if (one.stretch.from_s, one.stretch.to_s) == (period.from_s, period.to_s)
    )
    stretch = next(found, capacity.worst)
    return label_of(scenario, stretch, [part.figures for part in parts], [part.backlog for part in parts])


def is_finite(scenario: Scenario) -> bool:
    """Return whether a load ends by nature: a trace, steps or a profile."""
    return not all(isinstance(part.load, ClosedLoad | OpenLoad) for part in scenario.parts)


def label_of(
    scenario: Scenario, stretch: StretchCapacity, figures: Sequence[Figures], backlogs: Sequence[Backlog]
) -> Stability:
    """Return the label of a stretch from what it asks for, its figures and its backlog, by replication."""
    bound, several = stretch.binding, len(scenario.providers) > 1
    name = None if bound is None else named(bound, several)
    label, reason = (_users_label if all(map(is_closed, scenario.parts)) else _arrivals_label)(
        scenario, stretch, figures, backlogs
    )
    return Stability(label, reason, name, is_finite(scenario))


def overload_of(stretch: StretchCapacity) -> tuple[Constraint, float] | None:
    """Return the constraint that arrivals load to 100 % or more, and its load; the last of its steps counts.

    Slots that change have their average over the load, and the last number of them for good.
    """
    found = [(one, one.load) for one in stretch.overloaded]
    for one in stretch.constraints:
        for step in one.steps[-1:]:
            last = replace(one, offered=one.from_arrivals, from_users=0.0, capacity=step.capacity)
            if last.is_reached():
                found.append((one, max(one.load, last.load)))
    return max(found, key=lambda item: item[1], default=None)


def _arrivals_label(
    scenario: Scenario, stretch: StretchCapacity, figures: Sequence[Figures], backlogs: Sequence[Backlog]
) -> tuple[str, str]:
    bound, over, fitting = stretch.binding, overload_of(stretch), fitting_requests(stretch)
    several = len(scenario.providers) > 1
    short = shortfall(stretch, figures, over[1] if over else stretch.load)
    if short:
        return COLLAPSED, short
    if over is not None:
        one, load = over
        return OVERLOADED, f"{named(one, several)} loaded to {percent(load)}{asked_words(one)}"
    if rises(backlogs, fitting):
        return OVERLOADED, rise_in_words(backlogs, fitting)
    words = "nothing is asked for"
    if bound is not None:
        words = f"{named(bound, several)} loaded to {percent(bound.load)}"
    if is_deterministic(scenario):
        return DETERMINISTIC, f"arrivals and service times are fixed; {words}"
    if bound is not None and bound.is_reached(NEAR_SATURATION):
        return NEAR, words
    return STABLE, f"{words} and the backlog shows no rising trend"


def _users_label(
    scenario: Scenario, stretch: StretchCapacity, figures: Sequence[Figures], _backlogs: Sequence[Backlog]
) -> tuple[str, str]:
    """Return the label of users who wait for their answers: they limit themselves."""
    bound, several = stretch.binding, len(scenario.providers) > 1
    busy = float(np.mean([float(one[UTILISATION]) for one in figures]))
    words = f"a closed load limits itself; the slots are {percent(busy)} busy"
    waits_for = bound if bound is not None and bound.is_reached() else None
    if waits_for is not None and waits_for.name != SLOTS:
        name = named(waits_for, several)
        return (
            f"{LIMITED_BY} {name}",
            f"{words}; users wait for {name}, not for slots{asked_words(waits_for)}",
        )
    if is_deterministic(scenario):
        return DETERMINISTIC, f"service times are fixed; {words}"
    full = waits_for is not None and several
    return (NEAR if busy >= NEAR_SATURATION or full else STABLE), words


def fitting_requests(stretch: StretchCapacity) -> float:
    """Return how many requests are active where the binding constraint is just used up, without queues.

    By Little's law: the calls in flight, or the requests at their unloaded latency, whichever is more, at the
    largest sustainable rate; users of other workloads besides. Infinite where nothing is asked for.
    """
    bound = stretch.binding
    if bound is None or not bound.load or math.isinf(bound.load):
        return math.inf
    calls = sum(one.from_arrivals for one in stretch.constraints if one.name == SLOTS)
    arriving = [one for one in stretch.workloads if one.users is None]
    requests = sum(one.rate_per_s * one.unloaded_ms / 1000 for one in arriving)
    users = sum(one.users or 0.0 for one in stretch.workloads)
    return max(calls, requests) / bound.load + users


def shortfall(stretch: StretchCapacity, figures: Sequence[Figures], load: float) -> str:
    """Return how much less is delivered than first attempts alone would be, where load is why; else empty."""
    share = [1 - float(one[FAILED_SHARE]) - float(one[TIMED_OUT_SHARE]) for one in figures]
    delivered = float(np.mean(share)) if share else math.nan
    rate = sum(one.rate_per_s for one in stretch.workloads)
    if math.isnan(delivered) or not rate:
        return ""
    unloaded = sum(one.rate_per_s * one.delivered_share for one in stretch.workloads) / rate
    alone_ms = sum(one.rate_per_s * one.unloaded_ms for one in stretch.workloads) / rate
    first = load / stretch.attempts_per_call
    waits = float(np.mean([float(one[MEAN_WAIT]) for one in figures]))
    rejected = float(np.mean([float(one.get(REJECTED_SHARE, 0.0)) for one in figures]))
    crowded = not waits < WAIT_LEAST * alone_ms or rejected >= REJECTED_LEAST
    if first > 1 + ROUNDING or not crowded or delivered >= DELIVERED_LEAST * unloaded:
        return ""
    return (
        f"first attempts alone would fit, loading it to {percent(first)}, but {percent(delivered)} of the "
        f"requests are delivered, where {percent(unloaded)} would be without others"
    )


def asked_words(one: Constraint) -> str:
    """Return what is asked of a constraint in its unit."""
    each = f"{one.offered:,.4g} of {one.capacity:,.4g} {one.unit}"
    steps = f", the last step {one.steps[-1].capacity:g}" if one.steps else ""
    return f", {each}{' on average' if one.steps else ''}{steps}"


def _place(one: Stability) -> int:
    return next(place for place, label in enumerate(WORST_FIRST) if one.label.startswith(label))
