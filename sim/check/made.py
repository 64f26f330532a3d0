"""Which calls a request made, and when, held against its graph and against what had ended by then."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sim.check.first_tokens import first_tokens_ns
from sim.check.tries import Tries, broken_tries, tries_of
from sim.contract.output import FAILED, OK, RunOutput
from sim.contract.run import NEVER_NS, RunInput, WorkloadInput
from sim.plan.schedule import serial_order
from sim.units import BoolArray, IntArray


@dataclass(frozen=True, repr=False)
class Calls:
    """The calls of one workload's requests; `NEVER_NS` for what never was.

    Parameters
    ----------
    request, arrival_ns, settled_ns
        int64[n]: by number; when the join began, or the answer came without one.
    ready_ns, done_ns, lost_ns
        int64[n, calls]: when each call was made, answered, or lost: all its attempts failed, or it needed a
        branch that was lost.
    is_unsure
        bool[n]: whether a branch counts as lost that may have been waiting for another attempt instead, which
        a retry budget leaves open.
    """

    request: IntArray
    arrival_ns: IntArray
    settled_ns: IntArray
    ready_ns: IntArray
    done_ns: IntArray
    lost_ns: IntArray
    is_unsure: BoolArray


def made_rules(given: RunInput, out: RunOutput) -> Iterator[tuple[str, BoolArray]]:
    """Yield (rule, whether each request breaks it), bool[requests] each."""
    for index, one in enumerate(given.workloads):
        tries = tries_of(one, out, index)
        for rule, rows in broken_tries(one, out, tries):
            broken = np.zeros(len(out.workload), dtype=np.bool_)
            broken[tries.request[rows]] = True
            yield rule, broken
        calls = calls_of(one, out, index, tries)
        for rule, requests in broken_calls(one, out, calls, due_ns(one, out, tries, calls)):
            broken = np.zeros(len(out.workload), dtype=np.bool_)
            broken[calls.request] = requests
            yield rule, broken


def calls_of(one: WorkloadInput, out: RunOutput, index: int, tries: Tries) -> Calls:
    """Return what became of each call of a workload's requests."""
    mine = np.flatnonzero(out.workload == index)
    place = np.zeros(len(out.workload), dtype=np.int64)
    place[mine] = np.arange(len(mine))
    row, call = place[tries.request[tries.first]], tries.call[tries.first]
    shape = (len(mine), one.calls_per_request)
    ready_ns, done_ns, lost_ns = (np.full(shape, NEVER_NS) for _ in range(3))
    ready_ns[row, call] = tries.ready_ns[tries.first]
    answered = tries.outcome == OK
    done_ns[place[tries.request[answered]], tries.call[answered]] = tries.finish_ns[answered]
    most, has_budget = 1, False
    if one.faults is not None:
        most, has_budget = one.faults.most_attempts, one.faults.retry_budget_ppm is not None
    lost = tries.given_up & ((tries.tries == most) | has_budget)
    if len(tries.first):
        last_ns = np.maximum.reduceat(tries.finish_ns, tries.first)
        lost_ns[row[lost], call[lost]] = last_ns[lost]
    is_unsure = np.zeros(len(mine), dtype=np.bool_)
    is_unsure[row[lost & (tries.tries < most)]] = True
    lose_dependents(one, lost_ns)
    join_start_ns = out.join_start_ns[mine]
    settled_ns = np.where(join_start_ns < 0, out.completion_ns[mine], join_start_ns)
    return Calls(mine, out.arrival_ns[mine], settled_ns, ready_ns, done_ns, lost_ns, is_unsure)


def lose_dependents(one: WorkloadInput, lost_ns: IntArray) -> None:
    """Let every branch be lost when one that it needs is."""
    for branch in serial_order(one.dependencies[: one.branches]):
        needs = list(one.dependencies[branch])
        if needs:
            lost_ns[:, branch] = np.minimum(lost_ns[:, branch], lost_ns[:, needs].min(axis=1))


def due_ns(one: WorkloadInput, out: RunOutput, tries: Tries, calls: Calls) -> IntArray:
    """Return when each branch was to be made, int64[n, branches]; `NEVER_NS` for never."""
    parallel = out.ran_parallel[calls.request]
    due = np.full((len(calls.request), one.branches), NEVER_NS)
    waits_ns = calls.arrival_ns
    for branch in one.serial_order:
        needs = list(one.dependencies[branch])
        is_lost = (calls.lost_ns[:, needs] < NEVER_NS).any(axis=1)
        due[:, branch] = np.where(is_lost, NEVER_NS, waits_ns)
        ends_ns = np.minimum(calls.done_ns[:, branch], calls.lost_ns[:, branch])
        waits_ns = np.where(is_lost, waits_ns, ends_ns)
    roots = [branch for branch in range(one.branches) if not one.dependencies[branch]]
    for branch in range(one.branches):
        needs = list(one.dependencies[branch])
        at_once_ns = calls.done_ns[:, needs].max(axis=1) if needs else calls.arrival_ns
        due[parallel, branch] = at_once_ns[parallel]
    if one.warm_first:
        ends_ns = np.minimum(calls.done_ns[:, roots[0]], calls.lost_ns[:, roots[0]])
        begins_ns = np.minimum(ends_ns, warmed_ns(one, out, tries, roots[0])[calls.request])
        for branch in roots[1:]:
            due[parallel, branch] = begins_ns[parallel]
    return due


def warmed_ns(one: WorkloadInput, out: RunOutput, tries: Tries, leader: int) -> IntArray:
    """Return the first token of an attempt at the leading call (int64[requests of the run])."""
    warm_ns = np.full(len(out.workload), NEVER_NS)
    rows = np.flatnonzero(tries.held & (tries.call == leader))
    request = tries.request[rows]
    after_ns = first_tokens_ns(one, out.position[request], tries.call[rows], tries.attempt[rows])
    begins = after_ns <= tries.finish_ns[rows] - tries.start_ns[rows]
    np.minimum.at(warm_ns, request[begins], (tries.start_ns[rows] + after_ns)[begins])
    return warm_ns


def broken_calls(
    one: WorkloadInput, out: RunOutput, calls: Calls, due: IntArray
) -> Iterator[tuple[str, BoolArray]]:
    """Yield (rule, whether each request breaks it), bool[n] each."""
    ready_ns, settled_ns = calls.ready_ns[:, : one.branches], calls.settled_ns
    made = ready_ns < NEVER_NS
    yield "made a call at another time than it was due", (made & (ready_ns != due)).any(axis=1)
    missing = (~made & (due < settled_ns[:, None])).any(axis=1)
    yield "did not make a call that was due", missing & ~calls.is_unsure
    faults = one.faults
    joined = out.join_start_ns[calls.request] >= 0
    if faults is None or faults.needs is None:
        ended_ns = np.minimum(calls.done_ns, calls.lost_ns)[:, : one.branches]
        yield (
            "began its join before a branch was done or lost",
            joined & (ended_ns > settled_ns[:, None]).any(axis=1),
        )
    ends_ns, failed = hopeless_ns(one, calls), out.outcome[calls.request] == FAILED
    yield "failed at another time than it became hopeless", failed & ~fails_on_time(one, out, calls, ends_ns)
    yield "went on although it was hopeless", ~calls.is_unsure & (ends_ns < settled_ns)


def fails_on_time(one: WorkloadInput, out: RunOutput, calls: Calls, ends_ns: IntArray) -> BoolArray:
    """Return whether each request was answered when it had lost what it cannot do without (bool[n])."""
    completion_ns = out.completion_ns[calls.request]
    lost_then = calls.lost_ns == completion_ns[:, None]
    on_time = np.where(calls.is_unsure, lost_then.any(axis=1), ends_ns == completion_ns)
    if one.join_holds_slot:
        on_time = np.where(out.join_start_ns[calls.request] < 0, on_time, lost_then[:, -1])
    return np.asarray(on_time)


def hopeless_ns(one: WorkloadInput, calls: Calls) -> IntArray:
    """Return when so much was lost that the join could never be (int64[n])."""
    lost_ns = calls.lost_ns[:, : one.branches]
    all_lost_ns = lost_ns.max(axis=1)
    if one.faults is not None and one.faults.needs is not None:
        return np.asarray(np.sort(lost_ns, axis=1)[:, one.branches - one.faults.needs])
    required = ~np.array(one.faults.optional if one.faults else (False,) * one.branches)
    return np.asarray(np.minimum(all_lost_ns, lost_ns[:, required].min(axis=1, initial=NEVER_NS)))
