"""How requests arrive: the load of a scenario."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, Strict, Tag

from sim.scenario.base import (
    MAX_COUNT,
    MAX_S,
    Broken,
    Count,
    CountOrZero,
    Factor,
    FileName,
    Model,
    Name,
    PositiveSeconds,
    Rate,
    Seconds,
    Users,
    Variation,
    chosen_by,
)
from sim.scenario.distribution import Constant, Duration

PositiveRate = Annotated[float, Field(gt=0, le=1e6)]
TOKEN_ROLES = ("input_tokens", "output_tokens")
TimeUnit = Literal["ns", "us", "ms", "s", "datetime"]


class ClosedLoad(Model):
    """A fixed number of users, each of whom waits for the answer, thinks, and asks again."""

    kind: Literal["closed"]
    active_requests: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        description="Users, each with one request at a time."
    )
    think_time_ms: Duration = Field(Constant(0.0), description="Pause of a user after each answer, ms.")
    requests: Count = Field(description="Requests issued in all; the run then drains.")


class OpenLoad(Model):
    """Arrivals at a constant rate that do not wait for answers."""

    kind: Literal["open"]
    arrivals: Literal["poisson", "fixed", "gamma"] = Field(
        "poisson", description="Gaps between arrivals: exponential, all alike, or gamma with a cv."
    )
    rate_per_s: PositiveRate = Field(description="Mean arrivals per second.")
    cv: Variation | None = Field(None, description="Standard deviation / mean of the gaps; gamma only.")
    requests: Count | None = Field(None, description="Requests issued in all; or give duration_s.")
    duration_s: PositiveSeconds | None = Field(
        None, description="Seconds during which requests arrive; or give requests."
    )

    def broken_rules(self) -> Iterator[Broken]:
        if self.arrivals == "gamma" and self.cv is None:
            yield Broken(("cv",), "is missing: gamma arrivals need it")
        if self.arrivals != "gamma" and self.cv is not None:
            yield Broken(("cv",), "must be left out unless arrivals are gamma", self.cv)
        yield from _exactly_one(self, "requests", "duration_s")
        if self.duration_s is not None and not 1 <= self.duration_s * self.rate_per_s <= MAX_COUNT:
            rule = f"must give from 1 to {MAX_COUNT} arrivals at this rate"
            yield Broken(("duration_s",), rule, self.duration_s)
        if (self.requests or 1) / self.rate_per_s > MAX_S:
            rule = f"must let the last request arrive within {MAX_S:g} s"
            yield Broken(("rate_per_s",), rule, self.rate_per_s)


class TraceColumns(Model):
    """Which columns of a CSV file hold what."""

    timestamp: Name = Field(description="Column of the arrival times.")
    input_tokens: Name | None = Field(None, description="Column of the input token counts.")
    output_tokens: Name | None = Field(None, description="Column of the output token counts.")


AZURE_COLUMNS = TraceColumns(
    timestamp="TIMESTAMP", input_tokens="ContextTokens", output_tokens="GeneratedTokens"
)


class TraceLoad(Model):
    """Arrivals, and whatever else each row says, replayed from a CSV file; one row is one request."""

    kind: Literal["trace"]
    file: FileName = Field(description="CSV file, its path relative to the file that names it.")
    format: Literal["azure", "csv"] = Field(
        description="Azure's TIMESTAMP,ContextTokens,GeneratedTokens, or csv with `columns` and `time_unit`."
    )
    columns: TraceColumns | None = Field(None, description="Names of the columns; csv only.")
    time_unit: TimeUnit | None = Field(None, description="Unit of the timestamps, or `datetime`; csv only.")
    time_scale: Factor = Field(1.0, description="Arrival times are multiplied by this: 0.5 doubles the load.")
    first: CountOrZero = Field(0, description="Rows to skip at the beginning of the file.")
    count: Count | None = Field(None, description="Rows to replay; all that remain unless given.")

    def broken_rules(self) -> Iterator[Broken]:
        for key, value in (("columns", self.columns), ("time_unit", self.time_unit)):
            if self.format == "csv" and value is None:
                yield Broken((key,), "is missing: the csv format needs it")
            if self.format == "azure" and value is not None:
                yield Broken((key,), "must be left out: the azure format has its own")

    @property
    def role_columns(self) -> TraceColumns:
        """The columns of the format, whether stated or known."""
        return self.columns or AZURE_COLUMNS

    @property
    def token_roles(self) -> tuple[str, ...]:
        """The token counts that the trace has."""
        return tuple(role for role in TOKEN_ROLES if getattr(self.role_columns, role) is not None)

    @property
    def unit(self) -> TimeUnit:
        """The unit of the timestamps, whether stated or known."""
        return self.time_unit or "datetime"


class Step(Model):
    """From this time on, this many users or this rate of Poisson arrivals."""

    at_s: Seconds = Field(description="When the step begins, seconds from the start.")
    active_requests: Users | None = Field(None, description="Users from here on; or give rate_per_s.")
    rate_per_s: Rate | None = Field(
        None, description="Arrivals per second from here on; or give active_requests."
    )
    name: Name | None = Field(None, description="What reports call this period.")

    def broken_rules(self) -> Iterator[Broken]:
        yield from _exactly_one(self, "active_requests", "rate_per_s")


class StepsLoad(Model):
    """Users, or a rate, that change at given times: off-peak, peak and off-peak in one run."""

    kind: Literal["steps"]
    steps: Annotated[tuple[Step, ...], Strict(False)] = Field(
        min_length=1, description="The steps in order of time, the first at 0."
    )
    end_s: PositiveSeconds = Field(description="When the last step ends; nothing is issued after it.")
    think_time_ms: Duration = Field(Constant(0.0), description="Pause of a user after each answer, ms.")

    @property
    def is_closed(self) -> bool:
        """Whether the steps are numbers of users."""
        return self.steps[0].active_requests is not None

    def broken_rules(self) -> Iterator[Broken]:
        yield from _times("steps", [step.at_s for step in self.steps], self.end_s)
        kinds = [step.active_requests is not None for step in self.steps]
        key = "active_requests" if self.is_closed else "rate_per_s"
        for index, kind in enumerate(kinds):
            if kind != kinds[0]:
                yield Broken(("steps", index), f"must give {key}, as the first step does")
        if not self.is_closed and "think_time_ms" in self.model_fields_set:
            yield Broken(("think_time_ms",), "must be left out: arrivals at a rate do not wait")
        if not any(step.active_requests or step.rate_per_s for step in self.steps):
            yield Broken(("steps",), "must have a step that issues requests")


class RatePoint(Model):
    """The rate of arrivals at, or from, a time."""

    at_s: Seconds = Field(description="Time on the profile's clock, seconds.")
    rate_per_s: Rate = Field(description="Arrivals per second.")


class NamedPeriod(Model):
    """A part of the profile that reports show on its own row."""

    name: Name = Field(description="What reports call it.")
    from_s: Seconds = Field(description="Where it begins on the profile's clock, seconds.")
    to_s: PositiveSeconds = Field(description="Where it ends, seconds; the end does not belong to it.")

    def broken_rules(self) -> Iterator[Broken]:
        if self.to_s <= self.from_s:
            yield Broken(("to_s",), "must be > from_s", self.to_s)


class ProfileLoad(Model):
    """Poisson arrivals whose rate follows a profile, such as a day's.

    All times are on the profile's own clock; the run starts at `first_s` of it.
    """

    kind: Literal["profile"]
    interpolation: Literal["constant", "linear"] = Field(
        "constant", description="The rate holds to the next point, or runs straight to it."
    )
    points: Annotated[tuple[RatePoint, ...], Strict(False)] | None = Field(
        None, min_length=1, description="The profile; or give file."
    )
    file: FileName | None = Field(None, description="CSV file window_start_s,requests_per_s; or give points.")
    rate_scale: Factor = Field(1.0, description="Rates are multiplied by this.")
    first_s: Seconds = Field(0.0, description="Where the run starts, seconds.")
    end_s: PositiveSeconds = Field(description="Where the run ends, seconds; nothing arrives after it.")
    periods: Annotated[tuple[NamedPeriod, ...], Strict(False)] = Field(
        (), description="Periods to report, in order, without overlap."
    )

    def broken_rules(self) -> Iterator[Broken]:
        yield from _exactly_one(self, "points", "file")
        if self.end_s <= self.first_s:
            yield Broken(("end_s",), "must be > first_s", self.end_s)
        yield from _ascending("points", [point.at_s for point in self.points or ()])
        end_s = self.first_s
        for index, period in enumerate(self.periods):
            if not end_s <= period.from_s or period.to_s > self.end_s:
                rule = "must lie after the period before it and within first_s and end_s"
                yield Broken(("periods", index), rule, period.name)
            end_s = period.to_s


Load: TypeAlias = Annotated[
    Annotated[ClosedLoad, Tag("<closed>")]
    | Annotated[OpenLoad, Tag("<open>")]
    | Annotated[TraceLoad, Tag("<trace>")]
    | Annotated[StepsLoad, Tag("<steps>")]
    | Annotated[ProfileLoad, Tag("<profile>")],
    chosen_by("kind", ("closed", "open", "trace", "steps", "profile")),
]


def _exactly_one(model: Model, first: str, second: str) -> Iterator[Broken]:
    given = [key for key in (first, second) if getattr(model, key) is not None]
    if not given:
        yield Broken((), f"must have {first} or {second}")
    if len(given) == 2:
        yield Broken((second,), f"must not be given beside {first}")


def _ascending(key: str, times_s: Sequence[float]) -> Iterator[Broken]:
    for index in range(1, len(times_s)):
        if times_s[index] <= times_s[index - 1]:
            yield Broken((key, index, "at_s"), "must be > the time before it", times_s[index])


def _times(key: str, times_s: Sequence[float], end_s: float) -> Iterator[Broken]:
    if times_s[0] != 0:
        yield Broken((key, 0, "at_s"), "must be 0: a run starts there", times_s[0])
    yield from _ascending(key, times_s)
    if end_s <= times_s[-1]:
        yield Broken(("end_s",), "must be > the time of the last step", end_s)
