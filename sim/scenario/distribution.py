"""Durations and token counts: a number, or the distribution that it is drawn from.

Each is written twice in a scenario file, once with keys in milliseconds (`mean_ms`) and once in tokens
(`mean_tokens`); here the unit is left out, and two families of the same classes put it back.
Mean and cv (standard deviation / mean) are always those of the variable itself, never of its logarithm.
"""

import math
from collections.abc import Iterator, Mapping
from statistics import NormalDist
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, Union

import numpy as np
from pydantic import ConfigDict, Field, PrivateAttr, RootModel, Strict, Tag, create_model

from sim.scenario.base import (
    MAX_CV,
    MAX_MS,
    Amount,
    Broken,
    FileName,
    Model,
    Name,
    PositiveAmount,
    Variation,
    chosen_by,
)
from sim.units import FloatArray

UNITLESS = ("distribution", "cv", "file", "column")
PERCENTILE_95_Z = NormalDist().inv_cdf(0.95)


class Distribution:
    """What all of them offer.

    `draw` is prefix-stable: the first k of `draw(rng, n)` are `draw(rng, k)` from the same state.
    """

    if TYPE_CHECKING:

        @property
        def mean(self) -> float:
            """Mean, in the unit of the key; NaN where only a trace can tell."""

        @property
        def cv(self) -> float:
            """Coefficient of variation, 0 where constant; NaN where only a trace can tell."""

    @property
    def is_constant(self) -> bool:
        """Whether every draw is the mean."""
        return self.cv == 0

    @property
    def trace_columns(self) -> tuple[str, ...]:
        """The columns of the load's trace that this takes its values from."""
        return ()

    def mean_given(self, column_means: Mapping[str, float]) -> float:
        """Return the mean, with the trace's columns at their means."""
        return self.mean if not self.trace_columns else column_means.get(self.trace_columns[0], math.nan)

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Return `n` independent draws (float64, shape (n,)) in the unit of the key."""
        raise NotImplementedError(f"{type(self).__name__} takes its values from elsewhere")


ROOT = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)


class Constant(RootModel[Amount], Distribution):
    """The same value every time, written as a plain number."""

    model_config = ROOT

    @property
    def mean(self) -> float:
        return self.root

    @property
    def cv(self) -> float:
        return 0.0

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:  # noqa: ARG002
        return np.full(n, self.root)


class ConstantService(Constant):
    """The same service time every time; a call takes at least a millisecond."""

    root: Annotated[float, Field(ge=1, le=MAX_MS)]


class Exponential(Model, Distribution):
    """Exponential with the given mean; its cv is 1."""

    distribution: Literal["exponential"]
    mean: PositiveAmount = Field(description="Mean.")

    @property
    def cv(self) -> float:
        return 1.0

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        return rng.exponential(self.mean, n)


class Lognormal(Model, Distribution):
    """Log-normal by its mean and coefficient of variation: sigma^2 = ln(1 + cv^2)."""

    distribution: Literal["lognormal"]
    mean: PositiveAmount = Field(description="Mean of the variable itself.")
    cv: Variation = Field(description="Standard deviation / mean, of the variable itself.")

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        variance = math.log1p(self.cv**2)
        return rng.lognormal(math.log(self.mean) - variance / 2, math.sqrt(variance), n)


class LognormalPercentiles(Model, Distribution):
    """Log-normal by its median and its 95th percentile."""

    distribution: Literal["lognormal"]
    p50: PositiveAmount = Field(description="Median.")
    p95: PositiveAmount = Field(description="95th percentile.")

    def broken_rules(self) -> Iterator[Broken]:
        key = self.key("p95")
        if self.p95 <= self.p50:
            yield Broken((key,), f"must be > {self.key('p50')}", self.p95)
        elif self.sigma > math.sqrt(math.log1p(MAX_CV**2)):
            yield Broken((key,), f"must give a cv <= {MAX_CV:g}", self.p95)

    @property
    def sigma(self) -> float:
        """Standard deviation of the logarithm."""
        return (math.log(self.p95) - math.log(self.p50)) / PERCENTILE_95_Z

    @property
    def mean(self) -> float:
        return self.p50 * math.exp(self.sigma**2 / 2)

    @property
    def cv(self) -> float:
        return math.sqrt(math.expm1(self.sigma**2))

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        return rng.lognormal(math.log(self.p50), self.sigma, n)


class Gamma(Model, Distribution):
    """Gamma by its mean and coefficient of variation: shape 1/cv^2; cv 1 is the exponential."""

    distribution: Literal["gamma"]
    mean: PositiveAmount = Field(description="Mean.")
    cv: Variation = Field(description="Standard deviation / mean.")

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        return rng.gamma(self.cv**-2, self.mean * self.cv**2, n)


class Uniform(Model, Distribution):
    """Uniform between two bounds."""

    distribution: Literal["uniform"]
    low: Amount = Field(description="Lower bound.")
    high: Amount = Field(description="Upper bound, above the lower one.")

    def broken_rules(self) -> Iterator[Broken]:
        if self.high <= self.low:
            yield Broken((self.key("high"),), f"must be > {self.key('low')}", self.high)

    @property
    def mean(self) -> float:
        return (self.low + self.high) / 2

    @property
    def cv(self) -> float:
        return (self.high - self.low) / math.sqrt(12) / self.mean

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        return rng.uniform(self.low, self.high, n)


class Triangular(Model, Distribution):
    """Triangular between two bounds with its peak at the mode."""

    distribution: Literal["triangular"]
    low: Amount = Field(description="Lower bound.")
    mode: Amount = Field(description="Most likely value, between the bounds.")
    high: Amount = Field(description="Upper bound, above the lower one.")

    def broken_rules(self) -> Iterator[Broken]:
        if self.high <= self.low:
            yield Broken((self.key("high"),), f"must be > {self.key('low')}", self.high)
        elif not self.low <= self.mode <= self.high:
            yield Broken((self.key("mode"),), "must lie between the bounds", self.mode)

    @property
    def mean(self) -> float:
        return (self.low + self.mode + self.high) / 3

    @property
    def cv(self) -> float:
        spread = (self.high - self.low) ** 2 + (self.mode - self.low) * (self.mode - self.high)
        return math.sqrt(spread / 18) / self.mean

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        return rng.triangular(self.low, self.mode, self.high, n)


class Empirical(Model, Distribution):
    """One of the given values, each as likely: from a list, or from a column of a CSV file."""

    distribution: Literal["empirical"]
    values: Annotated[tuple[Amount, ...], Strict(False)] | None = Field(
        None, min_length=1, description="The values."
    )
    file: FileName | None = Field(None, description="CSV file, its path relative to the file that names it.")
    column: Name | None = Field(None, description="Column of the file.")
    _loaded: FloatArray | None = PrivateAttr(None)

    def broken_rules(self) -> Iterator[Broken]:
        values = self.key("values")
        if self.values is None and self.file is None:
            yield Broken((), f"must have {values}, or file and column")
        if self.values is not None and self.file is not None:
            yield Broken(("file",), f"must not be given beside {values}", self.file)
        if (self.file is None) != (self.column is None):
            missing = "file" if self.file is None else "column"
            yield Broken((missing,), "is missing")

    def load(self, values: FloatArray) -> None:
        """Take in the values (float64, shape (n,), n >= 1) that were read from the file."""
        self._loaded = values

    @property
    def sample(self) -> FloatArray:
        """The values, float64, shape (n,)."""
        return np.array(self.values or ()) if self._loaded is None else self._loaded

    @property
    def mean(self) -> float:
        return float(np.mean(self.sample)) if len(self.sample) else math.nan

    @property
    def cv(self) -> float:
        sample = self.sample
        if len(sample) == 0:
            return math.nan
        return float(np.std(sample)) / self.mean if np.ptp(sample) else 0.0

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        sample = self.sample
        return sample[rng.integers(len(sample), size=n)]


class OfTrace(Distribution):
    """A value that each row of the load's trace states; its mean is known once the trace is read."""

    @property
    def mean(self) -> float:
        return math.nan

    @property
    def cv(self) -> float:
        return math.nan


class TraceColumn(Model, OfTrace):
    """The request's own value in a column of the load's trace."""

    distribution: Literal["trace"]
    column: Name = Field(description="Column of the trace, in milliseconds.")

    @property
    def trace_columns(self) -> tuple[str, ...]:
        return (self.column,)


class TraceTokens(RootModel[Literal["trace"]], OfTrace):
    """The request's own token count in the load's trace."""

    model_config = ROOT


class InMs(Model):
    """Puts `_ms` at the end of the keys that have a unit."""

    model_config = ConfigDict(alias_generator=lambda name: name if name in UNITLESS else f"{name}_ms")


class InTokens(Model):
    """Puts `_tokens` at the end of the keys that have a unit."""

    model_config = ConfigDict(alias_generator=lambda name: name if name in UNITLESS else f"{name}_tokens")


def _family(unit: type[Model]) -> dict[str, Any]:
    """Return the distributions in one unit, by tag. They are globals too, so that they can be pickled."""
    members: dict[str, Any] = {}
    for base in (Exponential, Lognormal, LognormalPercentiles, Gamma, Uniform, Triangular, Empirical):
        name = f"{base.__name__}{unit.__name__}"
        member = create_model(name, __base__=(base, unit), __module__=__name__, __doc__=base.__doc__)
        globals()[member.__name__] = members[_tag_of(base)] = member
    return members


def _tag_of(member: type) -> str:
    name = member.__name__.lower()
    return "<lognormal-percentiles>" if name.startswith("lognormalpercentiles") else f"<{name}>"


def _union(rule: str, members: Mapping[str, Any]) -> Any:
    """Return the annotated union of members that are told apart by form, then by `distribution`."""
    tagged = tuple(Annotated[member, Tag(tag)] for tag, member in members.items())
    names = tuple(tag.strip("<>") for tag in members if tag not in SHORT_FORMS)
    return Annotated[Union[tagged], chosen_by("distribution", names, _short_form, rule)]  # noqa: UP007


SHORT_FORMS = ("<number>", "<column>", "<lognormal-percentiles>")


def _short_form(value: Any) -> str | None:
    """Return the tag of what `distribution` alone does not tell."""
    if isinstance(value, Constant) or (isinstance(value, int | float) and not isinstance(value, bool)):
        return "<number>"
    if isinstance(value, TraceTokens) or value == "trace":
        return "<column>"
    by_percentile = isinstance(value, LognormalPercentiles) or (
        isinstance(value, dict)
        and value.get("distribution") == "lognormal"
        and any(str(key).startswith(("p50", "p95")) for key in value)
    )
    return "<lognormal-percentiles>" if by_percentile else None


if TYPE_CHECKING:
    Duration: TypeAlias = Distribution
    ServiceTime: TypeAlias = Distribution
    TokenCount: TypeAlias = Distribution
else:
    TokenCount = _union(
        "must be a number, trace or a distribution",
        {"<number>": Constant, "<column>": TraceTokens, **_family(InTokens)},
    )


class TokenDuration(Model, Distribution):
    """Service time from token counts: overhead + input x prefill + output x decode."""

    distribution: Literal["tokens"]
    overhead_ms: Amount = Field(0.0, description="Time of a call that does not depend on its tokens, ms.")
    input_tokens: TokenCount = Field(
        Constant(0.0), description="Input tokens: number, `trace` or distribution."
    )
    prefill_ms_per_token: Amount = Field(0.0, description="Time per input token, ms.")
    output_tokens: TokenCount = Field(
        Constant(0.0), description="Output tokens: number, `trace` or distribution."
    )
    decode_ms_per_token: Amount = Field(0.0, description="Time per output token, ms.")

    def service_ms(self, input_tokens: FloatArray, output_tokens: FloatArray) -> FloatArray:
        """Return the service times (float64, shape (n,), ms) of `n` calls with these token counts."""
        prefill_ms = input_tokens * self.prefill_ms_per_token
        return self.overhead_ms + prefill_ms + output_tokens * self.decode_ms_per_token

    @property
    def trace_columns(self) -> tuple[str, ...]:
        roles = {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens}
        return tuple(role for role, count in roles.items() if isinstance(count, TraceTokens))

    def mean_given(self, column_means: Mapping[str, float]) -> float:
        means = (
            column_means.get(role, math.nan) if role in self.trace_columns else count.mean
            for role, count in (("input_tokens", self.input_tokens), ("output_tokens", self.output_tokens))
        )
        input_mean, output_mean = means
        prefill_ms = input_mean * self.prefill_ms_per_token
        return self.overhead_ms + prefill_ms + output_mean * self.decode_ms_per_token

    @property
    def mean(self) -> float:
        return self.mean_given({})

    @property
    def cv(self) -> float:
        input_deviation = self.input_tokens.mean * self.input_tokens.cv * self.prefill_ms_per_token
        output_deviation = self.output_tokens.mean * self.output_tokens.cv * self.decode_ms_per_token
        deviation = math.hypot(input_deviation, output_deviation)
        return deviation / self.mean if deviation else 0.0


if not TYPE_CHECKING:
    IN_MS = {**_family(InMs), "<tokens>": TokenDuration, "<trace>": TraceColumn}
    Duration = _union("must be a number or a distribution", {"<number>": Constant, **IN_MS})
    ServiceTime = _union("must be a number or a distribution", {"<number>": ConstantService, **IN_MS})
