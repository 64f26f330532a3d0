"""The compiled engine: the events of the SimPy model, in the same order, a hundred times faster.

It needs numba, which the extra `compiled` installs. A kernel is compiled when it is first used, and kept in
`__pycache__` beside its source, else in the user's cache folder (numba's variable NUMBA_CACHE_DIR names
another one); where neither can be written to, each process compiles anew. No array grows inside a kernel:
it returns when one is too short, and goes on where it was. It also returns every million instants, for the
progress bar and Ctrl-C.
"""

import numpy as np

from sim.engine.graph import chain_graph, dependency_graph
from sim.engine.interface import (
    NO_USER,
    ClosedUsers,
    DrawsExhaustedError,
    EngineInput,
    EngineOutput,
    OpenArrivals,
    Progress,
)
from sim.errors import EngineError
from sim.units import IntArray

try:
    from sim.engine import kernels
    from sim.engine.kernels import Held, InOrder, Run, Users
except ModuleNotFoundError as missing:
    raise EngineError(
        f"engine compiled needs {missing.name}, which is not installed: pip install 'slotsim[compiled]'"
    ) from missing

AT_ONCE = 1_000_000
"""Instants or requests that a kernel works through before it returns to Python."""

TIME_BITS = 62
NAME = "compiled"

World = tuple[Run, Held | None, Users | None]


def run(given: EngineInput, progress: Progress | None = None) -> EngineOutput:
    """Simulate one run with compiled kernels.

    Raises
    ------
    DrawsExhaustedError
        A closed load with an end outlasted its arrays.
    EngineError
        Something that the compiled engine cannot do; see `unsupported`.
    """
    if reason := unsupported(given):
        raise EngineError(f"engine compiled cannot run {reason}")
    if serves_in_order(given):
        return run_in_order(given, progress)
    return run_events(given, progress)


def unsupported(given: EngineInput) -> str | None:
    """Return what of this input the compiled engine cannot run, in words, or None."""
    longest_ns = int(given.service_ns.max(initial=0))
    if longest_ns > 1 << (TIME_BITS - slot_bits(given)):
        return f"a service time of {longest_ns} ns on {given.slots} slots: the two do not fit in 64 bits"
    return None


def run_events(given: EngineInput, progress: Progress | None = None) -> EngineOutput:
    """Simulate any run, event by event."""
    world = initial_world(given)
    while True:
        status = kernels.advance(*world, AT_ONCE)
        state = world[0].state
        if status == kernels.FINISHED:
            return output(world[0], world[2])
        if status == kernels.DRAWS_EXHAUSTED:
            raise DrawsExhaustedError
        if status == kernels.NEEDS_ROOM:
            world = with_more_room(*world)
        elif progress is not None:
            progress(int(state[kernels.COMPLETED]))


def run_in_order(given: EngineInput, progress: Progress | None = None) -> EngineOutput:
    """Simulate a run for which `serves_in_order` holds, without an event list.

    The integral of active requests is then the sum of the latencies: there is nothing else to sum.
    """
    assert isinstance(given.load, OpenArrivals)
    requests, calls = given.service_ns.shape
    start_ns, finish_ns, slot = np.empty((3, requests, calls), dtype=np.int64)
    run = InOrder(
        arrival_ns=plain(given.load.arrival_ns),
        join_ns=plain(given.join_ns),
        service_ns=plain(given.service_ns),
        start_ns=start_ns,
        finish_ns=finish_ns,
        slot=slot,
        completion_ns=np.empty(requests, dtype=np.int64),
        free=np.append(np.arange(used_slots(given), dtype=np.int64), kernels.NEVER),
        integral=np.zeros(2, dtype=np.int64),
    )
    parallel = bool(given.runs_parallel_at[1])
    for first in range(0, requests, AT_ONCE):
        last = min(first + AT_ONCE, requests)
        kernels.serve_in_order(run, slot_bits(given), parallel, first, last)
        if progress is not None:
            progress(last)
    return EngineOutput(
        user=np.broadcast_to(np.int64(NO_USER), requests),
        ran_parallel=np.broadcast_to(np.bool_(parallel), requests),
        arrival_ns=run.arrival_ns,
        completion_ns=run.completion_ns,
        ready_ns=np.broadcast_to(run.arrival_ns[:, None], (requests, calls)),
        start_ns=start_ns,
        finish_ns=finish_ns,
        slot=slot,
        active_integral_ns=(int(run.integral[0]) << 32) + int(run.integral[1]),
        engine=NAME,
    )


def serves_in_order(given: EngineInput) -> bool:
    """Return whether each request's calls simply start in order, each on the slot that is free soonest.

    So it is when all of them are ready at the arrival and no cap can keep one from a free slot.
    """
    if not isinstance(given.load, OpenArrivals) or not len(given.load.arrival_ns) or caps_can_bind(given):
        return False
    plans = given.runs_parallel_at[1:]
    ready_at_once = plans.all() and not any(given.dependencies)
    if not ready_at_once and (given.calls_per_request > 1 or plans.any()):
        return False
    longest_ns = int(given.service_ns.max())
    last_start_ns = int(given.load.arrival_ns[-1]) + longest_ns * given.service_ns.size // given.slots
    return last_start_ns + longest_ns < 1 << (TIME_BITS - slot_bits(given))


def caps_can_bind(given: EngineInput) -> bool:
    """Return whether who gets a slot may depend on how many its request holds."""
    if given.calls_per_request == 1 or not given.runs_parallel_at[1:].any():
        return False  # whoever waits holds nothing
    return given.allocation == "max_min" or bool(caps(given).min() < given.calls_per_request)


def caps(given: EngineInput) -> IntArray:
    """Return the cap while 0, 1, 2, ... requests are active, to the most that there can be or matter."""
    most = given.slots
    if isinstance(given.load, ClosedUsers):
        most = min(most, max(users for _, users in given.load.steps))
    shares = given.slots // np.arange(1, max(1, most) + 1)
    _, first, which = np.unique(shares, return_index=True, return_inverse=True)
    cap = np.array([given.cap(active) for active in (first + 1).tolist()])[which]
    return np.append(cap[:1], cap)


def used_slots(given: EngineInput) -> int:
    """Return how many slots can ever be used: the unused ones are taken first, in ascending order."""
    return max(1, min(given.slots, given.service_ns.size))


def slot_bits(given: EngineInput) -> int:
    """Return how many bits a slot's number takes."""
    return (used_slots(given) - 1).bit_length()


def plain(values: IntArray) -> IntArray:
    """Return an array as kernels take it, in memory one after another and not read-only; a copy if it is not.

    Kernels do not write to what is given: each kind of array would make them compile once more.
    """
    return np.require(values, dtype=np.int64, requirements=["C", "W"])


# The arrays of a run


def initial_world(given: EngineInput) -> World:
    """Return everything that the kernels work on, at the start of a run."""
    requests, calls = given.service_ns.shape
    slots = used_slots(given)
    nodes, dependents = graph_arrays(given)
    run = Run(
        state=initial_state(given),
        service_ns=plain(given.service_ns).reshape(-1),
        join_ns=plain(given.join_ns),
        calls=np.empty((4, requests * calls), dtype=np.int64),
        arrival_ns=initial_arrivals(given),
        completion_ns=np.empty(requests, dtype=np.int64),
        parallel=np.empty(requests, dtype=np.bool_),
        at_active=plan_arrays(given),
        nodes=nodes,
        dependents=dependents,
        slots=initial_slots(slots),
        joins=np.empty((2, slots + 1_000), dtype=np.int64),
        fresh=np.empty(slots * calls if len(dependents) else 0, dtype=np.int64),
    )
    held = initial_held(requests, calls) if caps_can_bind(given) else None
    users = initial_users(given.load) if isinstance(given.load, ClosedUsers) else None
    return run, held, users


def initial_state(given: EngineInput) -> IntArray:
    state = np.zeros(kernels.STATE_SIZE, dtype=np.int64)
    state[kernels.CALLS] = given.calls_per_request
    state[kernels.SLOT_BITS] = slot_bits(given)
    state[kernels.LONGEST] = 1 << (TIME_BITS - slot_bits(given))
    state[kernels.FEWEST_FIRST] = given.allocation == "max_min"
    state[kernels.FREE_COUNT] = used_slots(given)
    state[kernels.QUEUE_FIRST] = kernels.NOBODY
    state[kernels.END] = kernels.NEVER
    if isinstance(given.load, OpenArrivals):
        state[kernels.ARRIVALS] = len(given.load.arrival_ns)
    elif given.load.end_ns is not None:
        state[kernels.END] = given.load.end_ns
    return state


def initial_arrivals(given: EngineInput) -> IntArray:
    if isinstance(given.load, OpenArrivals):
        return plain(given.load.arrival_ns)
    return np.empty(len(given.load.think_ns), dtype=np.int64)


def initial_slots(count: int) -> IntArray:
    slots = np.full((3, 1 << count.bit_length()), kernels.NEVER, dtype=np.int64)
    slots[kernels.FREE] = np.arange(slots.shape[1])
    return slots


def initial_held(requests: int, calls: int) -> Held:
    waiting = np.full((requests, 4), kernels.NOBODY, dtype=np.int32)
    waiting[:, kernels.HELD] = 0
    return Held(waiting, np.full(calls + 1, kernels.NOBODY, dtype=np.int64))


def initial_users(load: ClosedUsers) -> Users:
    most = max(users for _, users in load.steps)
    return Users(
        users=np.full((3, most), kernels.AWAY, dtype=np.int64),
        user=np.empty(len(load.think_ns), dtype=np.int64),
        think_ns=plain(load.think_ns),
        thinks=np.empty((2, 2 * most + 1), dtype=np.int64),
        steps=np.ascontiguousarray(np.array(load.steps, dtype=np.int64).T),
    )


def plan_arrays(given: EngineInput) -> IntArray:
    """Return the cap, and whether the plan is parallel, for each number of active requests."""
    cap = caps(given)
    share = np.maximum(1, given.slots // np.maximum(1, np.arange(len(cap))))
    return np.array([cap, given.runs_parallel_at[share]], dtype=np.int64)


def graph_arrays(given: EngineInput) -> tuple[IntArray, IntArray]:
    """Return the nodes of both plans' graphs, and the calls that depend on each."""
    calls = given.calls_per_request
    blockers: list[int] = []
    dependents: list[int] = []
    dependents_from = [0]
    for graph in (chain_graph(given.serial_order), dependency_graph(given.dependencies)):
        blockers += graph.blockers + [-1] * (calls - graph.calls)
        for call in range(calls):
            dependents += graph.dependents[call] if call < graph.calls else ()
            dependents_from.append(len(dependents))
    nodes = np.array([[*blockers, 0], dependents_from], dtype=np.int64)
    return nodes, np.array(dependents, dtype=np.int64)


def with_more_room(run: Run, held: Held | None, users: Users | None) -> World:
    """Return the same world with room for the next instant in its heaps, which begins its clock anew."""
    state, running = run.state, run.slots[kernels.RUNNING]
    later_ns = state[kernels.NEXT] - state[kernels.CLOCK_BASE]
    running[: state[kernels.RUNNING_COUNT]] -= later_ns << state[kernels.SLOT_BITS]
    state[kernels.CLOCK_BASE] = state[kernels.NEXT]
    run = run._replace(joins=with_room(run.joins, state[kernels.JOINING] + state[kernels.RUNNING_COUNT]))
    if users is not None:
        most = state[kernels.THINKERS] + users.users.shape[1]
        users = users._replace(thinks=with_room(users.thinks, most))
    return run, held, users


def with_room(heap: IntArray, needed: int) -> IntArray:
    """Return a heap (int64[2, room]) as it is, or with twice the room if more is needed."""
    return heap if needed <= heap.shape[1] else np.hstack([heap, np.empty_like(heap)])


def output(run: Run, users: Users | None) -> EngineOutput:
    """Return the tables of the requests issued: views of the arrays that the kernels filled."""
    state = run.state
    requests, count = int(state[kernels.ISSUED]), int(state[kernels.CALLS])
    calls = run.calls[:, : requests * count].reshape(4, requests, count)
    return EngineOutput(
        user=np.broadcast_to(np.int64(NO_USER), requests) if users is None else users.user[:requests],
        ran_parallel=run.parallel[:requests],
        arrival_ns=run.arrival_ns[:requests],
        completion_ns=run.completion_ns[:requests],
        ready_ns=calls[kernels.READY],
        start_ns=calls[kernels.START],
        finish_ns=calls[kernels.FINISH],
        slot=calls[kernels.SLOT],
        active_integral_ns=(int(state[kernels.INTEGRAL_HIGH]) << 32) + int(state[kernels.INTEGRAL_LOW]),
        engine=NAME,
    )
