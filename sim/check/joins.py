"""When a request's join began and how the request ended, held against the ends of its attempts."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sim.contract.output import DEADLINE_MISSED, DEGRADED, OK, SUCCEEDED, RunOutput
from sim.contract.run import NEVER_NS, RunInput, WorkloadInput
from sim.units import BoolArray, IntArray


@dataclass(frozen=True, repr=False)
class Ends:
    """When the branches of one workload's requests ended; `NEVER_NS` for what never was.

    Parameters
    ----------
    request
        int64[n]: the requests, by number.
    done_ns
        int64[n, branches]: when each branch was answered.
    last_ns
        int64[n]: when the last attempt at a branch ended.
    join_ready_ns, join_done_ns
        int64[n]: when the first attempt at the join was ready, and when the join was answered, where the join
        is a call.
    """

    request: IntArray
    done_ns: IntArray
    last_ns: IntArray
    join_ready_ns: IntArray
    join_done_ns: IntArray


def ends_of(workload: WorkloadInput, out: RunOutput, index: int) -> Ends:
    """Return when the branches of a workload's requests ended, and the joins that are calls."""
    attempts, mine = out.attempts, np.flatnonzero(out.workload == index)
    place = np.zeros(len(out.workload), dtype=np.int64)
    place[mine] = np.arange(len(mine))
    rows = np.flatnonzero(out.workload[attempts.number] == index)
    row, call = place[attempts.number[rows]], attempts.call[rows]
    finish_ns, is_ok = attempts.finish_ns[rows], attempts.outcome[rows] == OK
    done_ns = np.full((len(mine), workload.branches + 1), NEVER_NS)
    done_ns[row[is_ok], call[is_ok]] = finish_ns[is_ok]
    last_ns, join_ready_ns = np.zeros(len(mine), dtype=np.int64), np.full(len(mine), NEVER_NS)
    is_branch = call < workload.branches
    np.maximum.at(last_ns, row[is_branch], finish_ns[is_branch])
    is_join = ~is_branch & (attempts.attempt[rows] == 0)
    join_ready_ns[row[is_join]] = attempts.ready_ns[rows[is_join]]
    return Ends(mine, done_ns[:, :-1], last_ns, join_ready_ns, done_ns[:, -1])


def join_rules(given: RunInput, out: RunOutput) -> Iterator[tuple[str, BoolArray]]:
    """Yield (rule, whether each request breaks it), bool[requests] each."""
    ends = [ends_of(one, out, index) for index, one in enumerate(given.workloads)]
    for rule, breaks in RULES.items():
        broken = np.zeros(len(out.workload), dtype=np.bool_)
        for one, of_one in zip(given.workloads, ends, strict=True):
            broken[of_one.request] = breaks(one, out, of_one)
        yield rule, broken


def begins_otherwise(one: WorkloadInput, out: RunOutput, ends: Ends) -> BoolArray:
    """Return whose join did not begin when it had what it waits for: so many, or all done or lost."""
    join_start_ns = out.join_start_ns[ends.request]
    needs = one.faults.needs if one.faults else None
    due_ns = ends.last_ns if needs is None else np.sort(ends.done_ns, axis=1)[:, needs - 1]
    return np.asarray((join_start_ns >= 0) & (join_start_ns != due_ns))


def lacks_a_branch(one: WorkloadInput, out: RunOutput, ends: Ends) -> BoolArray:
    """Return whose join began without a branch that it cannot do without."""
    join_start_ns = out.join_start_ns[ends.request]
    if one.faults and one.faults.needs is not None:
        return np.zeros(len(join_start_ns), dtype=np.bool_)
    required = ~np.array(one.faults.optional if one.faults else (False,) * one.branches)
    missing = (ends.done_ns > join_start_ns[:, None])[:, required].any(axis=1)
    return np.asarray((join_start_ns >= 0) & missing)


def gives_up_too_soon(one: WorkloadInput, out: RunOutput, ends: Ends) -> BoolArray:
    """Return who was given up although its join could begin, or was complete, by then."""
    completion_ns, outcome = out.completion_ns[ends.request], out.outcome[ends.request]
    join_start_ns, parallel = out.join_start_ns[ends.request], out.ran_parallel[ends.request]
    needs = (one.faults.needs if one.faults else None) or one.branches
    is_enough = (ends.done_ns <= completion_ns[:, None]).sum(axis=1) >= needs
    joined_ns = join_start_ns + np.where(parallel, one.join_ns[out.position[ends.request]], 0)
    if one.join_holds_slot:
        joined_ns = np.where(parallel, ends.join_done_ns, join_start_ns)
    early = np.where(join_start_ns < 0, is_enough, joined_ns <= completion_ns)
    return np.asarray((outcome > DEGRADED) & early)


def is_mistaken(_one: WorkloadInput, out: RunOutput, ends: Ends) -> BoolArray:
    """Return who is called whole without all branches, or degraded with them."""
    outcome, join_start_ns = out.outcome[ends.request], out.join_start_ns[ends.request]
    is_whole = (ends.done_ns <= join_start_ns[:, None]).all(axis=1)
    return np.asarray(outcome == np.where(is_whole, DEGRADED, SUCCEEDED))


def joins_otherwise(one: WorkloadInput, out: RunOutput, ends: Ends) -> BoolArray:
    """Return whose join is a call that was not ready at its beginning, or did not end at the answer."""
    joins = out.ran_parallel[ends.request] & (out.join_start_ns[ends.request] >= 0) & one.join_holds_slot
    delivered = out.outcome[ends.request] <= DEGRADED
    late = ends.join_ready_ns != out.join_start_ns[ends.request]
    return np.asarray(joins & (late | (delivered & (ends.join_done_ns != out.completion_ns[ends.request]))))


def misses_otherwise(one: WorkloadInput, out: RunOutput, ends: Ends) -> BoolArray:
    """Return who was not given up just at its deadline."""
    deadline_ns = one.faults.deadline_ns if one.faults else None
    latency_ns, missed = out.latency_ns[ends.request], out.outcome[ends.request] == DEADLINE_MISSED
    if deadline_ns is None:
        return np.asarray(missed)
    return np.asarray(np.where(missed, latency_ns != deadline_ns, latency_ns > deadline_ns))


RULES = {
    "began its join at another time than it had what that waits for": begins_otherwise,
    "began its join without a branch that it needs": lacks_a_branch,
    "was given up although its join could begin or was complete": gives_up_too_soon,
    "is called whole or degraded and is not": is_mistaken,
    "has a join that began or ended at another time than it should": joins_otherwise,
    "was given up at another time than its deadline, or not then": misses_otherwise,
}
