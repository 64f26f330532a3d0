"""What binds a scenario under each of its plans, by arithmetic alone: nothing is simulated."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from sim.contract.plan import PARALLEL, PLANS, SERIAL
from sim.plan.constraint import Constraint, binding, knee, largest_rate
from sim.plan.criteria import evaluate_parallel
from sim.plan.share import usable_slots
from sim.result.assumption import assumptions
from sim.result.constraints import KINDS, Asked
from sim.result.demand import Demand, Request, Way, request_in
from sim.result.stretch import Stretch, rate_per_s, stretches, think_ms, users_in
from sim.scenario import Scenario
from sim.scenario.load import ClosedLoad
from sim.scenario.model import PlanChoice, TabledChoice

TARGET_LOAD = 0.9
"""How far a constraint should be loaded at most, unless another share is asked for."""
Made = Callable[[int, Way], Request]
"""Gives the request of a workload, by its index, in a way; each is made once."""
ROUNDS = 30
"""How often the time that users take is worked out, where the capacity changes meanwhile."""


@dataclass(frozen=True)
class Arriving:
    """One workload in a stretch.

    Parameters
    ----------
    rate_per_s
        Requests per second; of users as if they never had to queue, users / (unloaded latency + think time).
    users
        None where arrivals do not wait for answers.
    runs
        `serial` or `parallel`: the way that its capacity is of.
    delivered_share, attempts_per_call
        How likely a request comes to its join, and how many attempts a call takes, on the unloaded system.
    """

    name: str
    rate_per_s: float
    users: float | None
    unloaded_ms: float
    think_ms: float
    runs: str
    delivered_share: float = 1.0
    attempts_per_call: float = 1.0


@dataclass(frozen=True)
class StretchCapacity:
    """What binds in one stretch of a load.

    Parameters
    ----------
    load_by_way
        The highest load if requests whose plan is decided at their arrival all ran serial, or all parallel;
        one entry where nothing is decided.
    """

    stretch: Stretch
    workloads: tuple[Arriving, ...]
    constraints: tuple[Constraint, ...]
    load_by_way: Mapping[str, float]

    @property
    def binding(self) -> Constraint | None:
        """The constraint with the highest load; None where nothing is asked for."""
        return binding(self.constraints)

    @property
    def load(self) -> float:
        """The highest load; 0 where nothing is asked for."""
        found = self.binding
        return found.load if found else 0.0

    @property
    def attempts_per_call(self) -> float:
        """How many attempts a call takes on the unloaded system, over all workloads; 1 where none is made."""
        rate = sum(one.rate_per_s for one in self.workloads)
        taken = sum(one.rate_per_s * one.attempts_per_call for one in self.workloads)
        return taken / rate if rate else 1.0

    @property
    def overloaded(self) -> tuple[Constraint, ...]:
        """The constraints that arrivals alone load to 100 % or more: no steady state. Users make way."""
        return tuple(one for one in self.constraints if replace(one, offered=one.from_arrivals).is_reached())

    def largest_rate_per_s(self, workload: Arriving) -> float | None:
        """Return how many requests of a workload can be sustained, all arrivals in proportion; None of users.

        Infinite where arrivals ask for nothing.
        """
        return largest_rate(workload.rate_per_s, self.constraints) if workload.users is None else None

    def knee_users(self, workload: Arriving) -> float | None:
        """Return at how many users of a workload, all in proportion, they must wait; None of arrivals."""
        return None if workload.users is None else knee(workload.users, self.constraints)

    def throughput_per_s(self, workload: Arriving) -> float:
        """Return how many requests of a workload can be delivered at most."""
        if not workload.rate_per_s:
            return 0.0
        if workload.users is None:
            return min(workload.rate_per_s, largest_rate(workload.rate_per_s, self.constraints))
        return min(workload.rate_per_s, knee(workload.rate_per_s, self.constraints))

    def to_buy(self, target_load: float) -> tuple[Constraint, ...]:
        """Return the constraints that are loaded beyond the target."""
        return tuple(one for one in self.constraints if one.is_above(target_load))

    def summary(self, target_load: float) -> dict[str, Any]:
        """Return it as plain data; what has no end is None."""
        bound = self.binding
        return {
            "period": self.stretch.name,
            "from_s": self.stretch.from_s,
            "to_s": self.stretch.to_s,
            "load": _finite(self.load),
            "load_by_way": {way: _finite(load) for way, load in self.load_by_way.items()},
            "binding": None if bound is None else {"provider": bound.provider, "name": bound.name},
            "constraints": [constraint_summary(one, target_load) for one in self.constraints],
            "workloads": {one.name: self._workload_summary(one) for one in self.workloads},
        }

    def _workload_summary(self, one: Arriving) -> dict[str, Any]:
        return {
            "runs": one.runs,
            "rate_per_s": one.rate_per_s,
            "largest_rate_per_s": _finite(self.largest_rate_per_s(one)),
            "users": one.users,
            "knee_users": _finite(self.knee_users(one)),
            "throughput_per_s_at_most": self.throughput_per_s(one),
            "unloaded_ms": one.unloaded_ms,
            "think_ms": one.think_ms,
        }


@dataclass(frozen=True)
class PlanCapacity:
    """What binds under one plan, in each stretch of the load, and what was assumed."""

    plan: PlanChoice
    stretches: tuple[StretchCapacity, ...]
    assumptions: tuple[str, ...]

    @property
    def label(self) -> str:
        return self.plan.label

    @property
    def worst(self) -> StretchCapacity:
        """The stretch with the highest load."""
        return max(self.stretches, key=lambda one: one.load)

    def summary(self, target_load: float = TARGET_LOAD) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "periods": [one.summary(target_load) for one in self.stretches],
            "assumptions": list(self.assumptions),
        }


def capacity_summary(
    scenario: Scenario, found: Sequence[PlanCapacity], target_load: float = TARGET_LOAD
) -> dict[str, Any]:
    """Return what binds under each plan as plain data."""
    return {
        "scenario": scenario.name,
        "scenario_file": scenario.path,
        "target_load": target_load,
        "plans": {one.label: one.summary(target_load) for one in found},
    }


def constraint_summary(one: Constraint, target_load: float) -> dict[str, Any]:
    """Return a constraint as plain data; `needed` is the stated value that brings the load to the target."""
    return {
        "provider": one.provider,
        "name": one.name,
        "unit": one.unit,
        "offered": one.offered,
        "from_users": one.from_users,
        "capacity": one.capacity,
        "load": _finite(one.load),
        "needed": one.needed(target_load),
        "steps": [
            {
                "from_s": step.from_s,
                "to_s": _finite(step.to_s),
                "capacity": step.capacity,
                "load": _finite(one.load_on(step)),
            }
            for step in one.steps
        ],
    }


def _finite(value: float | None) -> float | None:
    return None if value is None or value == float("inf") else value


def capacities(scenario: Scenario) -> tuple[PlanCapacity, ...]:
    """Return what binds under each plan of a scenario, all its workloads together."""
    return tuple(capacity_of(scenario, plan) for plan in scenario.plans)


def capacity_of(scenario: Scenario, plan: PlanChoice) -> PlanCapacity:
    """Return what binds under one plan."""

    @cache
    def request(index: int, way: Way) -> Request:
        return request_in(scenario.parts[index], way)

    found = tuple(_in_stretch(scenario, plan, stretch, request) for stretch in stretches(scenario))
    return PlanCapacity(plan, found, tuple(assumptions(scenario, plan)))


def _in_stretch(scenario: Scenario, plan: PlanChoice, stretch: Stretch, request: Made) -> StretchCapacity:
    chosen = [way_of(part, part.fixed_plan or plan, active_in(scenario, stretch)) for part in scenario.parts]
    found = _with_ways(scenario, stretch, chosen, request)
    open_ends = [is_decided(part.fixed_plan or plan) for part in scenario.parts]
    loads = {}
    for name, is_parallel in ((SERIAL, False), (PARALLEL, True)):
        ways = [
            replace(way, is_parallel=is_parallel) if is_open else way
            for way, is_open in zip(chosen, open_ends, strict=True)
        ]
        if ways == chosen:
            loads[name] = found.load
        elif any(open_ends):
            loads[name] = _with_ways(scenario, stretch, ways, request).load
    if not any(open_ends):
        loads = {SERIAL if not any(way.is_parallel for way in chosen) else PARALLEL: found.load}
    return replace(found, load_by_way=loads)


def is_decided(plan: PlanChoice) -> bool:
    """Return whether a plan is decided request by request."""
    return PLANS[plan.plan].is_parallel is None


def active_in(scenario: Scenario, stretch: Stretch) -> int:
    """Return the active requests at which `adaptive` is looked at: all users, or as many as there are slots.

    Where arrivals do not wait, what counts is what it does when requests pile up.
    """
    if any(rate_per_s(part, stretch) is not None for part in scenario.parts):
        return scenario.most_slots
    return max(1, round(sum(users_in(part, stretch) for part in scenario.parts)))


def way_of(part: Scenario, plan: PlanChoice, active: int) -> Way:
    """Return how a workload's requests run under a plan, with so many requests active."""
    properties, criteria = PLANS[plan.plan], part.criteria
    if isinstance(plan, TabledChoice):
        share = usable_slots(part.called_providers, active)
        is_parallel = any(merges[min(share, len(merges)) - 1] for _, merges in plan.hours)
    elif properties.is_parallel is None:
        share = usable_slots(part.called_providers, active)
        evaluation = evaluate_parallel(
            part.parallel_plan(min(share, plan.max_degree or share)),
            criteria.max_micros_per_saved_ms,
            criteria.min_marginal_gain_ratio,
        )
        is_parallel = evaluation.decision == "merge"
    else:
        is_parallel = properties.is_parallel
    return Way(is_parallel, properties.warms, plan.max_degree)


def _with_ways(scenario: Scenario, stretch: Stretch, ways: Sequence[Way], request: Made) -> StretchCapacity:
    """Return what binds where each workload runs in a given way."""
    requests = [request(index, way) for index, way in enumerate(ways)]
    arriving = tuple(_arriving(request, stretch) for request in requests)
    demands = [one.demands(each.rate_per_s) for one, each in zip(requests, arriving, strict=True)]
    asked = _asked(demands, arriving)

    def until(end: Stretch) -> StretchCapacity:
        return StretchCapacity(end, arriving, tuple(_constraints(scenario, end, *asked)), {})

    if stretch.to_s is not None or not any(one.concurrency_steps for one in scenario.providers.values()):
        return until(stretch)
    # Users take as long as the capacity lets them, which is the average over the time that they take.
    end_s = 0.0
    for _ in range(ROUNDS):
        found = until(replace(stretch, to_s=end_s))
        end_s = max(
            part.load.requests / found.throughput_per_s(one)
            for part, one in zip(scenario.parts, arriving, strict=True)
            if isinstance(part.load, ClosedLoad)
        )
    return until(replace(stretch, to_s=end_s))


def _arriving(request: Request, stretch: Stretch) -> Arriving:
    part, unloaded_ms = request.part, request.unloaded_ms
    runs = PARALLEL if request.way.is_parallel else SERIAL
    rate, pause_ms, users = rate_per_s(part, stretch), think_ms(part), None
    if rate is None:
        users = users_in(part, stretch)
        rate = 1000 * users / (unloaded_ms + pause_ms)
    return Arriving(
        part.part_name,
        rate,
        users,
        unloaded_ms,
        pause_ms,
        runs,
        request.joined,
        sum(call.attempts * made for call, made in zip(request.calls, request.made, strict=True))
        / (sum(request.made) or 1.0),
    )


def _asked(
    demands: Sequence[Mapping[str, Demand]], arriving: Sequence[Arriving]
) -> tuple[dict[str, Demand], dict[str, Demand]]:
    """Return what is asked of each provider per second, in all and by users; workloads add up."""
    total: dict[str, Demand] = {}
    of_users: dict[str, Demand] = {}
    for of_request, one in zip(demands, arriving, strict=True):
        for name, demand in of_request.items():
            total[name] = total.get(name, Demand()).plus(demand, one.rate_per_s)
            if one.users is not None:
                of_users[name] = of_users.get(name, Demand()).plus(demand, one.rate_per_s)
    return total, of_users


def _constraints(
    scenario: Scenario, stretch: Stretch, total: Mapping[str, Demand], of_users: Mapping[str, Demand]
) -> Iterator[Constraint]:
    for name, provider in scenario.providers.items():
        if name in total:
            asked = Asked(name, provider, stretch, total[name], of_users.get(name, Demand()))
            for kind in KINDS:
                yield from kind(asked)
