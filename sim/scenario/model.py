"""Plans, criteria, experiment: what a scenario says of the study itself."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, PlainSerializer, Tag
from pydantic_core import CoreSchema

from sim.contract.plan import ADAPTIVE, PLANS, SERIAL, USUAL_PLANS
from sim.scenario.base import Broken, CountOrZero, Model, OneOf, Ratio, Seconds, chosen_by, further

PlanName = Annotated[str, OneOf(PLANS)]


class PlanChoice(Model):
    """A way to run the branches of a request."""

    plan: PlanName = Field(
        description="serial, parallel, adaptive: decided request by request, or warm_first: one branch "
        "leads, the others start at its first token."
    )
    max_degree: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="Most slots that a request holds at once; not for serial."
    )

    def broken_rules(self) -> Iterator[Broken]:
        if self.plan == SERIAL and self.max_degree is not None:
            yield Broken(
                ("max_degree",), "must be left out: a serial request holds one slot", self.max_degree
            )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Add the plain name to what may be written."""
        mapping = handler.resolve_ref_schema(handler(core_schema))
        names = {"enum": list(PLANS)}
        return {"anyOf": [names, mapping], "description": cls.__doc__}

    @property
    def label(self) -> str:
        """Name of the plan in tables and files: `parallel`, `parallel_max_2`."""
        return self.plan if self.max_degree is None else f"{self.plan}_max_{self.max_degree}"


class TabledChoice(PlanChoice):
    """Serial or parallel by the hour and by a request's fair share of the slots, looked up at its arrival.

    No file states it: a policy is made from a scenario and simulated this way. `hours` are pairs of an hour
    of the day, the first 0, and whether to run in parallel from then on at a fair share of 1, 2, ... slots;
    the last share stands for all above.
    """

    plan: PlanName = ADAPTIVE
    hours: tuple[tuple[float, tuple[bool, ...]], ...]

    @property
    def label(self) -> str:
        """Name of the plan in tables and files."""
        return "policy"


def _plan_from(value: Any) -> Any:
    return {"plan": value} if isinstance(value, str) else value


def _plan_written(choice: PlanChoice) -> Any:
    return (
        choice.plan if choice.max_degree is None else {"plan": choice.plan, "max_degree": choice.max_degree}
    )


PlanEntry: TypeAlias = Annotated[PlanChoice, BeforeValidator(_plan_from), PlainSerializer(_plan_written)]
ALL_PLANS = tuple(PlanChoice(plan=name) for name in USUAL_PLANS)


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
    start_hour: Annotated[float, Field(ge=0, lt=24)] = further(
        0.0, "Hour of the day at which a run starts, 0 to 24."
    )
