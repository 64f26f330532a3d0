"""What the cases look at in a run, after warm-up: the values that theory has something to say of.

Times are ms, rates per second. A random figure is one value per replication; a fixed one is every value
that occurs, so that theory has to be right about each request.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from sim.contract.figure import (
    MEAN_LATENCY,
    MEAN_WAIT,
    P50_LATENCY,
    P95_LATENCY,
    THROUGHPUT,
    UTILISATION,
)
from sim.run.measure import Measured, waiting_ns
from sim.run.simulation import Run
from sim.units import NS_PER_MS, ns_to_ms, sum_exact

Observe = Callable[[Run, Measured], Sequence[float]]


def figure(name: str, _run: Run, measured: Measured) -> list[float]:
    """Return one of the figures that every run has."""
    return [float(measured.figures[name])]


mean_wait_ms, mean_latency_ms = partial(figure, MEAN_WAIT), partial(figure, MEAN_LATENCY)
latency_p50_ms, latency_p95_ms = partial(figure, P50_LATENCY), partial(figure, P95_LATENCY)
utilisation, throughput_per_s = partial(figure, UTILISATION), partial(figure, THROUGHPUT)


def share_waiting(run: Run, measured: Measured) -> list[float]:
    """Return the share of calls that wait at all."""
    kept = np.arange(run.out.requests) >= measured.dropped
    return [float(np.mean(waiting_ns(run.out, kept) > 0))]


def users_by_littles_law(run: Run, measured: Measured) -> list[float]:
    """Return throughput x (mean latency + mean think time), which is the number of users."""
    think_ns = getattr(run.given.workloads[0].load, "think_ns", np.zeros(1, dtype=np.int64))
    turn_ms = mean_latency_ms(run, measured)[0] + float(think_ns[measured.dropped :].mean()) / NS_PER_MS
    return [throughput_per_s(run, measured)[0] * turn_ms / 1000]


def littles_law_gap_ns(run: Run, _measured: Measured) -> list[float]:
    """Return active requests x time minus the sum of the latencies, over the whole run and exactly."""
    return [float(sum(run.out.active_integral_ns) - sum_exact(run.out.latency_ns))]


def every_latency_ms(_run: Run, measured: Measured) -> list[float]:
    """Return every latency that occurs."""
    return [ns_to_ms(latency_ns) for latency_ns in np.unique(measured.latency_ns).tolist()]
