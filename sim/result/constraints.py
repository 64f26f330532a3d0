"""The kinds of constraints that a provider has, and what a load asks of each."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from sim.contract.limit import UNIT_OF_KEY
from sim.plan.constraint import CapacityStep, Constraint, averaged, mean_capacity
from sim.result.demand import Demand
from sim.result.stretch import Stretch
from sim.scenario.limits import WINDOW_S
from sim.scenario.provider import Provider
from sim.units import exact

SLOTS = "slots"
WORDS_OF_UNIT = {"calls": "calls/min"}
"""What a limit counts per minute, where that is no token."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of one provider in a stretch, per second: in all, and by users who wait for answers."""

    name: str
    provider: Provider
    stretch: Stretch
    per_s: Demand
    from_users_per_s: Demand


def slots(asked: Asked) -> Iterator[Constraint]:
    """Yield the slots: what is asked of them is work, in seconds of slots per second."""
    provider, stretch = asked.provider, asked.stretch
    capacity, steps = float(provider.concurrency), tuple[CapacityStep, ...]()
    if provider.concurrency_steps:
        stated = [
            (0.0, capacity),
            *((one.at_s, float(one.concurrency)) for one in provider.concurrency_steps),
        ]
        found = averaged(stated, stretch.from_s, math.inf if stretch.to_s is None else stretch.to_s)
        capacity, steps = mean_capacity(found), found if len(found) > 1 else ()
    yield Constraint(
        SLOTS, asked.name, SLOTS, asked.per_s.slot_s, capacity, asked.from_users_per_s.slot_s, steps
    )


def rate_limits(asked: Asked) -> Iterator[Constraint]:
    """Yield each limit per minute: of calls, and of the tokens that it counts in the end."""
    limits, per_s = asked.provider.limits, asked.per_s
    if limits is None:
        return
    for key, stated in limits.stated.items():
        unit = UNIT_OF_KEY[key]
        capacity_of: Callable[[int], float] = float
        if not limits.refills:
            calls = per_s.calls or 1.0
            counted = getattr(per_s, unit) / calls
            reserved = getattr(per_s, f"reserved_{unit}", getattr(per_s, unit)) / calls
            capacity_of = partial(admitted_per_min, limits.window_s, counted, reserved)
        yield Constraint(
            key,
            asked.name,
            WORDS_OF_UNIT.get(unit, "tokens/min"),
            WINDOW_S * getattr(per_s, unit),
            capacity_of(stated),
            WINDOW_S * getattr(asked.from_users_per_s, unit),
            capacity_of=capacity_of,
        )


KINDS: tuple[Callable[[Asked], Iterator[Constraint]], ...] = (slots, rate_limits)
"""All that there are, in the order in which tables have them; one that binds more is one more entry."""


def admitted_per_min(window_s: float, counted: float, reserved: float, stated: int) -> float:
    """Return what a limit that counts anew in each window admits per minute.

    Parts of a call do not fit: after the calls that a window has counted there must be room for what the next
    one reserves. An empty window admits a call of any size, if it admits anything.
    """
    per_window = math.floor(stated * exact(window_s) / WINDOW_S)
    if counted <= 0 or per_window < 1:
        return float(per_window)
    calls = 1 + math.floor(max(0.0, per_window - reserved) / counted + 1e-9)
    return calls * counted * WINDOW_S / window_s
