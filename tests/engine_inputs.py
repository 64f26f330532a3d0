"""Engine inputs for tests: built by hand, small, in whole milliseconds unless said."""

from collections.abc import Sequence

import numpy as np

from sim.contract.allocation import ALLOCATIONS
from sim.contract.load import ClosedUsers, OpenArrivals
from sim.contract.plain import PlainInput
from sim.plan.schedule import serial_order
from sim.units import NS_PER_MS, IntArray


def ms(values: Sequence[float] | Sequence[Sequence[float]]) -> IntArray:
    """Return milliseconds as int64 nanoseconds."""
    return np.rint(np.array(values, dtype=np.float64) * NS_PER_MS).astype(np.int64)


def closed(users: int, requests: int, think_ms: float = 0) -> ClosedUsers:
    """Return users who all start at 0."""
    return ClosedUsers(((0, users),), ms([think_ms] * requests))


def arriving(*arrival_ms: float) -> OpenArrivals:
    """Return requests that arrive at these times."""
    return OpenArrivals(ms(arrival_ms))


def engine_input(
    load: ClosedUsers | OpenArrivals,
    service_ms: Sequence[float] | Sequence[Sequence[float]] = (260, 160),
    *,
    slots: int = 20,
    allocation: str = "fair_share",
    join_ms: float = 35,
    dependencies: Sequence[Sequence[int]] | None = None,
    parallel: bool | Sequence[int] = True,
    max_degree: int | None = None,
) -> PlainInput:
    """Return an engine input; `service_ms` is one row for all requests or a row each.

    `parallel` is a plan for all, or the fair shares at which a request runs in parallel.
    """
    requests = len(load.arrival_ns) if isinstance(load, OpenArrivals) else len(load.think_ns)
    service_ns = ms(service_ms)
    if service_ns.ndim == 1:
        service_ns = np.tile(service_ns, (requests, 1))
    shares = range(slots + 1)
    chosen = [parallel if isinstance(parallel, bool) else share in parallel for share in shares]
    graph = tuple(map(tuple, dependencies)) if dependencies else ((),) * service_ns.shape[1]
    return PlainInput(
        slots=slots,
        allocation=ALLOCATIONS[allocation],
        service_ns=service_ns,
        join_ns=ms([join_ms] * requests),
        dependencies=graph,
        serial_order=serial_order(graph),
        runs_parallel_at=np.array(chosen),
        load=load,
        max_degree=max_degree,
    )
