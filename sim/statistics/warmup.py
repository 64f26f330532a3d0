"""Where the start-up of a run ends: MSER-5, and the running mean to look at beside it."""

import numpy as np

from sim.errors import ArgumentError
from sim.units import FloatArray

BATCH = 5


def mser5(values: FloatArray) -> int:
    """Return how many observations to delete from the start of a run.

    Parameters
    ----------
    values : float64 array, shape (n,), in order of time (of requests: of arrival)

    Returns
    -------
    int
        5 j for the j that minimises the marginal standard error: with z_1..z_k the means of batches of 5
        observations (a remainder left out), the sum of squares of z_{j+1}..z_k around their own mean, divided
        by (k - j)^2. Only j <= k / 2 is searched, since a few remaining batches may agree by luck; the
        smallest of equal minima is taken. 0 where there are fewer than two batches. See `mser5_limit`.

    Raises
    ------
    ArgumentError
        A value is NaN or infinite.

    Notes
    -----
    White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69(6),
    1997; batches of five: White, Cobb and Spratt, "A comparison of five steady-state truncation heuristics
    for simulation", Winter Simulation Conference 2000.
    """
    if not np.isfinite(values).all():
        raise ArgumentError("values", "must be finite", float(values[~np.isfinite(values)][0]))
    count = len(values) // BATCH
    if count < 2:
        return 0
    batches = values[: count * BATCH].reshape(count, BATCH).mean(axis=1)
    # Around the median a tail of equal values is exactly 0, and rounding cannot choose among equal minima.
    centred = batches - np.median(batches)
    left = np.arange(count, 0, -1, dtype=np.float64)
    sums = np.cumsum(centred[::-1])[::-1]
    squares = np.cumsum(centred[::-1] ** 2)[::-1]
    scores = np.maximum(squares - sums**2 / left, 0.0) / left**2
    return BATCH * int(np.argmin(scores[: count // 2 + 1]))


def mser5_limit(observations: int) -> int:
    """Return the most that `mser5` deletes; a run that reaches it is too short to tell its start-up."""
    return BATCH * (observations // BATCH // 2)


def running_mean(values: FloatArray) -> FloatArray:
    """Return the mean of the first 1, 2, ..., n values (float64, shape (n,), same unit)."""
    return np.cumsum(values, dtype=np.float64) / np.arange(1, len(values) + 1)
