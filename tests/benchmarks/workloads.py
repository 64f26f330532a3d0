"""The workloads: Poisson arrivals at 0.8 of the slots, the same draws for everyone.

W1 is M/M/c with a mean of 100 ms. W2 makes two calls of 260 and 160 ms at once and joins for 35 ms, first
come first served. W3 is W2 under a fair share of the slots. With log-normal services the means stay, and
the coefficient of variation is 0.5.
"""

import numpy as np

from sim.contract.allocation import FAIR_SHARE, FIFO
from sim.contract.load import OpenArrivals
from sim.contract.plain import PlainInput
from sim.units import NS_PER_MS, IntArray

LOAD = 0.8
JOIN_NS = 35 * NS_PER_MS
CALLS_MS = {"W1": (100,), "W2": (260, 160), "W3": (260, 160)}
NAMES = tuple(CALLS_MS)


def workload(name: str, requests: int, slots: int = 20, lognormal: bool = False, seed: int = 1) -> PlainInput:
    """Return one workload as engines take it."""
    rng = np.random.default_rng(seed)
    mean_ns = np.array(CALLS_MS[name]) * NS_PER_MS
    gaps_ns = rng.exponential(mean_ns.sum() / (LOAD * slots), requests)
    calls = len(mean_ns)
    return PlainInput(
        slots=slots,
        allocation=FAIR_SHARE if name == "W3" else FIFO,
        service_ns=services_ns(rng, mean_ns, requests, name == "W1", lognormal),
        join_ns=np.full(requests, 0 if name == "W1" else JOIN_NS, dtype=np.int64),
        dependencies=((),) * calls,
        serial_order=tuple(range(calls)),
        runs_parallel_at=np.ones(slots + 1, dtype=np.bool_),
        load=OpenArrivals(np.cumsum(np.rint(gaps_ns).astype(np.int64))),
    )


def services_ns(
    rng: np.random.Generator, mean_ns: IntArray, requests: int, exponential: bool, lognormal: bool
) -> IntArray:
    """Return service times of these means, int64[requests, calls]."""
    shape = (requests, len(mean_ns))
    if lognormal:
        variance = np.log(1 + 0.5**2)
        times = rng.lognormal(-variance / 2, np.sqrt(variance), shape) * mean_ns
    else:
        times = (rng.exponential(1, shape) if exponential else np.ones(shape)) * mean_ns
    return np.maximum(1, np.rint(times)).astype(np.int64)
