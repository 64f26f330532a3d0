"""The deterministic list scheduler: when each branch of one request starts, on which slot, how long it takes.

Greedy scheduling in a fixed order (R. L. Graham, "Bounds on multiprocessing timing anomalies", SIAM Journal
on Applied Mathematics 17, 1969). With dependencies more slots are not always faster; what always holds is
`max(critical path, work / slots) <= span <= work / slots + (1 - 1 / slots) * critical path`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace
from typing import NamedTuple

from sim.plan.parallel_plan import Branch, ParallelPlan, real_number, whole_number
from sim.units import Number, exact, ns_to_ms


class NsSchedule(NamedTuple):
    """A schedule from time 0 without the join; one entry per branch in input order, times in ns.

    A named tuple, as one is made for every simulated request that is checked.
    """

    starts_ns: tuple[int, ...]
    finishes_ns: tuple[int, ...]
    slot: tuple[int, ...]
    span_ns: int


@dataclass(frozen=True)
class Schedule:
    """A schedule of one request alone, starting at 0; times in ms, one entry per branch in input order.

    `make_span_ms` is the latest finish plus the join, `ideal_ms` the critical path plus the join,
    `queue_delay_ms` their difference, `utilization` the busy slot-time over (span without join x slots),
    and `slot` the slot that each branch runs on, counted from 0.
    """

    make_span_ms: float
    starts: tuple[float, ...]
    finishes: tuple[float, ...]
    slot: tuple[int, ...]
    queue_delay_ms: float
    utilization: float
    ideal_ms: float


def list_schedule(service_ns: Sequence[int], dependencies: Sequence[Sequence[int]], slots: int) -> NsSchedule:
    """Schedule one request's branches on `slots` slots, all free at time 0. Nothing is validated here.

    At each instant all completions come first; then free slots take ready branches in the order (ready
    time, position). The slot taken is the one free longest, ties to the lowest index.

    Parameters
    ----------
    service_ns : sequence of int, length n
        Service times in ns, at least 1 each.
    dependencies : sequence of sequences of int, length n, or empty
        For each branch the positions of the branches that it waits for, without cycles. Empty: none.
    slots : int
        At least 1.
    """
    if any(dependencies):
        return _schedule_dependent(service_ns, dependencies, slots)
    # Without dependencies the rule comes down to: in input order, each branch on the earliest-free slot.
    free = _idle_slots(slots, len(service_ns))
    starts, finishes, taken = [], [], []
    for duration in service_ns:
        free_since, slot = free[0]
        heapreplace(free, (free_since + duration, slot))
        starts.append(free_since)
        finishes.append(free_since + duration)
        taken.append(slot)
    return NsSchedule(tuple(starts), tuple(finishes), tuple(taken), max(finishes))


def _schedule_dependent(
    service_ns: Sequence[int], dependencies: Sequence[Sequence[int]], slots: int
) -> NsSchedule:
    count = len(service_ns)
    unmet = [len(needed) for needed in dependencies]
    dependents = _dependents(dependencies)
    queue = [(0, branch) for branch in range(count) if not unmet[branch]]
    free = _idle_slots(slots, count)
    running: list[tuple[int, int]] = []
    starts, finishes, taken = [0] * count, [0] * count, [0] * count
    now = 0
    while queue or running:
        while queue and free:
            branch = heappop(queue)[1]
            starts[branch], taken[branch] = now, heappop(free)[1]
            finishes[branch] = now + service_ns[branch]
            heappush(running, (finishes[branch], branch))
        now = running[0][0]
        while running and running[0][0] == now:
            branch = heappop(running)[1]
            heappush(free, (now, taken[branch]))
            for dependent in dependents[branch]:
                unmet[dependent] -= 1
                if not unmet[dependent]:
                    heappush(queue, (now, dependent))
    return NsSchedule(tuple(starts), tuple(finishes), tuple(taken), now)


def _idle_slots(slots: int, branches: int) -> list[tuple[int, int]]:
    """Return a heap of (free since, slot).

    More slots than branches change nothing: a slot never used has been free longest, so each branch then
    gets its own.
    """
    return [(0, slot) for slot in range(min(slots, branches))]


def _dependents(dependencies: Sequence[Sequence[int]]) -> list[list[int]]:
    dependents: list[list[int]] = [[] for _ in dependencies]
    for branch, needed in enumerate(dependencies):
        for earlier in needed:
            dependents[earlier].append(branch)
    return dependents


def critical_path_ns(service_ns: Sequence[int], dependencies: Sequence[Sequence[int]]) -> int:
    """Return the longest dependency chain of service times in ns: the span with a slot for every branch."""
    if not any(dependencies):
        return max(service_ns)
    return list_schedule(service_ns, dependencies, len(service_ns)).span_ns


def serial_order(dependencies: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the order of a serial run: repeatedly the lowest-index branch whose dependencies are done."""
    unmet = [len(needed) for needed in dependencies]
    dependents = _dependents(dependencies)
    ready = [branch for branch, count in enumerate(unmet) if not count]
    heapify(ready)
    order = []
    while ready:
        branch = heappop(ready)
        order.append(branch)
        for dependent in dependents[branch]:
            unmet[dependent] -= 1
            if not unmet[dependent]:
                heappush(ready, dependent)
    return tuple(order)


def has_independent_branches(dependencies: Sequence[Sequence[int]]) -> bool:
    """Return whether any two branches could overlap, that is, whether the branches are not one chain."""
    count = len(dependencies)
    return critical_path_ns([1] * count, dependencies) < count


def join_overhead_ms(base_ms: Number, growth_ms_per_branch: Number, branches: int) -> float:
    """Return the join in ms when merging costs more with each branch beyond the second."""
    base = exact(real_number("base_ms", base_ms, at_least=0))
    growth = exact(real_number("growth_ms_per_branch", growth_ms_per_branch, at_least=0))
    return float(base + growth * max(0, whole_number("branches", branches, at_least=1) - 2))


def schedule_branches(branches: Sequence[Branch], concurrency: int, join_overhead_ms: Number = 0) -> Schedule:
    """Schedule one request alone, starting at 0, with `concurrency` slots and a join (ms) after its branches.

    Raises `PlanError` for input that a `ParallelPlan` refuses.
    """
    return schedule_plan(ParallelPlan(branches, concurrency, join_overhead_ms))


def schedule_plan(plan: ParallelPlan) -> Schedule:
    """Schedule the branches of `plan` on its slots, its join included."""
    schedule = list_schedule(plan.service_ns, plan.dependencies, plan.concurrency)
    critical_ns = critical_path_ns(plan.service_ns, plan.dependencies)
    return Schedule(
        make_span_ms=ns_to_ms(schedule.span_ns + plan.join_ns),
        starts=tuple(map(ns_to_ms, schedule.starts_ns)),
        finishes=tuple(map(ns_to_ms, schedule.finishes_ns)),
        slot=schedule.slot,
        queue_delay_ms=ns_to_ms(schedule.span_ns - critical_ns),
        utilization=sum(plan.service_ns) / (schedule.span_ns * plan.concurrency),
        ideal_ms=ns_to_ms(critical_ns + plan.join_ns),
    )
