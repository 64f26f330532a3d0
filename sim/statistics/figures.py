"""Figures by name: numbers, or why there is none."""

from sim.contract.figure import PERCENTILES
from sim.statistics.percentile import NO_OBSERVATIONS, Missing, percentiles_ns
from sim.units import NS_PER_MS, IntArray, ns_to_ms, sum_exact

Value = float | Missing
Figures = dict[str, Value]


def time_figures(name: str, times_ns: IntArray) -> Figures:
    """Return mean, nearest-rank percentiles and maximum of int64 times, in ms."""
    return {
        f"{name}_mean": ratio(sum_exact(times_ns), len(times_ns) * NS_PER_MS),
        **percentile_figures(name, times_ns),
        f"{name}_max": ns_to_ms(int(times_ns.max())) if len(times_ns) else Missing(NO_OBSERVATIONS),
    }


def percentile_figures(name: str, times_ns: IntArray) -> Figures:
    """Return nearest-rank percentiles of int64 times, in ms."""
    shown = percentiles_ns(times_ns, tuple(PERCENTILES.values()))
    return {
        f"{name}_{level}": value if isinstance(value, Missing) else ns_to_ms(value)
        for level, value in zip(PERCENTILES, shown, strict=True)
    }


def ratio(part: float, whole: float) -> Value:
    """Return part / whole, missing where there is nothing to divide by."""
    return part / whole if whole else Missing(NO_OBSERVATIONS)
