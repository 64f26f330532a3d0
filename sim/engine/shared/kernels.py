"""The compiled event loop for shared providers: the SimPy model's events, in the same order, over arrays.

What happens is read beside the model: `model.py`, `fork_join.py`, `provider.py`, `limiter.py`, `cache.py` and
`sim/engine/source.py` have the same names and say why. What is different is how things are found:

* Events that lie ahead are a heap by (instant, order within the instant, the order in which they came up).
* An attempt is a column of the table of attempts. While it waits, HIT links it to the next waiting attempt of
  its request at the same provider. The first of these stands for the request in the pairing heap of those
  that hold equally many slots (M. L. Fredman, R. Sedgewick, D. D. Sleator, R. E. Tarjan, "The pairing heap: a
  new form of self-adjusting heap", Algorithmica 1, 1986), linked through START (first child), FINISH (next
  sibling) and SLOT (the node before).
* Arrays never grow inside a kernel: it returns when one is too short, and goes on where it was.

What is kept of them on disk belongs to all sources of the engines: see `sim/engine/native.py`.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sim.contract.limit import CALLS_UNIT, INPUT_UNIT, OUTPUT_UNIT
from sim.contract.load import NO_USER
from sim.contract.output import ATTEMPT_OUTCOMES, DEGRADED, NO_SLOT, REQUEST_OUTCOMES, SUCCEEDED
from sim.contract.run import DAY_NS, PPM
from sim.engine.kernel_sort import sort
from sim.engine.native import helper, kernel, refer
from sim.units import IntArray

Int = int | np.int64
Bool = bool | np.bool_

NOBODY = -1
NONE = -1
NEVER = (1 << 63) - 1
LOW = (1 << 32) - 1
MARGIN = 4

FINISHED, UNFINISHED, NEEDS_ROOM, DRAWS_EXHAUSTED = range(4)

# A function is compiled anew for each constant it is called with, but not for each of these.
OK, _, RATE_LIMITED, TIMED_OUT, REJECTED, CANCELLED = np.arange(len(ATTEMPT_OUTCOMES))
_, _, FAILED, DEADLINE_MISSED = np.arange(len(REQUEST_OUTCOMES))

AT_ONCE, ONE, ONE_LESS = np.array([0, 1, -1])

# What lies ahead: its order within an instant, times 16, and what it is. What comes of the attempts that have
# ended is between the first and the second order, and is no event.
ATTEMPT_ENDS, JOIN_ENDS = np.array([0x00, 0x01])
DEADLINE_PASSES = np.int64(0x10)
PAUSE_ENDS, HEDGE_IS_DUE, FIRST_TOKEN_COMES = np.array([0x20, 0x21, 0x22])
SLOTS_CHANGE, LIMIT_ADMITS = np.array([0x30, 0x31])
USERS_CHANGE, THOUGHT_ENDS = np.array([0x40, 0x41])
COMPLETIONS, NOTHING_DUE = 0, 5
ORDER_SHIFT, KIND_BITS = 58, 8

# Where an attempt stands before it has an outcome, a branch, and a user.
WAITING, RUNNING = -2, -1
PENDING, LIVE_STATE, DONE, LOST = range(4)
AWAY, THINKING, BUSY_USER, RETURNING = range(4)


# Elements of `World.state`.
(
    NOW,
    MOST_CALLS,
    SEQUENCE,
    EVENTS,
    MADE,
    NUMBERED,
    BEGUN,
    ANSWERED,
    COMPLETED,
    DISPATCHING,
    OVER,
    CONCLUDED,
    TURN,
    EXHAUSTED,
    STATE_SIZE,
) = range(15)

# Columns of `World.workloads`.
(
    CALLS,
    BRANCHES,
    JOIN_HOLDS_SLOT,
    LEADER,
    MAX_DEGREE,
    WEIGHT,
    ATTEMPTS_ALLOWED,
    RETRY_BUDGET,
    DEADLINE,
    NEEDS,
    CANCELS,
    HAS_FAULTS,
    HAS_TOKENS,
    IS_CLOSED,
    LOAD_END,
    DRAWN,
    REQUESTS_FROM,
    DRAWS_FROM,
    FAULTS_FROM,
    TOKENS_FROM,
    PLANS_FROM,
    PLANS_TO,
    DAY_START,
    STEPS_FROM,
    STEPS_TO,
    USERS_FROM,
    MOST_USERS,
    PRESENT,
    RETURNED,
    ISSUED,
    STARTED,
    ACTIVE,
    ACTIVE_SINCE,
    INTEGRAL_HIGH,
    INTEGRAL_LOW,
    FIRST_ATTEMPTS,
    MORE_ATTEMPTS,
    WORKLOAD_SIZE,
) = range(38)

# Columns of `World.calls`.
(
    BLOCKERS,
    DEPENDENTS_FROM,
    DEPENDENTS_TO,
    PROVIDER,
    OPTIONAL,
    TIMEOUT,
    HEDGE_AFTER,
    RESERVED_OUTPUT,
    PREFIX,
    CALL_SIZE,
) = range(10)

# Columns of `World.providers`.
(
    SLOTS,
    MOST_SLOTS,
    CAPS,
    BY_WEIGHT,
    FEWEST_FIRST,
    LENDS,
    REJECTS,
    REJECTIONS_COUNT,
    CACHED_TOKENS_COUNT,
    METERS_FROM,
    METERS_TO,
    SLOTS_FROM,
    CHANGES_FROM,
    CHANGES_TO,
    CACHE_TTL,
    CACHE_CAPACITY,
    CACHED,
    CACHE_USES,
    FREE_FIRST,
    FREE_COUNT,
    QUEUED,
    BUSY,
    ALL_ACTIVE,
    ALL_ACTIVE_WEIGHT,
    DISPATCH_IS_DUE,
    WAKES_AT,
    REFUSED,
    OUTSTANDING,
    PROVIDER_SIZE,
) = range(29)

# Columns of `World.shares`: what a provider knows of a workload.
(
    USES,
    MOST_USED,
    RANK,
    RESERVED,
    HERE_BUSY,
    HERE_QUEUED,
    IS_CACHED,
    USED_AT,
    USED_LAST,
    WRITTEN_AT,
    FIRST_WRITE,
    SHARE_SIZE,
) = range(12)

# Columns of `World.meters`. Of fixed windows LEVEL counts what was admitted and SINCE the window.
IS_BUCKET, UNIT, PER_NS, SCALE, CAPACITY, LEVEL, SINCE, METER_SIZE = range(8)

# Rows of what grows with the run.
(
    WORKLOAD,
    POSITION,
    USER,
    PARALLEL,
    ARRIVAL,
    COMPLETION,
    REQUEST_OUTCOME,
    JOIN_START,
    DONE_COUNT,
    OPEN_COUNT,
    ANSWERED_LIST,
    ASKED_BY,
    REQUEST_ROWS,
) = range(13)
READY, START, FINISH, SLOT, OUTCOME, HIT, NUMBER, CALL, ATTEMPT = range(9)
OVER_LIST, ATTEMPT_ROWS = range(9, 11)
FREE_SINCE, FREE, TAKEN, READABLE_AT, NEXT_WRITE, SLOT_ROWS = range(6)
USER_STATE, THINKS_AFTER, RETURNS, USER_ROWS = range(4)
AT, KEY, WHO, EVENT_ROWS = range(4)
TO = 1

# Columns of `World.flight`, of a call and of a provider.
BLOCKED_BY, BRANCH_STATE, ATTEMPTS, LIVE, OTHER, FLIGHT_SIZE = range(6)
HELD, FIRST_WAITING, LAST_WAITING = range(3)


class World(NamedTuple):
    """Everything of a run; int64 unless said otherwise. Requests of all workloads are numbered together.

    The fewer arrays there are, the faster the kernel compiles, so some tables have more columns or rows than
    those that are named above.

    Parameters
    ----------
    state
        [STATE_SIZE + most calls]; at the end a stack of calls.
    workloads, providers, meters
        [workloads, WORKLOAD_SIZE + most attempts], at the end the pause after each attempt;
        [providers, PROVIDER_SIZE]; [meters, METER_SIZE].
    shares
        [providers, workloads, SHARE_SIZE + levels]; RANK counts the workloads that go first. At the end is
        the first waiting attempt of the requests that hold 0, 1, 2, ... slots.
    calls
        [workloads, plan, most calls, CALL_SIZE] of the plans `serial` (0) and `parallel` (1). A call that is
        not in the graph of a plan has -1 blockers.
    dependents
        The calls that depend on a call, one call's after another's, from its DEPENDENTS_FROM.
    plans
        [plans, slots + 1]: first the time of day from which it holds (ns), then whether a request runs in
        parallel at each fair share.
    changes
        [2, changes]: when (AT) a number of slots or users changes, and TO what.
    service_ns, join_ns, load_ns
        As drawn: by call, by request, and the arrivals or the think times by request.
    tried_ns, tried, jitter_ppm
        By attempt that can be, as drawn: how long it takes, how it ends (int8), and the pause after it.
    tokens_in, tokens_out, first_token_ns
        By call, as drawn.
    requests
        [REQUEST_ROWS, requests]; ANSWERED_LIST has the requests that were answered, in order, and ASKED_BY
        the users of a closed load's requests, in the order of `load_ns`.
    flight
        int32[requests, most calls + providers, FLIGHT_SIZE]: a request's calls, of which LIVE and OTHER are
        the attempts under way, then what it holds of each provider, and its first and last waiting attempts.
    attempts
        [ATTEMPT_ROWS, room], in the order in which they are made; OVER_LIST has those of calls that are
        answered or have failed at this instant.
    slots
        [SLOT_ROWS, all slots]: FREE is a ring of a provider's free slots, the one free longest first;
        READABLE_AT and NEXT_WRITE list who is writing a prefix.
    users
        [USER_ROWS, all users].
    events
        [EVENT_ROWS, room], a heap.
    """

    state: IntArray
    workloads: IntArray
    providers: IntArray
    meters: IntArray
    shares: IntArray
    calls: IntArray
    dependents: IntArray
    plans: IntArray
    changes: IntArray
    service_ns: IntArray
    join_ns: IntArray
    load_ns: IntArray
    tried_ns: IntArray
    tried: npt.NDArray[np.int8]
    jitter_ppm: IntArray
    tokens_in: IntArray
    tokens_out: IntArray
    first_token_ns: IntArray
    requests: IntArray
    flight: npt.NDArray[np.int32]
    attempts: IntArray
    slots: IntArray
    users: IntArray
    events: IntArray


@kernel
def advance(arrays: World, steps: int) -> int:
    """Take so many steps more, or go on to the end; say why it stopped."""
    world = refer(arrays)
    state = world.state
    if state[SEQUENCE] == 0:
        plan_first_changes(world)
    for _ in range(steps):
        if lacks_room(world):
            return NEEDS_ROOM
        due = order_due(world)
        if state[DISPATCHING] != NOBODY:
            dispatch(world, state[DISPATCHING])
        elif state[BEGUN] < state[NUMBERED]:
            begin(world, state[BEGUN])
            state[BEGUN] += 1
        elif due > COMPLETIONS and (state[OVER] or state[COMPLETED] < state[ANSWERED]):
            while state[OVER] and not lacks_room(world):
                conclude_next(world)
            while not state[OVER] and state[COMPLETED] < state[ANSWERED] and not lacks_room(world):
                complete(world, state[COMPLETED])
                state[COMPLETED] += 1
        elif due < NOTHING_DUE:
            happen(world)
        else:
            arrived = arrive(world)
            if arrived == DRAWS_EXHAUSTED:
                return DRAWS_EXHAUSTED
            if arrived == FINISHED and not settle(world) and not start_dispatch(world):
                next_ns = next_instant(world)
                if next_ns == NEVER:
                    return FINISHED
                state[NOW] = next_ns
    return UNFINISHED


@helper
def plan_first_changes(world: World) -> None:
    """Plan the first change of each provider's slots, and of each workload's users."""
    world.state[SEQUENCE] = 1
    for provider in range(world.providers.shape[0]):
        first = world.providers[provider, CHANGES_FROM]
        if first < world.providers[provider, CHANGES_TO]:
            plan_event(world, world.changes[AT, first], SLOTS_CHANGE, first)
    for index in range(world.workloads.shape[0]):
        first = world.workloads[index, STEPS_FROM]
        if first < world.workloads[index, STEPS_TO]:
            plan_event(world, world.changes[AT, first], USERS_CHANGE, first)


@helper
def lacks_room(world: World) -> Bool:
    """Return whether the next step could overfill a table: it makes a few attempts for one request."""
    margin = world.state[MOST_CALLS] + MARGIN
    return (
        world.state[MADE] + margin > world.attempts.shape[1]
        or world.state[EVENTS] + margin > world.events.shape[1]
    )


# Events


@helper
def order_due(world: World) -> Int:
    """Return the order of the first event of this instant."""
    if world.state[EVENTS] == 0 or world.events[AT, 0] != world.state[NOW]:
        return NOTHING_DUE
    return world.events[KEY, 0] >> ORDER_SHIFT


@helper
def next_instant(world: World) -> Int:
    """Return when something happens next."""
    instant = world.events[AT, 0] if world.state[EVENTS] else NEVER
    for index in range(world.workloads.shape[0]):
        one = world.workloads[index]
        if not one[IS_CLOSED] and one[ISSUED] < one[DRAWN]:
            instant = min(instant, world.load_ns[one[REQUESTS_FROM] + one[ISSUED]])
    return instant


@helper
def plan_event(world: World, delay_ns: Int, kind: Int, who: Int) -> None:
    """Let something happen after a while."""
    events, state = world.events, world.state
    at_ns = state[NOW] + delay_ns
    key = kind >> 4 << ORDER_SHIFT | state[SEQUENCE] << KIND_BITS | kind
    at: Int = state[EVENTS]
    state[EVENTS] += 1
    state[SEQUENCE] += 1
    while at:
        parent = (at - 1) >> 1
        if events[AT, parent] < at_ns or (events[AT, parent] == at_ns and events[KEY, parent] < key):
            break
        move_event(events, parent, at)
        at = parent
    events[AT, at], events[KEY, at], events[WHO, at] = at_ns, key, who


@helper
def take_event(world: World) -> None:
    """Take the first event out of the heap."""
    events, state = world.events, world.state
    state[EVENTS] -= 1
    last = state[EVENTS]
    at_ns, key, who = events[AT, last], events[KEY, last], events[WHO, last]
    at: Int = 0
    child: Int = 1
    while child < last:
        child += child + 1 < last and event_precedes(events, child + 1, child)
        if events[AT, child] > at_ns or (events[AT, child] == at_ns and events[KEY, child] > key):
            break
        move_event(events, child, at)
        at = child
        child = 2 * at + 1
    events[AT, at], events[KEY, at], events[WHO, at] = at_ns, key, who


@helper
def event_precedes(events: IntArray, one: Int, other: Int) -> Bool:
    """Return whether an event is before another."""
    sooner = events[AT, one] < events[AT, other]
    return sooner or (events[AT, one] == events[AT, other] and events[KEY, one] < events[KEY, other])


@helper
def move_event(events: IntArray, source: Int, to: Int) -> None:
    """Copy an event to another place of the heap."""
    events[AT, to], events[KEY, to], events[WHO, to] = (
        events[AT, source],
        events[KEY, source],
        events[WHO, source],
    )


@helper
def happen(world: World) -> None:
    """Let the first event of this instant happen."""
    kind, who = world.events[KEY, 0] & ((1 << KIND_BITS) - 1), world.events[WHO, 0]
    take_event(world)
    if kind == ATTEMPT_ENDS:
        end(world, who)
    elif kind == JOIN_ENDS:
        answer(world, who, joined_as(world, who))
    elif kind == DEADLINE_PASSES:
        answer(world, who, DEADLINE_MISSED)
    elif kind == PAUSE_ENDS:
        stop_pausing(world, who)
    elif kind == HEDGE_IS_DUE:
        hedge(world, who)
    elif kind == FIRST_TOKEN_COMES:
        warm(world, who)
    elif kind == SLOTS_CHANGE:
        change_slots(world, who)
    elif kind == LIMIT_ADMITS:
        plan_dispatch(world, who)
    elif kind == USERS_CHANGE:
        change_users(world, who)
    else:
        stop_thinking(world, who)


# Arrivals and completions


@helper
def arrive(world: World) -> Int:
    """Issue the requests of this instant; return FINISHED if there are none."""
    outcome = FINISHED
    for index in range(world.workloads.shape[0]):
        one = world.workloads[index]
        if one[IS_CLOSED]:
            if one[RETURNED]:
                if not issue_returned(world, one):
                    world.state[EXHAUSTED] = index
                    return DRAWS_EXHAUSTED
                outcome = UNFINISHED
        else:
            first = one[REQUESTS_FROM]
            while one[ISSUED] < one[DRAWN] and world.load_ns[first + one[ISSUED]] == world.state[NOW]:
                one[ISSUED] += 1
                outcome = UNFINISHED
    return outcome


@helper
def settle(world: World) -> Bool:
    """Give the arrivals of this instant their numbers, count them all as active; return False for none."""
    state, requests = world.state, world.requests
    first = state[NUMBERED]
    for index in range(world.workloads.shape[0]):
        one = world.workloads[index]
        while one[STARTED] < one[ISSUED]:
            number, row = state[NUMBERED], one[REQUESTS_FROM] + one[STARTED]
            requests[WORKLOAD, number] = index
            requests[POSITION, number] = one[STARTED]
            requests[USER, number] = world.requests[ASKED_BY, row] if one[IS_CLOSED] else NO_USER
            requests[ARRIVAL, number] = state[NOW]
            state[NUMBERED] += 1
            one[STARTED] += 1
            count_active(world, index, ONE)
    return state[NUMBERED] > first


@helper
def count_active(world: World, index: Int, change: Int) -> None:
    """Change the number of active requests of a workload, at every provider that it calls."""
    one, now = world.workloads[index], world.state[NOW]
    elapsed, active = now - one[ACTIVE_SINCE], one[ACTIVE]
    low = one[INTEGRAL_LOW] + active * (elapsed & LOW)
    one[INTEGRAL_HIGH] += active * (elapsed >> 32) + (low >> 32)
    one[INTEGRAL_LOW] = low & LOW
    one[ACTIVE_SINCE] = now
    one[ACTIVE] += change
    for provider in range(world.providers.shape[0]):
        if world.shares[provider, index, USES]:
            world.providers[provider, ALL_ACTIVE] += change
            world.providers[provider, ALL_ACTIVE_WEIGHT] += change * one[WEIGHT]
            plan_dispatch(world, provider)


@helper
def begin(world: World, number: Int) -> None:
    """Choose a request's plan, and make the calls that it starts with."""
    index = world.requests[WORKLOAD, number]
    one, most = world.workloads[index], world.state[MOST_CALLS]
    parallel = chooses_parallel(world, index)
    world.requests[PARALLEL, number] = parallel
    world.requests[COMPLETION, number] = NONE
    world.requests[REQUEST_OUTCOME, number] = NONE
    world.requests[JOIN_START, number] = NONE
    world.requests[DONE_COUNT, number] = 0
    world.requests[OPEN_COUNT, number] = one[BRANCHES]
    for provider in range(world.providers.shape[0]):
        world.flight[number, most + provider, HELD] = 0
        world.flight[number, most + provider, FIRST_WAITING] = NOBODY
    for call in range(one[CALLS]):
        world.flight[number, call, ATTEMPTS] = 0
        world.flight[number, call, BRANCH_STATE] = PENDING
        world.flight[number, call, BLOCKED_BY] = world.calls[index, parallel, call, BLOCKERS]
        world.flight[number, call, LIVE] = NOBODY
        world.flight[number, call, OTHER] = NOBODY
    if one[DEADLINE] != NONE:
        plan_event(world, one[DEADLINE], DEADLINE_PASSES, number)
    for call in range(one[CALLS]):
        waits_for_leader = parallel and one[LEADER] != NONE and call != one[LEADER]
        if world.calls[index, parallel, call, BLOCKERS] == 0 and not waits_for_leader:
            make(world, number, call)


@helper
def chooses_parallel(world: World, index: Int) -> Int:
    """Return whether (1) the plan runs a request in parallel on the slots that its branches can use."""
    slots: Int = 0
    for provider in range(world.providers.shape[0]):
        if world.shares[provider, index, MOST_USED]:
            slots += min(share(world, provider, index), world.shares[provider, index, MOST_USED])
    one = world.workloads[index]
    plan, time_ns = one[PLANS_FROM], (one[DAY_START] + world.state[NOW]) % DAY_NS
    for later in range(one[PLANS_FROM] + 1, one[PLANS_TO]):
        if world.plans[later, 0] <= time_ns:
            plan = later
    return world.plans[plan, slots]


@helper
def complete(world: World, at: Int) -> None:
    """End a request that was answered, and send its user off to think."""
    number = world.requests[ANSWERED_LIST, at]
    index = world.requests[WORKLOAD, number]
    count_active(world, index, ONE_LESS)
    world.requests[COMPLETION, number] = world.state[NOW]
    if world.workloads[index, IS_CLOSED]:
        leave(world, index, number)


# Fork and join


@helper
def make(world: World, number: Int, call: Int) -> None:
    """Make one more attempt at a call."""
    index = world.requests[WORKLOAD, number]
    attempt = world.state[MADE]
    world.state[MADE] += 1
    attempts = world.attempts
    attempts[READY, attempt] = world.state[NOW]
    attempts[OUTCOME, attempt] = WAITING
    attempts[NUMBER, attempt] = number
    attempts[CALL, attempt] = call
    attempts[ATTEMPT, attempt] = world.flight[number, call, ATTEMPTS]
    world.workloads[index, FIRST_ATTEMPTS] += world.flight[number, call, ATTEMPTS] == 0
    world.flight[number, call, ATTEMPTS] += 1
    world.flight[number, call, BRANCH_STATE] = LIVE_STATE
    if world.flight[number, call, LIVE] == NOBODY:
        world.flight[number, call, LIVE] = attempt
    else:
        world.flight[number, call, OTHER] = attempt
    provider = world.calls[index, 1, call, PROVIDER]
    queue(world, provider, attempt)
    plan_dispatch(world, provider)


@helper
def started(world: World, index: Int, attempt: Int) -> None:
    """Watch an attempt that has got its slot: for its first token, and for being slow."""
    call = world.attempts[CALL, attempt]
    if leads(world, world.attempts[NUMBER, attempt], call):
        after_ns = first_token_ns(world, attempt)
        if after_ns != NEVER:
            plan_event(world, after_ns, FIRST_TOKEN_COMES, attempt)
    hedge_ns = world.calls[index, 1, call, HEDGE_AFTER]
    if hedge_ns != NONE and world.attempts[ATTEMPT, attempt] == 0:
        plan_event(world, hedge_ns, HEDGE_IS_DUE, attempt)


@helper
def leads(world: World, number: Int, call: Int) -> Bool:
    """Return whether the request's other roots wait for the first token of this call."""
    leader = world.workloads[world.requests[WORKLOAD, number], LEADER]
    return world.requests[PARALLEL, number] != 0 and leader == call


@helper
def warm(world: World, attempt: Int) -> None:
    """Make the other calls once the leading one has begun to answer, if only to end as it does."""
    is_over = world.attempts[OUTCOME, attempt] >= OK
    if not is_over or world.attempts[FINISH, attempt] == world.state[NOW]:
        follow(world, world.attempts[NUMBER, attempt])


@helper
def follow(world: World, number: Int) -> None:
    """Make the calls that waited for the leading one, unless they have been made or are not needed."""
    index = world.requests[WORKLOAD, number]
    for call in range(world.workloads[index, BRANCHES]):
        is_pending = world.flight[number, call, BRANCH_STATE] == PENDING
        is_root = world.calls[index, 1, call, BLOCKERS] == 0
        if is_pending and is_root and not is_settled(world, number):
            make(world, number, call)


@helper
def is_settled(world: World, number: Int) -> Bool:
    """Return whether no more calls are needed: the join has begun, or the request has been answered."""
    return world.requests[JOIN_START, number] >= 0 or world.requests[REQUEST_OUTCOME, number] >= 0


@helper
def is_needed(world: World, number: Int, call: Int) -> Bool:
    """Return whether a call is of use: a branch until the join begins, the join until the answer."""
    if call >= world.workloads[world.requests[WORKLOAD, number], BRANCHES]:
        return world.requests[REQUEST_OUTCOME, number] < 0
    return not is_settled(world, number)


@helper
def hedge(world: World, attempt: Int) -> None:
    """Make a second attempt beside a first one that still runs."""
    number, call = world.attempts[NUMBER, attempt], world.attempts[CALL, attempt]
    is_over = world.attempts[OUTCOME, attempt] >= OK
    if not is_over and not is_settled(world, number) and allows_more(world, number, call):
        world.workloads[world.requests[WORKLOAD, number], MORE_ATTEMPTS] += 1
        make(world, number, call)


@helper
def allows_more(world: World, number: Int, call: Int) -> Bool:
    """Return whether another attempt is allowed, by their number and by the budget."""
    one = world.workloads[world.requests[WORKLOAD, number]]
    if world.flight[number, call, ATTEMPTS] >= one[ATTEMPTS_ALLOWED]:
        return False
    budget = one[RETRY_BUDGET]
    return budget == NONE or (one[MORE_ATTEMPTS] + 1) * PPM <= budget * one[FIRST_ATTEMPTS]


@helper
def close(world: World, attempt: Int, outcome: Int) -> None:
    """Take an attempt that is over off its call."""
    number, call = world.attempts[NUMBER, attempt], world.attempts[CALL, attempt]
    world.attempts[OUTCOME, attempt] = outcome
    if world.flight[number, call, LIVE] == attempt:
        world.flight[number, call, LIVE] = world.flight[number, call, OTHER]
    world.flight[number, call, OTHER] = NOBODY


@helper
def end(world: World, attempt: Int) -> None:
    """End an attempt that has not been cancelled before; what comes of it waits for all that end now."""
    if world.attempts[OUTCOME, attempt] == RUNNING:
        _, outcome = service(world, attempt)
        give_back(world, attempt)
        if decides(world, attempt, outcome):
            world.attempts[OVER_LIST, world.state[OVER]] = attempt
            world.state[OVER] += 1


@helper
def decides(world: World, attempt: Int, outcome: Int) -> Bool:
    """Take note of an attempt that is over; return whether its call is answered, or has failed, by it."""
    close(world, attempt, outcome)
    number, call = world.attempts[NUMBER, attempt], world.attempts[CALL, attempt]
    if world.flight[number, call, BRANCH_STATE] == DONE:
        return False
    if outcome != OK:
        return world.flight[number, call, LIVE] == NOBODY
    if call < world.workloads[world.requests[WORKLOAD, number], BRANCHES] and not is_settled(world, number):
        world.requests[DONE_COUNT, number] += 1
        world.requests[OPEN_COUNT, number] -= 1
    world.flight[number, call, BRANCH_STATE] = DONE
    return True


@helper
def conclude_next(world: World) -> None:
    """Take the next step of going on after what has ended at this instant: all answers, then all failures."""
    state = world.state
    attempt = world.attempts[OVER_LIST, state[CONCLUDED]]
    if state[TURN] == 0:
        succeed(world, attempt)
    elif state[TURN] == 1:
        fail(world, attempt, AT_ONCE)
    else:
        follow_up(world, attempt)
    state[CONCLUDED] += 1
    if state[CONCLUDED] == state[OVER]:
        state[CONCLUDED] = 0
        state[TURN] += 1
        if state[TURN] == 3:
            state[OVER] = state[TURN] = 0


@helper
def succeed(world: World, attempt: Int) -> None:
    """Take a call's answer, if this is one; the other attempt at the call is not needed."""
    number, call = world.attempts[NUMBER, attempt], world.attempts[CALL, attempt]
    if world.attempts[OUTCOME, attempt] != OK:
        return
    while world.flight[number, call, LIVE] != NOBODY:
        cancel(world, np.int64(world.flight[number, call, LIVE]))
    if call >= world.workloads[world.requests[WORKLOAD, number], BRANCHES]:
        answer(world, number, joined_as(world, number))
    elif not is_settled(world, number) and is_enough(world, number):
        start_join(world, number)


@helper
def fail(world: World, attempt: Int, retry_after_ns: Int) -> None:
    """Try a call again, or give it up, if this is the failure of one that is needed."""
    number, call = world.attempts[NUMBER, attempt], world.attempts[CALL, attempt]
    if world.attempts[OUTCOME, attempt] != OK and is_needed(world, number, call):
        try_again(world, attempt, retry_after_ns)


@helper
def follow_up(world: World, attempt: Int) -> None:
    """Go on with the request of a call that is done or lost, if it needs more."""
    number, call = world.attempts[NUMBER, attempt], world.attempts[CALL, attempt]
    if world.flight[number, call, BRANCH_STATE] != LIVE_STATE and not is_settled(world, number):
        go_on(world, number, call)


@helper
def try_again(world: World, attempt: Int, retry_after_ns: Int) -> None:
    """Make another attempt after a pause, or give the call up."""
    number, call = world.attempts[NUMBER, attempt], world.attempts[CALL, attempt]
    one = world.workloads[world.requests[WORKLOAD, number]]
    if allows_more(world, number, call):
        one[MORE_ATTEMPTS] += 1
        plan_event(world, pause_ns(world, attempt, retry_after_ns), PAUSE_ENDS, attempt)
    elif call >= one[BRANCHES]:
        answer(world, number, FAILED)
    else:
        lose(world, number, call)


@helper
def pause_ns(world: World, attempt: Int, retry_after_ns: Int) -> Int:
    """Return the pause before the next attempt: at least the backoff, and what the provider asked."""
    index = world.requests[WORKLOAD, world.attempts[NUMBER, attempt]]
    least_ns = max(world.workloads[index, WORKLOAD_SIZE + world.attempts[ATTEMPT, attempt]], retry_after_ns)
    if world.attempts[CALL, attempt] >= world.workloads[index, BRANCHES]:
        return least_ns
    jitter_ppm = world.jitter_ppm[fault_row(world, attempt)]
    # In two parts, as the product may be beyond 64 bits.
    return least_ns + least_ns // PPM * jitter_ppm + least_ns % PPM * jitter_ppm // PPM


@helper
def stop_pausing(world: World, attempt: Int) -> None:
    """Make the next attempt, if its request still needs it."""
    number, call = world.attempts[NUMBER, attempt], world.attempts[CALL, attempt]
    if is_needed(world, number, call):
        make(world, number, call)


@helper
def lose(world: World, number: Int, call: Int) -> None:
    """Give a branch up, and with it every branch that depends on it."""
    index = world.requests[WORKLOAD, number]
    lost = 1
    world.state[STATE_SIZE] = call
    while lost:
        lost -= 1
        node = world.calls[index, 1, world.state[STATE_SIZE + lost]]
        world.flight[number, world.state[STATE_SIZE + lost], BRANCH_STATE] = LOST
        world.requests[OPEN_COUNT, number] -= 1
        for at in range(node[DEPENDENTS_FROM], node[DEPENDENTS_TO]):
            dependent = world.dependents[at]
            if world.flight[number, dependent, BRANCH_STATE] == PENDING:
                world.flight[number, dependent, BRANCH_STATE] = LOST
                world.state[STATE_SIZE + lost] = dependent
                lost += 1


@helper
def go_on(world: World, number: Int, call: Int) -> None:
    """Go on after a branch is done or lost: fail, join, or make the calls that waited for it."""
    if is_hopeless(world, number):
        answer(world, number, FAILED)
    elif is_enough(world, number):
        start_join(world, number)
    else:
        unblock_dependents(world, number, call)
        if leads(world, number, call):
            follow(world, number)


@helper
def unblock_dependents(world: World, number: Int, call: Int) -> None:
    """Make the calls for which this was the last one before them; a lost one is passed over."""
    index, parallel = world.requests[WORKLOAD, number], world.requests[PARALLEL, number]
    passed = 1
    world.state[STATE_SIZE] = call
    while passed:
        passed -= 1
        node = world.calls[index, parallel, world.state[STATE_SIZE + passed]]
        for at in range(node[DEPENDENTS_FROM], node[DEPENDENTS_TO]):
            dependent = world.dependents[at]
            world.flight[number, dependent, BLOCKED_BY] -= 1
            if world.flight[number, dependent, BLOCKED_BY] == 0:
                if world.flight[number, dependent, BRANCH_STATE] == LOST:
                    world.state[STATE_SIZE + passed] = dependent
                    passed += 1
                else:
                    make(world, number, dependent)


@helper
def is_hopeless(world: World, number: Int) -> Bool:
    """Return whether the join can never be, or would have nothing to join."""
    index = world.requests[WORKLOAD, number]
    done, left = world.requests[DONE_COUNT, number], world.requests[OPEN_COUNT, number]
    if left == 0 and done == 0:
        return True
    needs = world.workloads[index, NEEDS]
    if needs != NONE:
        return done + left < needs
    if done + left == world.workloads[index, BRANCHES]:
        return False  # none is lost
    for call in range(world.workloads[index, BRANCHES]):
        is_lost = world.flight[number, call, BRANCH_STATE] == LOST
        if is_lost and not world.calls[index, 1, call, OPTIONAL]:
            return True
    return False


@helper
def is_enough(world: World, number: Int) -> Bool:
    """Return whether the join has all that it needs."""
    needs = world.workloads[world.requests[WORKLOAD, number], NEEDS]
    if needs == NONE:
        return world.requests[OPEN_COUNT, number] == 0
    return world.requests[DONE_COUNT, number] >= needs


@helper
def start_join(world: World, number: Int) -> None:
    """Join what succeeded; a serial request has nothing to join."""
    one = world.workloads[world.requests[WORKLOAD, number]]
    world.requests[JOIN_START, number] = world.state[NOW]
    drop(world, number)
    join_ns = world.join_ns[one[REQUESTS_FROM] + world.requests[POSITION, number]]
    if world.requests[PARALLEL, number] and one[JOIN_HOLDS_SLOT]:
        make(world, number, one[BRANCHES])
    elif world.requests[PARALLEL, number] and join_ns:
        plan_event(world, join_ns, JOIN_ENDS, number)
    else:
        answer(world, number, joined_as(world, number))


@helper
def joined_as(world: World, number: Int) -> Int:
    """Return how a request ends whose join is complete."""
    branches = world.workloads[world.requests[WORKLOAD, number], BRANCHES]
    return SUCCEEDED if world.requests[DONE_COUNT, number] >= branches else DEGRADED


@helper
def answer(world: World, number: Int, outcome: Int) -> None:
    """Answer a request once, and drop what it still has under way."""
    if world.requests[REQUEST_OUTCOME, number] < 0:
        world.requests[REQUEST_OUTCOME, number] = outcome
        world.requests[ANSWERED_LIST, world.state[ANSWERED]] = number
        world.state[ANSWERED] += 1
        drop(world, number)


@helper
def drop(world: World, number: Int) -> None:
    """Cancel what is no longer needed, unless the workload lets it run on."""
    one = world.workloads[world.requests[WORKLOAD, number]]
    if one[CANCELS]:
        for call in range(one[CALLS]):
            while world.flight[number, call, LIVE] != NOBODY:
                cancel(world, np.int64(world.flight[number, call, LIVE]))


# What was drawn for an attempt


@helper
def draw_row(world: World, attempt: Int) -> Int:
    """Return where the draws of an attempt's call are, counted from the first of its workload."""
    number = world.attempts[NUMBER, attempt]
    calls = world.workloads[world.requests[WORKLOAD, number], CALLS]
    return world.requests[POSITION, number] * calls + world.attempts[CALL, attempt]


@helper
def fault_row(world: World, attempt: Int) -> Int:
    """Return where the faults of an attempt are."""
    one = world.workloads[world.requests[WORKLOAD, world.attempts[NUMBER, attempt]]]
    row = draw_row(world, attempt) * one[ATTEMPTS_ALLOWED] + world.attempts[ATTEMPT, attempt]
    return one[FAULTS_FROM] + row


@helper
def service(world: World, attempt: Int) -> tuple[Int, Int]:
    """Return how long an attempt holds its slot (ns), and how it ends."""
    index = world.requests[WORKLOAD, world.attempts[NUMBER, attempt]]
    one, call = world.workloads[index], world.attempts[CALL, attempt]
    if not one[HAS_FAULTS] or call >= one[BRANCHES]:
        return world.service_ns[one[DRAWS_FROM] + draw_row(world, attempt)], OK
    row = fault_row(world, attempt)
    service_ns, outcome = world.tried_ns[row], np.int64(world.tried[row])
    timeout_ns = world.calls[index, 1, call, TIMEOUT]
    if timeout_ns != NONE and (outcome == TIMED_OUT or service_ns > timeout_ns):
        return timeout_ns, TIMED_OUT
    return service_ns, outcome


@helper
def first_token_ns(world: World, attempt: Int) -> Int:
    """Return the time from an attempt's start to its first token, NEVER where it has none."""
    one = world.workloads[world.requests[WORKLOAD, world.attempts[NUMBER, attempt]]]
    service_ns, outcome = service(world, attempt)
    if outcome == RATE_LIMITED:
        return np.int64(NEVER)
    if not one[HAS_TOKENS]:
        return np.int64(0)
    drawn_ns = world.first_token_ns[one[TOKENS_FROM] + draw_row(world, attempt)]
    if outcome == OK:
        return min(drawn_ns, service_ns)
    return drawn_ns if drawn_ns <= service_ns else np.int64(NEVER)


# Slots


@helper
def plan_dispatch(world: World, provider: Int) -> None:
    """Dispatch at the end of this instant, if anyone waits."""
    if world.providers[provider, QUEUED]:
        world.providers[provider, DISPATCH_IS_DUE] = 1


@helper
def start_dispatch(world: World) -> Bool:
    """Let the first provider that is due dispatch next; return False if there is none."""
    for provider in range(world.providers.shape[0]):
        if world.providers[provider, DISPATCH_IS_DUE]:
            world.providers[provider, DISPATCH_IS_DUE] = 0
            world.state[DISPATCHING] = provider
            return True
    return False


@helper
def dispatch(world: World, provider: Int) -> None:
    """Grant free slots to the attempts that the allocation picks, as far as the limits admit them."""
    one = world.providers[provider]
    while one[FREE_COUNT] and one[BUSY] < one[SLOTS]:
        if lacks_room(world):
            return  # and go on here when there is
        attempt = pick(world, provider)
        if attempt == NOBODY or (attempt == one[REFUSED] and world.state[NOW] < one[WAKES_AT]):
            break
        index = world.requests[WORKLOAD, world.attempts[NUMBER, attempt]]
        reads = would_read(world, provider, index, world.attempts[CALL, attempt])
        sent, received = reserved_use(world, provider, index, attempt, reads)
        wait_ns = limit_wait_ns(world, provider, sent, received)
        if wait_ns == 0:
            grant(world, provider, index, attempt, sent, received)
        elif one[REJECTS]:
            reject(world, provider, attempt, sent, received)
        else:
            # The first in line waits for the limit, and nobody overtakes it.
            wait_ns = min(wait_ns, needs_less_after_ns(world, provider, index, attempt))
            one[REFUSED] = attempt
            if one[WAKES_AT] != world.state[NOW] + wait_ns:
                one[WAKES_AT] = world.state[NOW] + wait_ns
                plan_event(world, wait_ns, LIMIT_ADMITS, provider)
            break
    world.state[DISPATCHING] = NOBODY


@helper
def pick(world: World, provider: Int) -> Int:
    """Return the attempt that the allocation serves next, or NOBODY."""
    best: Int = NOBODY
    best_rank: Int = NOBODY
    best_held: Int = NOBODY
    fewest_first = world.providers[provider, FEWEST_FIRST]
    for index in range(world.workloads.shape[0]):
        if world.shares[provider, index, HERE_QUEUED] == 0 or not has_room(world, provider, index):
            continue
        rank = rank_of(world, provider, index)
        if best != NOBODY and rank > best_rank:
            continue
        for held in range(min(cap(world, provider, index), world.shares.shape[2] - SHARE_SIZE)):
            root = world.shares[provider, index, SHARE_SIZE + held]
            if root == NOBODY:
                continue
            level = held if fewest_first else 0
            is_equal = best != NOBODY and rank == best_rank and level == best_held
            if best == NOBODY or rank < best_rank or level < best_held:
                best, best_rank, best_held = root, rank, level
            elif is_equal and precedes(world.attempts, root, best):
                best = root
            if fewest_first:
                break
    return best


@helper
def rank_of(world: World, provider: Int, index: Int) -> Int:
    """Return a workload's rank: first those whose reserved slots are lent, then by priority."""
    here = world.shares[provider, index]
    is_below = world.providers[provider, LENDS] and here[HERE_BUSY] < here[RESERVED]
    rank = here[RANK]
    return rank if is_below else rank + world.workloads.shape[0]


@helper
def cap(world: World, provider: Int, index: Int) -> Int:
    """Return how many slots one request of a workload may hold now."""
    most = world.providers[provider, SLOTS]
    if world.providers[provider, CAPS]:
        most = share(world, provider, index)
    return min(most, world.workloads[index, MAX_DEGREE])


@helper
def share(world: World, provider: Int, index: Int) -> Int:
    """Return a request's fair share under any allocation: by number, or by weight where that counts."""
    one = world.providers[provider]
    if one[BY_WEIGHT]:
        weight = world.workloads[index, WEIGHT]
        return max(1, one[SLOTS] * weight // max(1, one[ALL_ACTIVE_WEIGHT]))
    return max(1, one[SLOTS] // max(1, one[ALL_ACTIVE]))


@helper
def has_room(world: World, provider: Int, index: Int) -> Bool:
    """Return whether a workload may take a free slot that is perhaps kept for another."""
    here = world.shares[provider]
    if world.providers[provider, LENDS] or here[index, HERE_BUSY] < here[index, RESERVED]:
        return True
    kept = np.int64(0)
    for other in range(world.workloads.shape[0]):
        if other != index:
            kept += max(0, here[other, RESERVED] - here[other, HERE_BUSY])
    return world.providers[provider, BUSY] + kept < world.providers[provider, SLOTS]


@helper
def grant(world: World, provider: Int, index: Int, attempt: Int, sent: Int, received: Int) -> None:
    """Start an attempt on the slot that has been free longest."""
    one, here, call = world.providers[provider], world.shares[provider, index], world.attempts[CALL, attempt]
    unqueue(world, provider, attempt)
    slot = world.slots[FREE, one[SLOTS_FROM] + one[FREE_FIRST]]
    one[FREE_FIRST] = (one[FREE_FIRST] + 1) % one[MOST_SLOTS]
    one[FREE_COUNT] -= 1
    world.slots[TAKEN, one[SLOTS_FROM] + slot] = 1
    world.attempts[SLOT, attempt] = slot
    world.attempts[START, attempt] = world.state[NOW]
    world.attempts[OUTCOME, attempt] = RUNNING
    world.attempts[HIT, attempt] = NONE
    one[BUSY] += 1
    here[HERE_BUSY] += 1
    change_held(world, provider, attempt, ONE)
    admit(world, provider, sent, received)
    if one[CACHE_TTL] != NONE and world.calls[index, 1, call, PREFIX]:
        after_ns = first_token_ns(world, attempt)
        readable_ns = np.int64(NEVER) if after_ns == NEVER else world.state[NOW] + after_ns
        world.attempts[HIT, attempt] = use_prefix(world, provider, index, slot, readable_ns)
    service_ns, _ = service(world, attempt)
    plan_event(world, service_ns, ATTEMPT_ENDS, attempt)
    started(world, index, attempt)


@helper
def cancel(world: World, attempt: Int) -> None:
    """End an attempt that is no longer needed: out of the queue, or off its slot at once."""
    if world.attempts[OUTCOME, attempt] == WAITING:
        stop_waiting(world, attempt)
    else:
        give_back(world, attempt)
    close(world, attempt, CANCELLED)


@helper
def reject(world: World, provider: Int, attempt: Int, sent: Int, received: Int) -> None:
    """Turn an attempt away, and say after how long it may come again."""
    stop_waiting(world, attempt)
    one = world.providers[provider]
    if one[REJECTIONS_COUNT]:
        for meter in range(one[METERS_FROM], one[METERS_TO]):
            if world.meters[meter, UNIT] == CALLS_UNIT:
                take(world.meters[meter], ONE, world.state[NOW])
    # It is known at a dispatch, when everything that ends at this instant has ended.
    if decides(world, attempt, REJECTED):
        fail(world, attempt, limit_wait_ns(world, provider, sent, received))
        follow_up(world, attempt)


@helper
def stop_waiting(world: World, attempt: Int) -> None:
    """Take an attempt out of its queue for good."""
    provider = provider_of(world, attempt)
    unqueue(world, provider, attempt)
    world.attempts[START, attempt] = world.state[NOW]
    world.attempts[FINISH, attempt] = world.state[NOW]
    world.attempts[SLOT, attempt] = NO_SLOT
    world.attempts[HIT, attempt] = NONE
    # It may have been the first in line, which waited for a limit that admits those behind it.
    plan_dispatch(world, provider)


@helper
def give_back(world: World, attempt: Int) -> None:
    """Free the slot of an attempt."""
    provider = provider_of(world, attempt)
    index = world.requests[WORKLOAD, world.attempts[NUMBER, attempt]]
    one, slot = world.providers[provider], world.attempts[SLOT, attempt]
    world.attempts[FINISH, attempt] = world.state[NOW]
    world.slots[TAKEN, one[SLOTS_FROM] + slot] = 0
    if slot < one[SLOTS]:
        add_free(world, provider, slot)
    one[BUSY] -= 1
    world.shares[provider, index, HERE_BUSY] -= 1
    change_held(world, provider, attempt, ONE_LESS)
    settle_use(world, provider, index, attempt)
    if one[CACHE_TTL] != NONE and world.attempts[HIT, attempt] == 0:
        stop_writing(world, provider, index, slot)
    plan_dispatch(world, provider)


@helper
def provider_of(world: World, attempt: Int) -> Int:
    """Return the provider that an attempt is made at."""
    index = world.requests[WORKLOAD, world.attempts[NUMBER, attempt]]
    return world.calls[index, 1, world.attempts[CALL, attempt], PROVIDER]


@helper
def add_free(world: World, provider: Int, slot: Int) -> None:
    """Add a slot to the free ones, behind those that became free before or, at this instant, are lower."""
    one, now = world.providers[provider], world.state[NOW]
    first, most = one[SLOTS_FROM], one[MOST_SLOTS]
    at = one[FREE_COUNT]
    one[FREE_COUNT] += 1
    while at:
        before = first + (one[FREE_FIRST] + at - 1) % most
        if world.slots[FREE_SINCE, before] < now or world.slots[FREE, before] < slot:
            break
        here = first + (one[FREE_FIRST] + at) % most
        world.slots[FREE_SINCE, here] = world.slots[FREE_SINCE, before]
        world.slots[FREE, here] = world.slots[FREE, before]
        at -= 1
    here = first + (one[FREE_FIRST] + at) % most
    world.slots[FREE_SINCE, here] = now
    world.slots[FREE, here] = slot


@helper
def change_slots(world: World, change: Int) -> None:
    """Change a provider's concurrency, and plan the next change."""
    provider = 0
    while not world.providers[provider, CHANGES_FROM] <= change < world.providers[provider, CHANGES_TO]:
        provider += 1
    if change + 1 < world.providers[provider, CHANGES_TO]:
        plan_event(world, world.changes[AT, change + 1] - world.state[NOW], SLOTS_CHANGE, change + 1)
    set_slots(world, provider, world.changes[TO, change])


@helper
def set_slots(world: World, provider: Int, slots: Int) -> None:
    """Offer so many slots. Slots that are taken away while a call holds them are gone when it ends."""
    one = world.providers[provider]
    first, most = one[SLOTS_FROM], one[MOST_SLOTS]
    kept = 0
    for at in range(one[FREE_COUNT]):
        old, new = first + (one[FREE_FIRST] + at) % most, first + (one[FREE_FIRST] + kept) % most
        if world.slots[FREE, old] < slots:
            world.slots[FREE_SINCE, new] = world.slots[FREE_SINCE, old]
            world.slots[FREE, new] = world.slots[FREE, old]
            kept += 1
    one[FREE_COUNT] = kept
    for slot in range(one[SLOTS], slots):
        if not world.slots[TAKEN, first + slot]:
            add_free(world, provider, slot)
    one[SLOTS] = slots
    plan_dispatch(world, provider)


# Waiting: a request's first waiting attempt at a provider stands for it in the heap of its level


@helper
def precedes(attempts: IntArray, one: Int, other: Int) -> Bool:
    """Return whether an attempt is before another in the queue: by ready time, request, call, attempt."""
    for row in (READY, NUMBER, CALL):
        if attempts[row, one] != attempts[row, other]:
            return attempts[row, one] < attempts[row, other]
    return attempts[ATTEMPT, one] < attempts[ATTEMPT, other]


@helper
def queue(world: World, provider: Int, attempt: Int) -> None:
    """Queue an attempt that has just become ready, among those of its request."""
    attempts, number = world.attempts, world.attempts[NUMBER, attempt]
    index, place = world.requests[WORKLOAD, number], world.state[MOST_CALLS] + provider
    world.providers[provider, QUEUED] += 1
    world.shares[provider, index, HERE_QUEUED] += 1
    first = np.int64(world.flight[number, place, FIRST_WAITING])
    if first == NOBODY or precedes(attempts, attempt, first):
        attempts[HIT, attempt] = first
        represent(world, provider, number, first, attempt)
        if first == NOBODY:
            world.flight[number, place, LAST_WAITING] = attempt
        return
    # It is mostly the last; only beside others that are ready at the same instant it may not be.
    before = np.int64(world.flight[number, place, LAST_WAITING])
    if precedes(attempts, attempt, before):
        before = first
    while attempts[HIT, before] != NOBODY and precedes(attempts, attempts[HIT, before], attempt):
        before = attempts[HIT, before]
    attempts[HIT, attempt] = attempts[HIT, before]
    attempts[HIT, before] = attempt
    if attempts[HIT, attempt] == NOBODY:
        world.flight[number, place, LAST_WAITING] = attempt


@helper
def unqueue(world: World, provider: Int, attempt: Int) -> None:
    """Take an attempt out of the queue."""
    attempts, number = world.attempts, world.attempts[NUMBER, attempt]
    index, place = world.requests[WORKLOAD, number], world.state[MOST_CALLS] + provider
    world.providers[provider, QUEUED] -= 1
    world.shares[provider, index, HERE_QUEUED] -= 1
    first = np.int64(world.flight[number, place, FIRST_WAITING])
    if first == attempt:
        represent(world, provider, number, first, attempts[HIT, attempt])
        return
    before = first
    while attempts[HIT, before] != attempt:
        before = attempts[HIT, before]
    attempts[HIT, before] = attempts[HIT, attempt]
    if attempts[HIT, before] == NOBODY:
        world.flight[number, place, LAST_WAITING] = before


@helper
def represent(world: World, provider: Int, number: Int, old: Int, new: Int) -> None:
    """Let another waiting attempt (NOBODY: none) stand for its request."""
    place = world.state[MOST_CALLS] + provider
    level = world.shares[provider, world.requests[WORKLOAD, number], SHARE_SIZE:]
    held = np.int64(world.flight[number, place, HELD])
    if old != NOBODY:
        remove(world.attempts, level, held, old)
    if new != NOBODY:
        insert(world.attempts, level, held, new)
    world.flight[number, place, FIRST_WAITING] = new


@helper
def change_held(world: World, provider: Int, attempt: Int, change: Int) -> None:
    """Let the request of an attempt hold one slot more or less, and wait among those that do."""
    number = world.attempts[NUMBER, attempt]
    place = world.state[MOST_CALLS] + provider
    held = np.int64(world.flight[number, place, HELD])
    first = np.int64(world.flight[number, place, FIRST_WAITING])
    world.flight[number, place, HELD] += change
    if first != NOBODY:
        level = world.shares[provider, world.requests[WORKLOAD, number], SHARE_SIZE:]
        remove(world.attempts, level, held, first)
        insert(world.attempts, level, held + change, first)


@helper
def insert(attempts: IntArray, level: IntArray, held: Int, attempt: Int) -> None:
    """Put an attempt into the heap of the requests that hold `held` slots."""
    attempts[START, attempt] = NOBODY
    attempts[FINISH, attempt] = NOBODY
    level[held] = meld(attempts, level[held], attempt)


@helper
def remove(attempts: IntArray, level: IntArray, held: Int, attempt: Int) -> None:
    """Take an attempt out of its heap."""
    rest = meld_siblings(attempts, attempts[START, attempt])
    if level[held] == attempt:
        level[held] = rest
        return
    before, after = attempts[SLOT, attempt], attempts[FINISH, attempt]
    if attempts[START, before] == attempt:
        attempts[START, before] = after
    else:
        attempts[FINISH, before] = after
    if after != NOBODY:
        attempts[SLOT, after] = before
    level[held] = meld(attempts, level[held], rest)


@helper
def meld(attempts: IntArray, one: Int, other: Int) -> Int:
    """Make the later of two roots (NOBODY: none) the first child of the earlier; return the earlier."""
    if one == NOBODY or other == NOBODY:
        return one if other == NOBODY else other
    if precedes(attempts, other, one):
        one, other = other, one
    child = attempts[START, one]
    attempts[START, one] = other
    attempts[SLOT, other] = one
    attempts[FINISH, other] = child
    if child != NOBODY:
        attempts[SLOT, child] = other
    return one


@helper
def meld_siblings(attempts: IntArray, first: Int) -> Int:
    """Return one heap of a list of siblings: melded in pairs, then the pairs from last to first."""
    pairs: Int = NOBODY
    while first != NOBODY:
        one, other = first, attempts[FINISH, first]
        first = NOBODY if other == NOBODY else attempts[FINISH, other]
        pair = meld(attempts, one, other)
        attempts[FINISH, pair] = pairs
        pairs = pair
    root: Int = NOBODY
    while pairs != NOBODY:
        following = attempts[FINISH, pairs]
        root = meld(attempts, root, pairs)
        pairs = following
    if root != NOBODY:
        attempts[FINISH, root] = NOBODY
    return root


# Limits


@helper
def reserved_use(world: World, provider: Int, index: Int, attempt: Int, reads: Bool) -> tuple[Int, Int]:
    """Return the tokens, in and out, that admitting an attempt reserves."""
    if not world.workloads[index, HAS_TOKENS]:
        return np.int64(0), np.int64(0)
    call = world.attempts[CALL, attempt]
    sent = world.tokens_in[world.workloads[index, TOKENS_FROM] + draw_row(world, attempt)]
    if reads and not world.providers[provider, CACHED_TOKENS_COUNT]:
        sent = max(np.int64(0), sent - world.calls[index, 1, call, PREFIX])
    return sent, world.calls[index, 1, call, RESERVED_OUTPUT]


@helper
def amount_of(unit: Int, sent: Int, received: Int) -> Int:
    """Return how much a call takes of a limit."""
    if unit == CALLS_UNIT:
        return np.int64(1)
    if unit == INPUT_UNIT:
        return sent
    return received if unit == OUTPUT_UNIT else sent + received


@helper
def limit_wait_ns(world: World, provider: Int, sent: Int, received: Int) -> Int:
    """Return how long until every limit admits a call; 0 for now."""
    wait_ns: Int = 0
    for index in range(world.providers[provider, METERS_FROM], world.providers[provider, METERS_TO]):
        meter = world.meters[index]
        amount = amount_of(meter[UNIT], sent, received)
        wait_ns = max(wait_ns, meter_wait_ns(meter, amount, world.state[NOW]))
    return wait_ns


@helper
def admit(world: World, provider: Int, sent: Int, received: Int) -> None:
    """Reserve what a call may use."""
    one = world.providers[provider]
    one[REFUSED] = NOBODY
    for index in range(one[METERS_FROM], one[METERS_TO]):
        amount = amount_of(world.meters[index, UNIT], sent, received)
        take(world.meters[index], amount, world.state[NOW])
        one[OUTSTANDING] += amount


@helper
def settle_use(world: World, provider: Int, index: Int, attempt: Int) -> None:
    """Give back what an attempt reserved and did not use. A call is used up when it is made."""
    one = world.providers[provider]
    if one[METERS_FROM] == one[METERS_TO]:
        return
    one[REFUSED] = NOBODY
    sent, received = reserved_use(world, provider, index, attempt, world.attempts[HIT, attempt] == 1)
    used = received
    if world.workloads[index, HAS_TOKENS]:
        used = world.tokens_out[world.workloads[index, TOKENS_FROM] + draw_row(world, attempt)]
    for at in range(one[METERS_FROM], one[METERS_TO]):
        meter = world.meters[at]
        reserved = amount_of(meter[UNIT], sent, received)
        unused = reserved - amount_of(meter[UNIT], sent, used)
        take_less(meter, unused, world.attempts[START, attempt], world.state[NOW])
        one[OUTSTANDING] -= reserved


@helper
def meter_wait_ns(meter: IntArray, amount: Int, now: Int) -> Int:
    """Return the time until one limit admits an amount."""
    turn(meter, now)
    if meter[IS_BUCKET]:
        missing = min(amount * meter[SCALE], meter[CAPACITY]) - meter[LEVEL]
        return -(-missing // meter[PER_NS]) if missing > 0 else np.int64(0)
    if meter[LEVEL] == 0 or meter[LEVEL] + amount <= meter[CAPACITY]:
        return np.int64(0)
    return (meter[SINCE] + 1) * meter[SCALE] - now


@helper
def take(meter: IntArray, amount: Int, now: Int) -> None:
    """Admit an amount."""
    turn(meter, now)
    if meter[IS_BUCKET]:
        meter[LEVEL] -= amount * meter[SCALE]
    else:
        meter[LEVEL] += amount


@helper
def take_less(meter: IntArray, amount: Int, taken_ns: Int, now: Int) -> None:
    """Return what was admitted at `taken_ns` and not used; negative where more was used."""
    turn(meter, now)
    if meter[IS_BUCKET]:
        meter[LEVEL] = min(meter[CAPACITY], meter[LEVEL] + amount * meter[SCALE])
    elif taken_ns >= meter[SINCE] * meter[SCALE]:
        meter[LEVEL] -= amount


@helper
def turn(meter: IntArray, now: Int) -> None:
    """Refill a bucket, never beyond its capacity and 64 bits; or begin a window."""
    if meter[IS_BUCKET]:
        elapsed = now - meter[SINCE]
        if elapsed == 0:
            return
        if elapsed >= (meter[CAPACITY] - meter[LEVEL] + meter[PER_NS] - 1) // meter[PER_NS]:
            meter[LEVEL] = meter[CAPACITY]
        else:
            meter[LEVEL] += meter[PER_NS] * elapsed
        meter[SINCE] = now
    elif now - meter[SINCE] * meter[SCALE] >= meter[SCALE]:
        meter[SINCE] = now // meter[SCALE]
        meter[LEVEL] = 0


# The prefix cache: a workload's prefix is written by attempts, which are found by their slots


@helper
def would_read(world: World, provider: Int, index: Int, call: Int) -> Bool:
    """Return whether a call that starts now would read its prefix."""
    if world.providers[provider, CACHE_TTL] == NONE or world.calls[index, 1, call, PREFIX] == 0:
        return False
    return holds(world, provider, index)


@helper
def needs_less_after_ns(world: World, provider: Int, index: Int, attempt: Int) -> Int:
    """Return after how long a waiting attempt may find its prefix cached, and need fewer tokens."""
    one, here = world.providers[provider], world.shares[provider, index]
    has_prefix = one[CACHE_TTL] != NONE and world.calls[index, 1, world.attempts[CALL, attempt], PREFIX] != 0
    if one[CACHED_TOKENS_COUNT] or not has_prefix or not here[IS_CACHED]:
        return np.int64(NEVER)
    after_ns, slot = np.int64(NEVER), here[FIRST_WRITE]
    while slot != NOBODY:
        readable_ns = world.slots[READABLE_AT, one[SLOTS_FROM] + slot]
        if readable_ns > world.state[NOW]:
            after_ns = min(after_ns, readable_ns - world.state[NOW])
        slot = world.slots[NEXT_WRITE, one[SLOTS_FROM] + slot]
    return after_ns


@helper
def holds(world: World, provider: Int, index: Int) -> Bool:
    """Return whether a prefix can be read now: it has been written, and used since not long ago."""
    here = world.shares[provider, index]
    if not here[IS_CACHED]:
        return False
    note_written(world, provider, index)
    fresh_to = max(here[USED_AT], here[WRITTEN_AT]) + world.providers[provider, CACHE_TTL]
    return here[WRITTEN_AT] != NONE and world.state[NOW] < fresh_to


@helper
def note_written(world: World, provider: Int, index: Int) -> None:
    """Move the writes whose first token has come from the list of those under way."""
    here, first = world.shares[provider, index], world.providers[provider, SLOTS_FROM]
    before, slot = np.int64(NOBODY), here[FIRST_WRITE]
    while slot != NOBODY:
        if world.slots[READABLE_AT, first + slot] <= world.state[NOW]:
            here[WRITTEN_AT] = max(here[WRITTEN_AT], world.slots[READABLE_AT, first + slot])
            remove_write(world, here, first, before, slot)
        else:
            before = slot
        slot = world.slots[NEXT_WRITE, first + slot]


@helper
def remove_write(world: World, here: IntArray, first: Int, before: Int, slot: Int) -> None:
    """Take a write off the list, given the one before it."""
    if before == NOBODY:
        here[FIRST_WRITE] = world.slots[NEXT_WRITE, first + slot]
    else:
        world.slots[NEXT_WRITE, first + before] = world.slots[NEXT_WRITE, first + slot]


@helper
def use_prefix(world: World, provider: Int, index: Int, slot: Int, readable_ns: Int) -> Int:
    """Start a call with a prefix; return whether (1) it reads it. One that does not writes it."""
    one, here = world.providers[provider], world.shares[provider, index]
    reads = holds(world, provider, index)
    if not here[IS_CACHED]:
        here[IS_CACHED] = 1
        here[WRITTEN_AT] = NONE
        here[FIRST_WRITE] = NOBODY
        one[CACHED] += 1
    here[USED_AT] = world.state[NOW]
    here[USED_LAST] = one[CACHE_USES]
    one[CACHE_USES] += 1
    if reads:
        return np.int64(1)
    here[WRITTEN_AT] = NONE
    world.slots[READABLE_AT, one[SLOTS_FROM] + slot] = readable_ns
    world.slots[NEXT_WRITE, one[SLOTS_FROM] + slot] = here[FIRST_WRITE]
    here[FIRST_WRITE] = slot
    if one[CACHE_CAPACITY] != NONE and one[CACHED] > one[CACHE_CAPACITY]:
        forget_oldest(world, provider)
    return np.int64(0)


@helper
def forget_oldest(world: World, provider: Int) -> None:
    """Forget the prefix that was least recently used."""
    oldest, used = 0, np.int64(NEVER)
    for index in range(world.workloads.shape[0]):
        here = world.shares[provider, index]
        if here[IS_CACHED] and here[USED_LAST] < used:
            oldest, used = index, here[USED_LAST]
    world.shares[provider, oldest, IS_CACHED] = 0
    world.shares[provider, oldest, FIRST_WRITE] = NOBODY
    world.providers[provider, CACHED] -= 1


@helper
def stop_writing(world: World, provider: Int, index: Int, slot: Int) -> None:
    """Forget what the attempt on a slot was writing, if it ends before its first token."""
    here, first = world.shares[provider, index], world.providers[provider, SLOTS_FROM]
    if not here[IS_CACHED]:
        return
    note_written(world, provider, index)
    before, at = np.int64(NOBODY), here[FIRST_WRITE]
    while at != NOBODY and at != slot:
        before, at = at, world.slots[NEXT_WRITE, first + at]
    if at == slot:
        remove_write(world, here, first, before, slot)
        if here[FIRST_WRITE] == NOBODY and here[WRITTEN_AT] == NONE:
            here[IS_CACHED] = 0
            world.providers[provider, CACHED] -= 1


# Users


@helper
def leave(world: World, index: Int, number: Int) -> None:
    """Let the user of a request leave, ask again at once, or think."""
    one, user = world.workloads[index], world.requests[USER, number]
    at = one[USERS_FROM] + user
    think_ns = world.load_ns[one[REQUESTS_FROM] + world.requests[POSITION, number]]
    if user >= one[PRESENT]:
        world.users[USER_STATE, at] = AWAY
    elif think_ns == 0:
        come_back(world, one, user)
    else:
        world.users[USER_STATE, at] = THINKING
        world.users[THINKS_AFTER, at] = number
        plan_event(world, think_ns, THOUGHT_ENDS, number)


@helper
def stop_thinking(world: World, number: Int) -> None:
    """Bring a user back, unless it left (and perhaps came again) while it was thinking."""
    one, user = world.workloads[world.requests[WORKLOAD, number]], world.requests[USER, number]
    at = one[USERS_FROM] + user
    if world.users[USER_STATE, at] == THINKING and world.users[THINKS_AFTER, at] == number:
        come_back(world, one, user)


@helper
def come_back(world: World, one: IntArray, user: Int) -> None:
    """Let a user of a workload ask at the arrivals of this instant."""
    world.users[USER_STATE, one[USERS_FROM] + user] = RETURNING
    world.users[RETURNS, one[USERS_FROM] + one[RETURNED]] = user
    one[RETURNED] += 1


@helper
def change_users(world: World, change: Int) -> None:
    """Let users come at once, and thinking ones leave at once; a busy one leaves after its request."""
    index = 0
    while not world.workloads[index, STEPS_FROM] <= change < world.workloads[index, STEPS_TO]:
        index += 1
    one = world.workloads[index]
    if change + 1 < one[STEPS_TO]:
        plan_event(world, world.changes[AT, change + 1] - world.state[NOW], USERS_CHANGE, change + 1)
    one[PRESENT] = world.changes[TO, change]
    for user in range(one[MOST_USERS]):
        at = one[USERS_FROM] + user
        if user < one[PRESENT] and world.users[USER_STATE, at] == AWAY:
            come_back(world, one, user)
        elif user >= one[PRESENT] and world.users[USER_STATE, at] == THINKING:
            world.users[USER_STATE, at] = AWAY


@helper
def issue_returned(world: World, one: IntArray) -> Bool:
    """Issue a request for each user who came back, in ascending order; return False if the draws ran out."""
    first, count = one[USERS_FROM], one[RETURNED]
    one[RETURNED] = 0
    sort(world.users[RETURNS, first:], count)
    for at in range(first, first + count):
        user = world.users[RETURNS, at]
        world.users[USER_STATE, first + user] = AWAY
        has_ended = one[LOAD_END] != NONE and world.state[NOW] >= one[LOAD_END]
        if user >= one[PRESENT] or has_ended:
            continue
        if one[ISSUED] == one[DRAWN]:
            if one[LOAD_END] != NONE:
                return False
            continue
        world.users[USER_STATE, first + user] = BUSY_USER
        world.requests[ASKED_BY, one[REQUESTS_FROM] + one[ISSUED]] = user
        one[ISSUED] += 1
    return True
