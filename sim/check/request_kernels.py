"""The compiled check of what each request on shared providers made, and when: one pass over the tables.

It follows `sim.check.run` and the modules of its rules, which stay the ones to read, and shares nothing
with the engines. It knows no rule by name: where a request breaks one, the check to read finds which.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sim.check.kernels import Graph, critical_path, span
from sim.contract.output import ATTEMPT_OUTCOMES, DEGRADED, NO_SLOT, REQUEST_OUTCOMES, SUCCEEDED
from sim.contract.run import PPM
from sim.engine.kernel_sort import sort
from sim.engine.native import helper, kernel, refer
from sim.units import BoolArray, IntArray

Int = int | np.int64
Bool = bool | np.bool_

NOBODY = -1
NONE = -1
NEVER = (1 << 63) - 1

# A function is compiled anew for each constant it is called with, but not for each of these.
OK, _, RATE_LIMITED, TIMED_OUT, REJECTED, CANCELLED = np.arange(len(ATTEMPT_OUTCOMES))
_, _, FAILED, DEADLINE_MISSED = np.arange(len(REQUEST_OUTCOMES))

# Elements of `Rules.settings`. LEADER is the call whose first token others wait for; DECIDED counts.
(
    INDEX,
    CALLS,
    BRANCHES,
    JOIN_HOLDS_SLOT,
    MOST_ATTEMPTS,
    HAS_FAULTS,
    HAS_BUDGET,
    HAS_TOKENS,
    DEADLINE,
    NEEDS,
    LEADER,
    DECIDED,
    WAITS_UNKNOWN,
    CAP,
    SETTING_SIZE,
) = range(15)

MOST_SLOTS, TIMEOUT, HEDGE_AFTER, IS_REQUIRED, CALL_ROWS = range(5)
# Rows of `Rules.scratch`: when each call was made, answered, lost and due, how long its answer took, and what
# is sorted.
MADE, DONE, LOST, DUE, TOOK, SORTED, MORE_SORTED, MOST_SORTED, SCRATCH_ROWS = range(9)


class Tables(NamedTuple):
    """The tables of a run, as in `RunOutput` and `Attempts`; `ended` and `outcome` are their outcomes."""

    workload: IntArray
    position: IntArray
    parallel: BoolArray
    arrival_ns: IntArray
    completion_ns: IntArray
    ended: IntArray
    join_start_ns: IntArray
    number: IntArray
    call: IntArray
    attempt: IntArray
    ready_ns: IntArray
    start_ns: IntArray
    finish_ns: IntArray
    slot: IntArray
    outcome: IntArray


class Rules(NamedTuple):
    """What one workload was given; draws flattened, and nothing where there are none.

    Parameters
    ----------
    settings, calls
        [SETTING_SIZE], [CALL_ROWS, calls], named above.
    serial_order, backoff_ns
        [branches], [attempts].
    service_ns, join_ns, tried_ns, tried, jitter_ppm, first_token_ns
        As drawn: by call, by request, by attempt (`tried` int8: how it ends), and by call.
    decided_ns
        [attempts after the first]: when each was decided on, where a budget counts them.
    scratch
        [SCRATCH_ROWS, calls], for one request.
    """

    settings: IntArray
    calls: IntArray
    serial_order: IntArray
    backoff_ns: IntArray
    service_ns: IntArray
    join_ns: IntArray
    tried_ns: IntArray
    tried: npt.NDArray[np.int8]
    jitter_ppm: IntArray
    first_token_ns: IntArray
    decided_ns: IntArray
    scratch: IntArray


@kernel
def first_wrong(all_tables: Tables, all_rules: Rules, graph: Graph) -> int:
    """Return the first request of a workload that breaks a rule of its own, or NOBODY."""
    tables, rules, edges = refer(all_tables), refer(all_rules), refer(graph)
    row = np.int64(0)
    for number in range(len(tables.workload)):
        first = row
        while row < len(tables.number) and tables.number[row] == number:
            row += 1
        if tables.workload[number] == rules.settings[INDEX]:
            sound = ends_in_order(tables, rules, number) and holds_calls(tables, rules, number, first, row)
            if not sound or not keeps_rules(tables, rules, edges, number, first, row):
                return number
    return NOBODY if row == len(tables.number) else tables.number[row]


@helper
def ends_in_order(tables: Tables, rules: Rules, number: Int) -> Bool:
    """Return whether a request was answered, and at the end of its join or at its deadline."""
    completion_ns, join_ns = tables.completion_ns[number], np.int64(0)
    ended, started_ns = tables.ended[number], tables.join_start_ns[number]
    if completion_ns < tables.arrival_ns[number] or ended < SUCCEEDED:
        return False
    if ended <= DEGRADED:
        if started_ns < 0:
            return False
        holds = tables.parallel[number] and rules.settings[JOIN_HOLDS_SLOT]
        if tables.parallel[number]:
            join_ns = rules.join_ns[tables.position[number]]
        if not holds and completion_ns != started_ns + join_ns:
            return False
    latency_ns, deadline_ns = completion_ns - tables.arrival_ns[number], rules.settings[DEADLINE]
    if ended == DEADLINE_MISSED:
        return latency_ns == deadline_ns
    return deadline_ns == NONE or latency_ns <= deadline_ns


# The attempts, call by call


@helper
def holds_calls(tables: Tables, rules: Rules, number: Int, first: Int, last: Int) -> Bool:
    """Note what became of each call of a request; return whether its attempts are as drawn and when due."""
    calls, scratch = rules.settings[CALLS], rules.scratch
    for call in range(calls):
        scratch[MADE, call] = scratch[DONE, call] = scratch[LOST, call] = NEVER
        scratch[TOOK, call] = 0
    row = first
    while row < last:
        call, begin = tables.call[row], row
        if not 0 <= call < calls or (begin > first and call <= tables.call[begin - 1]):
            return False
        while row < last and tables.call[row] == call:
            at = row - begin
            if tables.attempt[row] != at or not is_as_drawn(tables, rules, number, row):
                return False
            row += 1
        if not holds_call(tables, rules, number, begin, row):
            return False
    return True


@helper
def is_as_drawn(tables: Tables, rules: Rules, number: Int, row: Int) -> Bool:
    """Return whether an attempt could be, did not go backwards in time, and lasted and ended as drawn."""
    call, outcome = tables.call[row], tables.outcome[row]
    ready_ns, start_ns, finish_ns = tables.ready_ns[row], tables.start_ns[row], tables.finish_ns[row]
    if tables.attempt[row] >= rules.settings[MOST_ATTEMPTS] or tables.slot[row] < NO_SLOT:
        return False
    if tables.slot[row] >= rules.calls[MOST_SLOTS, call]:
        return False
    if ready_ns < tables.arrival_ns[number] or start_ns < ready_ns or finish_ns < start_ns:
        return False
    is_cancelled = outcome == CANCELLED
    if tables.slot[row] == NO_SLOT:
        return is_cancelled or outcome == REJECTED
    lasts_ns, ends = drawn(tables, rules, number, row)
    if is_cancelled:
        return finish_ns - start_ns < lasts_ns
    return finish_ns - start_ns == lasts_ns and outcome == ends


@helper
def drawn(tables: Tables, rules: Rules, number: Int, row: Int) -> tuple[Int, Int]:
    """Return how long an attempt holds its slot by the draws, and how it ends."""
    call, settings = tables.call[row], rules.settings
    at = tables.position[number] * settings[CALLS] + call
    if not settings[HAS_FAULTS] or call >= settings[BRANCHES]:
        return rules.service_ns[at], OK
    at = at * settings[MOST_ATTEMPTS] + tables.attempt[row]
    lasts_ns, ends, timeout_ns = rules.tried_ns[at], np.int64(rules.tried[at]), rules.calls[TIMEOUT, call]
    if ends == TIMED_OUT or lasts_ns > timeout_ns:
        return timeout_ns, TIMED_OUT
    return lasts_ns, ends


@helper
def holds_call(tables: Tables, rules: Rules, number: Int, first: Int, last: Int) -> Bool:
    """Note what became of a call; return whether its attempts were needed and due, and none is missing."""
    settings, scratch, call = rules.settings, rules.scratch, tables.call[first]
    given_up: Bool = True
    ended_ns = np.int64(0)
    scratch[MADE, call] = tables.ready_ns[first]
    for row in range(first, last):
        if tables.ready_ns[row] > settled_ns(tables, rules, number, call):
            return False
        if row > first and settings[HAS_FAULTS] and not was_due(tables, rules, number, row):
            return False
        if tables.outcome[row] == OK:
            if scratch[DONE, call] == NEVER:
                scratch[TOOK, call] = tables.finish_ns[row] - tables.start_ns[row]
            scratch[DONE, call] = tables.finish_ns[row]
        given_up = given_up and failed(tables, row)
        ended_ns = max(ended_ns, tables.finish_ns[row])
    more = last - first < settings[MOST_ATTEMPTS]
    if given_up and (settings[HAS_BUDGET] or not more):
        scratch[LOST, call] = ended_ns
    if not settings[HAS_FAULTS] or settings[HAS_BUDGET] or not more:
        return True
    if last - first == 1 and must_hedge(tables, rules, number, first):
        return False
    return not given_up or not must_go_on(tables, rules, number, last - 1)


@helper
def settled_ns(tables: Tables, rules: Rules, number: Int, call: Int) -> Int:
    """Return when no more attempts at a call were needed."""
    if call < rules.settings[BRANCHES] and tables.join_start_ns[number] >= 0:
        return tables.join_start_ns[number]
    return tables.completion_ns[number]


@helper
def failed(tables: Tables, row: Int) -> Bool:
    """Return whether an attempt ended by itself and without an answer."""
    return tables.outcome[row] != OK and tables.outcome[row] != CANCELLED


@helper
def paused_until_ns(tables: Tables, rules: Rules, number: Int, row: Int) -> Int:
    """Return when the pause after an attempt ends, at the soonest where it was turned away by a limit."""
    settings, call, attempt = rules.settings, tables.call[row], tables.attempt[row]
    pause_ns = rules.backoff_ns[attempt]
    if call < settings[BRANCHES]:
        at = tables.position[number] * settings[CALLS] + call
        jitter_ppm = rules.jitter_ppm[at * settings[MOST_ATTEMPTS] + attempt]
        # The product is taken in parts, which fit in 64 bits.
        pause_ns += pause_ns // PPM * jitter_ppm + pause_ns % PPM * jitter_ppm // PPM
    if tables.outcome[row] == REJECTED:
        pause_ns = max(np.int64(1), pause_ns)
    return tables.finish_ns[row] + pause_ns


@helper
def hedged_ns(tables: Tables, rules: Rules, row: Int) -> Int:
    """Return when another attempt joins a first one that still runs, or NEVER."""
    after_ns, finish_ns = rules.calls[HEDGE_AFTER, tables.call[row]], tables.finish_ns[row]
    if after_ns == NEVER or tables.attempt[row] or tables.slot[row] == NO_SLOT:
        return np.int64(NEVER)
    at_ns = tables.start_ns[row] + after_ns
    # What is cancelled at that very instant may have been alive when it came.
    if finish_ns > at_ns or (finish_ns == at_ns and tables.outcome[row] == CANCELLED):
        return at_ns
    return np.int64(NEVER)


@helper
def must_hedge(tables: Tables, rules: Rules, number: Int, row: Int) -> Bool:
    """Return whether an attempt must be hedged, unless there may be no more of them."""
    at_ns = hedged_ns(tables, rules, row)
    return tables.finish_ns[row] > at_ns and settled_ns(tables, rules, number, tables.call[row]) > at_ns


@helper
def was_due(tables: Tables, rules: Rules, number: Int, row: Int) -> Bool:
    """Return whether a further attempt was due after a pause or as a hedge; note when it was decided on."""
    settings, attempt, before = rules.settings, tables.attempt[row], row - 1
    hedges = attempt == 1 and tables.ready_ns[row] == hedged_ns(tables, rules, before)
    if settings[HAS_BUDGET]:
        decided_ns = tables.finish_ns[before]
        if attempt == 2:
            decided_ns = max(decided_ns, tables.finish_ns[before - 1])
        rules.decided_ns[settings[DECIDED]] = tables.ready_ns[row] if hedges else decided_ns
        settings[DECIDED] += 1
    elif attempt == 1 and not hedges and must_hedge(tables, rules, number, before):
        return False
    # Only the first two attempts at a call can run beside each other.
    other = before - 1 if attempt == 2 else before
    if hedges or follows(tables, rules, number, row, before, other):
        return True
    return attempt == 2 and follows(tables, rules, number, row, other, before)


@helper
def follows(tables: Tables, rules: Rules, number: Int, row: Int, one: Int, other: Int) -> Bool:
    """Return whether an attempt came after the pause of one that was the last of two to fail."""
    due_ns, ready_ns = paused_until_ns(tables, rules, number, one), tables.ready_ns[row]
    on_time = ready_ns >= due_ns if tables.outcome[one] == REJECTED else ready_ns == due_ns
    both_failed = failed(tables, one) and failed(tables, other)
    return on_time and both_failed and tables.finish_ns[one] >= tables.finish_ns[other]


@helper
def must_go_on(tables: Tables, rules: Rules, number: Int, last: Int) -> Bool:
    """Return whether the last attempt at a failed call should have had another one after it."""
    other = last - 1 if tables.attempt[last] == 1 else last
    # When one that was turned away was to come again is not in the tables.
    if tables.outcome[last] == REJECTED or tables.outcome[other] == REJECTED:
        return False
    until_ns = paused_until_ns(tables, rules, number, last)
    until_ns = max(until_ns, paused_until_ns(tables, rules, number, other))
    return settled_ns(tables, rules, number, tables.call[last]) > until_ns


# The request as a whole


@helper
def keeps_rules(tables: Tables, rules: Rules, graph: Graph, number: Int, first: Int, last: Int) -> Bool:
    """Return whether a request made its calls when due, began its join when due, and ended accordingly."""
    settings, scratch = rules.settings, rules.scratch
    branches, is_unsure = settings[BRANCHES], False
    if settings[HAS_BUDGET]:
        for row in range(first, last):
            ends_call = row + 1 == last or tables.call[row + 1] != tables.call[row]
            lost = scratch[LOST, tables.call[row]] < NEVER
            is_unsure |= ends_call and lost and tables.attempt[row] + 1 < settings[MOST_ATTEMPTS]
    if not joins_when_due(tables, rules, number, first, last):
        return False
    lose_dependents(rules, graph)
    set_due(tables, rules, graph, number, first, last)
    settled = settled_ns(tables, rules, number, np.int64(0))
    joined_for_all = tables.join_start_ns[number] >= 0 and settings[NEEDS] == NONE
    for call in range(branches):
        made_ns, due_ns = scratch[MADE, call], scratch[DUE, call]
        if made_ns != due_ns and (made_ns < NEVER or (due_ns < settled and not is_unsure)):
            return False
        if joined_for_all and min(scratch[DONE, call], scratch[LOST, call]) > settled:
            return False
    return fails_when_hopeless(tables, rules, number, is_unsure) and took_its_time(
        tables, rules, graph, number, first, last
    )


@helper
def joins_when_due(tables: Tables, rules: Rules, number: Int, first: Int, last: Int) -> Bool:
    """Return whether the join began and the request ended as the ends of its attempts have it."""
    settings, scratch, branches = rules.settings, rules.scratch, rules.settings[BRANCHES]
    started_ns, completion_ns = tables.join_start_ns[number], tables.completion_ns[number]
    delivered, parallel = tables.ended[number] <= DEGRADED, tables.parallel[number]
    done, is_whole = np.int64(0), True
    last_ns: Int = np.int64(0)
    for row in range(first, last):
        if tables.call[row] < branches:
            last_ns = max(last_ns, tables.finish_ns[row])
    for call in range(branches):
        done += scratch[DONE, call] <= completion_ns
        is_whole = is_whole and scratch[DONE, call] <= started_ns
        is_missing = rules.calls[IS_REQUIRED, call] and scratch[DONE, call] > started_ns
        if started_ns >= 0 and settings[NEEDS] == NONE and is_missing:
            return False
    if settings[NEEDS] != NONE:
        last_ns = nth(rules, scratch[DONE], settings[NEEDS] - 1)
    if started_ns >= 0 and started_ns != last_ns:
        return False
    if tables.ended[number] == (DEGRADED if is_whole else SUCCEEDED):
        return False
    joined_ns = started_ns
    if parallel and settings[JOIN_HOLDS_SLOT]:
        joined_ns = scratch[DONE, branches]
        late = scratch[MADE, branches] != started_ns or (delivered and joined_ns != completion_ns)
        if started_ns >= 0 and late:
            return False
    elif parallel:
        joined_ns += rules.join_ns[tables.position[number]]
    if delivered:
        return True
    needs = settings[NEEDS] if settings[NEEDS] > 0 else branches
    return done < needs if started_ns < 0 else joined_ns > completion_ns


@helper
def nth(rules: Rules, values: IntArray, place: Int) -> Int:
    """Return the value of the branches at a place in ascending order."""
    branches, ordered = rules.settings[BRANCHES], rules.scratch[SORTED]
    for call in range(branches):
        ordered[call] = values[call]
    sort(ordered, branches)
    return ordered[place]


@helper
def lose_dependents(rules: Rules, graph: Graph) -> None:
    """Let every branch be lost when one that it needs is."""
    calls, lost_ns = rules.settings[CALLS], rules.scratch[LOST]
    for at in range(calls):
        call = graph.order[at]
        if call < rules.settings[BRANCHES]:
            for need in range(graph.needs_from[calls + call], graph.needs_from[calls + call + 1]):
                lost_ns[call] = min(lost_ns[call], lost_ns[graph.needs[need]])


@helper
def set_due(tables: Tables, rules: Rules, graph: Graph, number: Int, first: Int, last: Int) -> None:
    """Note when each branch was to be made; NEVER for never."""
    calls, scratch, leader = rules.settings[CALLS], rules.scratch, rules.settings[LEADER]
    arrival_ns = waits_ns = tables.arrival_ns[number]
    for call in range(rules.settings[BRANCHES]):
        scratch[DUE, call] = NEVER
    if not tables.parallel[number]:
        for call in rules.serial_order:
            lost = False
            for need in range(graph.needs_from[calls + call], graph.needs_from[calls + call + 1]):
                lost = lost or scratch[LOST, graph.needs[need]] < NEVER
            if not lost:
                scratch[DUE, call] = waits_ns
                waits_ns = min(scratch[DONE, call], scratch[LOST, call])
        return
    begins_ns = arrival_ns
    if leader != NONE:
        begins_ns = min(scratch[DONE, leader], scratch[LOST, leader])
        begins_ns = min(begins_ns, warmed_ns(tables, rules, number, first, last))
    for call in range(rules.settings[BRANCHES]):
        first_need, end = graph.needs_from[calls + call], graph.needs_from[calls + call + 1]
        due_ns = arrival_ns if first_need < end or call == leader else begins_ns
        for need in range(first_need, end):
            due_ns = max(due_ns, scratch[DONE, graph.needs[need]])
        scratch[DUE, call] = due_ns


@helper
def warmed_ns(tables: Tables, rules: Rules, number: Int, first: Int, last: Int) -> Int:
    """Return the first token of an attempt at the leading call."""
    settings = rules.settings
    warm_ns: Int = np.int64(NEVER)
    for row in range(first, last):
        if tables.call[row] == settings[LEADER] and tables.slot[row] != NO_SLOT:
            lasts_ns, ends = drawn(tables, rules, number, row)
            after_ns: Int = np.int64(0)
            if settings[HAS_TOKENS]:
                after_ns = rules.first_token_ns[tables.position[number] * settings[CALLS] + settings[LEADER]]
            if ends == OK:
                after_ns = min(after_ns, lasts_ns)
            answers = ends != RATE_LIMITED and after_ns <= lasts_ns
            if answers and after_ns <= tables.finish_ns[row] - tables.start_ns[row]:
                warm_ns = min(warm_ns, tables.start_ns[row] + after_ns)
    return warm_ns


@helper
def fails_when_hopeless(tables: Tables, rules: Rules, number: Int, is_unsure: Bool) -> Bool:
    """Return whether a request failed when so much was lost that its join could never be, and only then."""
    settings, lost_ns, branches = rules.settings, rules.scratch[LOST], rules.settings[BRANCHES]
    completion_ns, started_ns = tables.completion_ns[number], tables.join_start_ns[number]
    ends_ns: Int = np.int64(NEVER)
    all_lost_ns, loses_now = np.int64(0), False
    for call in range(settings[CALLS]):
        loses_now = loses_now or lost_ns[call] == completion_ns
        if call < branches:
            all_lost_ns = max(all_lost_ns, lost_ns[call])
            if rules.calls[IS_REQUIRED, call]:
                ends_ns = min(ends_ns, lost_ns[call])
    ends_ns = min(ends_ns, all_lost_ns)
    if settings[NEEDS] != NONE:
        ends_ns = nth(rules, lost_ns, branches - settings[NEEDS])
    if tables.ended[number] == FAILED:
        on_time = loses_now if is_unsure else ends_ns == completion_ns
        if settings[JOIN_HOLDS_SLOT] and started_ns >= 0:
            on_time = lost_ns[branches] == completion_ns
        if not on_time:
            return False
    return is_unsure or ends_ns >= settled_ns(tables, rules, number, np.int64(0))


@helper
def took_its_time(tables: Tables, rules: Rules, graph: Graph, number: Int, first: Int, last: Int) -> Bool:
    """Return whether a delivered request took at least as long as the calls that its join needed."""
    settings, scratch, calls = rules.settings, rules.scratch, rules.settings[CALLS]
    if tables.ended[number] > DEGRADED or settings[JOIN_HOLDS_SLOT]:
        return True
    least_ns = np.int64(0)
    for row in range(first, last):
        # With k of n, a straggler that runs on after the join is not among the calls that the join needed.
        if tables.outcome[row] == OK and tables.finish_ns[row] > tables.join_start_ns[number]:
            return True
    for at in range(calls):
        call = graph.order[at]
        took_ns = scratch[TOOK, call]
        if tables.parallel[number]:
            ready_ns = np.int64(0)
            for need in range(graph.needs_from[calls + call], graph.needs_from[calls + call + 1]):
                ready_ns = max(ready_ns, scratch[SORTED, graph.needs[need]])
            scratch[SORTED, call] = ready_ns + took_ns
            least_ns = max(least_ns, scratch[SORTED, call])
        else:
            least_ns += took_ns
    if tables.parallel[number]:
        least_ns += rules.join_ns[tables.position[number]]
    return tables.completion_ns[number] - tables.arrival_ns[number] >= least_ns


# The list scheduler


@kernel
def count_exact(
    all_tables: Tables,
    all_rules: Rules,
    graph: Graph,
    least: npt.NDArray[np.int32],
    greatest: npt.NDArray[np.int32],
) -> int:
    """Return how many of a workload's requests the list scheduler knows; -1 - the first that differs from it.

    `least` and `greatest` are each request's caps while a call of it was queued; empty where CAP is that.
    """
    tables, rules = refer(all_tables), refer(all_rules)
    row, exact_ones = np.int64(0), np.int64(0)
    for number in range(len(tables.workload)):
        first = row
        while row < len(tables.number) and tables.number[row] == number:
            row += 1
        if tables.workload[number] != rules.settings[INDEX] or not is_simple(
            tables, rules, number, first, row
        ):
            continue
        least_cap = greatest_cap = rules.settings[CAP]
        if len(least):
            least_cap, greatest_cap = np.int64(least[number]), np.int64(greatest[number])
        waited, work_ns = False, np.int64(0)
        at = tables.position[number] * rules.settings[CALLS]
        for attempt in range(first, row):
            waited = waited or tables.start_ns[attempt] > tables.ready_ns[attempt]
            work_ns += rules.service_ns[at + tables.call[attempt]]
        exact: Bool = not waited
        expected_ns: Int = work_ns
        if tables.parallel[number]:
            exact = least_cap == greatest_cap
            if exact and waited:
                exact = held_its_cap(tables, rules, first, row, least_cap)
            expected_ns = critical_path(rules.service_ns, graph, rules.scratch, at)
            if exact and greatest_cap < rules.settings[CALLS]:
                expected_ns = span(rules.service_ns, graph, rules.scratch, at, greatest_cap)
            elif not exact:
                expected_ns = max(expected_ns, -(-work_ns // greatest_cap))
            expected_ns += rules.join_ns[tables.position[number]]
        latency_ns = tables.completion_ns[number] - tables.arrival_ns[number]
        if latency_ns < expected_ns or (exact and latency_ns != expected_ns):
            return -1 - number
        exact_ones += exact
    return int(exact_ones)


@helper
def is_simple(tables: Tables, rules: Rules, number: Int, first: Int, last: Int) -> Bool:
    """Return whether the list scheduler can know a request exactly: nothing but slots ever held it back."""
    if tables.ended[number] != SUCCEEDED or (tables.parallel[number] and rules.settings[LEADER] != NONE):
        return False
    for row in range(first, last):
        if tables.outcome[row] != OK or tables.attempt[row] > 0:
            return False
        if rules.settings[WAITS_UNKNOWN] and tables.start_ns[row] > tables.ready_ns[row]:
            return False
    return True


@helper
def held_its_cap(tables: Tables, rules: Rules, first: Int, last: Int, cap: Int) -> Bool:
    """Return whether a request held at least its cap whenever a call of it was queued after an instant."""
    scratch, calls = rules.scratch, last - first
    ready_ns, start_ns, finish_ns = scratch[SORTED], scratch[MORE_SORTED], scratch[MOST_SORTED]
    for row in range(first, last):
        ready_ns[row - first] = tables.ready_ns[row]
        start_ns[row - first] = tables.start_ns[row]
        finish_ns[row - first] = tables.finish_ns[row]
    for values in (ready_ns, start_ns, finish_ns):
        sort(values, calls)
    ready, started, finished = np.int64(0), np.int64(0), np.int64(0)
    while started < calls:
        now = min(start_ns[started], finish_ns[finished])
        if ready < calls:
            now = min(now, ready_ns[ready])
        while ready < calls and ready_ns[ready] == now:
            ready += 1
        while started < calls and start_ns[started] == now:
            started += 1
        while finished < calls and finish_ns[finished] == now:
            finished += 1
        if ready > started and started - finished < cap:
            return False
    return True
