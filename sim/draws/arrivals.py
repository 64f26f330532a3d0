"""When requests arrive under a load that does not wait for answers."""

from collections.abc import Callable

import numpy as np

from sim.scenario.load import OpenLoad
from sim.scenario.profile import RateTable
from sim.units import NS_PER_S, FloatArray, IntArray, s_to_ns

FIRST_GUESS = 1_024


def open_arrivals_ns(load: OpenLoad, rng: Callable[[], np.random.Generator]) -> IntArray:
    """Return the arrivals of a constant rate, int64 ns: each gap is rounded, then they are summed.

    `rng` gives the stream from its beginning, so that drawing again with more requests repeats the first.
    """
    if load.requests is not None:
        return np.cumsum(_gaps_ns(load, rng(), load.requests))
    end_ns = s_to_ns(load.duration_s or 0)
    requests = FIRST_GUESS
    while True:
        arrivals_ns = np.cumsum(_gaps_ns(load, rng(), requests))
        if arrivals_ns[-1] >= end_ns:
            return arrivals_ns[arrivals_ns < end_ns]
        requests *= 2


def _gaps_ns(load: OpenLoad, rng: np.random.Generator, requests: int) -> IntArray:
    mean_ns = NS_PER_S / load.rate_per_s
    if load.arrivals == "fixed":
        return np.full(requests, round(mean_ns), dtype=np.int64)
    if load.arrivals == "gamma":
        shape = 1 / (load.cv or 1) ** 2
        return np.rint(rng.standard_gamma(shape, requests) * (mean_ns / shape)).astype(np.int64)
    return np.rint(rng.standard_exponential(requests) * mean_ns).astype(np.int64)


def rate_arrivals_ns(rates: RateTable, rng: Callable[[], np.random.Generator]) -> IntArray:
    """Return the arrivals of a Poisson process whose rate changes over time, int64 ns.

    A process of rate 1 is run on the clock of the expected count and read back on the clock of time, so that
    no time is lost or doubled where the rate changes (Cinlar, "Introduction to Stochastic Processes", 1975,
    section 4.7). Arrivals lie in [0, end).
    """
    clock = CountClock(rates)
    requests = FIRST_GUESS
    while True:
        counts = np.cumsum(rng().standard_exponential(requests))
        if counts[-1] >= clock.edge_count[-1]:
            times_s = clock.time_s(counts[counts < clock.edge_count[-1]])
            return np.minimum(np.rint(times_s * NS_PER_S).astype(np.int64), s_to_ns(rates.end_s) - 1)
        requests *= 2


class CountClock:
    """The clock of the expected count of arrivals: how many are expected by a time, and when by a count."""

    def __init__(self, rates: RateTable) -> None:
        self.rates = rates
        width_s = np.diff(rates.edge_s)
        mean_rate = (rates.start_rate_per_s + rates.end_rate_per_s) / 2
        self.slope = (rates.end_rate_per_s - rates.start_rate_per_s) / width_s
        self.edge_count = np.append(0.0, np.cumsum(width_s * mean_rate))

    def count(self, time_s: FloatArray) -> FloatArray:
        """Return the arrivals expected from 0 to each time within the table."""
        piece = self._piece(self.rates.edge_s, time_s)
        into_s = time_s - self.rates.edge_s[piece]
        grown = (self.rates.start_rate_per_s[piece] + self.slope[piece] * into_s / 2) * into_s
        return np.asarray(self.edge_count[piece] + grown)

    def time_s(self, count: FloatArray) -> FloatArray:
        """Return when each expected count is reached, the inverse of `count`."""
        piece = self._piece(self.edge_count, count)
        left, rate = count - self.edge_count[piece], self.rates.start_rate_per_s[piece]
        # 2 left / (rate + sqrt(rate^2 + 2 slope left)) solves the quadratic without cancellation.
        speed = rate + np.sqrt(np.maximum(0.0, rate**2 + 2 * self.slope[piece] * left))
        into_s = np.divide(2 * left, speed, out=np.zeros_like(left), where=speed > 0)
        return np.asarray(self.rates.edge_s[piece] + into_s)

    def _piece(self, edges: FloatArray, values: FloatArray) -> IntArray:
        return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(self.slope) - 1)
