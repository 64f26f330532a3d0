"""What the arithmetic of capacity takes for granted about a scenario, in words."""

from collections.abc import Iterator

from sim.contract.plan import PLANS
from sim.result.expected_call import expected_calls
from sim.scenario import Scenario
from sim.scenario.load import ClosedLoad, StepsLoad, TraceLoad
from sim.scenario.model import PlanChoice


def assumptions(scenario: Scenario, plan: PlanChoice) -> Iterator[str]:
    """Yield one sentence for each; none that the scenario gives no reason for."""
    yield from dict.fromkeys(words for part in scenario.parts for words in _of_workload(scenario, part, plan))
    for name, provider in scenario.providers.items():
        of = "" if len(scenario.providers) == 1 else f" of {name}"
        if provider.concurrency_steps:
            yield f"the slots{of} are their average over the time, each step counted by how long it lasts"
        yield from _of_limits(scenario, name, of)
        kept = any(part.share.reserved_slots for part in scenario.parts)
        if kept and not provider.lend_reserved_slots:
            yield f"slots{of} that are kept for a workload count as if any could use them"


def _of_workload(scenario: Scenario, part: Scenario, plan: PlanChoice) -> Iterator[str]:
    of = "" if len(scenario.parts) == 1 else f" of {part.part_name}"
    chosen, load = part.fixed_plan or plan, part.load
    if PLANS[chosen.plan].is_parallel is None:
        yield f"{chosen.label} is looked at as it decides when requests pile up, or with all users active"
    if isinstance(load, ClosedLoad | StepsLoad) and part.rates is None:
        yield (
            f"users{of} ask as often as they would if nobody waited: unloaded latency at mean times, of calls"
            " side by side the longest chain"
        )
    if isinstance(load, TraceLoad) and len(part.trace.arrival_ns) < 2:
        yield f"the trace{of} has no length and so no rate: nothing is asked for"
    if part.has_faults:
        yield from _of_faults(part, of)


def _of_faults(part: Scenario, of: str) -> Iterator[str]:
    workflow, calls = part.workflow, expected_calls(part)
    attempts = sum(one.attempts for one in calls) / len(calls)
    if attempts != 1:
        budget = workflow.retry.budget_ratio
        within = "" if budget is None else f", within the retry budget of {budget:.4g} of first attempts"
        yield (
            f"a call{of} takes {attempts:.4g} attempts on average: drawn failures, timeouts and hedges of the"
            f" unloaded system{within}"
        )
    if any(provider.rejects for provider in part.used_providers.values()):
        yield f"attempts{of} that a limit turns away come on top, and are not counted"
    if any(one.lost for one in calls) and len(calls) > 1:
        yield f"calls beside one that is lost{of} count in full"
    if workflow.join_needs is not None and workflow.join_needs < len(calls):
        yield f"calls side by side{of} start at mean times, and end when the join has what it needs"
    if workflow.deadline_ms is not None:
        yield f"no request{of} is given up at its deadline"


def _of_limits(scenario: Scenario, name: str, of: str) -> Iterator[str]:
    limits, cache = scenario.providers[name].limits, scenario.providers[name].prefix_cache
    if limits is None:
        return
    if set(limits.stated) - {"rpm"}:
        yield f"tokens{of} count as they are settled at the end of a call, not as they are reserved"
    if not limits.refills:
        yield (
            f"windows{of} of {limits.window_s:g} s admit whole calls; one that ends in a later window than it"
            " began in counts with what it reserved"
        )
    if limits.rejections_count:
        yield f"calls{of} that are turned away count for rpm: beyond 100 % less gets through than the limit"
    if limits.cached_tokens_count or limits.stated.keys() <= {"rpm"}:
        return
    if cache is not None:
        yield (
            f"cached tokens{of} do not count: a prefix is found if a request with it came in the"
            f" {cache.ttl_s:g} s before, or an earlier call of the same request has it; arrivals at random,"
            " no prefix pushed out"
        )
        return
    ratios = {part.workflow.shared_context.prefix_reuse_ratio for part in scenario.parts} - {0.0}
    for ratio in sorted(ratios):
        yield (
            f"{100 * ratio:.4g} % of a shared context{of} come from the cache and do not count"
            " (prefix_reuse_ratio); a simulation counts all of it unless the provider has a prefix_cache"
        )
