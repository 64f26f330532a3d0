"""Rules of a whole scenario: what one part of it says must fit what another says."""

from collections.abc import Iterator, Sequence

from sim.scenario.base import Broken, Path
from sim.scenario.distribution import Distribution, TokenDuration, TraceTokens
from sim.scenario.faults import nearest
from sim.scenario.keys import ScenarioKeys
from sim.scenario.load import TOKEN_ROLES, ClosedLoad, OpenLoad, ProfileLoad, StepsLoad, TraceLoad
from sim.scenario.model import WarmupCut
from sim.scenario.profile import periods_of
from sim.scenario.slo import PERIOD_METRICS, REQUEST_METRICS, SloRule


def broken_rules(scenario: ScenarioKeys) -> Iterator[Broken]:
    """Yield the rules between the parts of a scenario that do not hold."""
    yield from _plans(scenario)
    yield from _slo_scopes(scenario)
    yield from _trace(scenario)
    yield from _warmup(scenario)
    unknown = list(_providers(scenario))
    yield from unknown
    if not unknown:
        yield from _prefixes(scenario)
        yield from _rejected_users(scenario)


def _plans(scenario: ScenarioKeys) -> Iterator[Broken]:
    labels = [choice.label for choice in scenario.plans]
    for index, label in enumerate(labels):
        if label in labels[:index]:
            yield Broken(("plans", index), "must not repeat", label)
    plan = scenario.slo.plan if scenario.slo else None
    if plan is not None and plan not in labels:
        yield Broken(("slo", "plan"), f"must be one of the plans: {', '.join(labels)}", plan)


def _rejected_users(scenario: ScenarioKeys) -> Iterator[Broken]:
    """Yield users who, turned away at once, would ask again within the same instant without end."""
    load = scenario.load
    if not isinstance(load, StepsLoad) or not load.is_closed or load.think_time_ms.mean > 0:
        return
    if any(provider.rejects for provider in scenario.used_providers.values()):
        rule = "must be > 0 for users whose calls a provider may turn away"
        yield Broken(("load", "think_time_ms"), rule, load.think_time_ms.mean)


def _slo_scopes(scenario: ScenarioKeys) -> Iterator[Broken]:
    """Yield the rules of the SLO that name no period of the load, or a figure that it has not."""
    load = scenario.load
    periods = [one.name for one in periods_of(load)] if isinstance(load, StepsLoad | ProfileLoad) else []
    names = (*periods, scenario.part_name)
    for index, rule in enumerate(scenario.slo.rules if scenario.slo else ()):
        broken = scope_fault(rule, names, periods)
        if broken is not None:
            yield Broken(("slo", "rules", index), broken, str(rule))


def scope_fault(rule: SloRule, names: Sequence[str], periods: Sequence[str]) -> str | None:
    """Return what is wrong with what a rule is about, None where nothing is.

    `names` are all that it may be about, `periods` those of them that are periods.
    """
    if rule.scope is None:
        return None
    if rule.scope not in names:
        return f"must name a workload or a period{nearest(rule.scope, tuple(names))}"
    known = PERIOD_METRICS if rule.scope in periods else REQUEST_METRICS
    if rule.metric in known:
        return None
    return f"must be about a figure that a {'period' if rule.scope in periods else 'workload'} has"


def _warmup(scenario: ScenarioKeys) -> Iterator[Broken]:
    warmup, load = scenario.experiment.warmup, scenario.load
    requests = load.requests if isinstance(load, ClosedLoad | OpenLoad) else None
    if isinstance(warmup, WarmupCut) and warmup.count and requests and warmup.count >= requests:
        rule = f"must be < load.requests ({requests})"
        yield Broken(("experiment", "warmup", "count"), rule, warmup.count)


def _trace(scenario: ScenarioKeys) -> Iterator[Broken]:
    for path, duration in scenario.durations():
        for name in duration.trace_columns:
            yield from _lacking(scenario, path, duration, name)
    for path, count in scenario.token_counts():
        if isinstance(count, TraceTokens):
            yield from _lacking_role(scenario, path)


def _lacking(scenario: ScenarioKeys, path: Path, duration: Distribution, name: str) -> Iterator[Broken]:
    """Yield what a duration that takes its values from a trace column does not find."""
    if isinstance(duration, TokenDuration):
        yield from _lacking_role(scenario, (*path, name))
    elif not isinstance(scenario.load, TraceLoad):
        rule = "must not be trace without a trace load"
        yield Broken((*path, "distribution"), rule, scenario.load.kind)
    elif name in TOKEN_ROLES:
        yield Broken((*path, "column"), "must not have the name of a token column", name)


def _lacking_role(scenario: ScenarioKeys, path: Path) -> Iterator[Broken]:
    if not isinstance(scenario.load, TraceLoad):
        yield Broken(path, "must not be trace without a trace load", scenario.load.kind)
    elif path[-1] not in scenario.load.token_roles:
        yield Broken(path, f"must not be trace without load.columns.{path[-1]}")


def _providers(scenario: ScenarioKeys) -> Iterator[Broken]:
    if scenario.stated_provider is None and scenario.stated_providers is None:
        yield Broken(("provider",), "is missing")
    if scenario.stated_provider is not None and scenario.stated_providers is not None:
        yield Broken(("providers",), "must not be given beside provider")
    names = tuple(scenario.stated_providers or ())
    for index, branch in enumerate(scenario.workflow.branches):
        at = ("workflow", "branches", index, "provider")
        if branch.provider is not None and not names:
            yield Broken(at, "must be left out without providers", branch.provider)
        elif branch.provider is not None and branch.provider not in names:
            yield Broken(at, f"must name a provider{nearest(branch.provider, names)}", branch.provider)


def _prefixes(scenario: ScenarioKeys) -> Iterator[Broken]:
    context, branches = scenario.workflow.shared_context, scenario.workflow.branches
    caching = [scenario.provider_of(branch).prefix_cache is not None for branch in branches]
    carries = any(
        cached and branch.carries_shared_context for branch, cached in zip(branches, caching, strict=True)
    )
    if carries and context.prefix_reuse_ratio > 0:
        rule = "must be left out beside prefix_cache: reuse is a result"
        path: Path = ("workflow", "shared_context", "prefix_reuse_ratio")
        yield Broken(path, rule, context.prefix_reuse_ratio)
    leader = next((branch for branch in branches if not branch.depends_on), None)
    for index, branch in enumerate(branches):
        if branch.first_token_ms is not None or isinstance(branch.duration_ms, TokenDuration):
            continue
        path = ("workflow", "branches", index, "first_token_ms")
        if scenario.cached_prefix_tokens(branch):
            yield Broken(path, "is missing: prefix_cache needs it")
        elif branch is leader and scenario.has_warm_first:
            yield Broken(path, "is missing: the plan warm_first needs it")


def broken_reservations(parts: Sequence[ScenarioKeys]) -> Iterator[Broken]:
    """Yield the reservations of a file's workloads that no provider can keep, or that starve one of them."""
    for name, provider in parts[0].providers.items():
        slots, kept = provider.least_concurrency, 0
        users = {index: part for index, part in enumerate(parts) if name in part.used_providers}
        for index, part in users.items():
            kept += part.share.reserved_slots
            if part.share.reserved_slots and kept > slots:
                rule = f"must leave the sum of reserved_slots <= {slots}, the least concurrency"
                yield Broken(("workloads", index, "share", "reserved_slots"), rule, part.share.reserved_slots)
        starved = next((part for part in users.values() if not part.share.reserved_slots), None)
        if starved is not None and kept >= slots and not provider.lend_reserved_slots:
            path: Path = ("provider",) if parts[0].stated_provider is not None else ("providers", name)
            rule = f"must be true: all slots are reserved and none is left for {starved.part_name}"
            yield Broken((*path, "lend_reserved_slots"), rule, False)
