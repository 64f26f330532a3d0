"""The keys of a scenario file, and what follows from them alone."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, PrivateAttr, Strict

from sim.contract.plan import PLANS
from sim.plan.share import CalledProvider
from sim.scenario.base import Model, Name, Path
from sim.scenario.distribution import Distribution, TokenDuration
from sim.scenario.failures import Failures
from sim.scenario.load import TOKEN_ROLES, ClosedLoad, Load, StepsLoad, TraceLoad
from sim.scenario.model import ALL_PLANS, Criteria, Experiment, PlanChoice, PlanEntry
from sim.scenario.provider import Provider
from sim.scenario.slo import Slo
from sim.scenario.workflow import Workflow, WorkflowBranch
from sim.scenario.workloads import Share, Workload

Providers = Annotated[dict[Name, Provider], Field(min_length=1, max_length=100)]
ONLY_PROVIDER = "provider"
"""What the provider of a scenario with only one is called."""


class ScenarioKeys(Model):
    """What a file says of one workload: its workflow, load and objectives, and what all have in common."""

    schema_version: Literal[1] = Field(description="Version of the format: 1.")
    name: Name = Field(description="Name of the scenario.")
    description: str | None = Field(None, description="What it shows.")
    stated_provider: Provider | None = Field(
        None, alias="provider", description="The API whose slots all requests borrow; or give providers."
    )
    stated_providers: Providers | None = Field(
        None, alias="providers", description="Several providers by name; or give provider."
    )
    workflow: Workflow = Field(description="What a request runs.")
    load: Load = Field(description="How requests arrive.")
    plans: Annotated[tuple[PlanEntry, ...], Strict(False)] = Field(
        ALL_PLANS, min_length=1, description="Plans to compare."
    )
    criteria: Criteria = Field(Criteria(), description="Thresholds of the decision.")
    experiment: Experiment = Field(Experiment(), description="Seed, replications and warm-up.")
    slo: Slo | None = Field(None, description="Objectives that decide the exit code.")

    _workload: Workload | None = PrivateAttr(None)

    @property
    def part_name(self) -> str:
        """Name of the workload; of the workflow, if the file has no list of workloads."""
        return self._workload.name if self._workload else self.workflow.name

    @property
    def share(self) -> Share:
        """The workload's claim on the slots."""
        return self._workload.share if self._workload else Share()

    @property
    def fixed_plan(self) -> PlanChoice | None:
        """The workload's own plan; None where it runs the plan under comparison."""
        return self._workload.plan if self._workload else None

    @property
    def provider(self) -> Provider:
        """The provider of branches that name none: the only one, or the first."""
        return next(iter(self.providers.values()))

    @property
    def providers(self) -> dict[str, Provider]:
        """The providers by name, in order."""
        if self.stated_provider is not None:
            return {ONLY_PROVIDER: self.stated_provider}
        return self.stated_providers or {}

    def provider_of(self, branch: WorkflowBranch) -> Provider:
        """Return the provider that a branch calls."""
        return self.provider if branch.provider is None else self.providers[branch.provider]

    @property
    def branch_providers(self) -> dict[str, Provider]:
        """The providers that its branches call, by name; not the one that only its join holds a slot of."""
        first = next(iter(self.providers))
        called = {branch.provider or first for branch in self.workflow.branches}
        return {name: provider for name, provider in self.providers.items() if name in called}

    @property
    def used_providers(self) -> dict[str, Provider]:
        """The providers that its calls go to, by name. A join that holds a slot holds the first's."""
        used = set(self.branch_providers)
        if self.workflow.join_holds_slot:
            used.add(next(iter(self.providers)))
        return {name: provider for name, provider in self.providers.items() if name in used}

    @property
    def tightest_provider(self) -> str:
        """The name of the provider with the fewest slots among those that its branches call."""
        called = self.branch_providers
        return min(called, key=lambda name: (called[name].most_concurrency, name))

    @property
    def called_providers(self) -> tuple[CalledProvider, ...]:
        """What arithmetic knows of the providers that branches call; of slots that change, the most."""
        first = next(iter(self.providers))
        branches = Counter(branch.provider or first for branch in self.workflow.branches)
        called = self.branch_providers.items()
        return tuple(CalledProvider(provider.most_concurrency, branches[name]) for name, provider in called)

    @property
    def slots_at_hand(self) -> int:
        """The slots that one request alone can use at once; at each provider one for each branch at most."""
        return sum(min(one.slots, one.branches) for one in self.called_providers)

    @property
    def most_slots(self) -> int:
        """The most slots of all providers, added up."""
        return sum(provider.most_concurrency for provider in self.providers.values())

    @property
    def has_prefix_cache(self) -> bool:
        """Whether a provider that its branches call has a cache of prompt prefixes."""
        return any(provider.prefix_cache for provider in self.branch_providers.values())

    @property
    def slots_words(self) -> str:
        """The slots of each provider and who gets them, in words."""
        names = self.providers if len(self.providers) > 1 else {}
        return " + ".join(
            f"{f'{name}: ' if name in names else ''}{one.concurrency:,} slots {one.allocation}"
            for name, one in self.providers.items()
        )

    def concurrency_path(self, provider: str) -> str:
        """Return the key path of a provider's slots."""
        at = "provider" if self.stated_provider is not None else f"providers.{provider}"
        return f"{at}.concurrency"

    @property
    def is_plain(self) -> bool:
        """Whether it is one workload on one fixed number of slots, where no call fails or is limited."""
        return (
            self._workload is None
            and self.stated_providers is None
            and self.provider.is_plain
            and self.workflow.is_plain
            and not self.has_warm_first
        )

    @property
    def has_warm_first(self) -> bool:
        """Whether one of the plans that it runs is warm_first."""
        plans = (self.fixed_plan,) if self.fixed_plan else self.plans
        return any(PLANS[choice.plan].warms for choice in plans)

    @property
    def has_faults(self) -> bool:
        """Whether an attempt may fail, be turned away or be given up, or be made again."""
        return self.workflow.can_go_wrong or any(one.rejects for one in self.used_providers.values())

    @property
    def has_random_faults(self) -> bool:
        """Whether what becomes of an attempt is drawn at random, or the pause after it."""
        retry = self.workflow.retry
        fails = any(self.branch_failures(branch).can_happen for branch in self.workflow.branches)
        return fails or (retry.attempts > 1 and retry.jitter > 0)

    @property
    def uses_tokens(self) -> bool:
        """Whether limits, a prefix cache or a plan look at the tokens of its calls."""
        looks = any(one.limits or one.prefix_cache for one in self.used_providers.values())
        return looks or self.has_warm_first

    def branch_failures(self, branch: WorkflowBranch) -> Failures:
        """Return what goes wrong with a branch: its own, or the workflow's."""
        return branch.failures or self.workflow.failures

    def least_input_tokens(self, branch: WorkflowBranch) -> int:
        """Return the tokens of the shared context where a branch carries it and does not state its input."""
        carries = branch.carries_shared_context and not branch.states_input_tokens
        return self.workflow.shared_context.tokens if carries else 0

    def cached_prefix_tokens(self, branch: WorkflowBranch) -> int:
        """Return the tokens of the shared context that a branch carries to a cache that keeps it, else 0."""
        cache, tokens = self.provider_of(branch).prefix_cache, self.workflow.shared_context.tokens
        keeps = cache is not None and branch.carries_shared_context and tokens >= cache.min_tokens
        return tokens if keeps else 0

    def distributions(self) -> Iterator[tuple[Path, Distribution]]:
        """Yield every duration and token count with its key path, parts of a duration after it."""
        yield from self.durations()
        for path, duration in self.durations():
            if isinstance(duration, TokenDuration):
                yield from (((*path, role), getattr(duration, role)) for role in TOKEN_ROLES)
        yield from self.token_counts()

    def durations(self) -> Iterator[tuple[Path, Distribution]]:
        """Yield every duration with its key path."""
        workflow = self.workflow
        for index, branch in enumerate(workflow.branches):
            at: Path = ("workflow", "branches", index)
            yield (*at, "duration_ms"), branch.duration_ms
            if branch.first_token_ms is not None:
                yield (*at, "first_token_ms"), branch.first_token_ms
        yield ("workflow", "join_overhead_ms"), workflow.join_overhead_ms
        if workflow.follow_up is not None:
            yield ("workflow", "follow_up", "duration_ms"), workflow.follow_up.duration_ms
        if isinstance(self.load, ClosedLoad | StepsLoad):
            yield ("load", "think_time_ms"), self.load.think_time_ms

    def token_counts(self) -> Iterator[tuple[Path, Distribution]]:
        """Yield the token counts that branches state beside their duration, with their key paths."""
        for index, branch in enumerate(self.workflow.branches):
            for role, count in branch.stated_tokens.items():
                if count is not None:
                    yield ("workflow", "branches", index, role), count

    @property
    def trace_columns(self) -> tuple[str, ...]:
        """The columns to read from a trace: the token columns that it states, the durations in use."""
        stated = self.load.token_roles if isinstance(self.load, TraceLoad) else ()
        used = (name for _, duration in self.durations() for name in duration.trace_columns)
        return tuple(dict.fromkeys((*stated, *used)))
