"""Check 3: slots and calls are conserved, by the tables alone and under every allocation.

The tables are held first against the draws (service times, arrivals, plan choices, dependencies), then the
run is walked instant by instant: whatever the allocation would have granted must have been granted, in that
order and on that slot, and nothing else.
"""

from collections.abc import Iterator

import numpy as np

from sim.check.grants import walk_instants
from sim.check.history import violation
from sim.check.issued import Issued, first_misissued
from sim.check.timeline import Timeline
from sim.contract.plain import NO_CALL, BoolArray, EngineInput, EngineOutput
from sim.units import IntArray


def check_conservation(given: EngineInput, out: EngineOutput, line: Timeline) -> int:
    """Hold the tables against the draws and the allocation; return how many calls were checked.

    Raises
    ------
    CheckError
        Naming the first rule broken, with the history of the request it was broken for.
    """
    if out.requests > given.load.requests:  # there are no draws to hold the others against
        check_issued(given, out)
    for rule, broken in table_rules(given, out, line):
        rows = broken.reshape(out.requests, -1).any(axis=1)
        if rows.any():
            request = int(np.argmax(rows))
            raise violation(given, out, request, rule.format(request=request))
    check_issued(given, out)
    walk_instants(given, out, line)
    return int(out.called.sum())


def table_rules(given: EngineInput, out: EngineOutput, line: Timeline) -> Iterator[tuple[str, BoolArray]]:
    """Yield (rule, where it is broken), each bool array with one row per request."""
    requests = out.requests
    makes = np.zeros((2, given.calls_per_request), dtype=np.bool_)
    makes[0, list(given.serial_order)] = True
    makes[1] = True
    parallel = out.ran_parallel.astype(np.int64)
    yield "conservation: request {request} did not complete", out.completion_ns < out.arrival_ns
    blank = np.logical_and.reduce(
        [column == NO_CALL for column in (out.ready_ns, out.start_ns, out.finish_ns, out.slot)]
    )
    made = makes[parallel]
    yield (
        "conservation: request {request} did not make each call once",
        (out.called != made) | (blank == made),
    )
    altered = out.called & (out.service_ns != given.service_ns[:requests])
    yield "conservation: a service time of request {request} is not the one drawn", altered
    yield "conservation: a call of request {request} started before it was ready", out.waiting_ns < 0
    yield (
        "conservation: a call of request {request} was not ready when its dependencies finished",
        out.called & (out.ready_ns != expected_ready_ns(given, out)),
    )
    join_ns = np.where(out.ran_parallel, given.join_ns[:requests], 0)
    completion_ns = np.where(out.called, out.finish_ns, 0).max(axis=1, initial=0) + join_ns
    yield (
        "conservation: request {request} did not complete after its join",
        out.completion_ns != completion_ns,
    )
    share = np.maximum(1, given.slots // np.maximum(1, line.active[line.at(out.arrival_ns)]))
    chosen = given.runs_parallel_at[share]
    yield "conservation: request {request} did not run the plan of its fair share", out.ran_parallel != chosen
    yield "conservation: request {request} held a slot that another call held", double_booked(given, out)


def expected_ready_ns(given: EngineInput, out: EngineOutput) -> IntArray:
    """Return when each call became ready by its request's plan (int64[requests, calls])."""
    parallel_ns = np.repeat(out.arrival_ns[:, None], given.calls_per_request, axis=1)
    serial_ns = parallel_ns.copy()
    for call, dependencies in enumerate(given.dependencies):
        if dependencies:
            parallel_ns[:, call] = out.finish_ns[:, list(dependencies)].max(axis=1)
    for earlier, later in zip(given.serial_order, given.serial_order[1:], strict=False):
        serial_ns[:, later] = out.finish_ns[:, earlier]
    return np.where(out.ran_parallel[:, None], parallel_ns, serial_ns)


def double_booked(given: EngineInput, out: EngineOutput) -> BoolArray:
    """Return which calls ran on a slot that does not exist or that another call still held."""
    place = np.flatnonzero(out.called)
    slot, start, finish = (column.ravel()[place] for column in (out.slot, out.start_ns, out.finish_ns))
    order = np.lexsort((start, slot))
    overlaps = np.zeros(len(place), dtype=np.bool_)
    later, earlier = order[1:], order[:-1]
    overlaps[later] = (slot[later] == slot[earlier]) & (start[later] < finish[earlier])
    broken = np.zeros(out.called.size, dtype=np.bool_)
    broken[place] = overlaps | (slot >= given.slots)
    return broken


def check_issued(given: EngineInput, out: EngineOutput) -> None:
    """Hold the arrivals against the load: every request it asks for, when it asks for it.

    Raises
    ------
    CheckError
        A request came when none was due, or is missing.
    """
    at_dispatch = np.zeros(out.requests, dtype=np.bool_)  # nothing is rejected
    found = first_misissued(given.load, Issued(out.user, out.arrival_ns, out.completion_ns, at_dispatch))
    if found is not None:
        raise violation(given, out, found.request, f"conservation: {found.what}")
