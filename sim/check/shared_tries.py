"""Every attempt after the first at a call, held against what came before: pauses, hedges and the budget."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sim.contract.plain import BoolArray
from sim.contract.run import (
    CANCELLED,
    NEVER_NS,
    NO_SLOT,
    OK,
    PPM,
    REJECTED,
    Faults,
    SharedOutput,
    WorkloadInput,
)
from sim.units import IntArray


@dataclass(frozen=True, repr=False)
class Tries:
    """The attempts of one workload in order of request, call and attempt, and the calls that they are at.

    Parameters
    ----------
    request, call, attempt, ready_ns, start_ns, finish_ns, outcome
        int64[attempts], as in `Attempts`; the request by number.
    held
        bool[attempts]: whether it got a slot.
    settled_ns
        int64[attempts]: when no more attempts at its call were needed, since the join had begun, or of a join
        since the request was answered.
    first, last
        int64[calls made]: where the attempts at each call begin and end.
    """

    request: IntArray
    call: IntArray
    attempt: IntArray
    ready_ns: IntArray
    start_ns: IntArray
    finish_ns: IntArray
    outcome: IntArray
    held: BoolArray
    settled_ns: IntArray
    first: IntArray
    last: IntArray

    @property
    def tries(self) -> IntArray:
        """int64[calls made]: how many attempts each call had."""
        return self.last - self.first + 1

    @property
    def failed(self) -> BoolArray:
        """bool[attempts]: whether it ended by itself and without an answer."""
        return np.asarray((self.outcome != OK) & (self.outcome != CANCELLED))

    @property
    def given_up(self) -> BoolArray:
        """bool[calls made]: whether all attempts failed."""
        if not len(self.first):
            return self.failed
        return np.asarray(np.logical_and.reduceat(self.failed, self.first))


def tries_of(one: WorkloadInput, out: SharedOutput, index: int) -> Tries:
    """Return the attempts of a workload in the order of their calls."""
    attempts = out.attempts
    rows = np.flatnonzero(out.workload[attempts.number] == index)
    key = (attempts.number * one.calls_per_request + attempts.call)[rows]
    is_first = np.ones(len(rows), dtype=np.bool_)
    is_first[1:] = key[1:] != key[:-1]
    first = np.flatnonzero(is_first)
    request, call = attempts.number[rows], attempts.call[rows]
    settled_ns = np.where(out.join_start_ns < 0, out.completion_ns, out.join_start_ns)[request]
    return Tries(
        request=request,
        call=call,
        attempt=attempts.attempt[rows],
        ready_ns=attempts.ready_ns[rows],
        start_ns=attempts.start_ns[rows],
        finish_ns=attempts.finish_ns[rows],
        outcome=attempts.outcome[rows],
        held=attempts.slot[rows] != NO_SLOT,
        settled_ns=np.where(call < one.branches, settled_ns, out.completion_ns[request]),
        first=first,
        last=np.append(first[1:], len(rows))[: len(first)] - 1,
    )


def broken_tries(one: WorkloadInput, out: SharedOutput, tries: Tries) -> Iterator[tuple[str, BoolArray]]:
    """Yield (rule, whether each attempt breaks it), bool[attempts] each."""
    made_of = np.repeat(np.arange(len(tries.first)), tries.tries)
    yield (
        "has a call of which an attempt is missing",
        tries.attempt != np.arange(len(made_of)) - tries.first[made_of],
    )
    yield "made an attempt at a call that it no longer needed", tries.ready_ns > tries.settled_ns
    faults = one.faults
    if faults is None or not len(made_of):
        return
    due_ns, hedge_ns = paused_until_ns(one, faults, out, tries), hedged_ns(one, faults, tries)
    yield (
        "made another attempt at another time than its pause ended or its hedge was due",
        made_otherwise(faults, tries, due_ns, hedge_ns),
    )
    if faults.retry_budget_ppm is not None:
        yield (
            "made another attempt that the retry budget does not allow",
            beyond_budget(faults.retry_budget_ppm, tries, hedge_ns),
        )
        return
    yield "did not try a failed call again", not_tried_again(faults, tries, due_ns)
    yield "did not hedge a slow call", not_hedged(faults, tries, hedge_ns)


def paused_until_ns(one: WorkloadInput, faults: Faults, out: SharedOutput, tries: Tries) -> IntArray:
    """Return when the pause after each attempt ends, at the soonest where it was turned away by a limit."""
    least_ns = np.array(faults.backoff_ns, dtype=np.int64)[tries.attempt]
    jitter_ppm = faults.jitter_ppm[out.position[tries.request], tries.call, tries.attempt]
    jitter_ppm = np.where(tries.call < one.branches, jitter_ppm, 0)
    # The product is taken in parts, which fit in 64 bits.
    more_ns = least_ns // PPM * jitter_ppm + least_ns % PPM * jitter_ppm // PPM
    pause_ns = np.where(tries.outcome == REJECTED, np.maximum(1, least_ns + more_ns), least_ns + more_ns)
    return np.asarray(tries.finish_ns + pause_ns)


def hedged_ns(one: WorkloadInput, faults: Faults, tries: Tries) -> IntArray:
    """Return when another attempt joins the first attempts that still run; `NEVER_NS` for all others."""
    after_ns = np.array([NEVER_NS if one_ns is None else one_ns for one_ns in faults.hedge_after_ns])
    after_ns = after_ns[tries.call]
    hedges = tries.held & (tries.attempt == 0) & (tries.call < one.branches) & (after_ns < NEVER_NS)
    at_ns = tries.start_ns + np.where(hedges, after_ns, 0)
    # What is cancelled at that very instant may have been alive when it came.
    alive = (tries.finish_ns > at_ns) | ((tries.finish_ns == at_ns) & (tries.outcome == CANCELLED))
    return np.where(hedges & alive, at_ns, NEVER_NS)


def must_hedge(tries: Tries, hedge_ns: IntArray) -> BoolArray:
    """Return which attempts must be hedged, unless there may be no more of them."""
    return (tries.finish_ns > hedge_ns) & (tries.settled_ns > hedge_ns)


def made_otherwise(faults: Faults, tries: Tries, due_ns: IntArray, hedge_ns: IntArray) -> BoolArray:
    """Return which further attempts were neither due after a pause nor as a hedge."""
    broken = np.zeros(len(tries.call), dtype=np.bool_)
    further = np.flatnonzero(tries.attempt > 0)
    second = tries.attempt[further] == 1
    hedges = second & (tries.ready_ns[further] == hedge_ns[further - 1])
    retries = np.zeros(len(further), dtype=np.bool_)
    for before in (1, 2):
        ended = further - before
        told = tries.outcome[ended] == REJECTED
        ready_ns = tries.ready_ns[further]
        on_time = np.where(told, ready_ns >= due_ns[ended], ready_ns == due_ns[ended])
        retries |= on_time & is_latest(tries, further, before)
    if faults.retry_budget_ppm is None:
        retries &= ~(second & must_hedge(tries, hedge_ns)[further - 1])
    broken[further] = ~(hedges | retries)
    return broken


def is_latest(tries: Tries, further: IntArray, before: int) -> BoolArray:
    """Return whether the attempt so many before each was the last to end, and none before it is answered.

    Only the first two attempts at a call can run beside each other.
    """
    one, pairs = further - before, tries.attempt[further] == 2
    other = np.where(pairs, further - (3 - before), one)
    is_one = np.ones(len(further), dtype=np.bool_) if before == 1 else pairs
    both_failed = tries.failed[one] & tries.failed[other]
    return np.asarray(is_one & both_failed & (tries.finish_ns[one] >= tries.finish_ns[other]))


def beyond_budget(budget_ppm: int, tries: Tries, hedge_ns: IntArray) -> BoolArray:
    """Return which further attempts were one too many for the first attempts made by then.

    Those that were decided and not made, since their request had ended by then, count too and are not known.
    """
    broken = np.zeros(len(tries.call), dtype=np.bool_)
    further = np.flatnonzero(tries.attempt > 0)
    ended_ns = tries.finish_ns[further - 1]
    pairs = tries.attempt[further] == 2
    ended_ns = np.where(pairs, np.maximum(ended_ns, tries.finish_ns[further - 2]), ended_ns)
    hedges = (tries.attempt[further] == 1) & (tries.ready_ns[further] == hedge_ns[further - 1])
    decided_ns = np.where(hedges, tries.ready_ns[further], ended_ns)
    firsts = np.searchsorted(np.sort(tries.ready_ns[tries.first]), decided_ns, side="right")
    more = np.searchsorted(np.sort(decided_ns), decided_ns, side="right")
    broken[further] = more * PPM > budget_ppm * firsts
    return broken


def not_tried_again(faults: Faults, tries: Tries, due_ns: IntArray) -> BoolArray:
    """Return the last attempts at failed calls that should have had another one."""
    broken = np.zeros(len(tries.call), dtype=np.bool_)
    last = tries.last[tries.given_up & (tries.tries < faults.most_attempts)]
    pairs = tries.attempt[last] == 1
    other = np.where(pairs, last - 1, last)
    told = (tries.outcome[last] == REJECTED) | (tries.outcome[other] == REJECTED)
    until_ns = np.maximum(due_ns[last], due_ns[other])
    # When one that was turned away was to come again is not in the tables.
    broken[last] = ~told & (tries.settled_ns[last] > until_ns)
    return broken


def not_hedged(faults: Faults, tries: Tries, hedge_ns: IntArray) -> BoolArray:
    """Return the only attempts at calls that should have been hedged."""
    broken = np.zeros(len(tries.call), dtype=np.bool_)
    only = tries.first[tries.tries == 1]
    broken[only] = must_hedge(tries, hedge_ns)[only] & (faults.most_attempts > 1)
    return broken
