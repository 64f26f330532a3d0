"""Nearest-rank percentiles, each shown only where enough observations lie beyond it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sim.errors import ArgumentError
from sim.units import IntArray, Number, exact

MIN_OBSERVATIONS_BEYOND = 10
NO_OBSERVATIONS = "no observations"

Level = str | Number


@dataclass(frozen=True, slots=True)
class Missing:
    """A figure that is not shown, and why. As a number it is NaN, never 0.

    `undelivered` says that it falls among what was never delivered, so that it is beyond any bound.
    """

    reason: str
    undelivered: bool = False

    def __float__(self) -> float:
        return math.nan


def undelivered_words(undelivered: int, issued: int) -> str:
    """Return how many of some requests were not delivered."""
    return f"{undelivered:,} of {issued:,} requests {'was' if undelivered == 1 else 'were'} not delivered"


def percentile_ns(values_ns: IntArray, level: Level) -> int | Missing:
    """Return one nearest-rank percentile; see `percentiles_ns`."""
    return percentiles_ns(values_ns, (level,))[0]


def percentiles_ns(
    values_ns: IntArray, levels: Sequence[Level], undelivered: int = 0
) -> tuple[int | Missing, ...]:
    """Return nearest-rank percentiles, all of them with one partial sort.

    Parameters
    ----------
    values_ns : int64 array, shape (n,), in any order
        What was observed. Observations of several replications put together give a pooled percentile,
        which is not the mean of the replications' percentiles.
    levels : sequence of exact decimals strictly between 0 and 1
        "0.95" for p95; a float counts as the decimal that it is written as.
    undelivered : how many more there are that never ended, each of them later than any that did

    Returns
    -------
    tuple, one entry per level
        The ceil(p n)-th smallest observation (type 1 of Hyndman and Fan, "Sample Quantiles in Statistical
        Packages", The American Statistician 50(4), 1996; NumPy's `inverted_cdf`): always a value that was
        observed. `Missing` where fewer than 10 observations lie beyond it, and where it falls among those
        that never ended.

    Raises
    ------
    ArgumentError
        A level is not a number strictly between 0 and 1.
    """
    ended = int(values_ns.size)
    ranks = [_shown_rank(ended, undelivered, _exact_level(level)) for level in levels]
    indexes = sorted({rank - 1 for rank in ranks if isinstance(rank, int)})
    ordered = np.partition(values_ns, indexes) if indexes else values_ns
    return tuple(int(ordered[rank - 1]) if isinstance(rank, int) else rank for rank in ranks)


def observations_needed(level: Level) -> int:
    """Return the smallest number of observations with which the percentile is shown: 200 for p95."""
    return math.ceil(MIN_OBSERVATIONS_BEYOND / (1 - _exact_level(level)))


def _shown_rank(ended: int, undelivered: int, level: Fraction) -> int | Missing:
    count = ended + undelivered
    if count == 0:
        return Missing(NO_OBSERVATIONS)
    rank = math.ceil(level * count)
    if rank > ended:
        return Missing(undelivered_words(undelivered, count), undelivered=True)
    if count - rank >= MIN_OBSERVATIONS_BEYOND:
        return rank
    return Missing(f"needs {observations_needed(level):,} observations, has {count:,}")


def _exact_level(level: Level) -> Fraction:
    try:
        fraction = Fraction(level) if isinstance(level, str) else exact(level)
    except (ValueError, OverflowError, ZeroDivisionError):
        raise ArgumentError("percentile", "must be a decimal number", level) from None
    if not 0 < fraction < 1:
        raise ArgumentError("percentile", "must be > 0 and < 1", level)
    return fraction
