"""The compiled engine: the events of the SimPy model, in the same order, a hundred times faster.

It needs numba, which the extra `compiled` installs. A kernel is compiled when it is first used, and kept; see
`sim.engine.native`. No array grows inside a kernel: it returns when one is too short, and goes on where it
was. It also returns every million instants, for the progress bar and Ctrl-C.
"""

from importlib.util import find_spec

import numpy as np

from sim.contract.load import NO_USER, ClosedUsers, DrawsExhaustedError, OpenArrivals, Progress
from sim.contract.plain import PlainInput, PlainOutput
from sim.engine.graph import chain_graph, dependency_graph
from sim.errors import EngineError
from sim.units import BoolArray, IntArray

if find_spec("numba") is None:
    raise EngineError("engine compiled needs numba, which is not installed: pip install 'slotsim[compiled]'")

from sim.engine import kernels
from sim.engine.kernels import Graph, Held, InOrder, Run, Users

AT_ONCE = 1_000_000
"""Instants or requests that a kernel works through before it returns to Python."""

RANKS = 1 << 18
"""How many ranks a tree of waiting calls has room for at first: three words from its root to a leaf."""

TIME_BITS = 62
NAME = "compiled"

World = tuple[Run, Graph | None, Held | None, Users | None]


def run(given: PlainInput, progress: Progress | None = None) -> PlainOutput:
    """Simulate one run with compiled kernels.

    Raises
    ------
    DrawsExhaustedError
        A closed load with an end outlasted its arrays.
    EngineError
        Something that the compiled engine cannot do; see `unsupported`.
    """
    if reason := unsupported(given):
        raise EngineError(f"engine compiled cannot run {reason} (engine simpy can)")
    if serves_in_order(given):
        return run_in_order(given, progress)
    return run_events(given, progress)


def unsupported(given: PlainInput) -> str | None:
    """Return what of this input the compiled engine cannot run, in words, or None."""
    longest_ns = int(given.service_ns.max(initial=0))
    if longest_ns > 1 << (TIME_BITS - slot_bits(given)):
        return f"a service time of {longest_ns} ns on {given.slots} slots: the two do not fit in 64 bits"
    return None


def run_events(given: PlainInput, progress: Progress | None = None) -> PlainOutput:
    """Simulate any run, event by event."""
    return output(given, *to_the_end(initial_world(given), progress))


def to_the_end(world: World, progress: Progress | None = None) -> World:
    """Return the world once all its requests are done."""
    while (status := kernels.advance(*world, AT_ONCE)) != kernels.FINISHED:
        if status == kernels.DRAWS_EXHAUSTED:
            raise DrawsExhaustedError
        if status == kernels.NEEDS_ROOM:
            world = with_more_room(*world)
        elif progress is not None:
            progress(int(world[0].state[kernels.COMPLETED]))
    return world


def run_in_order(given: PlainInput, progress: Progress | None = None) -> PlainOutput:
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
    return PlainOutput(
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


def serves_in_order(given: PlainInput) -> bool:
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


def caps_can_bind(given: PlainInput) -> bool:
    """Return whether who gets a slot may depend on how many its request holds."""
    if given.calls_per_request == 1 or not given.runs_parallel_at[1:].any():
        return False  # whoever waits holds nothing
    return given.allocation.fewest_first or bool(caps(given).min() < given.calls_per_request)


def caps(given: PlainInput) -> IntArray:
    """Return the cap while 0, 1, 2, ... requests are active, to the most that there can be or matter."""
    most = given.slots
    if isinstance(given.load, ClosedUsers):
        most = min(most, max(users for _, users in given.load.steps))
    shares = given.slots // np.arange(1, max(1, most) + 1)
    _, first, which = np.unique(shares, return_index=True, return_inverse=True)
    cap = np.array([given.cap(active) for active in (first + 1).tolist()])[which]
    return np.append(cap[:1], cap)


def used_slots(given: PlainInput) -> int:
    """Return how many slots can ever be used: the unused ones are taken first, in ascending order."""
    return max(1, min(given.slots, given.service_ns.size))


def slot_bits(given: PlainInput) -> int:
    """Return how many bits a slot's number takes."""
    return (used_slots(given) - 1).bit_length()


def plain(values: IntArray) -> IntArray:
    """Return an array as kernels take it, in memory one after another and not read-only; a copy if it is not.

    Kernels do not write to what is given: each kind of array would make them compile once more.
    """
    return np.require(values, dtype=np.int64, requirements=["C", "W"])


# The arrays of a run


def initial_world(given: PlainInput) -> World:
    """Return everything that the kernels work on, at the start of a run."""
    requests, calls = given.service_ns.shape
    slots = used_slots(given)
    start_ns, finish_ns, slot = np.empty((3, requests * calls), dtype=np.int64)
    run = Run(
        state=initial_state(given),
        service_ns=plain(given.service_ns).reshape(-1),
        join_ns=plain(given.join_ns),
        start_ns=start_ns,
        finish_ns=finish_ns,
        slot=slot,
        arrival_ns=initial_arrivals(given),
        completion_ns=np.empty(requests, dtype=np.int64),
        free=np.arange(1 << (slots - 1).bit_length(), dtype=np.int64),
        running=np.full(slots + 1, kernels.NEVER, dtype=np.int64),
        on_slot=np.empty(slots, dtype=np.int64),
        joins=np.empty(slots + 1_000, dtype=np.int64),
    )
    return (
        run,
        None if ready_at_arrival(given) else initial_graph(given),
        initial_held(given) if caps_can_bind(given) else None,
        initial_users(given.load) if isinstance(given.load, ClosedUsers) else None,
    )


def ready_at_arrival(given: PlainInput) -> bool:
    """Return whether all calls of each request are ready when it arrives."""
    return bool(given.runs_parallel_at[1:].all()) and not any(given.dependencies)


def initial_state(given: PlainInput) -> IntArray:
    state = np.zeros(kernels.STATE_SIZE, dtype=np.int64)
    state[kernels.CALLS] = given.calls_per_request
    state[kernels.SLOT_BITS] = slot_bits(given)
    state[kernels.LONGEST] = 1 << (TIME_BITS - slot_bits(given))
    state[kernels.FEWEST_FIRST] = given.allocation.fewest_first
    state[kernels.MOST_QUEUED] = most_queued(given)
    state[kernels.FREE_COUNT] = used_slots(given)
    state[kernels.END] = kernels.NEVER
    if isinstance(given.load, OpenArrivals):
        state[kernels.ARRIVALS] = len(given.load.arrival_ns)
    elif given.load.end_ns is not None:
        state[kernels.END] = given.load.end_ns
    return state


def most_queued(given: PlainInput) -> int:
    """Return how many calls may become ready at one instant: by completions, and by arrivals."""
    needed = np.array([call for needs in given.dependencies for call in needs], dtype=np.int64)
    by_one = max(1, int(np.bincount(needed).max(initial=0)))
    by_arrivals = given.calls_per_request * most_together(given.load)
    return min(given.service_ns.size, used_slots(given) * by_one + by_arrivals)


def most_together(load: OpenArrivals | ClosedUsers) -> int:
    """Return how many requests may arrive at one instant."""
    if isinstance(load, ClosedUsers):
        return max(users for _, users in load.steps)
    if not (load.arrival_ns[1:] == load.arrival_ns[:-1]).any():
        return 1
    return int(np.unique(load.arrival_ns, return_counts=True)[1].max())


def initial_arrivals(given: PlainInput) -> IntArray:
    if isinstance(given.load, OpenArrivals):
        return plain(given.load.arrival_ns)
    return np.empty(len(given.load.think_ns), dtype=np.int64)


def initial_held(given: PlainInput) -> Held:
    requests, calls = given.service_ns.shape
    cap_at, height_from = np.minimum(caps(given), calls), tree_heights(RANKS)
    return Held(
        cap_at=cap_at,
        holds=np.empty(requests, dtype=np.int64),
        first=np.empty(requests, dtype=np.int64),
        last=np.empty(requests, dtype=np.int64),
        bits=np.zeros((int(cap_at.max()) + 1) * height_from[-1], dtype=np.int64),
        height_from=height_from,
    )


def tree_heights(ranks: int) -> IntArray:
    """Return where each height of a tree of words of 64 bits begins, from the leaves; and all its words."""
    heights, words = [0], ranks
    while words > 1 or len(heights) == 1:
        words = -(-words // 64)
        heights.append(heights[-1] + words)
    return np.array(heights, dtype=np.int64)


def initial_users(load: ClosedUsers) -> Users:
    most = max(users for _, users in load.steps)
    step_ns, step_users = np.array(load.steps, dtype=np.int64).T.copy()
    return Users(
        status=np.full(most, kernels.AWAY, dtype=np.int64),
        thinks_after=np.empty(most, dtype=np.int64),
        returns=np.empty(most, dtype=np.int64),
        user=np.empty(len(load.think_ns), dtype=np.int64),
        think_ns=plain(load.think_ns),
        due_ns=np.empty(len(load.think_ns), dtype=np.int64),
        thinks=np.empty(2 * most + 1, dtype=np.int64),
        step_ns=step_ns,
        step_users=step_users,
    )


def initial_graph(given: PlainInput) -> Graph:
    """Return the nodes of both plans' graphs, and the calls that depend on each."""
    requests, calls = given.service_ns.shape
    blockers: list[int] = []
    dependents: list[int] = []
    dependents_from = [0]
    for graph in (chain_graph(given.serial_order), dependency_graph(given.dependencies)):
        blockers += graph.blockers + [-1] * (calls - graph.calls)
        for call in range(calls):
            dependents += graph.dependents[call] if call < graph.calls else ()
            dependents_from.append(len(dependents))
    return Graph(
        parallel_at=parallel_at(given),
        parallel=np.empty(requests, dtype=np.bool_),
        ready_ns=np.empty(requests * calls, dtype=np.int64),
        place_at=np.empty(requests * calls, dtype=np.int64),
        blockers=np.array(blockers, dtype=np.int64),
        dependents_from=np.array(dependents_from, dtype=np.int64),
        dependents=np.array(dependents, dtype=np.int64),
        fresh=np.empty(most_queued(given), dtype=np.int64),
    )


def parallel_at(given: PlainInput) -> IntArray:
    """Return whether the plan is parallel (1 or 0) for each number of active requests, as `caps` does."""
    share = np.maximum(1, given.slots // np.maximum(1, np.arange(len(caps(given)))))
    return np.asarray(given.runs_parallel_at[share], dtype=np.int64)


def with_more_room(run: Run, graph: Graph | None, held: Held | None, users: Users | None) -> World:
    """Return the same world with room for the next instant in its heaps, which begins its clock anew."""
    state, running = run.state, run.running
    later_ns = state[kernels.NEXT] - state[kernels.CLOCK_BASE]
    running[: state[kernels.RUNNING_COUNT]] -= later_ns << state[kernels.SLOT_BITS]
    state[kernels.CLOCK_BASE] = state[kernels.NEXT]
    run = run._replace(joins=with_room(run.joins, state[kernels.JOINING] + state[kernels.RUNNING_COUNT]))
    if held is not None:
        held = with_ranks(held, state)
    if users is not None:
        most = state[kernels.THINKERS] + len(users.status)
        users = users._replace(thinks=with_room(users.thinks, most))
    return run, graph, held, users


def with_room(heap: IntArray, needed: int) -> IntArray:
    """Return a heap (int64[room]) as it is, or with twice the room if more is needed."""
    return heap if needed <= len(heap) else np.append(heap, np.empty_like(heap))


def with_ranks(held: Held, state: IntArray) -> Held:
    """Return the same trees from the first waiting rank on, with twice the room that an instant may need."""
    levels, height_from = int(held.cap_at.max()) + 1, held.height_from
    leaves = held.bits.reshape(levels, -1)[:, : height_from[1]]
    waiting = np.flatnonzero(leaves.any(axis=0))
    queued = int(state[kernels.QUEUED] - state[kernels.RANK_BASE])
    passed = int(waiting[0]) if len(waiting) else queued // 64
    needed = queued - 64 * passed + int(state[kernels.MOST_QUEUED])
    while 64 * height_from[1] < 2 * needed:
        height_from = tree_heights(2 * 64 * height_from[1])
    state[kernels.RANK_BASE] += 64 * passed
    return held._replace(bits=trees(leaves[:, passed:], height_from), height_from=height_from)


def trees(leaves: IntArray, height_from: IntArray) -> IntArray:
    """Return trees of words with these leaves (int64[levels, words]), one after another."""
    bits = np.zeros((len(leaves), height_from[-1]), dtype=np.int64)
    bits[:, : leaves.shape[1]] = leaves
    for first, last, end in zip(height_from, height_from[1:], height_from[2:], strict=False):
        has_any = np.zeros((len(leaves), end - last, 64), dtype=np.bool_)
        has_any.reshape(len(leaves), -1)[:, : last - first] = bits[:, first:last]
        bits[:, last:end] = has_any @ np.left_shift(1, np.arange(64))
    return bits.reshape(-1)


def output(
    given: PlainInput, run: Run, graph: Graph | None, _held: Held | None, users: Users | None
) -> PlainOutput:
    """Return the tables of the requests issued: views of the arrays that the kernels filled."""
    state = run.state
    requests, calls = int(state[kernels.ISSUED]), given.calls_per_request
    arrival_ns = run.arrival_ns[:requests]
    if graph is None:
        parallel: BoolArray = np.broadcast_to(np.ones(1, dtype=np.bool_), requests)
        ready_ns = np.broadcast_to(arrival_ns[:, None], (requests, calls))
    else:
        parallel = graph.parallel[:requests]
        ready_ns = graph.ready_ns[: requests * calls].reshape(requests, calls)
    start_ns, finish_ns, slot = (
        column[: requests * calls].reshape(requests, calls)
        for column in (run.start_ns, run.finish_ns, run.slot)
    )
    return PlainOutput(
        user=np.broadcast_to(np.int64(NO_USER), requests) if users is None else users.user[:requests],
        ran_parallel=parallel,
        arrival_ns=arrival_ns,
        completion_ns=run.completion_ns[:requests],
        ready_ns=ready_ns,
        start_ns=start_ns,
        finish_ns=finish_ns,
        slot=slot,
        active_integral_ns=(int(state[kernels.INTEGRAL_HIGH]) << 32) + int(state[kernels.INTEGRAL_LOW]),
        engine=NAME,
    )
