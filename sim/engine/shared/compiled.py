"""The compiled engine for shared providers: the events of the SimPy model, in the same order.

It needs numba, as `sim.engine.compiled` does, which says where kernels are kept. They are compiled when a run
on shared providers first asks for them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt

from sim.contract.limit import UNITS
from sim.contract.load import ClosedUsers, DrawsExhaustedError, OpenArrivals, Progress
from sim.contract.output import Attempts, RunOutput
from sim.contract.provider import RateLimit
from sim.contract.run import Faults, RunInput, WorkloadInput
from sim.engine.graph import Graph, chain_graph, dependency_graph
from sim.engine.shared import kernels
from sim.engine.shared.kernels import World
from sim.errors import EngineError
from sim.units import BoolArray, IntArray

AT_ONCE = 1_000_000
"""Steps that the kernel takes before it returns to Python."""

SPARE_ROOM = 1_000
MORE_ATTEMPTS = 4
"""There is room for so many attempts at each call, on average, at first."""

MOST_LEVEL = 1 << 61
"""How full a bucket may be, in its own units, so that whatever is taken from it fits in 64 bits."""

ATTEMPT_COLUMNS = {
    "number": kernels.NUMBER,
    "call": kernels.CALL,
    "attempt": kernels.ATTEMPT,
    "ready_ns": kernels.READY,
    "start_ns": kernels.START,
    "finish_ns": kernels.FINISH,
    "slot": kernels.SLOT,
    "outcome": kernels.OUTCOME,
    "hit": kernels.HIT,
}
NAME = "compiled"


def run_shared(given: RunInput, progress: Progress | None = None) -> RunOutput:
    """Simulate one run of workloads on shared providers with compiled kernels.

    Raises
    ------
    DrawsExhaustedError
        A closed load with an end outlasted its arrays.
    EngineError
        Something that the compiled engine cannot do; see `unsupported`.
    """
    if reason := unsupported(given):
        raise EngineError(f"engine compiled cannot run {reason} (engine simpy can)")
    world = initial_world(given)
    while True:
        status = kernels.advance(world, AT_ONCE)
        if status == kernels.FINISHED:
            return output(world)
        if status == kernels.DRAWS_EXHAUSTED:
            raise DrawsExhaustedError(int(world.state[kernels.EXHAUSTED]))
        if status == kernels.NEEDS_ROOM:
            world = with_more_room(world)
        elif progress is not None:
            progress(int(world.state[kernels.COMPLETED]))


def unsupported(given: RunInput) -> str | None:
    """Return what of this input the compiled engine cannot run, in words, or None."""
    most_tokens = max((most_used(one) for one in given.workloads), default=1)
    attempts = sum(attempts_at_most(one) for one in given.workloads)
    for provider in given.providers:
        rejections = attempts if provider.limits.rejections_count else 0
        for rate in provider.limits.rates:
            most = (rate.burst or 0) + (provider.most_slots + 1) * most_tokens + rejections
            if rate.burst is not None and most > MOST_LEVEL // scale_of(rate):
                bucket = f"{rate.burst} {rate.unit} that refills {rate.amount} per {rate.window_ns} ns"
                return f"a bucket of {bucket}: its level does not fit in 64 bits"
    return None


def most_used(one: WorkloadInput) -> int:
    """Return the most that a call of a workload may take of any limit."""
    if one.tokens is None:
        return 1
    tokens = one.tokens
    received = max(int(tokens.output.max(initial=0)), *tokens.reserved_output)
    return 1 + int(tokens.input.max(initial=0)) + received


def attempts_at_most(one: WorkloadInput) -> int:
    """Return how many attempts a workload can make."""
    return int(one.service_ns.size) * (one.faults.most_attempts if one.faults else 1)


def scale_of(rate: RateLimit) -> int:
    """Return how many parts a bucket's unit has, so that each nanosecond adds a whole number of them."""
    return rate.window_ns // gcd(rate.window_ns, rate.amount)


# The arrays of a run


def initial_world(given: RunInput) -> World:
    """Return everything that the kernel works on, at the start of a run."""
    workloads, providers = given.workloads, given.providers
    requests = sum(one.load.requests for one in workloads)
    most_calls = max(one.calls_per_request for one in workloads)
    # What is never reached takes no memory.
    room = sum(min(MORE_ATTEMPTS * one.service_ns.size, attempts_at_most(one)) for one in workloads)
    plans = [plan for one in workloads for plan in plans_of(one)]
    faults = [one.faults for one in workloads if one.faults]
    tokens = [one.tokens for one in workloads if one.tokens]
    return World(
        state=initial_state(most_calls),
        workloads=workload_table(given),
        providers=provider_table(given),
        meters=meter_table(given),
        shares=share_table(given, 2 * most_calls + 2),
        calls=call_table(workloads, most_calls),
        dependents=np.array([*dependents_of(workloads), kernels.NOBODY], dtype=np.int64),
        plans=np.array([[from_ns, *table[1:]] for from_ns, table in plans], dtype=np.int64),
        changes=np.array([*changes_of(given), (0, 0)], dtype=np.int64).T.copy(),
        service_ns=flat([one.service_ns for one in workloads]),
        join_ns=flat([one.join_ns for one in workloads]),
        load_ns=flat([load_draws(one) for one in workloads]),
        tried_ns=flat([one.service_ns for one in faults]),
        tried=flat([one.outcome for one in faults], np.int8),
        jitter_ppm=flat([one.jitter_ppm for one in faults]),
        tokens_in=flat([one.input for one in tokens]),
        tokens_out=flat([one.output for one in tokens]),
        first_token_ns=flat([one.first_token_ns for one in tokens]),
        requests=np.empty((kernels.REQUEST_ROWS, requests), dtype=np.int64),
        flight=np.empty((requests, most_calls + len(providers), kernels.FLIGHT_SIZE), dtype=np.int32),
        attempts=np.empty((kernels.ATTEMPT_ROWS, room + SPARE_ROOM), dtype=np.int64),
        slots=slot_table(given),
        users=np.full((kernels.USER_ROWS, sum(map(most_users, workloads))), kernels.AWAY),
        events=np.empty((kernels.EVENT_ROWS, SPARE_ROOM + most_calls), dtype=np.int64),
    )


def initial_state(most_calls: int) -> IntArray:
    state = np.zeros(kernels.STATE_SIZE + most_calls, dtype=np.int64)
    state[kernels.MOST_CALLS] = most_calls
    state[kernels.DISPATCHING] = kernels.NOBODY
    return state


def flat(arrays: Sequence[npt.NDArray[Any]], dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
    """Return arrays one after another, as kernels take them; without a copy where there is just one."""
    if len(arrays) == 1:
        return np.require(arrays[0], dtype=dtype, requirements=["C", "W"]).reshape(-1)
    return np.concatenate([np.empty(0, dtype), *(array.reshape(-1) for array in arrays)], dtype=dtype)


def starts(sizes: Iterable[int]) -> list[int]:
    """Return where each of several parts of one array begins, and where the last ends."""
    return [0, *accumulate(sizes)]


def workload_table(given: RunInput) -> IntArray:
    workloads = given.workloads
    most_attempts = max((one.faults.most_attempts for one in workloads if one.faults), default=0)
    table = np.zeros((len(workloads), kernels.WORKLOAD_SIZE + most_attempts), dtype=np.int64)
    steps = starts([*(len(one.slots) - 1 for one in given.providers), *map(user_steps, workloads)])
    first_step = steps[len(given.providers) :]
    offsets = {
        kernels.REQUESTS_FROM: starts(one.load.requests for one in workloads),
        kernels.DRAWS_FROM: starts(one.service_ns.size for one in workloads),
        kernels.FAULTS_FROM: starts(one.faults.outcome.size if one.faults else 0 for one in workloads),
        kernels.TOKENS_FROM: starts(one.tokens.input.size if one.tokens else 0 for one in workloads),
        kernels.PLANS_FROM: starts(len(plans_of(one)) for one in workloads),
        kernels.PLANS_TO: starts(len(plans_of(one)) for one in workloads)[1:],
        kernels.USERS_FROM: starts(map(most_users, workloads)),
        kernels.STEPS_FROM: first_step,
        kernels.STEPS_TO: first_step[1:],
    }
    for column, values in offsets.items():
        table[:, column] = values[: len(workloads)]
    for row, one in zip(table, workloads, strict=True):
        fill_workload(row, one)
        fill_load(row, one)
        fill_faults(row, one.faults)
    return table


def fill_workload(row: IntArray, one: WorkloadInput) -> None:
    roots = dependency_graph(one.dependencies[: one.branches]).roots
    row[kernels.CALLS] = one.calls_per_request
    row[kernels.BRANCHES] = one.branches
    row[kernels.JOIN_HOLDS_SLOT] = one.join_holds_slot
    row[kernels.LEADER] = roots[0] if one.warm_first else kernels.NONE
    row[kernels.MAX_DEGREE] = kernels.NEVER if one.max_degree is None else one.max_degree
    row[kernels.WEIGHT] = one.weight
    row[kernels.HAS_TOKENS] = one.tokens is not None
    row[kernels.DAY_START] = one.daily_plans.start_ns if one.daily_plans else 0


def fill_load(row: IntArray, one: WorkloadInput) -> None:
    row[kernels.IS_CLOSED] = isinstance(one.load, ClosedUsers)
    row[kernels.LOAD_END] = stated(one.load.end_ns) if isinstance(one.load, ClosedUsers) else kernels.NONE
    row[kernels.DRAWN] = one.load.requests
    row[kernels.MOST_USERS] = most_users(one)


def fill_faults(row: IntArray, faults: Faults | None) -> None:
    row[kernels.CANCELS] = faults is None or faults.cancels
    row[kernels.HAS_FAULTS] = faults is not None
    row[kernels.ATTEMPTS_ALLOWED] = faults.most_attempts if faults else 0
    row[kernels.RETRY_BUDGET] = stated(faults.retry_budget_ppm) if faults else kernels.NONE
    row[kernels.DEADLINE] = stated(faults.deadline_ns) if faults else kernels.NONE
    row[kernels.NEEDS] = stated(faults.needs) if faults else kernels.NONE
    if faults is not None:
        row[kernels.WORKLOAD_SIZE : kernels.WORKLOAD_SIZE + faults.most_attempts] = faults.backoff_ns


def stated(value: int | None) -> int:
    """Return a value as kernels have it."""
    return kernels.NONE if value is None else value


def load_draws(one: WorkloadInput) -> IntArray:
    """Return the arrivals, or the think times."""
    return one.load.arrival_ns if isinstance(one.load, OpenArrivals) else one.load.think_ns


def most_users(one: WorkloadInput) -> int:
    return max(users for _, users in one.load.steps) if isinstance(one.load, ClosedUsers) else 0


def user_steps(one: WorkloadInput) -> int:
    return len(one.load.steps) if isinstance(one.load, ClosedUsers) else 0


def plans_of(one: WorkloadInput) -> Sequence[tuple[int, BoolArray]]:
    """Return (time of day from which it holds, the plan at each fair share)."""
    return one.daily_plans.tables if one.daily_plans else ((0, one.runs_parallel_at),)


def changes_of(given: RunInput) -> Iterator[tuple[int, int]]:
    """Yield (instant, slots or users from then on): each provider's after its first, each workload's."""
    for provider in given.providers:
        yield from provider.slots[1:]
    for one in given.workloads:
        if isinstance(one.load, ClosedUsers):
            yield from one.load.steps


def provider_table(given: RunInput) -> IntArray:
    providers = given.providers
    table = np.zeros((len(providers), kernels.PROVIDER_SIZE), dtype=np.int64)
    meters = starts(len(one.limits.rates) for one in providers)
    changes = starts(len(one.slots) - 1 for one in providers)
    slots = starts(one.most_slots for one in providers)
    for index, (row, one) in enumerate(zip(table, providers, strict=True)):
        row[[kernels.METERS_FROM, kernels.METERS_TO]] = meters[index : index + 2]
        row[[kernels.CHANGES_FROM, kernels.CHANGES_TO]] = changes[index : index + 2]
        row[kernels.SLOTS_FROM] = slots[index]
        row[kernels.SLOTS] = row[kernels.FREE_COUNT] = one.slots[0][1]
        row[kernels.MOST_SLOTS] = one.most_slots
        row[kernels.CAPS] = one.allocation.caps
        row[kernels.BY_WEIGHT] = one.allocation.by_weight
        row[kernels.FEWEST_FIRST] = one.allocation.fewest_first
        row[kernels.LENDS] = one.lends
        row[kernels.REJECTS] = one.limits.rejects
        row[kernels.REJECTIONS_COUNT] = one.limits.rejections_count
        row[kernels.CACHED_TOKENS_COUNT] = one.limits.cached_tokens_count
        row[kernels.CACHE_TTL] = one.cache.ttl_ns if one.cache else kernels.NONE
        row[kernels.CACHE_CAPACITY] = stated(one.cache.capacity) if one.cache else kernels.NONE
        row[kernels.WAKES_AT] = row[kernels.REFUSED] = kernels.NONE
    return table


def share_table(given: RunInput, levels: int) -> IntArray:
    shape = (len(given.providers), len(given.workloads), kernels.SHARE_SIZE + levels)
    table = np.zeros(shape, dtype=np.int64)
    table[:, :, kernels.SHARE_SIZE :] = kernels.NOBODY
    table[:, :, kernels.FIRST_WRITE] = kernels.NOBODY
    for index, one in enumerate(given.workloads):
        used = [one.provider_of(call) for call in range(one.calls_per_request)]
        table[used, index, kernels.USES] = 1
        called = Counter(used[: one.branches])
        for place, branches in called.items():
            table[place, index, kernels.MOST_USED] = branches if len(called) > 1 else kernels.NEVER
    for row, provider in zip(table, given.providers, strict=True):
        row[:, kernels.RESERVED] = provider.reserved or 0
        if provider.allocation.by_priority:
            row[:, kernels.RANK] = [
                sum(other.priority > one.priority for other in given.workloads) for one in given.workloads
            ]
    return table


def slot_table(given: RunInput) -> IntArray:
    """Return the slots of all providers: at first the lowest are free, in ascending order, since 0 ns."""
    table = np.zeros((kernels.SLOT_ROWS, sum(one.most_slots for one in given.providers)), dtype=np.int64)
    table[kernels.FREE] = np.concatenate([np.arange(one.most_slots) for one in given.providers])
    return table


def meter_table(given: RunInput) -> IntArray:
    rates = [rate for provider in given.providers for rate in provider.limits.rates]
    table = np.zeros((len(rates), kernels.METER_SIZE), dtype=np.int64)
    for row, rate in zip(table, rates, strict=True):
        row[kernels.IS_BUCKET] = rate.burst is not None
        row[kernels.UNIT] = UNITS.index(rate.unit)
        row[kernels.CAPACITY], row[kernels.SCALE] = rate.amount, rate.window_ns
        if rate.burst is not None:
            scale = scale_of(rate)
            row[kernels.SCALE], row[kernels.PER_NS] = scale, rate.amount * scale // rate.window_ns
            row[kernels.CAPACITY] = row[kernels.LEVEL] = rate.burst * scale
    return table


def call_table(workloads: Sequence[WorkloadInput], most_calls: int) -> IntArray:
    table = np.full((len(workloads), 2, most_calls, kernels.CALL_SIZE), kernels.NONE, dtype=np.int64)
    first = 0
    for of_plans, one in zip(table, workloads, strict=True):
        for rows, graph in zip(of_plans, graphs_of(one), strict=True):
            for call, dependents in enumerate(graph.dependents):
                rows[call, kernels.BLOCKERS] = graph.blockers[call]
                rows[call, kernels.DEPENDENTS_FROM] = first
                first += len(dependents)
                rows[call, kernels.DEPENDENTS_TO] = first
            for call in range(one.calls_per_request):
                fill_call(rows[call], one, call)
    return table


def dependents_of(workloads: Sequence[WorkloadInput]) -> Iterator[int]:
    """Yield the dependents of each call of both plans' graphs, in the order of `call_table`."""
    for one in workloads:
        for graph in graphs_of(one):
            yield from chain.from_iterable(graph.dependents)


def graphs_of(one: WorkloadInput) -> tuple[Graph, Graph]:
    """Return the graphs of the plans serial and parallel, without the join."""
    return chain_graph(one.serial_order), dependency_graph(one.dependencies[: one.branches])


def fill_call(row: IntArray, one: WorkloadInput, call: int) -> None:
    row[kernels.PROVIDER] = one.provider_of(call)
    row[kernels.PREFIX] = one.tokens.prefix[call] if one.tokens else 0
    row[kernels.RESERVED_OUTPUT] = one.tokens.reserved_output[call] if one.tokens else 0
    row[kernels.OPTIONAL] = 0
    if one.faults is not None and call < one.branches:
        row[kernels.OPTIONAL] = one.faults.optional[call]
        row[kernels.TIMEOUT] = stated(one.faults.timeout_ns[call])
        row[kernels.HEDGE_AFTER] = stated(one.faults.hedge_after_ns[call])


def with_more_room(world: World) -> World:
    """Return the same world with twice the room in what is nearly full."""
    margin = world.state[kernels.MOST_CALLS] + kernels.MARGIN
    if world.state[kernels.EVENTS] + margin > world.events.shape[1]:
        world = world._replace(events=longer(world.events, world.state[kernels.EVENTS]))
    if world.state[kernels.MADE] + margin > world.attempts.shape[1]:
        world = world._replace(attempts=longer(world.attempts, world.state[kernels.MADE]))
    return world


def longer(table: IntArray, used: int) -> IntArray:
    """Return a table with twice as many columns, of which so many are used."""
    twice = np.empty((len(table), 2 * table.shape[1]), dtype=np.int64)
    twice[:, :used] = table[:, :used]
    return twice


# What comes out


def output(world: World) -> RunOutput:
    """Return the tables of the requests issued."""
    requests = world.requests[:, : world.state[kernels.NUMBERED]]
    high, low = world.workloads[:, kernels.INTEGRAL_HIGH], world.workloads[:, kernels.INTEGRAL_LOW]
    return RunOutput(
        workload=requests[kernels.WORKLOAD],
        position=requests[kernels.POSITION],
        user=requests[kernels.USER],
        ran_parallel=requests[kernels.PARALLEL] != 0,
        arrival_ns=requests[kernels.ARRIVAL],
        completion_ns=requests[kernels.COMPLETION],
        outcome=requests[kernels.REQUEST_OUTCOME],
        join_start_ns=requests[kernels.JOIN_START],
        attempts=attempts_made(world),
        active_integral_ns=tuple(
            (upper << 32) + lower for upper, lower in zip(high.tolist(), low.tolist(), strict=True)
        ),
        tokens_outstanding=int(world.providers[:, kernels.OUTSTANDING].sum()),
        slots_held=int(world.slots[kernels.TAKEN].sum()),
        engine=NAME,
    )


def attempts_made(world: World) -> Attempts:
    """Return the attempts in order of request, call and attempt: at each call they are 0, 1, 2, ..."""
    made = world.attempts[:, : world.state[kernels.MADE]]
    call = made[kernels.NUMBER] * world.state[kernels.MOST_CALLS] + made[kernels.CALL]
    at_call = np.bincount(call)
    place = (np.cumsum(at_call) - at_call)[call] + made[kernels.ATTEMPT]
    columns = {name: made[row] for name, row in ATTEMPT_COLUMNS.items()}
    if (place[1:] < place[:-1]).any():  # they are put in order where they are: memory is what takes time
        for column in columns.values():
            column[place] = column.copy()
    return Attempts(**columns)
