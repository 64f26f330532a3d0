"""All checks of a long plain run but the isolated replay, compiled: one pass over its tables.

It returns pass or fail; the readable checks explain a fault. Importing it imports numba.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sim.check import kernels
from sim.check.issued import NEVER, Issued, first_misissued
from sim.check.kernels import Graph, Queue, Tables, Walk
from sim.contract.load import OpenArrivals
from sim.contract.plain import PlainInput, PlainOutput
from sim.plan.schedule import serial_order
from sim.units import IntArray, sum_exact

INSTANTS_AT_ONCE = 1_000_000

RULES = (
    "it made other calls than its plan",
    "a service time is not the one drawn",
    "a call started before it was ready",
    "a call was not ready when its dependencies finished",
    "it did not complete after its join",
    "it did not run the plan of its fair share",
    "a call did not start when it was due",
    "a call did not get the slot free longest",
    "a call was never served",
    "its latency is not the list scheduler's",
    "it did not arrive when due",
)
"""What can be wrong with a request, in the order of the kernels' codes from 1 on."""


class Verdict(NamedTuple):
    """How many requests were held to an exact latency; or which request broke which rule, in words."""

    exact: int
    broken: str | None
    request: int = 0


def verdict(given: PlainInput, out: PlainOutput) -> Verdict:
    """Hold every request and every grant of a run against the rules."""
    early = first_early(given, out)
    if early is not None:
        return Verdict(0, RULES[kernels.OTHER_ARRIVAL - 1], early)
    tables, graph, walk = walk_tables(given, out), walk_graph(given), initial_walk(given, out)
    waiting = initial_queue(given, out)
    while not kernels.walk_through(tables, graph, walk, waiting, INSTANTS_AT_ONCE):
        pass
    if rule := int(walk.state[kernels.BROKEN]):
        return Verdict(0, RULES[rule - 1], int(walk.state[kernels.BROKEN_FOR]))
    if sum_exact(out.latency_ns) != out.active_integral_ns:
        return Verdict(0, "the latencies do not sum to active x time")
    return Verdict(int(walk.state[kernels.EXACT]), None)


def first_early(given: PlainInput, out: PlainOutput) -> int | None:
    """Return the first request that is missing, or did not arrive when the load has it, or None."""
    load = given.load
    if isinstance(load, OpenArrivals) or len(load.steps) > 1 or out.requests > load.requests:
        at_dispatch = np.zeros(out.requests, dtype=np.bool_)
        found = first_misissued(load, Issued(out.user, out.arrival_ns, out.completion_ns, at_dispatch))
        return None if found is None else found.request
    users = load.steps[0][1]
    stranger = (out.user < 0) | (out.user >= users)
    if stranger.any():
        return int(np.argmax(stranger))
    end_ns = NEVER if load.end_ns is None else load.end_ns
    all_issued = load.end_ns is None and out.requests == load.requests
    early = kernels.first_early(
        plain(out.arrival_ns),
        plain(out.completion_ns),
        plain(out.user),
        plain(load.think_ns),
        np.full(users, kernels.NOBODY, dtype=np.int64),
        end_ns,
        int(out.arrival_ns[-1]) if all_issued else end_ns,
    )
    return None if early == kernels.NOBODY else int(early)


def plain(values: IntArray) -> IntArray:
    """Return values in memory one after another, as kernels want them; a copy only if they are not."""
    return np.require(values, requirements=["C", "W"]).reshape(-1)


def walk_tables(given: PlainInput, out: PlainOutput) -> Tables:
    return Tables(
        arrival_ns=plain(out.arrival_ns),
        completion_ns=plain(out.completion_ns),
        parallel=np.require(out.ran_parallel, requirements=["C", "W"]),
        join_ns=plain(given.join_ns),
        ready_ns=plain(out.ready_ns),
        start_ns=plain(out.start_ns),
        finish_ns=plain(out.finish_ns),
        slot=plain(out.slot),
        service_ns=plain(given.service_ns),
        ended_ns=np.sort(out.completion_ns),
    )


def initial_queue(given: PlainInput, out: PlainOutput) -> Queue | None:
    """Return where waiting calls are found; None where they are served in the order of their places."""
    calls = given.calls_per_request
    in_order = calls == 1 or (not any(given.dependencies) and bool(out.ran_parallel.all()))
    caps_can_bind = given.allocation.minds_held or given.max_degree is not None
    if in_order and (calls == 1 or not caps_can_bind):
        return None
    rank = place_at = served = np.empty(0, dtype=np.int64)
    if not in_order:
        place_at = np.argsort(out.ready_ns, axis=None, kind="stable")
        rank = np.empty_like(place_at)
        rank[place_at] = np.arange(len(place_at))
        served = served_in_order(out)
    height_from = tree_heights(out.slot.size)
    return Queue(
        rank=rank,
        place_at=place_at,
        served=served,
        bits=np.zeros((min(calls, given.slots) if caps_can_bind else 1, height_from[-1]), dtype=np.int64),
        height_from=height_from[:-1],
    )


def served_in_order(out: PlainOutput) -> IntArray:
    """Return each request's places in the order in which its calls are ready, those not made at the end."""
    ready_ns = np.where(out.called, out.ready_ns, kernels.NEVER)
    order = np.argsort(ready_ns, axis=1, kind="stable")
    places: IntArray = order + np.arange(out.requests)[:, None] * out.slot.shape[1]
    return places.reshape(-1)


def walk_graph(given: PlainInput) -> Graph:
    calls = given.calls_per_request
    made = np.zeros((2, calls), dtype=np.bool_)
    made[0, list(given.serial_order)] = True
    made[1] = True
    before: list[tuple[int, ...]] = [()] * calls
    for earlier, later in pairwise(given.serial_order):
        before[later] = (earlier,)
    needs = [tuple(sorted(set(calls_before))) for calls_before in (*before, *given.dependencies)]
    needed_by: list[list[int]] = [[] for _ in needs]
    for node, calls_before in enumerate(needs):
        for call in calls_before:
            needed_by[node // calls * calls + call].append(node % calls)
    active = np.arange(1, min(given.slots, len(given.service_ns)) + 1)
    active = np.insert(active, 0, 1)
    cap_at = np.minimum([given.cap(count) for count in active.tolist()], calls)
    return Graph(
        made=made.reshape(-1),
        needs_from=np.cumsum([0, *map(len, needs)], dtype=np.int64),
        needs=np.array([call for calls_before in needs for call in calls_before], dtype=np.int64),
        needed_from=np.cumsum([0, *map(len, needed_by)], dtype=np.int64),
        needed_by=np.array([call for calls_after in needed_by for call in calls_after], dtype=np.int64),
        order=np.array(serial_order(given.dependencies), dtype=np.int64),
        cap_at=cap_at,
        parallel_at=given.runs_parallel_at[np.maximum(1, given.slots // active)],
        caps=np.unique(cap_at),
    )


def initial_walk(given: PlainInput, out: PlainOutput) -> Walk:
    requests, calls = out.slot.shape
    slots = min(given.slots, out.slot.size)
    state = np.zeros(kernels.STATE_SIZE, dtype=np.int64)
    state[kernels.CALLS] = calls
    state[kernels.FEWEST_FIRST] = given.allocation.fewest_first
    state[kernels.FREE_COUNT] = slots
    state[kernels.LEFT] = requests
    return Walk(
        state=state,
        of_request=np.zeros((requests, kernels.REQUEST_SIZE), dtype=np.int32),
        status=np.zeros(out.slot.size, dtype=np.uint8),
        free=np.arange(1 << (slots - 1).bit_length(), dtype=np.int64),
        running=np.empty((2, slots), dtype=np.int64),
        on_slot=np.empty(slots, dtype=np.int64),
        touched=np.empty(slots, dtype=np.int64),
        seen_ns=np.full(calls + 1, -1, dtype=np.int64),
        scratch=np.empty((5, calls), dtype=np.int64),
    )


def tree_heights(ranks: int) -> IntArray:
    """Return where each height of a tree of words of 64 bits begins, and the number of words in all."""
    heights, words = [0], ranks
    while words > 1:
        words = -(-words // 64)
        heights.append(heights[-1] + words)
    return np.array(heights if ranks > 1 else [0, 1], dtype=np.int64)
