"""The compiled event loop: the order of events of the SimPy model over arrays, without objects.

A call is known by its *place* in the call table, `request * calls + call`: places sort by request, then call.
It gets a *rank* when it begins to wait, one after another: ranks sort by ready time, then place, and are the
order of the queue. Where all calls are ready when their requests arrive, rank and place are the same.

Where no cap can bind, the calls that wait are those of the ranks not yet served. Under caps the first waiting
call of each request is a bit in a tree of words, at its rank; there is a tree for each number of slots that a
request may hold. Each bit of a word tells whether the word below it has any, so that the first is found, and
any is taken out, in a few steps (P. van Emde Boas, "Preserving order in a forest in less than logarithmic
time and linear space", Information Processing Letters 6, 1977, with words of 64 bits). The trees are of the
ranks from a base on, which moves up as calls are served, so that they are no higher in a longer run. While a
call waits, `start_ns` has its rank, and `finish_ns` the call that its request has waiting after it.

Until a request's calls are done, `completion_ns` counts those that it still has to make, and until a call is
ready, `ready_ns` counts the calls that it waits for: both as negative numbers, which times never are.

numba takes its time for every function and statement, so there are few: flat arrays rather than tables with
rows. What a run does not need is None, and takes none.
"""

# ruff: noqa: PLR1730  for numba `min` is a function more to compile
from typing import NamedTuple

import numpy as np

from sim.engine.kernel_sort import sort
from sim.engine.native import helper, kernel, part
from sim.units import BoolArray, IntArray

NOBODY = -1
NEVER = (1 << 63) - 1
LOW = (1 << 32) - 1
DE_BRUIJN = 0x03F79D71B4CB0A89
BIT_OF = np.zeros(64, dtype=np.int64)
BIT_OF[[(DE_BRUIJN << bit & (1 << 64) - 1) >> 58 for bit in range(64)]] = np.arange(64)

FINISHED, UNFINISHED, NEEDS_ROOM, DRAWS_EXHAUSTED = range(4)
AWAY, THINKING, BUSY, RETURNING = range(4)

# Elements of `Run.state`: first what stays as it is, then what changes.
(
    ARRIVALS,
    CALLS,
    SLOT_BITS,
    LONGEST,
    FEWEST_FIRST,
    MOST_QUEUED,
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
    QUEUED,
    SERVED,
    RANK_BASE,
    PRESENT,
    STEPS_DONE,
    THINKERS,
    RETURNED,
    STATE_SIZE,
) = range(28)


class Run(NamedTuple):
    """What every run has; int64.

    Parameters
    ----------
    state
        [STATE_SIZE], named above.
    service_ns, join_ns
        [requests * calls] and [requests], as drawn.
    start_ns, finish_ns, slot
        [requests * calls], the call table.
    arrival_ns, completion_ns
        [requests].
    free
        [power of two]: a ring of the free slots, the one free longest first.
    running
        [slots + 2]: a heap of `(finish - clock base) << slot bits | slot`, and NEVER.
    on_slot
        [slots]: the place of the call on each slot.
    joins
        [room]: a heap of the requests whose joins are under way, by `completion_ns`.
    """

    state: IntArray
    service_ns: IntArray
    join_ns: IntArray
    start_ns: IntArray
    finish_ns: IntArray
    slot: IntArray
    arrival_ns: IntArray
    completion_ns: IntArray
    free: IntArray
    running: IntArray
    on_slot: IntArray
    joins: IntArray


class Graph(NamedTuple):
    """What is kept where a request's calls are not all ready when it arrives; int64 unless said otherwise.

    Parameters
    ----------
    parallel_at
        [n]: 1 where the plan is parallel while so many requests are active; the last holds for more.
    parallel
        bool[requests]: the plan of each.
    ready_ns, place_at
        [requests * calls]; the place of the call with each rank.
    blockers, dependents_from, dependents
        Call c of plan p (serial 0, parallel 1) is node `p * calls + c`, which waits for `blockers` calls (-1:
        the plan has no such call), and for which the calls `dependents[dependents_from[node]:...]` wait, up
        to the next node's.
    fresh
        The places of the calls that became ready by completions at this instant.
    """

    parallel_at: IntArray
    parallel: BoolArray
    ready_ns: IntArray
    place_at: IntArray
    blockers: IntArray
    dependents_from: IntArray
    dependents: IntArray
    fresh: IntArray


class Held(NamedTuple):
    """What is kept under caps; int64.

    Parameters
    ----------
    cap_at
        [n]: the cap while so many requests are active; the last holds for more.
    holds, first, last
        [requests]: how many slots a request holds, and the places of its first and last waiting calls.
    bits, height_from
        [levels * words] and [heights + 1]: the trees of words, and where each height of a tree begins. A bit
        is at the rank minus the base of the ranks.
    """

    cap_at: IntArray
    holds: IntArray
    first: IntArray
    last: IntArray
    bits: IntArray
    height_from: IntArray


class Users(NamedTuple):
    """What is kept under a closed load; int64.

    Parameters
    ----------
    status, thinks_after, returns
        [users]: AWAY and so on, the request that a user thinks after, and who returns at this instant.
    user, think_ns, due_ns
        [requests]: who asked, the think time after it, as drawn, and when that ends.
    thinks
        [room]: a heap of the requests after which users think, by `due_ns`.
    step_ns, step_users
        [steps]: from when on how many users are there.
    """

    status: IntArray
    thinks_after: IntArray
    returns: IntArray
    user: IntArray
    think_ns: IntArray
    due_ns: IntArray
    thinks: IntArray
    step_ns: IntArray
    step_users: IntArray


@kernel
def advance(run: Run, graph: Graph | None, held: Held | None, users: Users | None, instants: int) -> int:
    """Simulate so many instants more, or to the end; say why it stopped."""
    state, running, joins, completion_ns = run.state, run.running, run.joins, run.completion_ns
    calls, slot_bits = state[CALLS], state[SLOT_BITS]
    for _ in range(instants):
        now = next_instant(state, running, joins, completion_ns, run.arrival_ns)
        if users is not None:
            now = min(now, next_return(state, users.thinks, users.due_ns, users.step_ns))
        if now == NEVER:
            return FINISHED
        state[NEXT] = now
        if not has_room(state, len(joins), held, users, now):
            return NEEDS_ROOM
        move_clock(state, now)
        ends = now - state[CLOCK_BASE]
        while state[RUNNING_COUNT] and running[0] >> slot_bits == ends:
            place = run.on_slot[free_slot(state, running, run.free)]
            number = place // calls
            if held is not None:
                let_go(state, held, run.start_ns, number)
            if graph is not None:
                count_down(state, graph, number, place)
            left = completion_ns[number] + 1
            completion_ns[number] = left
            if left == 0:
                join(run, graph, users, number, now)
        if graph is not None:
            queue_fresh(run, graph, held, now)
        while state[JOINING] and completion_ns[joins[0]] == now:
            complete(state, users, pop_timed(joins, completion_ns, state, JOINING))
        first = state[ISSUED]
        if users is None:
            take_arrivals(state, run.arrival_ns, now)
        elif not take_users(state, users, run.arrival_ns, now):
            return DRAWS_EXHAUSTED
        for number in range(first, state[ISSUED]):
            if held is not None:
                held.holds[number] = 0
                held.first[number] = NOBODY
            if graph is None:
                completion_ns[number] = -calls
                for call in range(calls):
                    queue(run, held, number, number * calls + call)
            else:
                begin(run, graph, held, number, now)
        while state[FREE_COUNT] and state[SERVED] < state[QUEUED]:
            rank = state[SERVED]
            if held is not None:
                rank = first_due(state, held)
                if rank == NEVER:
                    break
            place = rank if graph is None else graph.place_at[rank]
            if held is not None:
                hold(state, held, run.start_ns, run.finish_ns, place // calls, place)
            state[SERVED] += 1
            start(run, place, now)
    return UNFINISHED


@part
def next_instant(
    state: IntArray, running: IntArray, joins: IntArray, completion_ns: IntArray, arrival_ns: IntArray
) -> int:
    """Return when a call or a join ends or a request of an open load arrives next."""
    instant = NEVER
    if state[RUNNING_COUNT]:
        instant = state[CLOCK_BASE] + (running[0] >> state[SLOT_BITS])
    if state[JOINING]:
        joined = completion_ns[joins[0]]
        if joined < instant:
            instant = joined
    issued = state[ISSUED]
    if issued < state[ARRIVALS]:
        arrives = arrival_ns[issued]
        if arrives < instant:
            instant = arrives
    return instant


@part
def has_room(state: IntArray, join_room: int, held: Held | None, users: Users | None, now: int) -> bool:
    """Return whether there is room for all that one instant may add, and for its time."""
    if users is not None and state[THINKERS] + len(users.status) > len(users.thinks):
        return False
    ranks = state[QUEUED] - state[RANK_BASE] + state[MOST_QUEUED]
    if held is not None and ranks > 64 * held.height_from[1]:
        return False
    return state[JOINING] + state[RUNNING_COUNT] <= join_room and now - state[CLOCK_BASE] <= state[LONGEST]


@part
def move_clock(state: IntArray, now: int) -> None:
    """Go to the next instant; the integral of active requests is in two parts, as it may exceed int64."""
    elapsed, active = now - state[NOW], state[ACTIVE]
    low = state[INTEGRAL_LOW] + active * (elapsed & LOW)
    state[INTEGRAL_HIGH] += active * (elapsed >> 32) + (low >> 32)
    state[INTEGRAL_LOW] = low & LOW
    state[NOW] = now


# Completions


@part
def free_slot(state: IntArray, running: IntArray, free: IntArray) -> int:
    """Free the slot of the call that finishes first, the lowest of those that finish together; return it."""
    slot = running[0] & ((1 << state[SLOT_BITS]) - 1)
    count = state[FREE_COUNT]
    free[(state[FREE_FIRST] + count) & (len(free) - 1)] = slot
    state[FREE_COUNT] = count + 1
    size = state[RUNNING_COUNT] - 1
    state[RUNNING_COUNT] = size
    last = running[size]
    running[size] = NEVER
    at = 0
    child = 1
    while child < size:
        child += running[child + 1] < running[child]
        least = running[child]
        if least >= last:
            break
        running[at] = least
        at = child
        child = 2 * at + 1
    running[at] = last
    return slot


@part
def count_down(state: IntArray, graph: Graph, number: int, place: int) -> None:
    """Note that the calls which waited for a call no longer do."""
    before = number * state[CALLS]
    node = place - before
    if graph.parallel[number]:
        node += state[CALLS]
    for at in range(graph.dependents_from[node], graph.dependents_from[node + 1]):
        dependent = before + graph.dependents[at]
        graph.ready_ns[dependent] += 1
        if graph.ready_ns[dependent] == -1:
            graph.fresh[state[FRESH]] = dependent
            state[FRESH] += 1


@helper
def queue_fresh(run: Run, graph: Graph, held: Held | None, now: int) -> None:
    """Queue the calls that became ready at this instant, in order of their places."""
    state = run.state
    sort(graph.fresh, state[FRESH])
    for at in range(state[FRESH]):
        queue_ready(run, graph, held, graph.fresh[at] // state[CALLS], graph.fresh[at], now)
    state[FRESH] = 0


@part
def join(run: Run, graph: Graph | None, users: Users | None, number: int, now: int) -> None:
    """Begin the join of a request whose calls are done; one that takes no time ends at once."""
    ends = now
    if graph is None or graph.parallel[number]:
        ends = now + run.join_ns[number]
    run.completion_ns[number] = ends
    if ends == now:
        complete(run.state, users, number)
    else:
        push_timed(run.joins, run.completion_ns, run.state, JOINING, number)


@part
def complete(state: IntArray, users: Users | None, number: int) -> None:
    """End a request, and send its user off to think."""
    state[ACTIVE] -= 1
    state[COMPLETED] += 1
    if users is not None:
        answer(state, users, number)


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


@helper
def begin(run: Run, graph: Graph, held: Held | None, number: int, now: int) -> None:
    """Choose a request's plan, all arrivals of the instant counted, and queue its calls that are ready."""
    state, calls = run.state, run.state[CALLS]
    parallel = graph.parallel_at[min(state[ACTIVE], len(graph.parallel_at) - 1)]
    graph.parallel[number] = parallel != 0
    made = 0
    for call in range(calls):
        place, blockers = number * calls + call, graph.blockers[parallel * calls + call]
        if blockers == 0:
            queue_ready(run, graph, held, number, place, now)
        else:
            graph.ready_ns[place] = min(-1, -1 - blockers)
            run.start_ns[place] = NOBODY
            run.finish_ns[place] = NOBODY
            run.slot[place] = NOBODY
        made += blockers >= 0
    run.completion_ns[number] = -made


# Waiting and dispatch


@helper
def queue_ready(run: Run, graph: Graph, held: Held | None, number: int, place: int, now: int) -> None:
    """Let a call that is ready now wait behind those that became ready before it."""
    graph.ready_ns[place] = now
    graph.place_at[run.state[QUEUED]] = place
    queue(run, held, number, place)


@part
def queue(run: Run, held: Held | None, number: int, place: int) -> None:
    """Give a call its rank; under caps it also waits behind the calls of its request."""
    rank = run.state[QUEUED]
    run.state[QUEUED] = rank + 1
    if held is not None:
        run.start_ns[place] = rank
        run.finish_ns[place] = NOBODY
        if held.first[number] == NOBODY:
            held.first[number] = place
            set_bit(held.bits, held.height_from, held.holds[number], rank - run.state[RANK_BASE])
        else:
            run.finish_ns[held.last[number]] = place
        held.last[number] = place


@part
def start(run: Run, place: int, now: int) -> None:
    """Run a call on the slot that has been free longest."""
    state, free, running = run.state, run.free, run.running
    first = state[FREE_FIRST]
    slot = free[first]
    state[FREE_FIRST] = (first + 1) & (len(free) - 1)
    state[FREE_COUNT] -= 1
    finish_ns = now + run.service_ns[place]
    run.slot[place] = slot
    run.start_ns[place] = now
    run.finish_ns[place] = finish_ns
    run.on_slot[slot] = place
    value = (finish_ns - state[CLOCK_BASE]) << state[SLOT_BITS] | slot
    at = state[RUNNING_COUNT]
    state[RUNNING_COUNT] = at + 1
    while at:
        parent = (at - 1) >> 1
        above = running[parent]
        if above <= value:
            break
        running[at] = above
        at = parent
    running[at] = value


# Waiting and dispatch under caps


@part
def first_due(state: IntArray, held: Held) -> int:
    """Return the rank of the call that the allocation serves next, or NEVER."""
    active, most = state[ACTIVE], len(held.cap_at) - 1
    cap = held.cap_at[most if active > most else active]
    best = NEVER
    for level in range(cap):
        rank = first_bit(held.bits, held.height_from, level)
        if rank < best:
            best = rank
            if state[FEWEST_FIRST]:
                break
    return best if best == NEVER else best + state[RANK_BASE]


@part
def hold(state: IntArray, held: Held, rank_of: IntArray, next_of: IntArray, number: int, place: int) -> None:
    """Let a request hold one slot more, for its first waiting call."""
    holds, first, base = held.holds[number], next_of[place], state[RANK_BASE]
    clear_bit(held.bits, held.height_from, holds, rank_of[place] - base)
    held.holds[number] = holds + 1
    held.first[number] = first
    if first != NOBODY:
        set_bit(held.bits, held.height_from, holds + 1, rank_of[first] - base)


@part
def let_go(state: IntArray, held: Held, rank_of: IntArray, number: int) -> None:
    """Let a request hold one slot less."""
    holds, first = held.holds[number] - 1, held.first[number]
    held.holds[number] = holds
    if first != NOBODY:
        rank = rank_of[first] - state[RANK_BASE]
        clear_bit(held.bits, held.height_from, holds + 1, rank)
        set_bit(held.bits, held.height_from, holds, rank)


@helper
def set_bit(bits: IntArray, height_from: IntArray, level: int, rank: int) -> None:
    """Add a rank to the tree of a level."""
    heights = len(height_from) - 1
    root = level * height_from[heights]
    for height in range(heights):
        at = root + height_from[height] + (rank >> 6)
        word = bits[at]
        bits[at] = word | 1 << (rank & 63)
        if word != 0:
            break
        rank >>= 6


@helper
def clear_bit(bits: IntArray, height_from: IntArray, level: int, rank: int) -> None:
    """Take a rank out of the tree of a level."""
    heights = len(height_from) - 1
    root = level * height_from[heights]
    for height in range(heights):
        at = root + height_from[height] + (rank >> 6)
        word = bits[at] & ~(1 << (rank & 63))
        bits[at] = word
        if word != 0:
            break
        rank >>= 6


@helper
def first_bit(bits: IntArray, height_from: IntArray, level: int) -> int:
    """Return the lowest rank in the tree of a level, or NEVER."""
    height = len(height_from) - 1
    root = level * height_from[height]
    rank = 0
    while height:
        height -= 1
        word = bits[root + height_from[height] + rank]
        if word == 0:
            return NEVER
        rank = rank << 6 | BIT_OF[((word & -word) * DE_BRUIJN >> 58) & 63]
    return rank


# Users


@helper
def next_return(state: IntArray, thinks: IntArray, due_ns: IntArray, step_ns: IntArray) -> int:
    """Return when a think time ends or the number of users changes next."""
    instant = NEVER
    if state[THINKERS]:
        instant = due_ns[thinks[0]]
    if state[STEPS_DONE] < len(step_ns):
        instant = min(instant, step_ns[state[STEPS_DONE]])
    return instant


@helper
def answer(state: IntArray, users: Users, number: int) -> None:
    """Let a user leave, ask again at once, or think."""
    user, think_ns = users.user[number], users.think_ns[number]
    if user >= state[PRESENT]:
        users.status[user] = AWAY
    elif think_ns == 0:
        come_back(state, users, user)
    else:
        users.status[user] = THINKING
        users.thinks_after[user] = number
        users.due_ns[number] = state[NOW] + think_ns
        push_timed(users.thinks, users.due_ns, state, THINKERS, number)


@helper
def take_users(state: IntArray, users: Users, arrival_ns: IntArray, now: int) -> bool:
    """Let users come, leave and return at this instant, and issue; return False if the draws ran out."""
    while state[STEPS_DONE] < len(users.step_ns) and users.step_ns[state[STEPS_DONE]] == now:
        change_users(state, users, users.step_users[state[STEPS_DONE]])
        state[STEPS_DONE] += 1
    while state[THINKERS] and users.due_ns[users.thinks[0]] == now:
        number = pop_timed(users.thinks, users.due_ns, state, THINKERS)
        user = users.user[number]
        # A user may have left, and perhaps come again, while thinking.
        if users.status[user] == THINKING and users.thinks_after[user] == number:
            come_back(state, users, user)
    return state[RETURNED] == 0 or issue_returned(state, users, arrival_ns, now)


@helper
def change_users(state: IntArray, users: Users, present: int) -> None:
    """Let users come at once, and thinking ones leave at once; a busy one leaves after its request."""
    state[PRESENT] = present
    for user in range(len(users.status)):
        if user < present and users.status[user] == AWAY:
            come_back(state, users, user)
        elif user >= present and users.status[user] == THINKING:
            users.status[user] = AWAY


@helper
def come_back(state: IntArray, users: Users, user: int) -> None:
    """Let a user ask at the arrivals of this instant."""
    users.status[user] = RETURNING
    users.returns[state[RETURNED]] = user
    state[RETURNED] += 1


@helper
def issue_returned(state: IntArray, users: Users, arrival_ns: IntArray, now: int) -> bool:
    """Issue a request for each user who came back, in ascending order; return False if the draws ran out."""
    count = state[RETURNED]
    state[RETURNED] = 0
    if count > 1:
        sort(users.returns, count)
    for at in range(count):
        user = users.returns[at]
        users.status[user] = AWAY
        if user >= state[PRESENT] or now >= state[END]:
            continue
        if state[ISSUED] == len(arrival_ns):
            if state[END] != NEVER:
                return False
            continue
        users.status[user] = BUSY
        users.user[state[ISSUED]] = user
        arrival_ns[state[ISSUED]] = now
        state[ISSUED] += 1
        state[ACTIVE] += 1
    return True


# Heaps of requests by time, and sorting


@helper
def push_timed(heap: IntArray, time_ns: IntArray, state: IntArray, size: int, number: int) -> None:
    """Add a request to a heap by its time; the heap's size is an element of the state."""
    at = state[size]
    state[size] = at + 1
    time = time_ns[number]
    while at:
        parent = (at - 1) >> 1
        above = heap[parent]
        if time_ns[above] <= time:
            break
        heap[at] = above
        at = parent
    heap[at] = number


@helper
def pop_timed(heap: IntArray, time_ns: IntArray, state: IntArray, size: int) -> int:
    """Take the first from a heap by time."""
    count = state[size] - 1
    state[size] = count
    first, last = heap[0], heap[count]
    time = time_ns[last]
    at = 0
    child = 1
    while child < count:
        least = heap[child]
        if child + 1 < count:
            other = heap[child + 1]
            if time_ns[other] < time_ns[least]:
                child += 1
                least = other
        if time_ns[least] >= time:
            break
        heap[at] = least
        at = child
        child = 2 * at + 1
    heap[at] = last
    return first


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


@kernel
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
