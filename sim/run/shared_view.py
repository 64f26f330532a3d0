"""A run on shared providers in the terms of a plain one: one row per request, one column per call."""

import numpy as np

from sim.check.shared_timeline import provider_of_attempts
from sim.contract.plain import BoolArray
from sim.contract.run import CANCELLED, NO_SLOT, OK, Attempts, SharedInput, SharedOutput
from sim.engine import NO_CALL, EngineOutput
from sim.units import IntArray


def merged_view(given: SharedInput, out: SharedOutput) -> EngineOutput:
    """Return all workloads' requests with, for each call, the attempt that counted.

    That is the one that succeeded, of two at one instant the first made, else the last that held a slot; a
    call without one is `NO_CALL`. Slots of different providers are numbered one after another. Calls that a
    request went without, and calls of workflows with fewer, are empty columns.
    """
    attempts = out.attempts
    calls = max(workload.calls_per_request for workload in given.workloads)
    shape = (len(out.arrival_ns), calls)
    rows = counted(attempts)
    place = (attempts.number[rows], attempts.call[rows])
    columns = {
        "ready_ns": attempts.ready_ns,
        "start_ns": attempts.start_ns,
        "finish_ns": attempts.finish_ns,
        "slot": attempts.slot + first_slot(given, out),
    }
    return EngineOutput(
        user=out.user,
        ran_parallel=out.ran_parallel,
        arrival_ns=out.arrival_ns,
        completion_ns=out.completion_ns,
        **{name: placed(shape, place, values[rows]) for name, values in columns.items()},
        active_integral_ns=sum(out.active_integral_ns),
        engine=out.engine,
    )


def counted(attempts: Attempts) -> IntArray:
    """Return the rows of the attempts that counted, one per call. What is cancelled ends after all else."""
    held = np.flatnonzero(attempts.slot != NO_SLOT)
    is_last = last_of_calls(attempts, held)
    again = ~is_last
    again[1:] |= ~is_last[:-1]
    several = held[again]
    call: IntArray = np.cumsum(is_last)[again] - is_last[again]
    outcome, attempt = attempts.outcome[several], attempts.attempt[several]
    is_ok = outcome == OK
    after = (np.where(is_ok, -attempt, attempt), outcome == CANCELLED, attempts.finish_ns[several], is_ok)
    several = several[np.lexsort((*after, call))]
    return np.concatenate([held[~again], several[last_of_calls(attempts, several)]])


def last_of_calls(attempts: Attempts, rows: IntArray) -> BoolArray:
    """Return whether each of some rows, in order of their calls, is the last of its call."""
    number, call = attempts.number[rows], attempts.call[rows]
    is_last = np.ones(len(rows), dtype=np.bool_)
    is_last[:-1] = (number[1:] != number[:-1]) | (call[1:] != call[:-1])
    return is_last


def first_slot(given: SharedInput, out: SharedOutput) -> IntArray:
    """Return, for each attempt, how many slots the providers before its own have."""
    before = np.cumsum([0, *(provider.most_slots for provider in given.providers)])
    return before[provider_of_attempts(given, out)]


def placed(shape: tuple[int, int], place: tuple[IntArray, IntArray], values: IntArray) -> IntArray:
    """Return an array of `NO_CALL` with values at some places."""
    filled = np.full(shape, NO_CALL, dtype=np.int64)
    filled[place] = values
    return filled
