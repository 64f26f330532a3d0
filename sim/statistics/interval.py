"""Estimates over independent replications: Student-t intervals, paired differences, how many it takes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sim.errors import ArgumentError
from sim.statistics.percentile import Missing
from sim.units import FloatArray

FASTER = "faster"
SLOWER = "slower"
UNDECIDED = "no difference that this many replications can show"
IDENTICAL = "identical in every replication"
DETERMINISTIC = "deterministic"
ONE_REPLICATION = "one replication"
NO_REPLICATIONS = "no replications"

MAX_REPLICATIONS = 10**9  # past this a projection says "no number of replications", not a number

Value = float | Missing


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over replications and the half-width of its interval, in the unit of the values.

    `half_width` is None where no interval exists; a missing `mean` is NaN.
    """

    mean: float
    half_width: float | None
    replications: int

    @property
    def low(self) -> float | None:
        return _end(self, -1)

    @property
    def high(self) -> float | None:
        return _end(self, 1)


def _end(around: Interval, sign: int) -> float | None:
    return None if around.half_width is None else around.mean + sign * around.half_width


@dataclass(frozen=True, slots=True)
class Estimate(Interval):
    """The mean of a figure; `reason` says why it or its interval is missing.

    `undelivered`: missing because it falls among what was never delivered, so that it is beyond any bound.
    `ends`: those of an interval that does not lie evenly around the mean; `half_width` is its longer side.
    """

    reason: str | None = None
    deterministic: bool = False
    undelivered: bool = False
    ends: tuple[float, float] | None = None

    @property
    def low(self) -> float | None:
        return _end(self, -1) if self.ends is None else self.ends[0]

    @property
    def high(self) -> float | None:
        return _end(self, 1) if self.ends is None else self.ends[1]

    @property
    def proves_nothing(self) -> bool:
        """Whether it is of one random replication."""
        return self.half_width is None and not self.deterministic


@dataclass(frozen=True, slots=True)
class Difference(Interval):
    """The paired difference b - a, in the unit of the values; for latencies, negative means b is faster.

    `variance_reduction` is (var a + var b) / var(b - a): how many times fewer replications pairing takes than
    independent draws; below 1 pairing does harm, None where neither side varies.
    `unpaired_half_width` is Welch's, as if a and b had been drawn independently.
    `replications_to_decide` projects how many replications in all would tell the difference from 0 if mean
    and spread stay as observed; None where no number would, or where the spread is unknown.
    """

    words: str
    reason: str | None = None
    deterministic: bool = False
    variance_reduction: float | None = None
    unpaired_half_width: float | None = None
    replications_to_decide: int | None = None

    @property
    def decided(self) -> bool:
        """Whether the replications show a difference, or that there is none at all."""
        return self.words in (FASTER, SLOWER, IDENTICAL)

    @property
    def more_replications(self) -> int | None:
        """How many replications to add so that a difference as observed would be told from 0."""
        if self.decided:
            return 0
        needed = self.replications_to_decide
        return None if needed is None else max(1, needed - self.replications)


def estimate(values: Sequence[Value], confidence: float = 0.95, deterministic: bool = False) -> Estimate:
    """Return the mean of one figure over independent replications, with its Student-t interval.

    Parameters
    ----------
    values : one figure per replication; NaN or `Missing` where a replication could not show it
    confidence : the interval's coverage, strictly between 0 and 1
    deterministic : the scenario draws nothing at random, so that there is no uncertainty to show

    Returns
    -------
    Estimate
        half-width t(n-1) s / sqrt(n) with s the sample standard deviation (Law, "Simulation Modeling and
        Analysis", 5th ed., section 4.5). None for one replication, for a deterministic scenario, and where
        the figure is missing in any replication: the mean of the others would be that of the mild ones.

    Raises
    ------
    ArgumentError
        The confidence is outside (0, 1), or the values of a deterministic scenario differ.
    """
    _check_confidence(confidence)
    numbers = _numbers(values)
    count = len(numbers)
    gap = _gap(values)
    if gap is not None:
        undelivered = any(isinstance(value, Missing) and value.undelivered for value in values)
        return Estimate(math.nan, None, count, gap, undelivered=undelivered)
    mean, deviation = _mean_and_deviation(numbers)
    if deterministic:
        _check_equal(numbers)
        return Estimate(mean, None, count, DETERMINISTIC, deterministic=True)
    if count == 1:
        return Estimate(mean, None, 1, ONE_REPLICATION)
    return Estimate(mean, _half_width(deviation, count, confidence), count)


def paired_difference(
    a: Sequence[Value], b: Sequence[Value], confidence: float = 0.95, deterministic: bool = False
) -> Difference:
    """Compare two figures of the same replications: b - a, its interval, and words.

    Parameters
    ----------
    a, b : one figure per replication, in the same order; element i of both comes from the same draws
    confidence : the interval's coverage, strictly between 0 and 1
    deterministic : neither side draws anything at random: the difference is exact

    Returns
    -------
    Difference
        `words` is `faster` or `slower` (b against a) where the interval leaves 0 out, `identical in every
        replication` where at least two pairs were compared and none differs, else that these replications
        cannot tell. Paired-t and Welch intervals as in Law, "Simulation Modeling and Analysis", section 10.2.

    Raises
    ------
    ArgumentError
        a and b differ in length, the confidence is outside (0, 1), or a deterministic side varies.
    """
    _check_confidence(confidence)
    if len(a) != len(b):
        raise ArgumentError("b", f"must have as many replications as a, {len(a)}", len(b))
    left, right = _numbers(a), _numbers(b)
    count = len(left)
    gap = _gap([_pair_gap(first, second) for first, second in zip(a, b, strict=True)])
    if gap is not None:
        return Difference(math.nan, None, count, UNDECIDED, gap)
    mean, deviation = _mean_and_deviation(right - left)
    if deterministic:
        _check_equal(left)
        _check_equal(right)
        return Difference(mean, None, count, _words(mean, 0.0), DETERMINISTIC, deterministic=True)
    if count == 1:
        return Difference(mean, None, 1, UNDECIDED, ONE_REPLICATION)
    half_width = _half_width(deviation, count, confidence)
    return Difference(
        mean=mean,
        half_width=half_width,
        replications=count,
        words=_words(mean, half_width),
        variance_reduction=_variance_reduction(left, right, deviation),
        unpaired_half_width=_welch_half_width(left, right, confidence),
        replications_to_decide=_smallest_count(
            lambda n: _half_width(deviation, n, confidence) < abs(mean),
        ),
    )


def precise_enough(figure: Estimate, relative_precision: float) -> bool:
    """Return whether the half-width is at most `relative_precision` (0.02 for 2 %) of the mean's size.

    A deterministic figure is; one without an interval, or missing, is not.
    """
    if figure.deterministic:
        return True
    return figure.half_width is not None and figure.half_width <= relative_precision * abs(figure.mean)


def replications_needed(
    values: Sequence[Value], relative_precision: float, confidence: float = 0.95
) -> int | None:
    """Project the smallest number of replications in all that makes the estimate precise enough.

    Mean and spread are taken to stay as observed. None where the spread is unknown (fewer than two values, or
    a missing one) or where no number of replications would do (a mean of 0 that varies).
    """
    _check_confidence(confidence)
    numbers = _numbers(values)
    if len(numbers) < 2 or _gap(values) is not None:
        return None
    mean, deviation = _mean_and_deviation(numbers)
    bound = relative_precision * abs(mean)
    return _smallest_count(lambda n: _half_width(deviation, n, confidence) <= bound)


def _smallest_count(holds: Callable[[int], bool]) -> int | None:
    """Return the smallest n >= 2 with holds(n), for a condition that stays true once it is."""
    high = 2
    while not holds(high):
        if high >= MAX_REPLICATIONS:
            return None
        high *= 2
    low = max(1, high // 2)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _words(mean: float, half_width: float) -> str:
    if mean == 0 and half_width == 0:
        return IDENTICAL
    if abs(mean) <= half_width:
        return UNDECIDED
    return FASTER if mean < 0 else SLOWER


def _mean_and_deviation(numbers: FloatArray) -> tuple[float, float]:
    """Return mean and sample standard deviation (0 for one value).

    Taken around the first value, so that equal values give that value and a spread of exactly 0.
    """
    shifted = numbers - numbers[0]
    deviation = float(shifted.std(ddof=1)) if len(numbers) > 1 else 0.0
    return float(numbers[0] + shifted.mean()), deviation


def _half_width(deviation: float, count: int, confidence: float) -> float:
    return student_quantile(count - 1, confidence) * deviation / math.sqrt(count)


def _welch_half_width(left: FloatArray, right: FloatArray, confidence: float) -> float:
    """Return Welch's half-width ("The generalization of Student's problem", Biometrika 34, 1947)."""
    parts = [_mean_and_deviation(side)[1] ** 2 / len(side) for side in (left, right)]
    total = sum(parts)
    if total == 0:
        return 0.0
    # Ratios first: squares of tiny or huge variances would leave the range of a float.
    freedom = 1 / sum((part / total) ** 2 / (len(left) - 1) for part in parts)
    return student_quantile(freedom, confidence) * math.sqrt(total)


def _variance_reduction(left: FloatArray, right: FloatArray, deviation: float) -> float | None:
    independent = sum(_mean_and_deviation(side)[1] ** 2 for side in (left, right))
    if independent == 0:
        return None
    return independent / deviation**2 if deviation > 0 else math.inf


@lru_cache(maxsize=4096)
def student_quantile(freedom: float, confidence: float) -> float:
    """Return how many deviations a two-sided interval reaches; of the normal one for infinite freedom."""
    from scipy.special import stdtrit  # noqa: PLC0415  a command's help must not wait for SciPy

    return float(stdtrit(freedom, (1 + confidence) / 2))


def _numbers(values: Sequence[Value]) -> FloatArray:
    return np.array([float(value) for value in values], dtype=np.float64)


def _pair_gap(first: Value, second: Value) -> Value:
    """Return what stands in the way of comparing two values, else 0."""
    for value in (first, second):
        if not math.isfinite(float(value)):
            return value
    return 0.0


def _gap(values: Sequence[Value]) -> str | None:
    """Return why the values have no mean, with the first replication's own reason where it gave one."""
    if len(values) == 0:
        return NO_REPLICATIONS
    missing = [value for value in values if math.isnan(float(value))]
    if missing:
        why = next((f": {value.reason}" for value in missing if isinstance(value, Missing)), "")
        return f"missing in {len(missing)} of {len(values)} replications{why}"
    infinite = sum(math.isinf(float(value)) for value in values)
    return f"infinite in {infinite} of {len(values)} replications" if infinite else None


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ArgumentError("confidence", "must be > 0 and < 1", confidence)


def _check_equal(numbers: FloatArray) -> None:
    if np.any(numbers != numbers[0]):
        raise ArgumentError("values", "must be equal in a deterministic scenario", numbers.tolist())
