"""What one request asks of each provider, as means of the unloaded system, and how long it takes there."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache

from sim.plan.schedule import serial_order
from sim.result.expected_call import ExpectedCall, expected_calls, unsettled_share
from sim.result.expected_race import Race, race
from sim.scenario import Scenario
from sim.scenario.distribution import TokenDuration, TraceTokens
from sim.scenario.load import TOKEN_ROLES
from sim.scenario.provider import Provider
from sim.scenario.workflow import WorkflowBranch


@dataclass(frozen=True, slots=True)
class Way:
    """How a request runs its branches, where that is settled."""

    is_parallel: bool
    warms: bool = False
    max_degree: int | None = None


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked of one provider: by a request, or per second.

    Tokens are those that limits count in the end; `reserved_output_tokens` is what calls reserve before they
    have answered.
    """

    slot_s: float = 0.0
    calls: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    reserved_output_tokens: float = 0.0

    @property
    def tokens(self) -> float:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    @property
    def reserved_tokens(self) -> float:
        """Input and reserved output together."""
        return self.input_tokens + self.reserved_output_tokens

    def plus(self, other: "Demand", times: float = 1.0) -> "Demand":
        """Return this and so many times another."""
        names = (one.name for one in fields(self))
        return Demand(*(getattr(self, name) + times * getattr(other, name) for name in names))


@dataclass(frozen=True)
class Request:
    """A request of one workload in one way: its calls, and how likely each is made.

    Parameters
    ----------
    calls
        What each branch's call comes to, where it is made.
    made
        How likely it is made: what it waits for must not be lost.
    joined
        How likely the request comes to its join.
    race
        Of calls side by side of which the join needs only some.
    """

    part: Scenario
    way: Way
    calls: tuple[ExpectedCall, ...]
    made: tuple[float, ...]
    joined: float
    race: Race | None = None

    @property
    def unloaded_ms(self) -> float:
        """The mean time of a request that never waits for others, at mean times.

        Of branches side by side the longest chain: the mean of the longest is no less.
        """
        durations_ms = [one.duration_ms * made for one, made in zip(self.calls, self.made, strict=True)]
        if not self.way.is_parallel:
            return sum(durations_ms)
        if self.race is not None:
            return self.race.answered_ms + self.part.join_mean_ms
        critical_ms = max(ends_ms(self.part, self.way, durations_ms))
        return max(critical_ms, self._on_its_slots_ms(durations_ms)) + self.part.join_mean_ms

    def _on_its_slots_ms(self, durations_ms: Sequence[float]) -> float:
        """Return how long the calls take on the slots that the request may hold at each provider."""
        work_ms: dict[str, float] = {}
        for branch, duration_ms in zip(self.part.workflow.branches, durations_ms, strict=True):
            name = provider_name(self.part, branch)
            work_ms[name] = work_ms.get(name, 0.0) + duration_ms
        slots = {name: self.part.providers[name].most_concurrency for name in work_ms}
        return max(work / min(slots[name], self.way.max_degree or math.inf) for name, work in work_ms.items())

    def demands(self, requests_per_s: float) -> dict[str, Demand]:
        """Return what it asks of each provider that it calls, where so many requests come per second."""
        found: dict[str, Demand] = {}
        for index, branch in enumerate(self.part.workflow.branches):
            name = provider_name(self.part, branch)
            one = self._call_demand(index, branch, requests_per_s)
            found[name] = found.get(name, Demand()).plus(one, self.made[index])
        if self.part.workflow.join_holds_slot and self.way.is_parallel:
            join = Demand(slot_s=self.part.join_mean_ms / 1000, calls=1.0)
            first = next(iter(self.part.providers))
            found[first] = found.get(first, Demand()).plus(join, self.joined)
        return found

    def _call_demand(self, index: int, branch: WorkflowBranch, requests_per_s: float) -> Demand:
        call, provider = self.calls[index], self.part.provider_of(branch)
        sent, received = mean_tokens(self.part, branch)
        limits, reserved = provider.limits, self.part.reserved_output(branch)
        counted = received
        if limits is not None and not limits.refills and reserved != received:
            counted += (reserved - received) * self._unsettled[index]
        cached = self._cached_tokens(index, branch, provider, requests_per_s)
        sent = max(0.0, sent - cached)
        tokens = (sent, counted, float(reserved))
        return Demand(call.slot_ms / 1000, call.attempts, *(call.attempts * each for each in tokens))

    @cached_property
    def _unsettled(self) -> tuple[float, ...]:
        """For each branch, how likely an attempt ends in a later window of its provider's limits."""
        limits = [self.part.provider_of(branch).limits for branch in self.part.workflow.branches]
        return tuple(
            0.0 if limit is None else unsettled_share(self.part, branch, limit.window_s)
            for limit, branch in zip(limits, self.part.workflow.branches, strict=True)
        )

    def _cached_tokens(
        self, index: int, branch: WorkflowBranch, provider: Provider, requests_per_s: float
    ) -> float:
        """Return the input tokens of a call that limits do not count, as the prefix cache serves them."""
        if provider.limits is None or provider.limits.cached_tokens_count:
            return 0.0
        context = self.part.workflow.shared_context
        if provider.prefix_cache is None:
            carries = branch.carries_shared_context
            return context.tokens * context.prefix_reuse_ratio if carries else 0.0
        prefix = self.part.cached_prefix_tokens(branch)
        if not prefix or self._follows_a_carrier(index, branch):
            return float(prefix)
        return prefix * (1 - math.exp(-requests_per_s * provider.prefix_cache.ttl_s))

    def _follows_a_carrier(self, index: int, branch: WorkflowBranch) -> bool:
        """Return whether another call has carried the same prefix there, and has begun to answer."""
        dependencies = dependencies_of(self.part)
        earlier = before(dependencies, self.way, index)
        branches, name = self.part.workflow.branches, provider_name(self.part, branch)
        return any(
            branches[one].carries_shared_context and provider_name(self.part, branches[one]) == name
            for one in earlier
        )


def request_in(part: Scenario, way: Way) -> Request:
    """Return a request of a workload in one way."""
    calls, needs = expected_calls(part), part.workflow.join_needs
    if needs is not None and way.is_parallel and needs < len(calls):
        return _racing(part, way, calls, needs)
    answers = [1 - call.lost for call in calls]
    if needs is None and min(answers) == 1:
        return Request(part, way, calls, (1.0,) * len(calls), 1.0)
    required = [not branch.optional and needs is None for branch in part.workflow.branches]
    made = tuple(_made(part, way, answers, required))
    if needs is not None:
        joined = 1 - sum(counted(needs, answers))
    elif any(required):
        joined = math.prod(answers[index] for index, is_required in enumerate(required) if is_required)
    else:
        joined = 1 - math.prod(1 - answer for answer in answers)  # it has something to join
    return Request(part, way, calls, made, joined)


def _made(part: Scenario, way: Way, answers: Sequence[float], required: Sequence[bool]) -> list[float]:
    """Return how likely each branch's call is made.

    None of those that it waits for may be lost; one after another, none of those before it that the join
    requires, and there must not be enough answers yet.
    """
    dependencies, needs = dependencies_of(part), part.workflow.join_needs
    made = [1.0] * len(answers)
    goes_on, counts = 1.0, [1.0]
    for index in order_of(dependencies):
        waits_for = ancestors(dependencies, index)
        if way.is_parallel:
            made[index] = math.prod(answers[one] for one in waits_for)
            continue
        made[index] = goes_on * math.prod(answers[one] for one in waits_for if not required[one])
        if needs is not None:
            made[index] = sum(counts)
            counts = one_more(needs, counts, answers[index])
        goes_on *= answers[index] if required[index] else 1.0
    return made


def _racing(part: Scenario, way: Way, calls: tuple[ExpectedCall, ...], needs: int) -> Request:
    """Return a request whose calls run side by side until the join has as many answers as it needs."""
    found = race(part, calls, ends_ms(part, way, [call.duration_ms for call in calls]), needs)
    if part.workflow.siblings == "cancel":
        begun = [ran / made if made else 0.0 for ran, made in zip(found.ran, found.made, strict=True)]
        calls = tuple(
            replace(call, slot_ms=call.slot_ms * share) for call, share in zip(calls, begun, strict=True)
        )
    joined = 1 - sum(counted(needs, [1 - call.lost for call in calls]))
    return Request(part, way, calls, found.made, joined, found)


def ends_ms(part: Scenario, way: Way, durations_ms: Sequence[float]) -> list[float]:
    """Return when each branch ends that starts as soon as it may."""
    dependencies = dependencies_of(part)
    order = order_of(dependencies)
    lead = order[0]
    warm_ms = 0.0
    if way.warms:
        warm_ms = min(first_token_ms(part, part.workflow.branches[lead]), durations_ms[lead])
    found = [0.0] * len(order)
    for branch in order:
        starts_ms = max((found[one] for one in dependencies[branch]), default=warm_ms)
        found[branch] = durations_ms[branch] + (0.0 if branch == lead else starts_ms)
    return found


def dependencies_of(part: Scenario) -> tuple[tuple[int, ...], ...]:
    """Return for each branch the positions of those that it waits for."""
    return part.parallel_plan(1).dependencies


@lru_cache(maxsize=8)
def order_of(dependencies: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """Return the order of a serial run; that of the last few workflows is kept."""
    return serial_order(dependencies)


def ancestors(dependencies: Sequence[Sequence[int]], index: int) -> set[int]:
    """Return every branch that one waits for, straight or through others."""
    found: set[int] = set()
    open_ends = list(dependencies[index])
    while open_ends:
        one = open_ends.pop()
        if one not in found:
            found.add(one)
            open_ends += dependencies[one]
    return found


def before(dependencies: tuple[tuple[int, ...], ...], way: Way, index: int) -> set[int]:
    """Return the branches that have begun to answer when one begins, in any case."""
    if not way.is_parallel:
        order = order_of(dependencies)
        return set(order[: order.index(index)])
    found = ancestors(dependencies, index)
    lead = order_of(dependencies)[0]
    return found | {lead} if way.warms and index != lead else found


def counted(most: int, answers: Sequence[float]) -> list[float]:
    """Return how likely 0, 1, ... and up to fewer than `most` of some independent calls answer."""
    counts = [1.0]
    for answer in answers:
        counts = one_more(most, counts, answer)
    return counts


def one_more(most: int, counts: Sequence[float], answer: float) -> list[float]:
    """Return the same with one more call."""
    longer = [*counts, 0.0]
    return [
        longer[number] * (1 - answer) + (longer[number - 1] * answer if number else 0.0)
        for number in range(min(most, len(longer)))
    ]


def provider_name(part: Scenario, branch: WorkflowBranch) -> str:
    """Return the name of the provider that a branch calls."""
    return branch.provider or next(iter(part.providers))


def mean_tokens(part: Scenario, branch: WorkflowBranch) -> tuple[float, float]:
    """Return mean input and output tokens of a call, before what a cache serves."""
    sent, received = (
        part.trace.column_means[role] if isinstance(count, TraceTokens) else count.mean
        for role, count in zip(TOKEN_ROLES, branch.token_counts, strict=True)
    )
    return max(sent, part.least_input_tokens(branch)), received


def first_token_ms(part: Scenario, branch: WorkflowBranch) -> float:
    """Return the mean time to a call's first token: stated, else overhead and prefill."""
    means: Mapping[str, float] = part.trace.column_means if part.load.kind == "trace" else {}
    if branch.first_token_ms is not None:
        return branch.first_token_ms.mean_given(means)
    duration = branch.duration_ms
    if not isinstance(duration, TokenDuration):
        return 0.0
    return duration.overhead_ms + mean_tokens(part, branch)[0] * duration.prefill_ms_per_token
