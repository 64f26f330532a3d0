"""The tails of distributions: how likely a time is longer than another, for timeouts and hedges."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from sim.scenario.distribution import (
    Constant,
    Distribution,
    Empirical,
    Exponential,
    Gamma,
    Lognormal,
    LognormalPercentiles,
    TokenDuration,
    TraceColumn,
    Triangular,
    Uniform,
)
from sim.scenario.load import TOKEN_ROLES
from sim.units import FloatArray

NO_KINKS = np.empty(0)
POINTS = 4_000
LEAST, MOST = 1e-5, 1e6
"""Where a grid without end begins and ends, in means."""
CELLS = 400
"""Parts that a sum of two random counts is made of."""

_erfc = np.frompyfunc(math.erfc, 1, 1)


@dataclass(frozen=True, repr=False)
class Tail:
    """A variable, by its mean, P(X > x) for arrays of x, and the places at which that has jumps or bends."""

    mean: float
    above: Callable[[FloatArray], FloatArray]
    kinks: FloatArray

    def grid(self, end: float | None = None) -> FloatArray:
        """Return the edges of cells from 0 to `end`, or to where nothing is left, that meet every kink."""
        scale = self.mean or 1.0
        last = scale * MOST if end is None else end
        edges = np.geomspace(min(scale, last) * LEAST, last, POINTS)
        return np.unique(np.concatenate([[0.0], edges, self.kinks[(self.kinks > 0) & (self.kinks < last)]]))

    def mean_up_to(self, end: float) -> float:
        """Return E[min(X, end)]: the tail summed from 0 to there."""
        return integral(self.above, self.grid(end))

    def scaled(self, factor: float, offset: float = 0.0) -> "Tail":
        """Return the tail of factor x X + offset."""
        if factor == 0:
            return sample(np.array([offset]))
        return Tail(
            factor * self.mean + offset,
            lambda x: self.above((x - offset) / factor),
            factor * self.kinks + offset,
        )

    def plus(self, other: "Tail") -> "Tail":
        """Return the tail of X + Y, independent: Y in cells, the sum from a table of it."""
        values, weights = other.cells()
        mine, sums = self.grid(), Tail(self.mean + other.mean, self.above, NO_KINKS).grid()
        table = self.above(mine)

        def alone(x: FloatArray) -> FloatArray:
            return self.above(x) if len(self.kinks) else np.interp(x, mine, table)

        whole = alone(sums[:, None] - values) @ weights
        return Tail(self.mean + other.mean, lambda x: np.interp(x, sums, whole), NO_KINKS)

    def cells(self) -> tuple[FloatArray, FloatArray]:
        """Return values that stand for parts of the variable, each the mean of its part, and their shares."""
        kinks = self.kinks if len(self.kinks) <= CELLS else NO_KINKS
        edges = np.unique(np.concatenate([[0.0], np.geomspace(LEAST, MOST, CELLS) * self.mean, kinks]))
        least = self.above(np.nextafter(edges, -1.0))  # a jump belongs to the cell that it begins
        shares, width = -np.diff(least), np.diff(edges)
        sums = (
            edges[:-1] * least[:-1] - edges[1:] * least[1:] + self.above((edges[:-1] + edges[1:]) / 2) * width
        )
        used = shares > 1e-12
        return sums[used] / shares[used], shares[used]


def integral(function: Callable[[FloatArray], FloatArray], edges: FloatArray) -> float:
    """Return the integral of a function by the middles of cells: exact where it is straight between edges."""
    return float(function((edges[:-1] + edges[1:]) / 2) @ np.diff(edges))


def sample(values: FloatArray) -> Tail:
    """Return the tail of one of some values, each as likely."""
    ordered = np.sort(values)

    def above(x: FloatArray) -> FloatArray:
        return 1 - np.searchsorted(ordered, x, side="right") / len(ordered)

    return Tail(float(np.mean(ordered)), above, np.unique(ordered))


def stated_values(distribution: Distribution, columns: Mapping[str, FloatArray]) -> FloatArray | None:
    """Return the duration that each row of the load's trace states, ms; None where something is drawn too."""
    if isinstance(distribution, TraceColumn):
        return columns[distribution.column]
    if not isinstance(distribution, TokenDuration) or not distribution.trace_columns:
        return None
    counts = {role: getattr(distribution, role) for role in TOKEN_ROLES}
    if any(not count.is_constant for role, count in counts.items() if role not in distribution.trace_columns):
        return None
    rows = len(columns[distribution.trace_columns[0]])
    known = (
        columns[role] if role in distribution.trace_columns else np.full(rows, one.mean)
        for role, one in counts.items()
    )
    return distribution.service_ms(*known)


def tail_of(distribution: Distribution, columns: Mapping[str, FloatArray]) -> Tail:
    """Return the tail of a duration; `columns` are those of the load's trace, each row as likely."""
    stated = stated_values(distribution, columns)
    if stated is not None:
        return sample(stated)
    return _tokens(distribution, columns) if isinstance(distribution, TokenDuration) else _tail(distribution)


def _tokens(duration: TokenDuration, columns: Mapping[str, FloatArray]) -> Tail:
    """Return the tail of a duration made of tokens, the two counts as if independent."""
    random, offset = [], duration.overhead_ms
    factors = (duration.prefill_ms_per_token, duration.decode_ms_per_token)
    for role, factor in zip(TOKEN_ROLES, factors, strict=True):
        count: Distribution = getattr(duration, role)
        if role in duration.trace_columns:
            random.append(sample(columns[role]).scaled(factor))
        elif factor == 0 or count.is_constant:
            offset += factor * count.mean
        else:
            random.append(_tail(count).scaled(factor))
    if not random:
        return sample(np.array([offset]))
    whole = random[0] if len(random) == 1 else random[0].plus(random[1])
    return whole.scaled(1.0, offset)


@singledispatch
def _tail(distribution: Any) -> Tail:
    raise NotImplementedError(f"{type(distribution).__name__} has no tail of its own")


@_tail.register
def _(of: Constant) -> Tail:
    return sample(np.array([of.mean]))


@_tail.register
def _(of: Empirical) -> Tail:
    return sample(of.sample)


@_tail.register
def _(of: Exponential) -> Tail:
    return Tail(of.mean, lambda x: np.exp(-np.maximum(x, 0) / of.mean), NO_KINKS)


@_tail.register
def _(of: Lognormal) -> Tail:
    variance = math.log1p(of.cv**2)
    return _lognormal(of.mean, math.log(of.mean) - variance / 2, math.sqrt(variance))


@_tail.register
def _(of: LognormalPercentiles) -> Tail:
    return _lognormal(of.mean, math.log(of.p50), of.sigma)


def _lognormal(mean: float, location: float, sigma: float) -> Tail:
    def above(x: FloatArray) -> FloatArray:
        return above_normal((np.log(np.maximum(x, 1e-300)) - location) / sigma)

    return Tail(mean, above, NO_KINKS)


def above_normal(z: FloatArray) -> FloatArray:
    """Return the probability that a standard normal variable is greater than each value."""
    return np.asarray(_erfc(z / math.sqrt(2)) / 2, dtype=np.float64)


@_tail.register
def _(of: Gamma) -> Tail:
    def above(x: FloatArray) -> FloatArray:
        from scipy.special import gammaincc  # noqa: PLC0415  half a second that only gamma tails need

        return np.asarray(gammaincc(of.cv**-2, np.maximum(x, 0) / (of.mean * of.cv**2)))

    return Tail(of.mean, above, NO_KINKS)


@_tail.register
def _(of: Uniform) -> Tail:
    def above(x: FloatArray) -> FloatArray:
        return np.clip((of.high - x) / (of.high - of.low), 0, 1)

    return Tail(of.mean, above, np.array([of.low, of.high]))


@_tail.register
def _(of: Triangular) -> Tail:
    low, mode, high = of.low, of.mode, of.high

    def above(x: FloatArray) -> FloatArray:
        inside = np.clip(x, low, high)
        rising = 1 - (inside - low) ** 2 / ((high - low) * max(mode - low, 1e-300))
        falling = (high - inside) ** 2 / ((high - low) * max(high - mode, 1e-300))
        return np.where(inside < mode, rising, falling)

    return Tail(of.mean, above, np.array([low, mode, high]))
