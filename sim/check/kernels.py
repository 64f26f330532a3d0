"""The compiled walk through a run: every request and every grant held against the rules, in one pass.

It follows `sim.check.grants` and `sim.check.list_scheduler`, which stay the ones to read, and shares nothing
with the engines. A call is known by its *place* in the flattened call table, `request * calls + call`. The
first waiting calls of requests that hold equally many slots are bits in a tree of words, at their rank in the
queue, each bit of a word telling whether the word below it has any: so the first is found, and any is taken
out, in a few steps. A request's calls are served in the order of their ranks, which is known beforehand, so
that its first waiting call is the first that was not granted, if that waits.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sim.check.bit_tree import clear_bit, first_bit, set_bit
from sim.engine.native import helper, kernel, part
from sim.units import BoolArray, IntArray

NEVER = (1 << 63) - 1
NOBODY = -1

# What can be wrong with a request; 0 is nothing.
(
    FINE,
    OTHER_CALLS,
    OTHER_SERVICE,
    EARLY_START,
    OTHER_READY,
    OTHER_COMPLETION,
    OTHER_PLAN,
    NOT_DUE,
    OTHER_SLOT,
    NOT_SERVED,
    OTHER_LATENCY,
    OTHER_ARRIVAL,
) = range(12)

# Elements of `Walk.state`.
CALLS, FEWEST_FIRST, NOW, ACTIVE, ARRIVED, ENDED, RUNNING, FREE_FIRST, FREE_COUNT, TOUCHED = range(10)
LEFT, EXACT, BROKEN, BROKEN_FOR, SERVED, STATE_SIZE = range(10, 16)

# Columns of `Walk.of_request`. LEAST is -1 once the list scheduler can no longer say the latency.
HELD, UNGRANTED, QUEUED, LEAST, GREATEST, SERVED_CALLS, REQUEST_SIZE = range(7)
AT, WHO = range(2)
UNREADY, WAITING, GRANTED = range(3)


class Tables(NamedTuple):
    """The tables of a run and what was drawn: times int64 ns, calls flattened.

    Parameters
    ----------
    arrival_ns, completion_ns, parallel, join_ns
        [requests].
    ready_ns, start_ns, finish_ns, slot, service_ns
        [requests * calls]; `service_ns` as drawn.
    ended_ns
        [requests]: `completion_ns` in ascending order.
    """

    arrival_ns: IntArray
    completion_ns: IntArray
    parallel: BoolArray
    join_ns: IntArray
    ready_ns: IntArray
    start_ns: IntArray
    finish_ns: IntArray
    slot: IntArray
    service_ns: IntArray
    ended_ns: IntArray


class Graph(NamedTuple):
    """What the plans serial (0) and parallel (1) wait for; call c of plan p is node `p * calls + c`.

    Parameters
    ----------
    made
        bool[2 * calls]: whether the plan makes the call.
    needs_from, needs
        The calls that node n waits for are `needs[needs_from[n]:needs_from[n + 1]]`.
    needed_from, needed_by
        The calls that wait for node n, alike.
    order
        [calls]: the calls, each after those that it waits for in parallel.
    cap_at, parallel_at
        The cap, and whether the plan is parallel, by active requests; the last element holds for more.
    caps
        The caps that there are.
    """

    made: BoolArray
    needs_from: IntArray
    needs: IntArray
    needed_from: IntArray
    needed_by: IntArray
    order: IntArray
    cap_at: IntArray
    parallel_at: BoolArray
    caps: IntArray


class Walk(NamedTuple):
    """Who waits, who holds what, and which slots are free since when.

    Parameters
    ----------
    state
        [STATE_SIZE], named above.
    of_request
        int32[requests, REQUEST_SIZE].
    status
        uint8[requests * calls].
    free
        [power of two]: a ring of the free slots, the one free longest first.
    running
        [2, slots]: a heap of when a call finishes (AT) and on which slot (WHO).
    on_slot
        [slots]: the call on each slot.
    touched
        [slots]: the requests whose calls finished at this instant.
    seen_ns
        [calls + 1]: when a dispatch last had each cap (at most as many as calls).
    scratch
        [5, calls], for one request's schedule.
    """

    state: IntArray
    of_request: npt.NDArray[np.int32]
    status: npt.NDArray[np.uint8]
    free: IntArray
    running: IntArray
    on_slot: IntArray
    touched: IntArray
    seen_ns: IntArray
    scratch: IntArray


class Queue(NamedTuple):
    """Where the waiting calls are found, unless they are served in the order of their places; int64.

    Parameters
    ----------
    rank, place_at
        [requests * calls]: each call's rank in the queue and back; empty where ranks are places.
    served
        [requests * calls]: each request's places in the order of their ranks; empty where ranks are places.
    bits, height_from
        [levels, words]: a tree of bits for each number of slots held, or one tree where no cap can bind;
        where each height begins.
    """

    rank: IntArray
    place_at: IntArray
    served: IntArray
    bits: IntArray
    height_from: IntArray


@kernel
def walk_through(tables: Tables, graph: Graph, walk: Walk, waiting: Queue | None, instants: int) -> bool:
    """Walk through so many instants more; return whether the walk has ended, at the end or at a fault."""
    state = walk.state
    for _ in range(instants):
        now = next_instant(tables, walk)
        if now == NEVER:
            if state[LEFT]:
                fault(state, NOT_SERVED, first_unserved(walk.of_request))
            return True
        state[NOW] = now
        finish_calls(tables, graph, walk, waiting, now)
        while state[ENDED] < len(tables.ended_ns) and tables.ended_ns[state[ENDED]] == now:
            state[ENDED] += 1
            state[ACTIVE] -= 1
        first = state[ARRIVED]
        while state[ARRIVED] < len(tables.arrival_ns) and tables.arrival_ns[state[ARRIVED]] == now:
            state[ARRIVED] += 1
            state[ACTIVE] += 1
        for number in range(first, state[ARRIVED]):
            arrive(tables, graph, walk, waiting, number)
        cap = graph.cap_at[min(state[ACTIVE], len(graph.cap_at) - 1)]
        walk.seen_ns[cap] = now
        while state[FREE_COUNT]:
            rank = due(walk, waiting, cap)
            if rank == NOBODY:
                break
            grant(tables, graph, walk, waiting, rank, cap)
        for at in range(state[TOUCHED]):
            look(walk.of_request, walk.touched[at], cap)
        for number in range(first, state[ARRIVED]):
            look(walk.of_request, number, cap)
        if state[BROKEN]:
            return True
    return False


@part
def next_instant(tables: Tables, walk: Walk) -> int:
    """Return when a request arrives, a call finishes or a request completes next."""
    state = walk.state
    now = NEVER
    if state[ARRIVED] < len(tables.arrival_ns):
        now = tables.arrival_ns[state[ARRIVED]]
    if state[RUNNING]:
        now = min(now, walk.running[AT, 0])
    if state[ENDED] < len(tables.ended_ns):
        now = min(now, tables.ended_ns[state[ENDED]])
    return now


@helper
def fault(state: IntArray, rule: int, request: int) -> None:
    """Note the first rule broken."""
    if state[BROKEN] == FINE:
        state[BROKEN] = rule
        state[BROKEN_FOR] = request


@helper
def first_unserved(of_request: npt.NDArray[np.int32]) -> int:
    """Return the first request that still has calls to be granted."""
    for number in range(len(of_request)):
        if of_request[number, UNGRANTED]:
            return number
    return 0


@part
def finish_calls(tables: Tables, graph: Graph, walk: Walk, waiting: Queue | None, now: int) -> None:
    """Let the calls finish that do so now: slots are freed in ascending order, dependents may wait."""
    state = walk.state
    state[TOUCHED] = 0
    while state[RUNNING] and walk.running[AT, 0] == now:
        slot = pop(walk.running, state)
        walk.free[(state[FREE_FIRST] + state[FREE_COUNT]) & (len(walk.free) - 1)] = slot
        state[FREE_COUNT] += 1
        place = walk.on_slot[slot]
        number = place // state[CALLS]
        walk.touched[state[TOUCHED]] = number
        state[TOUCHED] += 1
        change_held(walk, waiting, number, -1)
        free_dependents(tables, graph, walk, waiting, number, place - number * state[CALLS], now)


@part
def free_dependents(
    tables: Tables, graph: Graph, walk: Walk, waiting: Queue | None, number: int, call: int, now: int
) -> None:
    """Let the calls wait that were ready when this one finished: their ready times are known to be right."""
    before = number * walk.state[CALLS]
    node = np.int64(tables.parallel[number]) * walk.state[CALLS] + call
    for at in range(graph.needed_from[node], graph.needed_from[node + 1]):
        other = before + graph.needed_by[at]
        if tables.ready_ns[other] == now:
            wait(walk, waiting, number, other)


@part
def arrive(tables: Tables, graph: Graph, walk: Walk, waiting: Queue | None, number: int) -> None:
    """Hold a request's rows against what was drawn, and let its first calls wait."""
    state, calls = walk.state, walk.state[CALLS]
    parallel = graph.parallel_at[min(state[ACTIVE], len(graph.parallel_at) - 1)]
    if tables.parallel[number] != parallel:
        fault(state, OTHER_PLAN, number)
    rule, made = broken_rule(tables, graph, number, calls)
    if rule != FINE:
        fault(state, rule, number)
    walk.of_request[number, UNGRANTED] = made
    walk.of_request[number, LEAST] = calls + 1
    for call in range(calls):
        node = np.int64(tables.parallel[number]) * calls + call
        if graph.made[node] and graph.needs_from[node] == graph.needs_from[node + 1]:
            wait(walk, waiting, number, number * calls + call)


@part
def is_blank(tables: Tables, place: int) -> bool:
    """Return whether a row of the call table is one of a call that was not made."""
    blank = tables.ready_ns[place] == NOBODY and tables.start_ns[place] == NOBODY
    return blank and tables.finish_ns[place] == NOBODY and tables.slot[place] == NOBODY


@part
def broken_rule(tables: Tables, graph: Graph, number: int, calls: int) -> tuple[int, int]:
    """Return the first rule that a request's rows break, and how many calls its plan makes."""
    plan = np.int64(tables.parallel[number])
    made = 0
    latest = tables.arrival_ns[number]
    for call in range(calls):
        node, place = plan * calls + call, number * calls + call
        if is_blank(tables, place) == graph.made[node]:
            return OTHER_CALLS, 0
        if not graph.made[node]:
            continue
        made += 1
        latest = max(latest, tables.finish_ns[place])
        if tables.finish_ns[place] - tables.start_ns[place] != tables.service_ns[place]:
            return OTHER_SERVICE, 0
        if tables.start_ns[place] < tables.ready_ns[place]:
            return EARLY_START, 0
        ready = tables.arrival_ns[number]
        for at in range(graph.needs_from[node], graph.needs_from[node + 1]):
            ready = max(ready, tables.finish_ns[number * calls + graph.needs[at]])
        if tables.ready_ns[place] != ready:
            return OTHER_READY, 0
    if tables.parallel[number]:
        latest += tables.join_ns[number]
    if tables.completion_ns[number] != latest:
        return OTHER_COMPLETION, 0
    return FINE, made


# Waiting and grants


@part
def wait(walk: Walk, waiting: Queue | None, number: int, place: int) -> None:
    """Let a call wait, once."""
    if walk.status[place] == UNREADY:
        walk.status[place] = WAITING
        walk.of_request[number, QUEUED] += 1
        if waiting is not None and place == first_waiting(walk, waiting, number):
            set_bit(
                waiting.bits,
                waiting.height_from,
                level_of(walk.of_request, waiting.bits, number),
                rank_of(waiting, place),
            )


@part
def rank_of(waiting: Queue, place: int) -> int:
    """Return the rank of a call in the queue."""
    return place if len(waiting.rank) == 0 else waiting.rank[place]


@part
def first_waiting(walk: Walk, waiting: Queue, number: int) -> int:
    """Return the place of a request's first waiting call, or NOBODY."""
    granted = walk.of_request[number, SERVED_CALLS]
    calls = walk.state[CALLS]
    if granted == calls:
        return NOBODY
    at = number * calls + granted
    place = at if len(waiting.served) == 0 else waiting.served[at]
    return place if walk.status[place] == WAITING else NOBODY


@part
def change_held(walk: Walk, waiting: Queue | None, number: int, change: int) -> None:
    """Change what a request holds, and move its first waiting call accordingly."""
    held = walk.of_request[number, HELD]
    walk.of_request[number, HELD] = held + change
    if waiting is not None and walk.of_request[number, QUEUED]:
        before = min(held, len(waiting.bits) - 1)
        after = min(held + change, len(waiting.bits) - 1)
        place = first_waiting(walk, waiting, number)
        if before != after and place != NOBODY:
            rank = rank_of(waiting, place)
            clear_bit(waiting.bits, waiting.height_from, before, rank)
            set_bit(waiting.bits, waiting.height_from, after, rank)


@part
def level_of(of_request: npt.NDArray[np.int32], bits: IntArray, number: int) -> int:
    """Return the level of a request: what it holds, or 0 where no cap can bind."""
    return int(min(of_request[number, HELD], len(bits) - 1))


@part
def due(walk: Walk, waiting: Queue | None, cap: int) -> int:
    """Return the rank of the call that the allocation serves next, or NOBODY."""
    if waiting is None:
        served = walk.state[SERVED]
        return served if served < len(walk.status) and walk.status[served] == WAITING else NOBODY
    best = NOBODY
    for level in range(min(cap, len(waiting.bits))):
        rank = first_bit(waiting.bits, waiting.height_from, level)
        if rank != NOBODY and (best == NOBODY or rank < best):
            best = rank
            if walk.state[FEWEST_FIRST]:
                break
    return best


@part
def grant(tables: Tables, graph: Graph, walk: Walk, waiting: Queue | None, rank: int, cap: int) -> None:
    """Give the call that is due the slot free longest, if that is what the tables say."""
    state, now = walk.state, walk.state[NOW]
    place = rank if waiting is None or len(waiting.rank) == 0 else waiting.place_at[rank]
    number = place // state[CALLS]
    if tables.start_ns[place] != now:
        fault(state, NOT_DUE, number)
    slot = walk.free[state[FREE_FIRST]]
    if tables.slot[place] != slot:
        fault(state, OTHER_SLOT, number)
    state[FREE_FIRST] = (state[FREE_FIRST] + 1) & (len(walk.free) - 1)
    state[FREE_COUNT] -= 1
    if waiting is not None:
        level = level_of(walk.of_request, waiting.bits, number)
        clear_bit(waiting.bits, waiting.height_from, level, rank)
    walk.status[place] = GRANTED
    walk.of_request[number, QUEUED] -= 1
    walk.of_request[number, SERVED_CALLS] += 1
    state[SERVED] += 1
    if waiting is not None:
        following = first_waiting(walk, waiting, number)
        if following != NOBODY:
            set_bit(
                waiting.bits,
                waiting.height_from,
                level_of(walk.of_request, waiting.bits, number),
                rank_of(waiting, following),
            )
    change_held(walk, waiting, number, 1)
    walk.on_slot[slot] = place
    push(walk.running, state, max(now + 1, tables.finish_ns[place]), slot)
    if tables.ready_ns[place] < now:
        note_caps(walk, graph.caps, number, tables.parallel[number], tables.ready_ns[place])
    else:
        note_cap(walk.of_request, number, cap)
    walk.of_request[number, UNGRANTED] -= 1
    if walk.of_request[number, UNGRANTED] == 0:
        state[LEFT] -= 1
        judge(tables, graph, walk, number)


# The list scheduler


@part
def note_cap(of_request: npt.NDArray[np.int32], number: int, cap: int) -> None:
    """Note a cap at which a call was queued."""
    of_request[number, LEAST] = min(of_request[number, LEAST], cap)
    of_request[number, GREATEST] = max(of_request[number, GREATEST], cap)


@part
def note_caps(walk: Walk, caps: IntArray, number: int, parallel: bool, ready_ns: int) -> None:
    """Note the caps of all dispatches at which a call was queued that waited since it was ready."""
    if not parallel:
        walk.of_request[number, LEAST] = -1
    for at in range(len(caps)):
        if walk.seen_ns[caps[at]] >= ready_ns:
            note_cap(walk.of_request, number, caps[at])


@part
def look(of_request: npt.NDArray[np.int32], number: int, cap: int) -> None:
    """Note a request that held less than its cap while a call of it stayed queued."""
    if of_request[number, QUEUED] and of_request[number, HELD] < cap:
        of_request[number, LEAST] = -1


@part
def judge(tables: Tables, graph: Graph, walk: Walk, number: int) -> None:
    """Hold a request's latency against the list scheduler: exactly, or from below."""
    calls, greatest = walk.state[CALLS], int(walk.of_request[number, GREATEST])
    first = number * calls
    work = 0
    for place in range(first, first + calls):
        work += tables.service_ns[place] if walk.status[place] == GRANTED else 0
    if not tables.parallel[number]:
        exact, expected = walk.of_request[number, LEAST] != -1, work
    else:
        exact = walk.of_request[number, LEAST] == greatest
        expected = critical_path(tables.service_ns, graph, walk.scratch, first)
        if exact and greatest < calls:
            expected = span(tables.service_ns, graph, walk.scratch, first, greatest)
        elif not exact:
            expected = max(expected, -(-work // greatest))
        expected += tables.join_ns[number]
    latency = tables.completion_ns[number] - tables.arrival_ns[number]
    if latency < expected or (exact and latency != expected):
        fault(walk.state, OTHER_LATENCY, number)
    walk.state[EXACT] += exact


@helper
def critical_path(service_ns: IntArray, graph: Graph, scratch: IntArray, first: int) -> int:
    """Return the longest dependency chain of a request's service times."""
    calls = scratch.shape[1]
    longest = 0
    if len(graph.needs) == 0:
        for place in range(first, first + calls):
            longest = max(longest, service_ns[place])
        return longest
    for at in range(calls):
        call = graph.order[at]
        ready = 0
        for need in range(graph.needs_from[calls + call], graph.needs_from[calls + call + 1]):
            ready = max(ready, scratch[AT, graph.needs[need]])
        scratch[AT, call] = ready + service_ns[first + call]
        longest = max(longest, scratch[AT, call])
    return longest


@helper
def span(service_ns: IntArray, graph: Graph, scratch: IntArray, first: int, slots: int) -> int:
    """Return how long the list scheduler takes for a request on so many slots.

    Two heaps: of the calls that are ready, by their ready time, and of those that run, by their finish.
    """
    calls = scratch.shape[1]
    blockers, queue, running = scratch[0], scratch[1:3], scratch[3:5]
    now, ready, busy = 0, 0, 0
    for call in range(calls):
        node = calls + call
        blockers[call] = graph.needs_from[node + 1] - graph.needs_from[node]
        if blockers[call] == 0:
            ready = pushed(queue, ready, 0, call)
    while ready or busy:
        while ready and busy < slots:
            call, ready = queue[WHO, 0], popped(queue, ready)
            busy = pushed(running, busy, now + service_ns[first + call], call)
        now = running[AT, 0]
        while busy and running[AT, 0] == now:
            node, busy = calls + running[WHO, 0], popped(running, busy)
            for at in range(graph.needed_from[node], graph.needed_from[node + 1]):
                other = graph.needed_by[at]
                blockers[other] -= 1
                if blockers[other] == 0:
                    ready = pushed(queue, ready, now, other)
    return now


# Users


@kernel
def first_early(
    arrival_ns: IntArray,
    completion_ns: IntArray,
    user: IntArray,
    think_ns: IntArray,
    latest: IntArray,
    end_ns: int,
    owed_until_ns: int,
) -> int:
    """Return the first request that did not arrive when its user was due back, or NOBODY.

    All users come at 0 and stay. `latest` (one element per user, NOBODY at first) is for the user's request
    before. Nothing is issued from `end_ns` on, and no user owes a request that was due before
    `owed_until_ns`; the last request stands for one that is owed.
    """
    for number in range(len(arrival_ns)):
        if number and arrival_ns[number] < arrival_ns[number - 1]:
            return number
        before = latest[user[number]]
        latest[user[number]] = number
        due = 0 if before == NOBODY else completion_ns[before] + think_ns[before]
        if arrival_ns[number] != due or due >= end_ns:
            return number
    for before in latest:
        due = 0 if before == NOBODY else completion_ns[before] + think_ns[before]
        if due < owed_until_ns:
            return len(arrival_ns) - 1
    return NOBODY


# A heap by time


@part
def goes_first(heap: IntArray, at: int, time: int, slot: int) -> bool:
    """Return whether an element of the heap is before a time and slot."""
    return heap[AT, at] < time or (heap[AT, at] == time and heap[WHO, at] < slot)


@part
def push(heap: IntArray, state: IntArray, time: int, slot: int) -> None:
    """Add the call on a slot to the heap of those that run."""
    state[RUNNING] = pushed(heap, state[RUNNING], time, slot)


@part
def pop(heap: IntArray, state: IntArray) -> int:
    """Take the slot of the call that finishes first, the lowest of several."""
    first = heap[WHO, 0]
    state[RUNNING] = popped(heap, state[RUNNING])
    return first


@helper
def pushed(heap: IntArray, size: int, time: int, slot: int) -> int:
    """Add an element to a heap of some size; return its size from now on."""
    at = size
    while at and not goes_first(heap, (at - 1) >> 1, time, slot):
        heap[AT, at], heap[WHO, at] = heap[AT, (at - 1) >> 1], heap[WHO, (at - 1) >> 1]
        at = (at - 1) >> 1
    heap[AT, at], heap[WHO, at] = time, slot
    return size + 1


@helper
def popped(heap: IntArray, size: int) -> int:
    """Take the first element out of a heap of some size; return its size from now on."""
    last = size - 1
    time, slot = heap[AT, last], heap[WHO, last]
    at, child = 0, 1
    while child < last:
        if child + 1 < last and goes_first(heap, child + 1, heap[AT, child], heap[WHO, child]):
            child += 1
        if not goes_first(heap, child, time, slot):
            break
        heap[AT, at], heap[WHO, at] = heap[AT, child], heap[WHO, child]
        at = child
        child = 2 * at + 1
    heap[AT, at], heap[WHO, at] = time, slot
    return last
