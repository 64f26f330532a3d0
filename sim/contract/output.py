"""What every engine gives: what happened to every request and at every attempt. Times int64 ns."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sim.units import BoolArray, IntArray, stretches

# How an attempt ended.
OK, SERVER_ERROR, RATE_LIMITED, TIMED_OUT, REJECTED, CANCELLED = range(6)
ATTEMPT_OUTCOMES = ("ok", "server_error", "rate_limited", "timed_out", "rejected", "cancelled")

# How a request ended.
SUCCEEDED, DEGRADED, FAILED, DEADLINE_MISSED = range(4)
REQUEST_OUTCOMES = ("succeeded", "degraded", "failed", "timed_out")

NO_SLOT = -1


@dataclass(frozen=True, repr=False)
class Attempts:
    """Every attempt at a call, in order of request, call and attempt; one element each, whole numbers.

    Parameters
    ----------
    number, call, attempt
        The request, its call, and the 0-based attempt.
    ready_ns, start_ns, finish_ns
        It joined the queue, got its slot, gave it back. One that never got a slot starts when it ends.
    slot
        `NO_SLOT` where it never got one.
    outcome
        One of `OK` .. `CANCELLED`.
    hit
        1 where the provider had its prefix cached, 0 where it had not, -1 where it carries none.
    """

    number: IntArray
    call: IntArray
    attempt: IntArray
    ready_ns: IntArray
    start_ns: IntArray
    finish_ns: IntArray
    slot: IntArray
    outcome: IntArray
    hit: IntArray


@dataclass(frozen=True, repr=False)
class RunOutput:
    """What happened. Requests of all workloads are numbered together, in order of arrival.

    Parameters
    ----------
    workload, position
        int64[requests]: which workload, and the 0-based place among its requests (the row of its draws).
    user, ran_parallel, arrival_ns, completion_ns, outcome
        As for one workload; `outcome` is one of `SUCCEEDED` .. `DEADLINE_MISSED`.
    join_start_ns
        int64[requests]: when the join began; -1 where it never did.
    attempts
        Every attempt of every request.
    active_integral_ns
        For each workload, its active requests x time, summed by the engine as it went.
    tokens_outstanding
        What the limits reserved and never settled: 0, or something leaked.
    slots_held
        Slots that were still held at the end: 0, or something leaked.
    """

    workload: IntArray
    position: IntArray
    user: IntArray
    ran_parallel: BoolArray
    arrival_ns: IntArray
    completion_ns: IntArray
    outcome: IntArray
    join_start_ns: IntArray
    attempts: Attempts
    active_integral_ns: tuple[int, ...]
    tokens_outstanding: int
    slots_held: int
    engine: str

    @property
    def requests(self) -> int:
        return len(self.arrival_ns)

    @property
    def horizon_ns(self) -> int:
        """The end of the run: its last completion (0 for an empty run)."""
        return int(self.completion_ns.max(initial=0))

    @cached_property
    def latency_ns(self) -> IntArray:
        """int64[requests]: completion - arrival, whatever the outcome."""
        return self.completion_ns - self.arrival_ns

    @cached_property
    def delivered(self) -> BoolArray:
        """bool[requests]: which were answered with a join, of all branches or of those that were left."""
        return np.less_equal(self.outcome, DEGRADED)

    @cached_property
    def longest_stay_ns(self) -> int:
        """The longest time from an arrival to the end of the request's last attempt, answered or not."""
        number, finish_ns = self.attempts.number, self.attempts.finish_ns
        stays = (finish_ns[rows] - self.arrival_ns[number[rows]] for rows in stretches(len(number)))
        return max((int(some_ns.max(initial=0)) for some_ns in stays), default=0)

    @cached_property
    def counted(self) -> BoolArray:
        """bool[attempts]: which counted, at most one of each call.

        That is the one that succeeded, of two at one instant the first made, else the last that held a slot.
        """
        attempts = self.attempts
        held: BoolArray = np.not_equal(attempts.slot, NO_SLOT)
        if not attempts.attempt.any():
            return held
        rows = np.flatnonzero(held)
        number, call = attempts.number[rows], attempts.call[rows]
        at = np.cumsum(np.append(False, (number[1:] != number[:-1]) | (call[1:] != call[:-1])))[: len(rows)]
        again = np.bincount(at)[at] > 1
        several, at = rows[again], at[again]
        attempt, outcome = attempts.attempt[several], attempts.outcome[several]
        is_ok = outcome == OK
        # What is cancelled ends after all else at its instant.
        later = (np.where(is_ok, -attempt, attempt), outcome == CANCELLED, attempts.finish_ns[several])
        order = np.lexsort((*later, is_ok, at))
        is_last = np.append(at[1:] != at[:-1], True)[: len(at)]  # the calls stay where they are
        held[several[order[~is_last]]] = False
        return held
