"""Figures by name, unit last: numbers, or why there is none."""

from sim.percentile import NO_OBSERVATIONS, Missing, percentiles_ns
from sim.units import NS_PER_MS, IntArray, ns_to_ms, sum_exact

PERCENTILES = {"p50": "0.5", "p90": "0.9", "p95": "0.95", "p99": "0.99", "p99_9": "0.999"}

Figure = float | Missing
Figures = dict[str, Figure]


def time_figures(name: str, times_ns: IntArray) -> Figures:
    """Return mean, nearest-rank percentiles and maximum of int64 times, in ms."""
    shown = percentiles_ns(times_ns, tuple(PERCENTILES.values()))
    return {
        f"{name}_mean": ratio(sum_exact(times_ns), len(times_ns) * NS_PER_MS),
        **{
            f"{name}_{level}": value if isinstance(value, Missing) else ns_to_ms(value)
            for level, value in zip(PERCENTILES, shown, strict=True)
        },
        f"{name}_max": ns_to_ms(int(times_ns.max())) if len(times_ns) else Missing(NO_OBSERVATIONS),
    }


def ratio(part: float, whole: float) -> Figure:
    """Return part / whole, missing where there is nothing to divide by."""
    return part / whole if whole else Missing(NO_OBSERVATIONS)
