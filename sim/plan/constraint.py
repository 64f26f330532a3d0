"""What binds: everything with a capacity, and what a load asks of it.

Pure arithmetic. Offered and capacity of a constraint share one unit; a constraint is a provider's own, and
nothing is added up over providers.

Source: Denning and Buzen, "The operational analysis of queueing network models", Computing Surveys 10, 1978
(utilisation law, asymptotic bounds and the number of users at which they meet).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

ROUNDING = 1e-9
"""A rate given as a decimal may miss a capacity by its last bits."""
MOST_BOUGHT = 1 << 60
"""Nothing is looked for beyond this."""


def as_stated(stated: float) -> float:
    """Return the capacity of what is as large as it is stated: slots, the refill of a bucket."""
    return float(stated)


@dataclass(frozen=True, slots=True)
class CapacityStep:
    """A capacity that holds from one second to another."""

    from_s: float
    to_s: float
    capacity: float


@dataclass(frozen=True, slots=True)
class Constraint:
    """One thing with a capacity, and what is asked of it.

    Parameters
    ----------
    name, provider, unit
        Such as `rpm`, the provider's name, and `calls/min`.
    offered, capacity
        Arrival rate x mean demand of a request, and what there is of it on average; both in the unit.
    from_users
        The part of `offered` that users ask for who wait for their answers: as if they never had to queue.
    steps
        The capacities that the average is of, where it changes over time.
    capacity_of
        The capacity that another stated value would give; never falling.
    """

    name: str
    provider: str
    unit: str
    offered: float
    capacity: float
    from_users: float = 0.0
    steps: tuple[CapacityStep, ...] = ()
    capacity_of: Callable[[int], float] = field(default=as_stated, compare=False, repr=False)

    @property
    def load(self) -> float:
        """Offered / capacity; infinite where nothing is there of what is asked for."""
        return ratio(self.offered, self.capacity)

    @property
    def from_arrivals(self) -> float:
        """The part of `offered` that comes whether or not others have their answers."""
        return self.offered - self.from_users

    def load_on(self, step: CapacityStep) -> float:
        """Return the load on one of several capacities."""
        return ratio(self.offered, step.capacity)

    def is_reached(self, share: float = 1.0) -> bool:
        """Return whether so large a share of the capacity is asked for."""
        return self.offered > 0 and self.offered >= share * self.capacity * (1 - ROUNDING)

    def is_above(self, share: float) -> bool:
        """Return whether more than so large a share of the capacity is asked for."""
        return self.offered > share * self.capacity * (1 + ROUNDING)

    def needed(self, target_load: float) -> int | None:
        """Return the smallest stated value at which the load is no more than the target; None for none."""
        wanted = self.offered / target_load * (1 - ROUNDING)
        most = 1
        while self.capacity_of(most) < wanted:
            most *= 2
            if most > MOST_BOUGHT:
                return None
        least = most // 2  # too little, or 0
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (least, middle) if self.capacity_of(middle) >= wanted else (middle, most)
        return most


def ratio(offered: float, capacity: float) -> float:
    """Return offered / capacity, infinite for something of nothing."""
    if capacity > 0:
        return offered / capacity
    return math.inf if offered > 0 else 0.0


def binding(constraints: Sequence[Constraint]) -> Constraint | None:
    """Return the constraint with the highest load, the first of several; None where nothing is asked for."""
    loaded = [one for one in constraints if one.offered > 0]
    return max(loaded, key=lambda one: one.load, default=None)


def largest_rate(rate: float, constraints: Sequence[Constraint]) -> float:
    """Return the rate of arrivals at which the first constraint is loaded to 100 %: rate / highest load.

    Users who wait for their answers make way, so that what they ask for does not count. Infinite where
    arrivals ask for nothing.
    """
    asked = [one for one in constraints if one.from_arrivals > 0]
    return min((rate * one.capacity / one.from_arrivals for one in asked), default=math.inf)


def knee(users: float, constraints: Sequence[Constraint]) -> float:
    """Return the number of users at which the asymptotic bounds of their throughput meet.

    Up to there they get what they would get alone, users / (unloaded latency + think time); beyond it the
    scarcest of what arrivals leave, min(capacity / demand). Infinite where users ask for nothing.
    """
    asked = [one for one in constraints if one.from_users > 0]
    left = (users * (one.capacity - one.from_arrivals) / one.from_users for one in asked)
    return max(0.0, min(left, default=math.inf))


def averaged(steps: Sequence[tuple[float, float]], from_s: float, to_s: float) -> tuple[CapacityStep, ...]:
    """Return the capacities that hold between two seconds, of pairs (from second, capacity), the first at 0.

    The last one holds from then on; a span of no length has the capacity of its instant.
    """
    ends_s = [at_s for at_s, _ in steps[1:]] + [math.inf]
    found = tuple(
        CapacityStep(max(at_s, from_s), min(end_s, to_s), capacity)
        for (at_s, capacity), end_s in zip(steps, ends_s, strict=True)
        if at_s < to_s and end_s > from_s
    )
    return found or tuple(CapacityStep(from_s, to_s, cap) for at_s, cap in steps if at_s <= from_s)[-1:]


def mean_capacity(steps: Sequence[CapacityStep]) -> float:
    """Return the average of capacities, each counted by how long it lasts."""
    if len(steps) == 1:
        return steps[0].capacity
    span_s = sum(step.to_s - step.from_s for step in steps)
    return sum(step.capacity * (step.to_s - step.from_s) for step in steps) / span_s
