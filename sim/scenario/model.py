"""The parts of a scenario: provider, workflow, plans, criteria, experiment."""

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, PlainSerializer, Strict, Tag
from pydantic_core import CoreSchema

from sim.scenario.base import Broken, CountOrZero, Micros, Model, Name, Ratio, Seconds, chosen_by
from sim.scenario.distribution import Constant, Duration, ServiceTime
from sim.scenario.faults import nearest

Allocation = Literal["fair_share", "fifo", "max_min"]
PlanName = Literal["serial", "parallel", "adaptive"]


class Provider(Model):
    """The API whose slots all requests borrow."""

    concurrency: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        description="Slots: calls in flight at once."
    )
    allocation: Allocation = Field("fair_share", description="Who gets a free slot.")


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

    def broken_rules(self) -> Iterator[Broken]:
        ids = tuple(branch.id for branch in self.branches)
        for index, branch in enumerate(self.branches):
            at = ("branches", index)
            if branch.id in ids[:index]:
                yield Broken((*at, "id"), "must not repeat", branch.id)
            for position, name in enumerate(branch.depends_on):
                if name not in ids:
                    rule = f"must name a branch{nearest(name, ids)}"
                    yield Broken((*at, "depends_on", position), rule, name)
                elif name in branch.depends_on[:position]:
                    yield Broken((*at, "depends_on", position), "must not repeat", name)
        yield from self._cycle(ids)

    def branch_means_ms(self, column_means: Mapping[str, float]) -> tuple[float, ...]:
        """Return the mean service time of each branch (ms), with the trace's columns at their means."""
        return tuple(branch.duration_ms.mean_given(column_means) for branch in self.branches)

    @property
    def join_growth_ms(self) -> float:
        """What the join takes longer because of its branches beyond two, ms."""
        return self.join_growth_ms_per_branch * max(0, len(self.branches) - 2)

    def _cycle(self, ids: tuple[str, ...]) -> Iterator[Broken]:
        graph = {branch.id: set(branch.depends_on) & set(ids) for branch in self.branches}
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            cycle = error.args[1][:-1]
            first = min(cycle, key=ids.index)
            turn = cycle.index(first)
            path = " -> ".join([*cycle[turn:], *cycle[:turn], first])
            yield Broken(("branches", ids.index(first), "depends_on"), "must not form a cycle", path)


class PlanChoice(Model):
    """A way to run the branches of a request."""

    plan: PlanName = Field(description="serial, parallel, or adaptive: decided request by request.")
    max_degree: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="Most slots that a request holds at once; not for serial."
    )

    def broken_rules(self) -> Iterator[Broken]:
        if self.plan == "serial" and self.max_degree is not None:
            yield Broken(
                ("max_degree",), "must be left out: a serial request holds one slot", self.max_degree
            )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Add the plain name to what may be written."""
        mapping = handler.resolve_ref_schema(handler(core_schema))
        names = {"enum": list(get_args(PlanName))}
        return {"anyOf": [names, mapping], "description": cls.__doc__}

    @property
    def label(self) -> str:
        """Name of the plan in tables and files: `parallel`, `parallel_max_2`."""
        return self.plan if self.max_degree is None else f"{self.plan}_max_{self.max_degree}"


def _plan_from(value: Any) -> Any:
    return {"plan": value} if isinstance(value, str) else value


def _plan_written(choice: PlanChoice) -> Any:
    return (
        choice.plan if choice.max_degree is None else {"plan": choice.plan, "max_degree": choice.max_degree}
    )


PlanEntry: TypeAlias = Annotated[PlanChoice, BeforeValidator(_plan_from), PlainSerializer(_plan_written)]
ALL_PLANS = tuple(PlanChoice(plan=name) for name in ("serial", "parallel", "adaptive"))


class Criteria(Model):
    """Thresholds of the decision between serial and parallel."""

    max_micros_per_saved_ms: Annotated[float, Field(ge=0, le=1e12)] = Field(
        4.0, description="Most extra cost per saved millisecond, micros."
    )
    min_marginal_gain_ratio: Ratio = Field(
        0.05, description="Least gain per added slot, as a share of the makespan before it, 0 to 1."
    )


class WarmupCut(Model):
    """Requests left out of the statistics at the beginning: a number of them, or those before a time."""

    count: CountOrZero | None = Field(None, description="Requests to leave out; or give time_s.")
    time_s: Seconds | None = Field(
        None, description="Leave out arrivals before this time, seconds; or give count."
    )

    def broken_rules(self) -> Iterator[Broken]:
        if (self.count is None) == (self.time_s is None):
            yield Broken((), "must have either count or time_s")


WARMUP_WORDS = (
    "none, auto (MSER-5), a count or a time. Unless given: auto for closed and open loads with random times "
    "or arrivals, which start out of their steady state; none where nothing is random, and for traces, steps "
    "and profiles, whose start belongs to what they show."
)


def _warmup_form(value: Any) -> str | None:
    if value is None:
        return "<by-load>"
    return "<cut>" if isinstance(value, dict | WarmupCut) else "<word>" if value in ("none", "auto") else None


class Experiment(Model):
    """How often, and from which seed, a scenario is run."""

    seed: Annotated[int, Field(ge=0, lt=2**63)] = Field(1, description="Seed of every random stream.")
    replications: Annotated[int, Field(ge=1, le=100_000)] = Field(1, description="Independent runs.")
    warmup: Annotated[
        Annotated[Literal["none", "auto"], Tag("<word>")]
        | Annotated[WarmupCut, Tag("<cut>")]
        | Annotated[None, Tag("<by-load>")],
        chosen_by("", (), _warmup_form, "must be none, auto, or a mapping with count or time_s"),
    ] = Field(None, description=f"What the statistics leave out: {WARMUP_WORDS}")
