"""One plan, one replication, on providers that are shared, limited, failing or cached."""

from collections.abc import Mapping
from dataclasses import dataclass

from sim.check import CheckReport
from sim.check.shared import check_shared
from sim.contract.allocation import allocation_named
from sim.contract.limit import UNIT_OF_KEY
from sim.contract.plan import PLANS
from sim.contract.run import (
    DailyPlans,
    Limits,
    PrefixCache,
    ProviderInput,
    RateLimit,
    SharedInput,
    SharedOutput,
    WorkloadInput,
)
from sim.draws.attempts import draw_faults, draw_tokens
from sim.draws.drawing import draw
from sim.draws.engine_input import engine_input, share_table
from sim.draws.streams import Streams
from sim.engine import DrawsExhaustedError, Progress, SharedEngine
from sim.engine.shared.model import run_shared
from sim.scenario import Scenario
from sim.scenario.limits import RateLimits
from sim.scenario.model import PlanChoice, TabledChoice
from sim.units import s_to_ns

SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, repr=False)
class SharedRun:
    """One checked run of workloads on shared providers: what the engine was given, and what came out."""

    given: SharedInput
    out: SharedOutput
    checks: CheckReport


def simulate_shared(
    scenario: Scenario,
    plan: PlanChoice,
    replication: int,
    progress: Progress | None = None,
    engine: SharedEngine = run_shared,
) -> SharedRun:
    """Simulate one replication (0-based) of one plan on shared providers, and check it.

    A workload with a plan of its own runs that; all others run `plan`.

    Raises
    ------
    CheckError
        The result contradicts a check.
    """
    requests: dict[int, int] = {}
    while True:
        given = shared_input_of(scenario, plan, replication, requests)
        try:
            out = engine(given, progress)
            break
        except DrawsExhaustedError as error:
            requests[error.workload] = 2 * given.workloads[error.workload].load.requests
    return SharedRun(given, out, check_shared(given, out, engine))


def shared_input_of(
    scenario: Scenario, plan: PlanChoice, replication: int, requests: Mapping[int, int] | None = None
) -> SharedInput:
    """Return what the engine needs to run a scenario's workloads on its providers.

    `requests` says how many to draw for workloads, by their index, that outlasted what was expected.
    """
    counts = requests or {}
    providers = tuple(provider_input(scenario, name) for name in scenario.providers)
    workloads = (
        workload_input(part, part.fixed_plan or plan, replication, counts.get(index))
        for index, part in enumerate(scenario.parts)
    )
    return SharedInput(tuple(workloads), providers)


def workload_input(part: Scenario, plan: PlanChoice, replication: int, requests: int | None) -> WorkloadInput:
    """Return one workload's draws and rules: what it would be alone, and what sharing adds."""
    draws = draw(part, replication, requests)
    alone = engine_input(part, plan, draws)
    streams = Streams(part.experiment.seed, replication, part.part_name)
    names = list(part.providers)
    calls_to = [names.index(branch.provider or names[0]) for branch in part.workflow.branches]
    return WorkloadInput(
        service_ns=alone.service_ns,
        join_ns=alone.join_ns,
        dependencies=alone.dependencies,
        serial_order=alone.serial_order,
        runs_parallel_at=alone.runs_parallel_at,
        load=alone.load,
        max_degree=plan.max_degree,
        join_holds_slot=part.workflow.join_holds_slot,
        warm_first=PLANS[plan.plan].warms,
        daily_plans=daily_plans(part, plan),
        provider=tuple(calls_to + [0] * part.workflow.join_holds_slot),
        priority=part.share.priority,
        weight=part.share.weight,
        faults=draw_faults(part, streams, draws),
        tokens=draw_tokens(part, streams, draws),
    )


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
