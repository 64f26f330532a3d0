"""A run on shared providers in the terms of a plain one: one row per request, one column per call."""

import numpy as np

from sim.check.timeline import provider_of_attempts
from sim.contract.output import NO_SLOT, OK, Attempts, RunOutput
from sim.contract.plain import NO_CALL, PlainOutput
from sim.contract.run import RunInput
from sim.units import IntArray


def merged_view(given: RunInput, out: RunOutput) -> PlainOutput:
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
    return PlainOutput(
        user=out.user,
        ran_parallel=out.ran_parallel,
        arrival_ns=out.arrival_ns,
        completion_ns=out.completion_ns,
        **{name: placed(shape, place, values[rows]) for name, values in columns.items()},
        active_integral_ns=sum(out.active_integral_ns),
        engine=out.engine,
    )


def counted(attempts: Attempts) -> IntArray:
    """Return the rows of the attempts that counted, one per call, in an order that ends with the best."""
    held = np.flatnonzero(attempts.slot != NO_SLOT)
    is_ok = attempts.outcome[held] == OK
    order = held[np.lexsort((np.where(is_ok, -attempts.attempt[held], 0), attempts.finish_ns[held], is_ok))]
    calls = attempts.number[order] * (attempts.call.max(initial=0) + 1) + attempts.call[order]
    # The last of equal calls is the best: look from the end for the first of each.
    _, first = np.unique(calls[::-1], return_index=True)
    return order[len(order) - 1 - first]


def first_slot(given: RunInput, out: RunOutput) -> IntArray:
    """Return, for each attempt, how many slots the providers before its own have."""
    before = np.cumsum([0, *(provider.most_slots for provider in given.providers)])
    return before[provider_of_attempts(given, out)]


def placed(shape: tuple[int, int], place: tuple[IntArray, IntArray], values: IntArray) -> IntArray:
    """Return an array of `NO_CALL` with values at some places."""
    filled = np.full(shape, NO_CALL, dtype=np.int64)
    filled[place] = values
    return filled
