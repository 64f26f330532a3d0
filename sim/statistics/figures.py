"""Figures by name: numbers, or why there is none."""

from sim.contract.figure import PERCENTILES
from sim.statistics.percentile import NO_OBSERVATIONS, Missing, percentiles_ns, undelivered_words
from sim.units import NS_PER_MS, IntArray, ns_to_ms, sum_exact

Value = float | Missing
Figures = dict[str, Value]


def time_figures(name: str, times_ns: IntArray, undelivered: int = 0) -> Figures:
    """Return mean, nearest-rank percentiles and maximum of int64 times, in ms.

    `undelivered` is how many more there are that never ended. They are later than any bound, so that with
    one of them there is no mean and no maximum.
    """
    mean = ratio(sum_exact(times_ns), len(times_ns) * NS_PER_MS)
    most = ns_to_ms(int(times_ns.max())) if len(times_ns) else Missing(NO_OBSERVATIONS)
    if undelivered:
        mean = most = Missing(undelivered_words(undelivered, len(times_ns) + undelivered), undelivered=True)
    return {
        f"{name}_mean": mean,
        **percentile_figures(name, times_ns, undelivered),
        f"{name}_max": most,
    }


def percentile_figures(name: str, times_ns: IntArray, undelivered: int = 0) -> Figures:
    """Return nearest-rank percentiles of int64 times, in ms; see `time_figures`."""
    shown = percentiles_ns(times_ns, tuple(PERCENTILES.values()), undelivered)
    return {
        f"{name}_{level}": value if isinstance(value, Missing) else ns_to_ms(value)
        for level, value in zip(PERCENTILES, shown, strict=True)
    }


def ratio(part: float, whole: float) -> Value:
    """Return part / whole, missing where there is nothing to divide by."""
    return part / whole if whole else Missing(NO_OBSERVATIONS)
