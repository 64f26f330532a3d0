"""The parts of a load that are looked at by themselves, and how many requests come in each."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sim.draws.arrivals import CountClock
from sim.scenario import Scenario
from sim.scenario.load import ClosedLoad, OpenLoad, StepsLoad, TraceLoad
from sim.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time of the run; without a name it is the whole load. `to_s` is None where users end the run."""

    name: str | None
    from_s: float
    to_s: float | None


def stretches(scenario: Scenario) -> tuple[Stretch, ...]:
    """Return the periods of a load that changes; the whole of one that does not."""
    parts = scenario.parts
    changing = [part for part in parts if isinstance(part.load, StepsLoad) or part.rates is not None]
    found = tuple(one for part in changing for one in _periods(part, several=len(changing) > 1))
    return found or (Stretch(None, 0.0, whole_s(scenario)),)


def _periods(part: Scenario, *, several: bool) -> Iterator[Stretch]:
    """Yield a workload's periods; of a profile without any the whole, and the piece with the highest rate."""
    before = f"{part.part_name}, " if several else ""
    for period in part.periods:
        yield Stretch(before + period.name, period.from_s, period.to_s)
    if part.rates is not None and not part.periods:
        yield Stretch(f"{before}whole", 0.0, part.rates.end_s)
        means = (part.rates.start_rate_per_s + part.rates.end_rate_per_s) / 2
        edges_s, top = part.rates.edge_s, int(np.argmax(means))
        if len(means) > 1:
            yield Stretch(f"{before}busiest piece", float(edges_s[top]), float(edges_s[top + 1]))


def whole_s(scenario: Scenario) -> float | None:
    """Return how long requests arrive; None where all come from users, who take as long as it takes."""
    return max((end_s for part in scenario.parts if (end_s := arrivals_s(part)) is not None), default=None)


def arrivals_s(part: Scenario) -> float | None:
    """Return how long the requests of a workload arrive; None for users who are to issue a number of them."""
    load = part.load
    if isinstance(load, OpenLoad):
        return load.duration_s or (load.requests or 0) / load.rate_per_s
    if isinstance(load, TraceLoad):
        return int(part.trace.arrival_ns[-1]) / NS_PER_S
    if isinstance(load, StepsLoad):
        return load.end_s
    return None if part.rates is None else part.rates.end_s


def rate_per_s(part: Scenario, stretch: Stretch) -> float | None:
    """Return the mean rate at which requests arrive in a stretch; None for users.

    A constant rate is what it is, whenever it ends. A trace without length has no rate: 0.
    """
    load = part.load
    if isinstance(load, OpenLoad):
        return load.rate_per_s
    if isinstance(load, TraceLoad):
        span_s = arrivals_s(part)
        return len(part.trace.arrival_ns) / span_s if span_s else 0.0
    if part.rates is None:
        return None
    edges_s = np.array([stretch.from_s, part.rates.end_s if stretch.to_s is None else stretch.to_s])
    count = float(np.diff(CountClock(part.rates).count(np.minimum(edges_s, part.rates.end_s)))[0])
    return count / float(np.diff(edges_s)[0])


def users_in(part: Scenario, stretch: Stretch) -> float:
    """Return the mean number of users in a stretch."""
    load = part.load
    if isinstance(load, ClosedLoad):
        return load.active_requests
    assert isinstance(load, StepsLoad)
    to_s = load.end_s if stretch.to_s is None else stretch.to_s
    ends_s = [step.at_s for step in load.steps[1:]] + [load.end_s]
    user_s = sum(
        (step.active_requests or 0) * max(0.0, min(end_s, to_s) - max(step.at_s, stretch.from_s))
        for step, end_s in zip(load.steps, ends_s, strict=True)
    )
    return user_s / (to_s - stretch.from_s)


def think_ms(part: Scenario) -> float:
    """Return the mean pause of a user after an answer."""
    return part.load.think_time_ms.mean if isinstance(part.load, ClosedLoad | StepsLoad) else 0.0
