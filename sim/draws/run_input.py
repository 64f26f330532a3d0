"""From a scenario to what an engine needs: draws, graphs, the plan at each fair share, loads, providers."""

from collections.abc import Mapping, Sequence

import numpy as np

from sim.contract.allocation import allocation_named
from sim.contract.limit import UNIT_OF_KEY
from sim.contract.load import ClosedUsers, OpenArrivals
from sim.contract.plan import PLANS
from sim.contract.provider import Limits, PrefixCache, ProviderInput, RateLimit
from sim.contract.run import DailyPlans, RunInput, WorkloadInput
from sim.draws.attempts import draw_faults, draw_tokens
from sim.draws.drawing import Draws, draw
from sim.draws.streams import Streams
from sim.plan.criteria import Evaluation, evaluate_parallel, merging_shares
from sim.plan.schedule import serial_order
from sim.scenario import Scenario
from sim.scenario.limits import RateLimits
from sim.scenario.load import ClosedLoad, StepsLoad
from sim.scenario.model import PlanChoice, TabledChoice
from sim.units import BoolArray, s_to_ns

SECONDS_PER_HOUR = 3600


def run_input_of(
    scenario: Scenario, plan: PlanChoice, replication: int, requests: Mapping[int, int] | None = None
) -> RunInput:
    """Return what an engine needs to run a scenario's workloads on its providers.

    A workload with a plan of its own runs that; all others run `plan`. `requests` says how many to draw for
    workloads, by their index, that outlasted what was expected.
    """
    counts = requests or {}
    providers = tuple(provider_input(scenario, name) for name in scenario.providers)
    workloads = (
        workload_input(part, part.fixed_plan or plan, replication, counts.get(index))
        for index, part in enumerate(scenario.parts)
    )
    return RunInput(tuple(workloads), providers)


def workload_input(part: Scenario, plan: PlanChoice, replication: int, requests: int | None) -> WorkloadInput:
    """Return one workload's draws, graph, plan and load, and its place among the others."""
    draws = draw(part, replication, requests)
    service_ns, join_ns = draws.service_ns, draws.join_ns
    dependencies = part.parallel_plan(1).dependencies
    order = serial_order(dependencies)
    holds_slot = part.workflow.join_holds_slot
    if holds_slot:
        # A join that holds a slot is one more call, after all branches, and like every call it takes a while.
        service_ns = np.column_stack([service_ns, np.maximum(1, join_ns)])
        join_ns = np.zeros_like(join_ns)
        dependencies = (*dependencies, tuple(range(len(dependencies))))
    streams = Streams(part.experiment.seed, replication, part.part_name)
    names = list(part.providers)
    calls_to = [names.index(branch.provider or names[0]) for branch in part.workflow.branches]
    return WorkloadInput(
        service_ns=service_ns,
        join_ns=join_ns,
        dependencies=dependencies,
        serial_order=order,
        runs_parallel_at=runs_parallel_at(part, plan),
        load=engine_load(part, draws),
        max_degree=plan.max_degree,
        join_holds_slot=holds_slot,
        warm_first=PLANS[plan.plan].warms,
        daily_plans=daily_plans(part, plan),
        provider=tuple(calls_to + [0] * holds_slot),
        priority=part.share.priority,
        weight=part.share.weight,
        faults=draw_faults(part, streams, draws),
        tokens=draw_tokens(part, streams, draws),
    )


def engine_load(scenario: Scenario, draws: Draws) -> OpenArrivals | ClosedUsers:
    """Return the arrivals, or the users and when their number changes."""
    load = scenario.load
    if draws.arrival_ns is not None:
        return OpenArrivals(draws.arrival_ns)
    if isinstance(load, StepsLoad):
        steps = tuple((s_to_ns(step.at_s), step.active_requests or 0) for step in load.steps)
        return ClosedUsers(steps, draws.think_ns, s_to_ns(load.end_s))
    assert isinstance(load, ClosedLoad)
    return ClosedUsers(((0, load.active_requests),), draws.think_ns)


def runs_parallel_at(scenario: Scenario, plan: PlanChoice) -> BoolArray:
    """Return, for each fair share k that there can be, whether the plan runs a request in parallel.

    bool[slots + 1], with the most slots of all providers, added up.
    """
    slots = scenario.most_slots
    if isinstance(plan, TabledChoice):
        return share_table(plan.hours[0][1], slots)
    is_parallel = PLANS[plan.plan].is_parallel
    if is_parallel is not None:
        return np.full(slots + 1, is_parallel, dtype=np.bool_)
    # More slots than branches change nothing, so a thousand slots cost no more than a few.
    most = min(scenario.slots_at_hand, plan.max_degree or slots)
    criteria = scenario.criteria
    merges = merging_shares(
        scenario.parallel_plan(1), most, criteria.max_micros_per_saved_ms, criteria.min_marginal_gain_ratio
    )
    return share_table(merges, slots)


def share_table(merges: Sequence[bool], slots: int) -> BoolArray:
    """Return, for each fair share k (bool[slots + 1]), what is said of it; the last holds for all above."""
    table = np.array([False, *merges[:slots]], dtype=np.bool_)
    return np.pad(table, (0, slots + 1 - len(table)), mode="edge")


def daily_plans(part: Scenario, plan: PlanChoice) -> DailyPlans | None:
    """Return the plans of a policy by the hour; None where the hour does not matter."""
    if not isinstance(plan, TabledChoice) or len(plan.hours) == 1:
        return None
    tables = tuple(
        (s_to_ns(hour * SECONDS_PER_HOUR), share_table(merges, part.most_slots))
        for hour, merges in plan.hours
    )
    return DailyPlans(s_to_ns(part.experiment.start_hour * SECONDS_PER_HOUR), tables)


def provider_input(scenario: Scenario, name: str) -> ProviderInput:
    """Return one provider, with its slots over time, its limits and its cache."""
    provider = scenario.providers[name]
    steps = ((s_to_ns(step.at_s), step.concurrency) for step in provider.concurrency_steps)
    cache = provider.prefix_cache
    return ProviderInput(
        slots=((0, provider.concurrency), *steps),
        allocation=allocation_named(provider.allocation),
        reserved=tuple(
            part.share.reserved_slots if name in part.used_providers else 0 for part in scenario.parts
        ),
        lends=provider.lend_reserved_slots,
        limits=limits_of(provider.limits),
        cache=PrefixCache(s_to_ns(cache.ttl_s), cache.capacity) if cache else None,
    )


def limits_of(limits: RateLimits | None) -> Limits:
    """Return rate limits as the engine meters them: per minute, or per shorter window."""
    if limits is None:
        return Limits()
    window_ns = s_to_ns(limits.window_s)
    rates = (
        RateLimit(unit, limits.per_window(key), window_ns, limits.capacity(key) if limits.refills else None)
        for key, unit in UNIT_OF_KEY.items()
        if key in limits.stated
    )
    return Limits(tuple(rates), limits.rejects, limits.rejections_count, limits.cached_tokens_count)


def evaluate(scenario: Scenario, concurrency: int) -> Evaluation:
    """Return the four criteria of the scenario's workflow, at its mean times, on `concurrency` slots."""
    return evaluate_parallel(
        scenario.parallel_plan(concurrency),
        scenario.criteria.max_micros_per_saved_ms,
        scenario.criteria.min_marginal_gain_ratio,
    )
