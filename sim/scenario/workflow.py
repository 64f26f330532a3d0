"""The workflow of a request: branches, the context that they share, the join, and what may go wrong."""

import math
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field, Strict

from sim.scenario.base import (
    Broken,
    Count,
    CountOrZero,
    Micros,
    Model,
    Name,
    PositiveAmount,
    Ratio,
    further,
)
from sim.scenario.distribution import (
    Constant,
    Distribution,
    Duration,
    ServiceTime,
    TokenCount,
    TokenDuration,
)
from sim.scenario.failures import ONE_ATTEMPT, Failures, Retry
from sim.scenario.faults import nearest

NO_TOKENS = Constant(0.0)

# A key that may be left out. A file cannot say None, so that pydantic does not need to know of it.
if TYPE_CHECKING:
    MaybeDuration: TypeAlias = Distribution | None
    MaybeTokens: TypeAlias = Distribution | None
else:
    MaybeDuration, MaybeTokens = Duration, TokenCount


class WorkflowBranch(Model):
    """A step of the workflow that needs one slot."""

    id: Name = Field(description="Name of the branch, unique within the workflow.")
    duration_ms: ServiceTime = Field(description="Service time of a call, ms: a number or a distribution.")
    cost_micros: Micros = Field(0, description="Cost of a call without the shared context, micros.")
    carries_shared_context: bool = Field(
        False, description="Whether a call pays for a copy of the shared context."
    )
    depends_on: Annotated[tuple[Name, ...], Strict(False)] = Field(
        (), description="Ids of the branches that must finish first."
    )
    provider: Name | None = further(None, "Provider that it calls; the first one unless given.")
    timeout_ms: PositiveAmount | None = further(
        None, "Longest time that an attempt may hold its slot, ms; no timeout unless given."
    )
    hedge_after_ms: PositiveAmount | None = further(
        None, "When a second attempt joins a first one that still runs, ms; never unless given."
    )
    optional: bool = further(False, "Whether the join can do without it where it is lost.")
    failures: Failures | None = further(None, "What goes wrong with it; as the workflow's unless given.")
    input_tokens: MaybeTokens = further(
        None, "Input tokens of a call, for limits: number, `trace` or distribution."
    )
    output_tokens: MaybeTokens = further(
        None, "Output tokens of a call, for limits: number, `trace` or distribution."
    )
    max_output_tokens: CountOrZero | None = further(
        None, "Output tokens that limits reserve when they admit a call; the mean, rounded up, unless given."
    )
    first_token_ms: MaybeDuration = further(
        None,
        "From the start of a call to its first token, ms: a number or a distribution; overhead and prefill "
        "unless given, where the duration is made of tokens.",
    )

    @property
    def token_counts(self) -> tuple[Distribution, Distribution]:
        """Input and output tokens of a call."""
        if isinstance(self.duration_ms, TokenDuration):
            return self.duration_ms.input_tokens, self.duration_ms.output_tokens
        return self.input_tokens or NO_TOKENS, self.output_tokens or NO_TOKENS

    @property
    def states_input_tokens(self) -> bool:
        """Whether its input tokens are stated, here or in its duration."""
        holder = self.duration_ms if isinstance(self.duration_ms, TokenDuration) else self
        return "input_tokens" in holder.model_fields_set

    @property
    def can_go_wrong(self) -> bool:
        """Whether it states anything about failing, or being given up."""
        stated = (self.timeout_ms, self.hedge_after_ms, self.failures)
        return self.optional or any(one is not None for one in stated)

    @property
    def is_plain(self) -> bool:
        """Whether it states no more than a call that is made once and succeeds."""
        further_keys = (
            self.provider,
            *self.stated_tokens.values(),
            self.max_output_tokens,
            self.first_token_ms,
        )
        return not self.can_go_wrong and all(key is None for key in further_keys)

    @property
    def stated_tokens(self) -> dict[str, Distribution | None]:
        """Its own token counts, by role; None where it states none."""
        return {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens}

    def broken_rules(self) -> Iterator[Broken]:
        if isinstance(self.duration_ms, TokenDuration):
            for role, count in self.stated_tokens.items():
                if count is not None:
                    yield Broken((role,), f"must be left out: duration_ms has its own {role}")
        if self.hedge_after_ms is not None and self.hedge_after_ms >= (self.timeout_ms or math.inf):
            yield Broken(("hedge_after_ms",), "must be < timeout_ms", self.hedge_after_ms)


class SharedContext(Model):
    """The prompt prefix that branches share, and its price."""

    tokens: CountOrZero = Field(0, description="Tokens of one copy.")
    input_micros_per_ktok: Micros = Field(0, description="Price of 1,000 input tokens, micros.")
    prefix_reuse_ratio: Ratio = Field(
        0.0, description="Share of a copy that the provider's cache serves, 0 to 1."
    )
    cached_input_price_ratio: Ratio = Field(
        1.0, description="Price of a cached token as a share of the full price, 0 to 1."
    )


class Baseline(Model):
    """The whole request as it is today, for comparison."""

    latency_ms: Annotated[float, Field(ge=1, le=1e8)] | None = Field(None, description="Latency, ms.")
    cost_micros: Annotated[int, Field(ge=1, le=1_000_000_000_000)] | None = Field(
        None, description="Cost, micros."
    )


class FollowUp(Model):
    """Human review of what a request has answered. It starts at the join and is not part of the latency."""

    reviewers: Count = Field(description="People who review, one request at a time each.")
    duration_ms: ServiceTime = Field(description="Time of a review, ms: a number or a distribution.")


class Workflow(Model):
    """The calls that a request makes, and the join after them."""

    name: Name = Field(description="Name of the workflow; it is part of the key of every random stream.")
    branches: Annotated[tuple[WorkflowBranch, ...], Strict(False)] = Field(
        min_length=1, max_length=1000, description="Branches; their order settles ties in the queue."
    )
    join_overhead_ms: Duration = Field(Constant(0.0), description="Merge, validate and hand over, ms.")
    join_growth_ms_per_branch: Annotated[float, Field(ge=0, le=1e6)] = Field(
        0.0, description="Added to the join for each branch beyond two, ms."
    )
    join_holds_slot: bool = Field(False, description="Whether the join queues for a slot and holds it.")
    shared_context: SharedContext = Field(SharedContext(), description="Context that branches share.")
    baseline: Baseline = Field(Baseline(), description="The request as it is today.")
    failures: Failures = further(Failures(), "What goes wrong with attempts at a call.")
    retry: Retry = further(ONE_ATTEMPT, "Further attempts at a call; none unless given.")
    deadline_ms: PositiveAmount | None = further(
        None, "Longest time that a request may take, from its arrival, ms; no deadline unless given."
    )
    join_needs: Count | None = further(None, "Branches that the join waits for; all of them unless given.")
    siblings: Literal["cancel", "finish"] = further(
        "cancel", "What happens to calls that are no longer needed: they give their slots back, or run on."
    )
    follow_up: FollowUp | None = further(None, "Human review after the answer; none unless given.")

    @property
    def can_go_wrong(self) -> bool:
        """Whether it states anything about failing, trying again, or doing without a branch."""
        return (
            self.failures.can_happen
            or self.retry.attempts > 1
            or self.deadline_ms is not None
            or self.join_needs is not None
            or any(branch.can_go_wrong for branch in self.branches)
        )

    @property
    def is_plain(self) -> bool:
        """Whether its calls are made once and succeed, and nothing follows its answer."""
        return not (self.can_go_wrong or self.follow_up) and all(branch.is_plain for branch in self.branches)

    def broken_rules(self) -> Iterator[Broken]:
        yield from self._broken_graph()
        yield from self._broken_fault_rules()

    def _broken_fault_rules(self) -> Iterator[Broken]:
        for index, branch in enumerate(self.branches):
            at = ("branches", index)
            if branch.timeout_ms is None and (branch.failures or self.failures).timeout > 0:
                yield Broken((*at, "timeout_ms"), "is missing: failures.timeout needs it")
            if branch.hedge_after_ms is not None and self.retry.attempts < 2:
                rule = "must be left out without retry.attempts >= 2: a hedge is one of them"
                yield Broken((*at, "hedge_after_ms"), rule, branch.hedge_after_ms)
            if branch.optional and self.join_needs is not None:
                yield Broken((*at, "optional"), "must be left out beside join_needs")
        if (self.join_needs or 1) > len(self.branches):
            rule = f"must be <= {len(self.branches)}, the number of branches"
            yield Broken(("join_needs",), rule, self.join_needs)

    def _broken_graph(self) -> Iterator[Broken]:
        ids = tuple(branch.id for branch in self.branches)
        place_of: dict[str, int] = {}
        for index, name in enumerate(ids):
            place_of.setdefault(name, index)
        for index, branch in enumerate(self.branches):
            at = ("branches", index)
            if place_of[branch.id] != index:
                yield Broken((*at, "id"), "must not repeat", branch.id)
            named: set[str] = set()
            for position, name in enumerate(branch.depends_on):
                if name not in place_of:
                    rule = f"must name a branch{nearest(name, ids)}"
                    yield Broken((*at, "depends_on", position), rule, name)
                elif name in named:
                    yield Broken((*at, "depends_on", position), "must not repeat", name)
                named.add(name)
        yield from self._cycle(place_of)

    def branch_means_ms(self, column_means: Mapping[str, float]) -> tuple[float, ...]:
        """Return the mean service time of each branch (ms), with the trace's columns at their means."""
        return tuple(branch.duration_ms.mean_given(column_means) for branch in self.branches)

    @property
    def join_growth_ms(self) -> float:
        """What the join takes longer because of its branches beyond two, ms."""
        return self.join_growth_ms_per_branch * max(0, len(self.branches) - 2)

    def _cycle(self, place_of: Mapping[str, int]) -> Iterator[Broken]:
        graph = {
            branch.id: {name for name in branch.depends_on if name in place_of} for branch in self.branches
        }
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            cycle = error.args[1][:-1]
            first = min(cycle, key=place_of.__getitem__)
            turn = cycle.index(first)
            path = " -> ".join([*cycle[turn:], *cycle[:turn], first])
            yield Broken(("branches", place_of[first], "depends_on"), "must not form a cycle", path)
