"""The compiled walk through a run at one shared provider: every grant held against the rules, in one pass.

It follows `sim.check.grants`, which stays the one to read, and shares nothing with the engines. An
attempt is a *row* of the provider's attempts. Its *rank*, its place in the order of the queue, is known
beforehand, and so are the orders in which attempts start and end: no heap is needed. The first waiting
attempts of requests of one workload that hold equally many slots are bits in a tree of words; see
`sim.check.bit_tree`. The free slots are a ring of links, the one free longest first.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sim.check.bit_tree import clear_bit, first_bit, set_bit
from sim.contract import output as interface
from sim.contract.limit import CALLS_UNIT, INPUT_UNIT, OUTPUT_UNIT
from sim.contract.output import NO_SLOT
from sim.engine.native import helper, kernel, part, refer
from sim.units import IntArray

Int = int | np.int64
Bool = bool | np.bool_

NOBODY = -1
NONE = -1
NEVER = (1 << 63) - 1
MOST_LEVEL = 1 << 60
"""How full a bucket may be, and how much may be taken of it at once, in its own units."""

# A function is compiled anew for each constant it is called with, but not for each of these.
REJECTED, CANCELLED = np.array([interface.REJECTED, interface.CANCELLED])
ONE, ONE_LESS = np.array([1, -1])

# What can be wrong with an attempt; 0 is nothing. With TOO_FAR the walk left the range of 64 bits.
FINE, TOO_FAR = np.array([0, 1])
NOT_STARTED, OTHER_SLOT, NOT_DUE, TAKEN_SLOT, OTHER_HIT, ADMITTED = np.arange(2, 8)

# Elements of `Walk.state`.
(
    NOW,
    ARRIVED,
    ANSWERED,
    STEPPED,
    TURNED_AWAY,
    ENDED_FROM,
    ENDED,
    READIED,
    STARTED,
    ACTIVE_WEIGHT,
    SLOTS,
    BUSY,
    WAITING,
    LEVELS,
    FEWEST_FIRST,
    SHARES,
    LENDS,
    HAS_CACHE,
    TAKES_CACHE_RECORDS,
    CACHE_TTL,
    CACHE_CAPACITY,
    CACHED,
    CACHE_USES,
    REJECTIONS_COUNT,
    CACHED_TOKENS_COUNT,
    GRANTS,
    DUE,
    REFUSED,
    REFUSED_UNTIL,
    BROKEN,
    BROKEN_AT,
    STATE_SIZE,
) = range(32)

# Columns of `Walk.workloads`. HERE is how many of the slots it holds.
(
    WEIGHT,
    COUNTS_FOR,
    MAX_DEGREE,
    RANK,
    RESERVED,
    HERE,
    HAS_TOKENS,
    TOKENS_FROM,
    CALLS,
    IS_CACHED,
    USED_AT,
    USED_LAST,
    WRITTEN_AT,
    FIRST_WRITE,
    WORKLOAD_SIZE,
) = range(15)

PREFIX, RESERVED_OUTPUT, CALL_SIZE = range(3)
IS_BUCKET, UNIT, PER_NS, SCALE, CAPACITY, LEVEL, SINCE, METER_SIZE = range(8)
AT, TO = range(2)
HELD, FIRST_WAITING, LAST_WAITING, LEAST, GREATEST, REQUEST_ROWS = range(6)
FREE_SINCE, NEXT, BEFORE, IS_FREE, IS_HELD, SLOT_ROWS = range(6)
READABLE_AFTER, NEXT_WRITE, WRITE_ROWS = range(3)


class Walk(NamedTuple):
    """The tables of a run at one provider, and who waits, who holds what, which slots are free; int64.

    Parameters
    ----------
    state
        [STATE_SIZE], named above.
    workloads, calls, meters
        [workloads, WORKLOAD_SIZE], [workloads, calls, CALL_SIZE], [meters, METER_SIZE]. RANK counts the
        workloads that go first; USED_LAST, WRITTEN_AT (ns) and FIRST_WRITE are about its prefix. Of fixed
        windows LEVEL counts what was admitted and SINCE the window.
    steps, turned_away_ns
        [2, steps] and [n]: when (AT) the provider has how many slots (TO), and when any of them turned
        somebody away, ascending.
    workload, position, arrival_ns, completion_ns, by_completion
        [requests], by their number, which is in order of arrival; and their order by completion (int32).
    seen_ns
        [workloads, calls + 1]: when a dispatch that somebody waited for last had each cap (at most as many
        as calls); no rows where the cap is always the same.
    number, call, ready_ns, start_ns, finish_ns, slot, outcome, hit
        [rows], as in `Attempts`.
    by_ready, rank, by_start, by_finish
        int32[rows]: rows in the order of the queue, and back; in the order of their starts, those that
        never got a slot left out; in the order of their ends.
    tokens_in, tokens_out
        As drawn, each workload's from its TOKENS_FROM, by position and call; nothing where nobody looks.
    writes
        [WRITE_ROWS, rows], or no rows without a cache: after how long (ns) a prefix that is written can be
        read (2^61: never), and the next in the list of writes.
    granted
        int32[rows]: its place among the grants, or no rows where there is no limit to settle at.
    requests, next_waiting
        int32[REQUEST_ROWS, requests] and int32[rows]: what a request holds, its waiting attempts in the
        order of the queue, of which only the first has a bit, and its LEAST and GREATEST cap meanwhile.
    slots
        [SLOT_ROWS, slots + 1]: the last is where the ring of free ones begins and ends.
    bits, height_from
        [workloads * levels, words]: a tree of bits for each workload and number of slots held, or one for
        each workload where no cap can bind; where each height begins.
    """

    state: IntArray
    workloads: IntArray
    calls: IntArray
    meters: IntArray
    steps: IntArray
    turned_away_ns: IntArray
    workload: IntArray
    position: IntArray
    arrival_ns: IntArray
    completion_ns: IntArray
    by_completion: npt.NDArray[np.int32]
    seen_ns: IntArray
    number: IntArray
    call: IntArray
    ready_ns: IntArray
    start_ns: IntArray
    finish_ns: IntArray
    slot: IntArray
    outcome: IntArray
    hit: IntArray
    by_ready: npt.NDArray[np.int32]
    rank: npt.NDArray[np.int32]
    by_start: npt.NDArray[np.int32]
    by_finish: npt.NDArray[np.int32]
    tokens_in: IntArray
    tokens_out: IntArray
    writes: IntArray
    granted: npt.NDArray[np.int32]
    requests: npt.NDArray[np.int32]
    next_waiting: npt.NDArray[np.int32]
    slots: IntArray
    bits: IntArray
    height_from: IntArray


@kernel
def walk_through(arrays: Walk) -> int:
    """Walk through a run; return FINE or the rule broken, by the row in BROKEN_AT.

    Nobody is left waiting at the end: an attempt that starts when it was not granted a slot is a fault, and
    one that never starts leaves the queue when it ends.
    """
    walk = refer(arrays)
    state = walk.state
    now = next_instant(walk)
    while now != NEVER and state[BROKEN] == FINE:
        state[NOW] = now
        begin_instant(walk)
        if state[WAITING] and len(walk.seen_ns):
            note_caps(walk)
        if state[TURNED_AWAY] < len(walk.turned_away_ns) and walk.turned_away_ns[state[TURNED_AWAY]] == now:
            state[TURNED_AWAY] += 1
            take_unsettled(walk)
        dispatch(walk)
        now = next_instant(walk)
        if now != NEVER:
            look_between(walk, now)
    return state[BROKEN]


@helper
def next_instant(walk: Walk) -> Int:
    """Return when something happens next, or NEVER."""
    state, now = walk.state, np.int64(NEVER)
    if state[ARRIVED] < len(walk.arrival_ns):
        now = walk.arrival_ns[state[ARRIVED]]
    if state[ANSWERED] < len(walk.by_completion):
        now = min(now, walk.completion_ns[walk.by_completion[state[ANSWERED]]])
    if state[READIED] < len(walk.by_ready):
        now = min(now, walk.ready_ns[walk.by_ready[state[READIED]]])
    if state[STARTED] < len(walk.by_start):
        now = min(now, walk.start_ns[walk.by_start[state[STARTED]]])
    if state[ENDED] < len(walk.by_finish):
        now = min(now, walk.finish_ns[walk.by_finish[state[ENDED]]])
    if state[STEPPED] < walk.steps.shape[1]:
        now = min(now, walk.steps[AT, state[STEPPED]])
    if state[TURNED_AWAY] < len(walk.turned_away_ns):
        now = min(now, walk.turned_away_ns[state[TURNED_AWAY]])
    return now


@helper
def fault(walk: Walk, rule: Int, row: Int) -> None:
    """Note the first rule broken, and the row that breaks it."""
    if walk.state[BROKEN] == FINE:
        walk.state[BROKEN], walk.state[BROKEN_AT] = rule, row


# One instant


@helper
def begin_instant(walk: Walk) -> None:
    """Let everything at one instant happen that comes before its dispatch."""
    state = walk.state
    now = state[NOW]
    state[ENDED_FROM] = state[ENDED]
    while state[ARRIVED] < len(walk.arrival_ns) and walk.arrival_ns[state[ARRIVED]] == now:
        state[ACTIVE_WEIGHT] += walk.workloads[walk.workload[state[ARRIVED]], COUNTS_FOR]
        state[ARRIVED] += 1
    while state[ANSWERED] < len(walk.by_completion):
        number = walk.by_completion[state[ANSWERED]]
        if walk.completion_ns[number] != now:
            break
        state[ACTIVE_WEIGHT] -= walk.workloads[walk.workload[number], COUNTS_FOR]
        state[ANSWERED] += 1
    while state[ENDED] < len(walk.by_finish) and walk.finish_ns[walk.by_finish[state[ENDED]]] == now:
        state[ENDED] += 1
    if len(walk.granted):
        sort_by_grant(walk, state[ENDED_FROM], state[ENDED])
    for at in range(state[ENDED_FROM], state[ENDED]):
        row = np.int64(walk.by_finish[at])
        if walk.slot[row] != NO_SLOT and walk.start_ns[row] < now:
            finish(walk, row)
    while state[READIED] < len(walk.by_ready) and walk.ready_ns[walk.by_ready[state[READIED]]] == now:
        wait(walk, np.int64(walk.by_ready[state[READIED]]))
        state[READIED] += 1
    for at in range(state[ENDED_FROM], state[ENDED]):
        row = np.int64(walk.by_finish[at])
        if walk.slot[row] == NO_SLOT and walk.outcome[row] != REJECTED:
            leave_queue(walk, row)
    if state[STEPPED] < walk.steps.shape[1] and walk.steps[AT, state[STEPPED]] == now:
        set_slots(walk, walk.steps[TO, state[STEPPED]])
        state[STEPPED] += 1


@helper
def sort_by_grant(walk: Walk, first: Int, last: Int) -> None:
    """Sort attempts that end together by their grants, then the cancelled by their rows (Shell's sort)."""
    rows, gap = walk.by_finish, 1
    while gap < (last - first) // 3:
        gap = 3 * gap + 1
    while gap:
        for place in range(first + gap, last):
            row, at = np.int64(rows[place]), place
            key = ends_after(walk, row)
            while at >= first + gap and ends_after(walk, np.int64(rows[at - gap])) > key:
                rows[at] = rows[at - gap]
                at -= gap
            rows[at] = row
        gap //= 3


@helper
def ends_after(walk: Walk, row: Int) -> Int:
    """Return a number by which attempts that end at one instant are in order."""
    return len(walk.granted) + row if walk.outcome[row] == CANCELLED else np.int64(walk.granted[row])


@helper
def take_unsettled(walk: Walk) -> None:
    """Take the grants of an instant with a rejection as they are: first those that end within it."""
    state = walk.state
    state[REFUSED] = NOBODY
    if state[HAS_CACHE] and state[CACHE_CAPACITY] != NONE and len(walk.workloads) > 1:
        state[TAKES_CACHE_RECORDS] = 1
    for at in range(state[ENDED_FROM], state[ENDED]):
        row = np.int64(walk.by_finish[at])
        if walk.slot[row] == NO_SLOT and walk.outcome[row] == REJECTED:
            leave_queue(walk, row)
            count_rejection(walk)
    first = state[STARTED]
    find_started(walk)
    for lasts in range(2):
        for at in range(first, state[STARTED]):
            row = np.int64(walk.by_start[at])
            if (walk.finish_ns[row] > state[NOW]) != lasts:
                continue
            if lasts and not walk.slots[IS_FREE, walk.slot[row]]:
                fault(walk, TAKEN_SLOT, row)
                return
            grant(walk, row)
            if not lasts:
                finish(walk, row)


@helper
def dispatch(walk: Walk) -> None:
    """Grant what the allocation grants, and compare it with what was granted."""
    state, ring = walk.state, walk.slots.shape[1] - 1
    left = find_started(walk)
    while True:
        row = admissible(walk)
        if row == NOBODY:
            break
        if walk.slot[row] == NO_SLOT or walk.start_ns[row] != state[NOW]:
            fault(walk, NOT_STARTED, row)
        elif walk.slot[row] != walk.slots[NEXT, ring]:
            fault(walk, OTHER_SLOT, row)
        else:
            grant(walk, row)
            left -= 1
    if left:
        fault(walk, NOT_DUE, np.int64(walk.by_start[state[STARTED] - 1]))


@helper
def look_between(walk: Walk, next_ns: Int) -> None:
    """Make sure that the limits do not admit who waits for them until the next instant of the tables."""
    state, ring = walk.state, walk.slots.shape[1] - 1
    nothing_free = walk.slots[NEXT, ring] == ring or state[BUSY] >= state[SLOTS]
    if nothing_free or state[WAITING] == 0 or state[BROKEN] != FINE or walk.meters.shape[0] == 0:
        return
    row = state[DUE]  # and was not admitted
    if row == state[REFUSED] and next_ns <= state[REFUSED_UNTIL]:
        return
    while row != NOBODY:
        after_ns = min(admitted_after_ns(walk, row), readable_after_ns(walk, row))
        if state[NOW] + after_ns >= next_ns:
            if not state[TAKES_CACHE_RECORDS]:
                state[REFUSED], state[REFUSED_UNTIL] = row, state[NOW] + after_ns
            break
        state[NOW] += after_ns
        if admits(walk, row):
            fault(walk, ADMITTED, row)
            break


@helper
def admitted_after_ns(walk: Walk, row: Int) -> Int:
    """Return how long until every limit admits an attempt, if it goes on to need what it needs now."""
    reads, after_ns = would_read(walk, row), np.int64(0)
    for at in range(walk.meters.shape[0]):
        meter, wanted = walk.meters[at], amount(walk, at, row, reads, reserved_output(walk, row))
        refill(meter, walk.state[NOW])
        if meter[IS_BUCKET]:
            missing = min(wanted * meter[SCALE], meter[CAPACITY]) - meter[LEVEL]
            after_ns = max(after_ns, -(-missing // meter[PER_NS]))
        elif meter[LEVEL] != 0 and meter[LEVEL] + wanted > meter[CAPACITY]:
            after_ns = max(after_ns, (meter[SINCE] + 1) * meter[SCALE] - walk.state[NOW])
    return after_ns


@helper
def readable_after_ns(walk: Walk, row: Int) -> Int:
    """Return how long until one that writes the prefix of an attempt has its first token next."""
    after_ns, now = np.int64(MOST_LEVEL), walk.state[NOW]
    one = walk.workloads[walk.workload[walk.number[row]]]
    if not walk.state[HAS_CACHE] or prefix(walk, row) == 0 or not one[IS_CACHED]:
        return after_ns
    writer = one[FIRST_WRITE]
    while writer != NOBODY:
        readable_ns = walk.start_ns[writer] + walk.writes[READABLE_AFTER, writer]
        if readable_ns > now:
            after_ns = min(after_ns, readable_ns - now)
        writer = walk.writes[NEXT_WRITE, writer]
    return after_ns


@helper
def find_started(walk: Walk) -> Int:
    """Move on beyond the attempts that start at this instant; return how many they are."""
    state = walk.state
    first = state[STARTED]
    while state[STARTED] < len(walk.by_start):
        if walk.start_ns[walk.by_start[state[STARTED]]] != state[NOW]:
            break
        state[STARTED] += 1
    return state[STARTED] - first


# Who is due


@helper
def admissible(walk: Walk) -> Int:
    """Return the row that is due, if there is a slot for it and the limits admit it; or NOBODY."""
    state, ring = walk.state, walk.slots.shape[1] - 1
    nothing_free = walk.slots[NEXT, ring] == ring or state[BUSY] >= state[SLOTS]
    if nothing_free or state[WAITING] == 0 or state[BROKEN] != FINE:
        return np.int64(NOBODY)
    row = due(walk)
    state[DUE] = row
    if row == NOBODY or walk.meters.shape[0] == 0:
        return row
    return row if admits(walk, row) else np.int64(NOBODY)


@helper
def due(walk: Walk) -> Int:
    """Return the row that the allocation serves next, or NOBODY."""
    state = walk.state
    best: Int = NOBODY
    best_group: Int = 0
    best_held: Int = 0
    for index in range(walk.workloads.shape[0]):
        if not has_room(walk, index):
            continue
        group = group_of(walk, index)
        if best != NOBODY and group > best_group:
            continue
        for held in range(min(cap(walk, index), state[LEVELS])):
            rank = first_bit(walk.bits, walk.height_from, index * state[LEVELS] + held)
            if rank == NOBODY:
                continue
            fewest = held if state[FEWEST_FIRST] else 0
            same = best != NOBODY and group == best_group
            if not same or fewest < best_held or (fewest == best_held and rank < best):
                best, best_group, best_held = rank, group, fewest
    return best if best == NOBODY else np.int64(walk.by_ready[best])


@part
def group_of(walk: Walk, index: Int) -> Int:
    """Return who goes first: workloads below what they lent to others, then by RANK."""
    one = walk.workloads[index]
    lent = walk.state[LENDS] and one[HERE] < one[RESERVED]
    return one[RANK] + (0 if lent else walk.workloads.shape[0])


@helper
def has_room(walk: Walk, index: Int) -> Bool:
    """Return whether a workload may take one more of the slots, some of which may be kept for others."""
    if walk.state[LENDS] or walk.workloads[index, HERE] < walk.workloads[index, RESERVED]:
        return True
    kept: Int = 0
    for other in range(walk.workloads.shape[0]):
        if other != index:
            kept += max(0, walk.workloads[other, RESERVED] - walk.workloads[other, HERE])
    return walk.state[BUSY] + kept < walk.state[SLOTS]


@helper
def cap(walk: Walk, index: Int) -> Int:
    """Return how many slots one request of a workload may hold now."""
    state = walk.state
    most = state[SLOTS]
    if state[SHARES]:
        most = max(1, most * walk.workloads[index, WEIGHT] // max(1, state[ACTIVE_WEIGHT]))
    return min(most, walk.workloads[index, MAX_DEGREE])


@helper
def note_caps(walk: Walk) -> None:
    """Note the caps of this dispatch, at most as many as a request has calls."""
    most = walk.seen_ns.shape[1] - 1
    for index in range(walk.workloads.shape[0]):
        walk.seen_ns[index, min(most, cap(walk, index))] = walk.state[NOW]


@helper
def note_waited(walk: Walk, row: Int) -> None:
    """Note the caps of all dispatches at which an attempt was queued that is granted now."""
    number = walk.number[row]
    seen_ns = walk.seen_ns[walk.workload[number]]
    for one in range(len(seen_ns)):
        if seen_ns[one] >= walk.ready_ns[row]:
            least = walk.requests[LEAST, number]
            walk.requests[LEAST, number] = min(least, one) if least else one
            walk.requests[GREATEST, number] = max(walk.requests[GREATEST, number], one)


# Waiting, holding, ending


@helper
def wait(walk: Walk, row: Int) -> None:
    """Let an attempt wait behind those of its request, which were all ready before it."""
    number = walk.number[row]
    walk.next_waiting[row] = NOBODY
    if walk.requests[FIRST_WAITING, number] == NOBODY:
        walk.requests[FIRST_WAITING, number] = row
        set_bit(walk.bits, walk.height_from, tree_of(walk, number), np.int64(walk.rank[row]))
    else:
        walk.next_waiting[walk.requests[LAST_WAITING, number]] = row
    walk.requests[LAST_WAITING, number] = row
    walk.state[WAITING] += 1


@helper
def leave_queue(walk: Walk, row: Int) -> None:
    """Take an attempt out of the queue."""
    number, after = walk.number[row], walk.next_waiting[row]
    at = walk.requests[FIRST_WAITING, number]
    if at == row:
        walk.requests[FIRST_WAITING, number] = after
        clear_bit(walk.bits, walk.height_from, tree_of(walk, number), np.int64(walk.rank[row]))
        if after != NOBODY:
            set_bit(walk.bits, walk.height_from, tree_of(walk, number), np.int64(walk.rank[after]))
    else:
        while walk.next_waiting[at] != row:
            at = walk.next_waiting[at]
        walk.next_waiting[at] = after
        if after == NOBODY:
            walk.requests[LAST_WAITING, number] = at
    walk.state[WAITING] -= 1


@part
def tree_of(walk: Walk, number: Int) -> Int:
    """Return the tree of a request's waiting attempts: by its workload, and by what it holds."""
    levels = walk.state[LEVELS]
    return walk.workload[number] * levels + min(np.int64(walk.requests[HELD, number]), levels - 1)


@helper
def hold(walk: Walk, number: Int, change: Int) -> None:
    """Change what a request holds, and file its first waiting attempt accordingly."""
    before = tree_of(walk, number)
    walk.requests[HELD, number] += change
    after = tree_of(walk, number)
    walk.workloads[walk.workload[number], HERE] += change
    walk.state[BUSY] += change
    row = walk.requests[FIRST_WAITING, number]
    if after != before and row != NOBODY:
        clear_bit(walk.bits, walk.height_from, before, np.int64(walk.rank[row]))
        set_bit(walk.bits, walk.height_from, after, np.int64(walk.rank[row]))


@helper
def grant(walk: Walk, row: Int) -> None:
    """Give an attempt its slot, and hold its cache record against the cache."""
    reads = would_read(walk, row)
    if len(walk.seen_ns):
        note_waited(walk, row)
    take_slot(walk, walk.slot[row])
    walk.slots[IS_HELD, walk.slot[row]] = 1
    if len(walk.granted):
        walk.granted[row] = walk.state[GRANTS]
        walk.state[GRANTS] += 1
    leave_queue(walk, row)
    hold(walk, walk.number[row], ONE)
    for at in range(walk.meters.shape[0]):
        take(walk, at, amount(walk, at, row, reads, reserved_output(walk, row)))
    if walk.state[HAS_CACHE] and not walk.state[TAKES_CACHE_RECORDS] and prefix(walk, row):
        use_prefix(walk, row, reads)
        if reads != walk.hit[row]:
            fault(walk, OTHER_HIT, row)


@helper
def finish(walk: Walk, row: Int) -> None:
    """Take an attempt's slot back and settle what it used."""
    walk.slots[IS_HELD, walk.slot[row]] = 0
    if walk.slot[row] < walk.state[SLOTS]:
        free_slot(walk, walk.slot[row])
    hold(walk, walk.number[row], ONE_LESS)
    for at in range(walk.meters.shape[0]):
        settle(walk, at, row)
    if walk.state[HAS_CACHE] and walk.hit[row] == 0:
        abandon(walk, row)


# Free slots


@helper
def set_slots(walk: Walk, slots: Int) -> None:
    """Offer so many slots from now on."""
    before = walk.state[SLOTS]
    walk.state[SLOTS] = slots
    for slot in range(before, slots):
        if not walk.slots[IS_HELD, slot]:
            free_slot(walk, slot)
    for slot in range(slots, before):
        take_slot(walk, slot)


@helper
def free_slot(walk: Walk, slot: Int) -> None:
    """Put a slot into the ring: behind those free for longer, and the lower ones of this instant."""
    slots, now = walk.slots, walk.state[NOW]
    if slots[IS_FREE, slot]:
        return
    ring = slots.shape[1] - 1
    after = slots[BEFORE, ring]
    while after != ring and slots[FREE_SINCE, after] == now and after > slot:
        after = slots[BEFORE, after]
    following = slots[NEXT, after]
    slots[FREE_SINCE, slot], slots[IS_FREE, slot] = now, 1
    slots[BEFORE, slot], slots[NEXT, slot] = after, following
    slots[NEXT, after], slots[BEFORE, following] = slot, slot


@helper
def take_slot(walk: Walk, slot: Int) -> None:
    """Take a slot out of the ring, if it is there."""
    slots = walk.slots
    if slots[IS_FREE, slot]:
        slots[IS_FREE, slot] = 0
        slots[NEXT, slots[BEFORE, slot]] = slots[NEXT, slot]
        slots[BEFORE, slots[NEXT, slot]] = slots[BEFORE, slot]


# Limits


@part
def prefix(walk: Walk, row: Int) -> Int:
    """Return the tokens of the shared prefix that an attempt carries."""
    return walk.calls[walk.workload[walk.number[row]], walk.call[row], PREFIX]


@part
def reserved_output(walk: Walk, row: Int) -> Int:
    """Return the output tokens that admitting an attempt reserves."""
    return walk.calls[walk.workload[walk.number[row]], walk.call[row], RESERVED_OUTPUT]


@part
def token_row(walk: Walk, row: Int) -> Int:
    """Return where the tokens of an attempt are."""
    number = walk.number[row]
    one = walk.workloads[walk.workload[number]]
    return one[TOKENS_FROM] + walk.position[number] * one[CALLS] + walk.call[row]


@helper
def amount(walk: Walk, at: Int, row: Int, reads: Bool, received: Int) -> Int:
    """Return how much an attempt counts for at a meter, given the tokens that come back."""
    unit = walk.meters[at, UNIT]
    if unit == CALLS_UNIT:
        return np.int64(1)
    if not walk.workloads[walk.workload[walk.number[row]], HAS_TOKENS]:
        return np.int64(0)
    sent = walk.tokens_in[token_row(walk, row)]
    if reads and not walk.state[CACHED_TOKENS_COUNT]:
        sent = max(np.int64(0), sent - prefix(walk, row))
    if unit == INPUT_UNIT:
        return sent
    return received if unit == OUTPUT_UNIT else sent + received


@helper
def admits(walk: Walk, row: Int) -> Bool:
    """Return whether every limit admits an attempt now."""
    if row == walk.state[REFUSED] and walk.state[NOW] < walk.state[REFUSED_UNTIL]:
        return False
    reads = would_read(walk, row)
    for at in range(walk.meters.shape[0]):
        meter, wanted = walk.meters[at], amount(walk, at, row, reads, reserved_output(walk, row))
        refill(meter, walk.state[NOW])
        if meter[IS_BUCKET]:
            if meter[LEVEL] < min(wanted * meter[SCALE], meter[CAPACITY]):
                return False
        elif meter[LEVEL] != 0 and meter[LEVEL] + wanted > meter[CAPACITY]:
            return False
    return True


@helper
def take(walk: Walk, at: Int, taken: Int) -> None:
    """Admit an amount at a meter."""
    meter = walk.meters[at]
    walk.state[REFUSED] = NOBODY
    refill(meter, walk.state[NOW])
    if meter[IS_BUCKET]:
        meter[LEVEL] -= taken * meter[SCALE]
        if meter[LEVEL] < -MOST_LEVEL:
            fault(walk, TOO_FAR, np.int64(NOBODY))
    else:
        meter[LEVEL] += taken


@helper
def settle(walk: Walk, at: Int, row: Int) -> None:
    """Give back to a meter what an attempt reserved and did not use; take what it used beyond that."""
    meter, received = walk.meters[at], np.int64(0)
    walk.state[REFUSED] = NOBODY
    if walk.workloads[walk.workload[walk.number[row]], HAS_TOKENS]:
        received = walk.tokens_out[token_row(walk, row)]
    hit = walk.hit[row] == 1
    read = hit and walk.state[HAS_CACHE] != 0 and prefix(walk, row) != 0
    unused = amount(walk, at, row, read, reserved_output(walk, row)) - amount(walk, at, row, hit, received)
    refill(meter, walk.state[NOW])
    if meter[IS_BUCKET]:
        meter[LEVEL] = min(meter[CAPACITY], meter[LEVEL] + unused * meter[SCALE])
        if meter[LEVEL] < -MOST_LEVEL:
            fault(walk, TOO_FAR, np.int64(NOBODY))
    elif walk.start_ns[row] >= meter[SINCE] * meter[SCALE]:
        meter[LEVEL] -= unused


@helper
def count_rejection(walk: Walk) -> None:
    """Count a rejected call where rejections count."""
    if walk.state[REJECTIONS_COUNT]:
        for at in range(walk.meters.shape[0]):
            if walk.meters[at, UNIT] == CALLS_UNIT:
                take(walk, at, ONE)


@helper
def refill(meter: IntArray, now: Int) -> None:
    """Let a bucket be as full as it is now, or begin a window."""
    if meter[IS_BUCKET]:
        elapsed = now - meter[SINCE]
        missing = meter[CAPACITY] - meter[LEVEL]
        if elapsed == 0 or missing == 0:
            meter[SINCE] = now
            return
        # The product is taken only where it is less than what is missing, and so fits.
        enough = elapsed > missing // meter[PER_NS]
        meter[LEVEL] = meter[CAPACITY] if enough else meter[LEVEL] + elapsed * meter[PER_NS]
        meter[SINCE] = now
    elif now >= (meter[SINCE] + 1) * meter[SCALE]:
        meter[SINCE], meter[LEVEL] = now // meter[SCALE], 0


# The prefix cache


@helper
def would_read(walk: Walk, row: Int) -> Bool:
    """Return whether an attempt that starts now reads its prefix."""
    if walk.state[TAKES_CACHE_RECORDS]:
        # The record is of its start; what the cache had before is not known.
        return walk.hit[row] == 1 and walk.start_ns[row] == walk.state[NOW]
    if not walk.state[HAS_CACHE] or prefix(walk, row) == 0:
        return False
    one = walk.workloads[walk.workload[walk.number[row]]]
    if not one[IS_CACHED]:
        return False
    note_written(walk, one)
    fresh_to = max(one[USED_AT], one[WRITTEN_AT]) + walk.state[CACHE_TTL]
    return one[WRITTEN_AT] != NONE and walk.state[NOW] < fresh_to


@helper
def note_written(walk: Walk, one: IntArray) -> None:
    """Take what can be read by now off the list of writes of a workload."""
    writes, before, row = walk.writes, np.int64(NOBODY), one[FIRST_WRITE]
    while row != NOBODY:
        readable_ns = walk.start_ns[row] + writes[READABLE_AFTER, row]
        if readable_ns <= walk.state[NOW]:
            one[WRITTEN_AT] = max(one[WRITTEN_AT], readable_ns)
            remove_write(writes, one, before, row)
        else:
            before = row
        row = writes[NEXT_WRITE, row]


@helper
def remove_write(writes: IntArray, one: IntArray, before: Int, row: Int) -> None:
    """Take an attempt off the list of writes, given the one before it."""
    if before == NOBODY:
        one[FIRST_WRITE] = writes[NEXT_WRITE, row]
    else:
        writes[NEXT_WRITE, before] = writes[NEXT_WRITE, row]


@helper
def use_prefix(walk: Walk, row: Int, reads: Bool) -> None:
    """Start an attempt with a prefix, which it reads or writes."""
    state, one = walk.state, walk.workloads[walk.workload[walk.number[row]]]
    if not one[IS_CACHED]:
        one[IS_CACHED], one[WRITTEN_AT], one[FIRST_WRITE] = 1, NONE, NOBODY
        state[CACHED] += 1
    one[USED_AT], one[USED_LAST] = state[NOW], state[CACHE_USES]
    state[CACHE_USES] += 1
    if reads:
        return
    # What was written before has been forgotten; what others are writing now is still to come.
    one[WRITTEN_AT] = NONE
    walk.writes[NEXT_WRITE, row] = one[FIRST_WRITE]
    one[FIRST_WRITE] = row
    if state[CACHE_CAPACITY] != NONE and state[CACHED] > state[CACHE_CAPACITY]:
        forget_oldest(walk)


@helper
def forget_oldest(walk: Walk) -> None:
    """Forget the prefix that was used least recently."""
    oldest = np.int64(NOBODY)
    for index in range(walk.workloads.shape[0]):
        one = walk.workloads[index]
        if one[IS_CACHED] and (oldest == NOBODY or one[USED_LAST] < walk.workloads[oldest, USED_LAST]):
            oldest = np.int64(index)
    walk.workloads[oldest, IS_CACHED] = 0
    walk.state[CACHED] -= 1


@helper
def abandon(walk: Walk, row: Int) -> None:
    """Forget what an attempt was writing, if it ends before its first token."""
    writes, one = walk.writes, walk.workloads[walk.workload[walk.number[row]]]
    if not one[IS_CACHED] or prefix(walk, row) == 0:
        return
    note_written(walk, one)
    before, at = np.int64(NOBODY), one[FIRST_WRITE]
    while at != NOBODY and at != row:
        before = at
        at = writes[NEXT_WRITE, at]
    if at == row:
        remove_write(writes, one, before, row)
        if one[FIRST_WRITE] == NOBODY and one[WRITTEN_AT] == NONE:
            one[IS_CACHED] = 0
            walk.state[CACHED] -= 1
