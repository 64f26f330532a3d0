"""Check 1: every request against the deterministic list scheduler.

A request is *exact* when its cap was the same at every dispatch at which one of its calls was queued, and no
call stayed queued while the request held fewer slots than that cap: only its own cap ever held it back. The
list scheduler then gives its latency to the nanosecond. Every other request is *bounded* from below.
"""

from collections.abc import Sequence

import numpy as np

from sim.check.timeline import Timeline
from sim.contract.plain import PlainInput, PlainOutput
from sim.plan.schedule import list_schedule, serial_order
from sim.units import BoolArray, IntArray


def known_latencies(
    given: PlainInput, out: PlainOutput, line: Timeline, cap: IntArray
) -> tuple[BoolArray, IntArray]:
    """Return, for each request, whether the list scheduler knows its latency, and that or its bound (ns).

    `cap` is how many slots a request may hold at each instant of `line`.
    """
    least_cap, greatest_cap = caps_while_queued(given, out, line, cap)
    waited = (out.waiting_ns > 0).any(axis=1)
    held_enough = np.ones(out.requests, dtype=np.bool_)
    held_enough[waited] = held_its_cap(out, np.flatnonzero(waited), least_cap[waited])
    exact = np.where(out.ran_parallel, (least_cap == greatest_cap) & held_enough, ~waited)
    return exact, expected_latencies(given, out, exact, greatest_cap)


def caps_while_queued(
    given: PlainInput, out: PlainOutput, line: Timeline, cap_at: IntArray
) -> tuple[IntArray, IntArray]:
    """Return each request's least and greatest min(cap, calls) over the dispatches that saw it queued.

    Both int64[requests]. A call is queued at every dispatch from the instant it is ready to the instant it
    starts, both included.
    """
    calls = given.calls_per_request
    cap = np.minimum(cap_at, calls)
    if cap.min() == cap.max():
        return np.full(out.requests, cap[0]), np.full(out.requests, cap[0])
    ready, start = line.at(out.ready_ns), line.at(out.start_ns)
    least = np.where(out.called, cap[np.minimum(ready, len(cap) - 1)], calls + 1)
    greatest = np.where(out.called, least, 0)
    stretched = out.called & (start > ready)
    if stretched.any():
        least[stretched], greatest[stretched] = extremes(cap, ready[stretched], start[stretched])
    return least.min(axis=1), greatest.max(axis=1)


def held_its_cap(out: PlainOutput, requests: IntArray, cap: IntArray) -> BoolArray:
    """Return whether each request held at least its cap after every dispatch that left a call of it queued.

    Each row's times are sorted, and what was queued and held is counted along them, up to and including all
    that happened at each instant.
    """
    called = out.called[requests]
    times = np.concatenate(
        [column[requests] for column in (out.ready_ns, out.start_ns, out.finish_ns)], axis=1
    )
    order = np.argsort(times, axis=1, kind="stable")
    times = np.take_along_axis(times, order, axis=1)
    none, one = np.zeros_like(called, dtype=np.int64), called.astype(np.int64)
    queued, held = (
        np.cumsum(np.take_along_axis(np.concatenate(changes, axis=1), order, axis=1), axis=1)
        for changes in ((one, -one, none), (none, one, -one))
    )
    ends_instant = np.ones_like(times, dtype=np.bool_)
    ends_instant[:, :-1] = times[:, 1:] > times[:, :-1]
    return np.asarray((~ends_instant | (queued == 0) | (held >= cap[:, None])).all(axis=1))


def expected_latencies(given: PlainInput, out: PlainOutput, exact: BoolArray, cap: IntArray) -> IntArray:
    """Return the exact latency of each exact request and the lower bound of each other one, int64 ns."""
    service_ns = np.where(out.called, given.service_ns[: out.requests], 0)
    work_ns = service_ns.sum(axis=1)
    critical_ns = critical_paths_ns(service_ns, given.dependencies)
    spans_ns = np.where(exact, critical_ns, np.maximum(critical_ns, -(-work_ns // cap)))
    held_back = np.flatnonzero(exact & out.ran_parallel & (cap < given.calls_per_request))
    spans_ns[held_back] = list_spans_ns(service_ns[held_back], given.dependencies, cap[held_back])
    return np.where(out.ran_parallel, spans_ns + given.join_ns[: out.requests], work_ns)


def list_spans_ns(service_ns: IntArray, dependencies: Sequence[Sequence[int]], slots: IntArray) -> IntArray:
    """Return the list scheduler's span of each row of service times (int64[requests, calls]) on its slots.

    Without dependencies each call in turn takes the slot that is free first, for all requests at once.
    """
    if any(dependencies):
        rows = zip(service_ns.tolist(), slots.tolist(), strict=True)
        spans_ns = [list_schedule(times, dependencies, number).span_ns for times, number in rows]
        return np.array(spans_ns, dtype=np.int64)
    offered = np.arange(slots.max(initial=1)) < slots[:, None]
    free_ns = np.where(offered, 0, np.iinfo(np.int64).max)
    for times in service_ns.T:
        free_ns[np.arange(len(slots)), free_ns.argmin(axis=1)] += times
    return np.asarray(np.where(offered, free_ns, 0).max(axis=1))


def critical_paths_ns(service_ns: IntArray, dependencies: Sequence[Sequence[int]]) -> IntArray:
    """Return the longest dependency chain of each row of service times (int64[requests, calls])."""
    finish_ns = np.zeros_like(service_ns)
    for call in serial_order(dependencies):
        ready_ns = finish_ns[:, list(dependencies[call])].max(axis=1, initial=0)
        finish_ns[:, call] = ready_ns + service_ns[:, call]
    return np.asarray(finish_ns.max(axis=1, initial=0))


def extremes(values: IntArray, first: IntArray, last: IntArray) -> tuple[IntArray, IntArray]:
    """Return (least, greatest) over each inclusive stretch first..last of a few different values >= 0."""
    least = np.full(first.shape, np.iinfo(np.int64).max)
    greatest = np.full(first.shape, -1)
    for value in np.flatnonzero(np.bincount(values)):
        count = np.append(0, np.cumsum(values == value))
        occurs = count[last + 1] > count[first]
        least[occurs] = np.minimum(least[occurs], value)
        greatest[occurs] = value
    return least, greatest
