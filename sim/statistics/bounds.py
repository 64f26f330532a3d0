"""What no plan and no allocation can beat, whatever the distributions; to show beside simulated figures.

Times share one unit and rates count per that unit. `work` is the mean slot-time of one request, the sum of
its calls (a join counts only where it holds a slot). `alone` is the mean latency of a request that never
waits: its critical path and its join, in its own plan.

Source: Denning and Buzen, "The operational analysis of queueing network models", Computing Surveys 10, 1978;
Lazowska, Zahorjan, Graham and Sevcik, "Quantitative System Performance", 1984, chapters 3 and 5.
"""

from sim.errors import ArgumentError


def utilisation(arrival_rate: float, work: float, slots: int) -> float:
    """Return the share of slot-time that an open load asks for, L work / c; overload from 1 on."""
    _check_slots(slots)
    return arrival_rate * work / slots


def open_throughput_bound(arrival_rate: float, work: float, slots: int) -> float:
    """Return the most requests per unit of time that can complete: min(L, c / work)."""
    return min(arrival_rate, 1 / _work_per_slot(work, slots))


def open_latency_bound(critical_path: float, branch_work: float, slots: int, join: float = 0.0) -> float:
    """Return the least mean latency, reached alone: max(critical path, branch work / c) + join."""
    return max(critical_path, _work_per_slot(branch_work, slots)) + join


def closed_throughput_bound(users: float, think: float, alone: float, work: float, slots: int) -> float:
    """Return the most requests per unit of time that N users can get: min(N / (alone + Z), c / work)."""
    return min(users / (alone + think), 1 / _work_per_slot(work, slots))


def closed_latency_bound(users: float, think: float, alone: float, work: float, slots: int) -> float:
    """Return the least mean latency of N users: max(alone, N work / c - Z)."""
    return max(alone, users * _work_per_slot(work, slots) - think)


def latency_bound_of_active(active_mean: float, work: float, slots: int) -> float:
    """Return the least mean latency at a time-average of active requests: active x work / c.

    By Little's law active = X x latency, and X <= c / work; exact on every path that starts and ends empty.
    """
    return active_mean * _work_per_slot(work, slots)


def span_bounds(critical_path: float, work: float, slots: int) -> tuple[float, float]:
    """Return least and largest span of one request alone under list scheduling, join left out.

    max(critical path, work / m) <= span <= work / m + (1 - 1/m) x critical path.
    Source: Graham, "Bounds on multiprocessing timing anomalies", SIAM Journal on Applied Mathematics 17,
    1969.
    """
    shared = _work_per_slot(work, slots)
    return max(critical_path, shared), shared + (1 - 1 / slots) * critical_path


def _work_per_slot(work: float, slots: int) -> float:
    """Return the time in which all slots together do the work of one request."""
    _check_slots(slots)
    if not work > 0:
        raise ArgumentError("work", "must be > 0", work)
    return work / slots


def _check_slots(slots: int) -> None:
    if slots < 1:
        raise ArgumentError("slots", "must be >= 1", slots)
