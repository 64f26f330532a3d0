"""The compiled event loop: the order of events of the SimPy model over arrays, without objects.

A call is known by its *place* in the call table, `request * calls + call`: places sort by request, then call.

While a call waits, its column of the call table holds what it needs to be found again, so a queue of any
length takes no memory of its own:

* Where no cap can bind, calls queue in the order in which they become ready: a list linked through FINISH.
* Under caps each request's waiting calls form such a list, and the first of them stands for the request in
  the heap of those that hold equally many slots. The heaps are pairing heaps (M. L. Fredman, R. Sedgewick,
  D. D. Sleator, R. E. Tarjan, "The pairing heap: a new form of self-adjusting heap", Algorithmica 1, 1986),
  linked through START (first child), FINISH (next sibling) and SLOT (the node before).

Until a call is ready, READY counts the calls that it waits for; until a request completes, `completion_ns`
counts the calls that it still has to make: both as negative numbers, which times never are.

All kernels are in this one file because numba's cache does not notice a change of a function in another.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sim.engine.interface import BoolArray
from sim.engine.jit import compiled, helper, part
from sim.units import IntArray

Int = int | np.int64
Bool = bool | np.bool_

NOBODY = -1
NEVER = (1 << 63) - 1
LOW = (1 << 32) - 1

FINISHED, UNFINISHED, NEEDS_ROOM, DRAWS_EXHAUSTED = range(4)
AWAY, THINKING, BUSY, RETURNING = range(4)

# Elements of `Run.state`: first what stays as it is, then what changes.
(
    ARRIVALS,
    CALLS,
    SLOT_BITS,
    LONGEST,
    FEWEST_FIRST,
    END,
    NOW,
    NEXT,
    ACTIVE,
    ISSUED,
    COMPLETED,
    INTEGRAL_HIGH,
    INTEGRAL_LOW,
    FREE_FIRST,
    FREE_COUNT,
    RUNNING_COUNT,
    CLOCK_BASE,
    JOINING,
    FRESH,
    QUEUE_FIRST,
    QUEUE_LAST,
    PRESENT,
    STEPS_DONE,
    THINKERS,
    RETURNED,
    STATE_SIZE,
) = range(26)

# Rows of the tables.
READY, START, FINISH, SLOT = range(4)
CAP, PARALLEL = range(2)
BLOCKERS, DEPENDENTS_FROM = range(2)
FREE, RUNNING, PLACE = range(3)
AT, WHO = range(2)
USER_STATE, THINKS_AFTER, RETURNS = range(3)
HELD, FIRST, SECOND, LAST = range(4)


class Run(NamedTuple):
    """What every run has; int64 unless said otherwise.

    Parameters
    ----------
    state
        [STATE_SIZE], named above.
    service_ns, join_ns
        [requests * calls] and [requests], as drawn.
    calls
        [4, requests * calls], the call table: READY, START, FINISH, SLOT.
    arrival_ns, completion_ns, parallel
        [requests]; which plan is bool.
    at_active
        [2, n]: the CAP, and whether the plan is PARALLEL, while so many requests are active; the last column
        holds for more.
    nodes, dependents
        [2, 2 * calls + 1]: call c of plan p (serial 0, parallel 1) is node `p * calls + c`, which waits for
        BLOCKERS calls (-1: the plan has no such call), and for which the calls
        `dependents[DEPENDENTS_FROM:...]` wait, up to the next node's.
    slots
        [3, power of two above the slots]: FREE is a ring of the free slots, the one free longest first;
        RUNNING a heap of `(finish - clock base) << slot bits | slot`; PLACE the call on each slot.
    joins
        [2, room]: a heap of when a join ends (AT) and of which request (WHO).
    fresh
        The places of the calls that became ready by completions at this instant.
    """

    state: IntArray
    service_ns: IntArray
    join_ns: IntArray
    calls: IntArray
    arrival_ns: IntArray
    completion_ns: IntArray
    parallel: BoolArray
    at_active: IntArray
    nodes: IntArray
    dependents: IntArray
    slots: IntArray
    joins: IntArray
    fresh: IntArray


class Held(NamedTuple):
    """What is kept under caps.

    Parameters
    ----------
    waiting
        int32[requests, 4]: the slots HELD by a request, and its FIRST, SECOND and LAST waiting calls.
    level
        int64[calls + 1]: the root of the heap of the requests that hold so many slots and have calls waiting.
    """

    waiting: npt.NDArray[np.int32]
    level: IntArray


class Users(NamedTuple):
    """What is kept under a closed load; int64.

    Parameters
    ----------
    users
        [3, users]: USER_STATE, the request that a user THINKS_AFTER, and who RETURNS at this instant.
    user, think_ns
        [requests]: who asked, and the think time after it, as drawn.
    thinks
        [2, room]: a heap of when a think time ends (AT) and after which request (WHO).
    steps
        [2, steps]: from when on (AT) how many users are there (WHO).
    """

    users: IntArray
    user: IntArray
    think_ns: IntArray
    thinks: IntArray
    steps: IntArray


@compiled
def advance(run: Run, held: Held | None, users: Users | None, instants: int) -> int:
    """Simulate so many instants more, or to the end; say why it stopped."""
    state, slots, joins = run.state, run.slots, run.joins
    for _ in range(instants):
        now = next_instant(state, slots, joins, run.arrival_ns)
        if users is not None:
            now = min(now, next_return(state, users.thinks, users.steps))
        if now == NEVER:
            return FINISHED
        state[NEXT] = now
        if lacks_room(state, joins) or (
            users is not None and lacks_think_room(state, users.users, users.thinks)
        ):
            return NEEDS_ROOM
        move_clock(state)
        while state[RUNNING_COUNT] and slots[RUNNING, 0] >> state[SLOT_BITS] == now - state[CLOCK_BASE]:
            finish(run, held, users, free_slot(state, slots), now)
        if state[FRESH]:
            sort(run.fresh, state[FRESH])
            for at in range(state[FRESH]):
                queue(state, run.calls, held, run.fresh[at] // state[CALLS], run.fresh[at], now)
            state[FRESH] = 0
        while state[JOINING] and joins[AT, 0] == now:
            complete(state, run.completion_ns, users, pop_timed(joins, state, JOINING), now)
        first = state[ISSUED]
        if users is None:
            take_arrivals(state, run.arrival_ns, now)
        elif not take_users(state, run.arrival_ns, users.user, users.users, users.thinks, users.steps, now):
            return DRAWS_EXHAUSTED
        for number in range(first, state[ISSUED]):
            begin(run, held, number, now)
        if held is None:
            while state[FREE_COUNT] and state[QUEUE_FIRST] != NOBODY:
                start(state, run.service_ns, run.calls, slots, take_first(state, run.calls), now)
        elif state[FREE_COUNT]:
            cap = min(run.at_active[CAP, min(state[ACTIVE], run.at_active.shape[1] - 1)], state[CALLS])
            place = pick(state, run.calls, held.level, cap)
            while place != NOBODY:
                change_held(run.calls, held.waiting, held.level, state[CALLS], place // state[CALLS], 1)
                start(state, run.service_ns, run.calls, slots, place, now)
                place = pick(state, run.calls, held.level, cap) if state[FREE_COUNT] else NOBODY
    return UNFINISHED


@part
def next_instant(state: IntArray, slots: IntArray, joins: IntArray, arrival_ns: IntArray) -> int:
    """Return when a call or a join ends or a request of an open load arrives next."""
    instant = NEVER
    if state[RUNNING_COUNT]:
        instant = state[CLOCK_BASE] + (slots[RUNNING, 0] >> state[SLOT_BITS])
    if state[JOINING]:
        instant = min(instant, joins[AT, 0])
    if state[ISSUED] < state[ARRIVALS]:
        instant = min(instant, arrival_ns[state[ISSUED]])
    return instant


@part
def lacks_room(state: IntArray, joins: IntArray) -> bool:
    """Return whether the next instant could overfill the heap of joins, or is too far from the clock base."""
    too_far = state[NEXT] - state[CLOCK_BASE] > state[LONGEST]
    return too_far or state[JOINING] + state[RUNNING_COUNT] > joins.shape[1]


@part
def move_clock(state: IntArray) -> None:
    """Go to the next instant; the integral of active requests is in two parts, as it may exceed int64."""
    elapsed, active = state[NEXT] - state[NOW], state[ACTIVE]
    low = state[INTEGRAL_LOW] + active * (elapsed & LOW)
    state[INTEGRAL_HIGH] += active * (elapsed >> 32) + (low >> 32)
    state[INTEGRAL_LOW] = low & LOW
    state[NOW] = state[NEXT]


# Completions


@part
def free_slot(state: IntArray, slots: IntArray) -> int:
    """Free the slot of the call that finishes first, the lowest of those that finish together; return it."""
    slot = slots[RUNNING, 0] & ((1 << state[SLOT_BITS]) - 1)
    slots[FREE, (state[FREE_FIRST] + state[FREE_COUNT]) & (slots.shape[1] - 1)] = slot
    state[FREE_COUNT] += 1
    state[RUNNING_COUNT] -= 1
    size = state[RUNNING_COUNT]
    last = slots[RUNNING, size]
    slots[RUNNING, size] = NEVER
    at, child = 0, 1
    while child < size:
        child += slots[RUNNING, child + 1] < slots[RUNNING, child]
        if slots[RUNNING, child] >= last:
            break
        slots[RUNNING, at] = slots[RUNNING, child]
        at = child
        child = 2 * at + 1
    slots[RUNNING, at] = last
    return slot


@part
def finish(run: Run, held: Held | None, users: Users | None, slot: int, now: int) -> None:
    """Let go of what the call on a slot held back: its request's holding, its dependents, the join."""
    state, place = run.state, run.slots[PLACE, slot]
    number = place // state[CALLS]
    if held is not None:
        change_held(run.calls, held.waiting, held.level, state[CALLS], number, -1)
    before = number * state[CALLS]
    node = place - before
    if run.parallel[number]:
        node += state[CALLS]
    for at in range(run.nodes[DEPENDENTS_FROM, node], run.nodes[DEPENDENTS_FROM, node + 1]):
        dependent = before + run.dependents[at]
        run.calls[READY, dependent] += 1
        if run.calls[READY, dependent] == -1:
            run.fresh[state[FRESH]] = dependent
            state[FRESH] += 1
    run.completion_ns[number] += 1
    if run.completion_ns[number] == 0:
        if run.parallel[number] and run.join_ns[number]:
            push_timed(run.joins, state, JOINING, now + run.join_ns[number], number)
        else:
            complete(state, run.completion_ns, users, number, now)


@part
def complete(state: IntArray, completion_ns: IntArray, users: Users | None, number: int, now: int) -> None:
    """End a request, and send its user off to think."""
    completion_ns[number] = now
    state[ACTIVE] -= 1
    state[COMPLETED] += 1
    if users is not None:
        answer(state, users.users, users.thinks, users.user[number], number, users.think_ns[number])


# Arrivals


@part
def take_arrivals(state: IntArray, arrival_ns: IntArray, now: int) -> None:
    """Count the arrivals of this instant."""
    first = state[ISSUED]
    issued = first
    while issued < state[ARRIVALS] and arrival_ns[issued] == now:
        issued += 1
    state[ACTIVE] += issued - first
    state[ISSUED] = issued


@part
def begin(run: Run, held: Held | None, number: int, now: int) -> None:
    """Choose a request's plan, all arrivals of the instant counted, and queue its first calls."""
    state, count = run.state, run.state[CALLS]
    parallel = run.at_active[PARALLEL, min(state[ACTIVE], run.at_active.shape[1] - 1)]
    run.parallel[number] = parallel != 0
    made = 0
    for call in range(count):
        place, blockers = number * count + call, run.nodes[BLOCKERS, parallel * count + call]
        if blockers == 0:
            queue(state, run.calls, held, number, place, now)
        else:
            run.calls[READY, place] = min(-1, -1 - blockers)
            run.calls[START, place] = NOBODY
            run.calls[FINISH, place] = NOBODY
            run.calls[SLOT, place] = NOBODY
        made += blockers >= 0
    run.completion_ns[number] = -made


# Waiting and dispatch


@part
def queue(state: IntArray, calls: IntArray, held: Held | None, number: int, place: int, now: int) -> None:
    """Let a call wait behind those that became ready before it."""
    calls[READY, place] = now
    calls[FINISH, place] = NOBODY
    if held is not None:
        queue_in_request(calls, held.waiting, held.level, state[CALLS], number, place)
        return
    if state[QUEUE_FIRST] == NOBODY:
        state[QUEUE_FIRST] = place
    else:
        calls[FINISH, state[QUEUE_LAST]] = place
    state[QUEUE_LAST] = place


@part
def take_first(state: IntArray, calls: IntArray) -> int:
    """Take out and return the first call of the queue."""
    place = state[QUEUE_FIRST]
    state[QUEUE_FIRST] = calls[FINISH, place]
    return place


@part
def start(
    state: IntArray, service_ns: IntArray, calls: IntArray, slots: IntArray, place: int, now: int
) -> None:
    """Run a call on the slot that has been free longest."""
    slot = slots[FREE, state[FREE_FIRST]]
    state[FREE_FIRST] = (state[FREE_FIRST] + 1) & (slots.shape[1] - 1)
    state[FREE_COUNT] -= 1
    finish_ns = now + service_ns[place]
    calls[SLOT, place] = slot
    calls[START, place] = now
    calls[FINISH, place] = finish_ns
    slots[PLACE, slot] = place
    value = (finish_ns - state[CLOCK_BASE]) << state[SLOT_BITS] | slot
    at = state[RUNNING_COUNT]
    state[RUNNING_COUNT] += 1
    while at:
        parent = (at - 1) >> 1
        if slots[RUNNING, parent] <= value:
            break
        slots[RUNNING, at] = slots[RUNNING, parent]
        at = parent
    slots[RUNNING, at] = value


# Waiting and dispatch under caps: a request's first waiting call stands for it in the heap of its level


@part
def pick(state: IntArray, calls: IntArray, level: IntArray, cap: int) -> int:
    """Return the call that the allocation serves next, or NOBODY."""
    best = NOBODY
    for held in range(cap):
        root = level[held]
        if root == NOBODY:
            continue
        if best == NOBODY or comes_before(calls, root, best):
            best = root
        if state[FEWEST_FIRST]:
            break
    return best


@part
def comes_before(calls: IntArray, place: Int, other: Int) -> Bool:
    """Return whether a call is before another in the queue: by ready time, request, call."""
    ready, other_ready = calls[READY, place], calls[READY, other]
    return ready < other_ready or (ready == other_ready and place < other)


@helper
def queue_in_request(
    calls: IntArray, waiting: npt.NDArray[np.int32], level: IntArray, count: int, number: int, place: int
) -> None:
    """Append a call to those of its request that wait."""
    call = place - number * count
    if waiting[number, FIRST] == NOBODY:
        waiting[number, FIRST] = call
        insert(calls, level, np.int64(waiting[number, HELD]), place)
        return
    if waiting[number, SECOND] == NOBODY:
        waiting[number, SECOND] = call
    else:
        calls[FINISH, number * count + waiting[number, LAST]] = call
    waiting[number, LAST] = call


@helper
def change_held(
    calls: IntArray, waiting: npt.NDArray[np.int32], level: IntArray, count: int, number: int, by: int
) -> None:
    """Let a request hold one slot more, for its first waiting call, or one less."""
    held, first = np.int64(waiting[number, HELD]), np.int64(waiting[number, FIRST])
    waiting[number, HELD] = held + by
    if first == NOBODY:
        return
    remove(calls, level, held, number * count + first)
    if by > 0:
        first = np.int64(waiting[number, SECOND])
        waiting[number, FIRST] = first
        if first == NOBODY:
            return
        waiting[number, SECOND] = calls[FINISH, number * count + first]
    insert(calls, level, held + by, number * count + first)


@helper
def insert(calls: IntArray, level: IntArray, held: Int, place: Int) -> None:
    """Put a call into the heap of the requests that hold `held` slots."""
    calls[START, place] = NOBODY
    calls[FINISH, place] = NOBODY
    level[held] = meld(calls, level[held], place)


@helper
def remove(calls: IntArray, level: IntArray, held: Int, place: Int) -> None:
    """Take a call out of its heap."""
    rest = calls[START, place]
    if rest != NOBODY:
        rest = meld_siblings(calls, rest)
    if level[held] == place:
        level[held] = rest
        return
    before, after = calls[SLOT, place], calls[FINISH, place]
    if calls[START, before] == place:
        calls[START, before] = after
    else:
        calls[FINISH, before] = after
    if after != NOBODY:
        calls[SLOT, after] = before
    level[held] = meld(calls, level[held], rest)


@helper
def meld(calls: IntArray, one: Int, other: Int) -> Int:
    """Make the later of two roots (NOBODY: none) the first child of the earlier; return the earlier."""
    if one == NOBODY or other == NOBODY:
        return one if other == NOBODY else other
    if comes_before(calls, other, one):
        one, other = other, one
    child = calls[START, one]
    calls[START, one] = other
    calls[SLOT, other] = one
    calls[FINISH, other] = child
    if child != NOBODY:
        calls[SLOT, child] = other
    return one


@helper
def meld_siblings(calls: IntArray, first: Int) -> Int:
    """Return one heap of a list of siblings: melded in pairs, then the pairs from last to first."""
    pairs: Int = NOBODY
    following = first
    while following != NOBODY:
        one, other = following, calls[FINISH, following]
        following = NOBODY if other == NOBODY else calls[FINISH, other]
        pair = meld(calls, one, other)
        calls[FINISH, pair] = pairs
        pairs = pair
    root: Int = NOBODY
    while pairs != NOBODY:
        following = calls[FINISH, pairs]
        root = meld(calls, root, pairs)
        pairs = following
    calls[FINISH, root] = NOBODY
    return root


# Users


@helper
def next_return(state: IntArray, thinks: IntArray, steps: IntArray) -> int:
    """Return when a think time ends or the number of users changes next."""
    instant = NEVER
    if state[THINKERS]:
        instant = thinks[AT, 0]
    if state[STEPS_DONE] < steps.shape[1]:
        instant = min(instant, steps[AT, state[STEPS_DONE]])
    return instant


@helper
def lacks_think_room(state: IntArray, users: IntArray, thinks: IntArray) -> bool:
    """Return whether the next instant could overfill the heap of think times."""
    return state[THINKERS] + users.shape[1] > thinks.shape[1]


@helper
def answer(state: IntArray, users: IntArray, thinks: IntArray, user: int, number: int, think_ns: int) -> None:
    """Let a user leave, ask again at once, or think."""
    if user >= state[PRESENT]:
        users[USER_STATE, user] = AWAY
    elif think_ns == 0:
        come_back(state, users, user)
    else:
        users[USER_STATE, user] = THINKING
        users[THINKS_AFTER, user] = number
        push_timed(thinks, state, THINKERS, state[NOW] + think_ns, number)


@helper
def take_users(
    state: IntArray,
    arrival_ns: IntArray,
    user_of: IntArray,
    users: IntArray,
    thinks: IntArray,
    steps: IntArray,
    now: int,
) -> bool:
    """Let users come, leave and return at this instant, and issue; return False if the draws ran out."""
    while state[STEPS_DONE] < steps.shape[1] and steps[AT, state[STEPS_DONE]] == now:
        change_users(state, users, steps[WHO, state[STEPS_DONE]])
        state[STEPS_DONE] += 1
    while state[THINKERS] and thinks[AT, 0] == now:
        number = pop_timed(thinks, state, THINKERS)
        user = user_of[number]
        # A user may have left, and perhaps come again, while thinking.
        if users[USER_STATE, user] == THINKING and users[THINKS_AFTER, user] == number:
            come_back(state, users, user)
    return state[RETURNED] == 0 or issue_returned(state, arrival_ns, user_of, users, now)


@helper
def change_users(state: IntArray, users: IntArray, present: int) -> None:
    """Let users come at once, and thinking ones leave at once; a busy one leaves after its request."""
    state[PRESENT] = present
    for user in range(users.shape[1]):
        if user < present and users[USER_STATE, user] == AWAY:
            come_back(state, users, user)
        elif user >= present and users[USER_STATE, user] == THINKING:
            users[USER_STATE, user] = AWAY


@helper
def come_back(state: IntArray, users: IntArray, user: int) -> None:
    """Let a user ask at the arrivals of this instant."""
    users[USER_STATE, user] = RETURNING
    users[RETURNS, state[RETURNED]] = user
    state[RETURNED] += 1


@helper
def issue_returned(
    state: IntArray, arrival_ns: IntArray, user_of: IntArray, users: IntArray, now: int
) -> bool:
    """Issue a request for each user who came back, in ascending order; return False if the draws ran out."""
    count = state[RETURNED]
    state[RETURNED] = 0
    if count > 1:
        sort(users[RETURNS], count)
    for at in range(count):
        user = users[RETURNS, at]
        users[USER_STATE, user] = AWAY
        if user >= state[PRESENT] or now >= state[END]:
            continue
        if state[ISSUED] == len(arrival_ns):
            if state[END] != NEVER:
                return False
            continue
        users[USER_STATE, user] = BUSY
        user_of[state[ISSUED]] = user
        arrival_ns[state[ISSUED]] = now
        state[ISSUED] += 1
        state[ACTIVE] += 1
    return True


# Heaps by time, and sorting


@helper
def push_timed(heap: IntArray, state: IntArray, size: int, time: int, value: int) -> None:
    """Add to a heap by time, whose size is an element of the state."""
    at = state[size]
    state[size] += 1
    while at:
        parent = (at - 1) >> 1
        if heap[AT, parent] <= time:
            break
        heap[AT, at], heap[WHO, at] = heap[AT, parent], heap[WHO, parent]
        at = parent
    heap[AT, at], heap[WHO, at] = time, value


@helper
def pop_timed(heap: IntArray, state: IntArray, size: int) -> int:
    """Take the first from a heap by time."""
    state[size] -= 1
    last, first = state[size], heap[WHO, 0]
    time, value = heap[AT, last], heap[WHO, last]
    at, child = 0, 1
    while child < last:
        if child + 1 < last and heap[AT, child + 1] < heap[AT, child]:
            child += 1
        if heap[AT, child] >= time:
            break
        heap[AT, at], heap[WHO, at] = heap[AT, child], heap[WHO, child]
        at = child
        child = 2 * at + 1
    heap[AT, at], heap[WHO, at] = time, value
    return first


@helper
def sort(values: IntArray, count: int) -> None:
    """Sort the first `count` values: mostly two or three, now and then thousands (Shell's sort)."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap:
        for place in range(gap, count):
            value, at = values[place], place
            while at >= gap and values[at - gap] > value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap //= 3


# First come, first served, without an event list


class InOrder(NamedTuple):
    """What a run has whose calls start in order; int64.

    Parameters
    ----------
    arrival_ns, join_ns, service_ns
        [requests], [requests] and [requests, calls], as drawn.
    start_ns, finish_ns, slot, completion_ns
        The tables, of the same shapes.
    free
        [slots + 1]: a heap of `free since << slot bits | slot`, and NEVER.
    integral
        [2]: active requests x time, in units of 2**32 and the rest.
    """

    arrival_ns: IntArray
    join_ns: IntArray
    service_ns: IntArray
    start_ns: IntArray
    finish_ns: IntArray
    slot: IntArray
    completion_ns: IntArray
    free: IntArray
    integral: IntArray


@compiled
def serve_in_order(run: InOrder, slot_bits: int, parallel: bool, first: int, last: int) -> None:
    """Serve the calls of the requests from `first` up to `last` in order, each on the slot free soonest.

    The recursion of J. Kiefer and J. Wolfowitz, "On the theory of queues with many servers", Transactions of
    the American Mathematical Society 78, 1955.
    """
    mask = (1 << slot_bits) - 1
    for number in range(first, last):
        arrival = run.arrival_ns[number]
        latest = arrival
        for call in range(run.service_ns.shape[1]):
            slot = run.free[0] & mask
            start_ns = max(arrival, run.free[0] >> slot_bits)
            finish_ns = start_ns + run.service_ns[number, call]
            latest = max(latest, finish_ns)
            run.start_ns[number, call] = start_ns
            run.finish_ns[number, call] = finish_ns
            run.slot[number, call] = slot
            replace_first(run.free, finish_ns << slot_bits | slot)
        if parallel:
            latest += run.join_ns[number]
        run.completion_ns[number] = latest
        low = run.integral[1] + latest - arrival
        run.integral[0] += low >> 32
        run.integral[1] = low & LOW


@part
def replace_first(heap: IntArray, value: int) -> None:
    """Replace the root of a heap whose last element is NEVER."""
    at, child, last = 0, 1, len(heap) - 1
    while child < last:
        child += heap[child + 1] < heap[child]
        if heap[child] >= value:
            break
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = value
