"""The plain case of a run, as a view: one workload, one provider, and nothing that can go wrong.

Here every request makes each of its calls once, so that tables have a row per request and a column per call.
Engines and compiled checks have a fast path for it; all others see `RunInput` and `RunOutput` alone.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sim.contract.allocation import Allocation, require_known
from sim.contract.load import ClosedUsers, OpenArrivals
from sim.contract.output import OK, SUCCEEDED, Attempts, RunOutput
from sim.contract.provider import Limits, ProviderInput
from sim.contract.run import RunInput, WorkloadInput, check_shape, check_table
from sim.units import BoolArray, IntArray

NO_CALL = -1


@dataclass(frozen=True, repr=False)
class PlainInput:
    """One run: the provider, the workflow's graph, and every drawn time.

    Parameters
    ----------
    slots, allocation
        The provider's concurrency, and who gets a free slot.
    service_ns
        int64[requests, calls], each >= 1. A join that holds a slot is the last call.
    join_ns
        int64[requests], each >= 0: the join of a parallel request where it holds no slot.
    dependencies
        For each call, the calls that a parallel request must finish before it.
    serial_order
        The calls that a serial request makes, one after another. It has no join.
    runs_parallel_at
        bool[slots + 1]: whether a request that starts at fair share k runs in parallel. All true is the
        plan `parallel`, all false is `serial`, a mixture is `adaptive`. Element 0 is never read.
    max_degree
        The most slots that one request may hold, whatever the allocation would let it.
    load
        Open arrivals or closed users. It says how many requests there are: what is drawn must be for as many.

    Raises
    ------
    ArgumentError
        An array is not as long as that.
    """

    slots: int
    allocation: Allocation
    service_ns: IntArray
    join_ns: IntArray
    dependencies: tuple[tuple[int, ...], ...]
    serial_order: tuple[int, ...]
    runs_parallel_at: BoolArray
    load: OpenArrivals | ClosedUsers
    max_degree: int | None = None

    def __post_init__(self) -> None:
        require_known(self.allocation)
        check_shape("service_ns", self.service_ns, (self.load.requests, self.calls_per_request))
        check_shape("join_ns", self.join_ns, (self.load.requests,))
        check_table("runs_parallel_at", self.runs_parallel_at, self.slots)

    @property
    def calls_per_request(self) -> int:
        return len(self.dependencies)

    @property
    def join_holds_slot(self) -> bool:
        """Whether the last call is the join, which no serial request makes."""
        return len(self.serial_order) < self.calls_per_request

    def cap(self, active: int) -> int:
        """Return how many slots one request may hold while `active` requests are (at least 1)."""
        share = max(1, self.slots // active) if self.allocation.caps else self.slots
        return share if self.max_degree is None else min(share, self.max_degree)


@dataclass(frozen=True, repr=False)
class PlainOutput:
    """What happened. Requests are numbered in order of arrival; times int64 ns.

    Parameters
    ----------
    user
        int64[requests]; `NO_USER` under an open load.
    ran_parallel
        bool[requests]: the plan each request ran, chosen at its arrival.
    arrival_ns, completion_ns
        int64[requests].
    ready_ns, start_ns, finish_ns, slot
        int64[requests, calls]; `NO_CALL` where the request made no such call.
    active_integral_ns
        Active requests x time, summed by the engine as it went.
    engine
        The name of the engine that ran.
    """

    user: IntArray
    ran_parallel: BoolArray
    arrival_ns: IntArray
    completion_ns: IntArray
    ready_ns: IntArray
    start_ns: IntArray
    finish_ns: IntArray
    slot: IntArray
    active_integral_ns: int
    engine: str

    @property
    def requests(self) -> int:
        return len(self.arrival_ns)

    @cached_property
    def latency_ns(self) -> IntArray:
        """int64[requests]: completion - arrival."""
        return self.completion_ns - self.arrival_ns

    @cached_property
    def called(self) -> BoolArray:
        """bool[requests, calls]: which calls were made."""
        return np.not_equal(self.slot, NO_CALL)

    @cached_property
    def waiting_ns(self) -> IntArray:
        """int64[requests, calls]: start - ready; 0 where no call was made."""
        return self.start_ns - self.ready_ns

    @cached_property
    def service_ns(self) -> IntArray:
        """int64[requests, calls]: finish - start; 0 where no call was made."""
        return self.finish_ns - self.start_ns

    @property
    def horizon_ns(self) -> int:
        """The end of the run: its last completion (0 for an empty run)."""
        return int(self.completion_ns.max(initial=0))


def plain_view(given: RunInput) -> PlainInput | None:
    """Return a run in these terms, None where it is not plain. Nothing is copied."""
    if len(given.workloads) > 1 or len(given.providers) > 1:
        return None
    (one,), (provider,) = given.workloads, given.providers
    changes = len(provider.slots) > 1 or any(provider.reserved) or not provider.allocation.is_plain
    if changes or provider.limits != Limits() or provider.cache is not None:
        return None
    if one.faults is not None or one.warm_first or one.daily_plans is not None:
        return None
    return PlainInput(
        slots=provider.slots[0][1],
        allocation=provider.allocation,
        service_ns=one.service_ns,
        join_ns=one.join_ns,
        dependencies=one.dependencies,
        serial_order=one.serial_order,
        runs_parallel_at=one.runs_parallel_at,
        load=one.load,
        max_degree=one.max_degree,
    )


def run_input(given: PlainInput) -> RunInput:
    """Return a plain run in general terms."""
    workload = WorkloadInput(
        service_ns=given.service_ns,
        join_ns=given.join_ns,
        dependencies=given.dependencies,
        serial_order=given.serial_order,
        runs_parallel_at=given.runs_parallel_at,
        load=given.load,
        max_degree=given.max_degree,
        join_holds_slot=given.join_holds_slot,
    )
    return RunInput((workload,), (ProviderInput(((0, given.slots),), given.allocation),))


def run_output(given: PlainInput, out: PlainOutput) -> RunOutput:
    """Return what happened in a plain run in general terms; what is the same for all takes no memory."""
    return RunOutput(
        workload=same(0, out.requests),
        position=np.arange(out.requests),
        user=out.user,
        ran_parallel=out.ran_parallel,
        arrival_ns=out.arrival_ns,
        completion_ns=out.completion_ns,
        outcome=same(SUCCEEDED, out.requests),
        join_start_ns=join_start_ns(given, out),
        attempts=attempts_of(given, out),
        active_integral_ns=(out.active_integral_ns,),
        tokens_outstanding=0,
        slots_held=0,
        engine=out.engine,
    )


def join_start_ns(given: PlainInput, out: PlainOutput) -> IntArray:
    """Return when each join began, or was ready for its slot; a serial request's is of no length."""
    if given.join_holds_slot:
        return np.where(out.ran_parallel, out.ready_ns[:, -1], out.completion_ns)
    return out.completion_ns - np.where(out.ran_parallel, given.join_ns[: out.requests], 0)


def attempts_of(given: PlainInput, out: PlainOutput) -> Attempts:
    """Return the one attempt at each call that was made."""
    requests, calls = out.requests, given.calls_per_request
    number = np.repeat(np.arange(requests), calls)
    call = np.tile(np.arange(calls), requests)
    columns = [number, call, out.ready_ns, out.start_ns, out.finish_ns, out.slot]
    columns = [column.reshape(-1) for column in columns]
    made = out.called.reshape(-1)
    if not made.all():
        columns = [column[made] for column in columns]
    number, call, ready_ns, start_ns, finish_ns, slot = columns
    first, succeeded, no_prefix = (same(value, len(number)) for value in (0, OK, -1))
    return Attempts(number, call, first, ready_ns, start_ns, finish_ns, slot, succeeded, no_prefix)


def same(value: int, count: int) -> IntArray:
    """Return one value as often as asked for (int64, read-only)."""
    return np.broadcast_to(np.int64(value), count)


def plain_output(given: PlainInput, out: RunOutput) -> PlainOutput | None:
    """Return the tables of a run by request and call; None where they cannot be those of a plain run.

    Nothing is copied where every request made every call.
    """
    requests, calls = out.requests, given.calls_per_request
    attempts = out.attempts
    place = attempts.number * calls + attempts.call
    constant = ((out.workload, 0), (out.outcome, SUCCEEDED), (attempts.attempt, 0), (attempts.outcome, OK))
    is_plain = all((column == value).all() for column, value in (*constant, (attempts.hit, -1)))
    in_order = len(place) == 0 or (place[0] >= 0 and place[-1] < requests * calls)
    if not is_plain or not in_order or (np.diff(place) <= 0).any():
        return None
    columns = [attempts.ready_ns, attempts.start_ns, attempts.finish_ns, attempts.slot]
    if len(place) < requests * calls:
        columns = [spread(column, place, requests * calls) for column in columns]
    ready_ns, start_ns, finish_ns, slot = (column.reshape(requests, calls) for column in columns)
    dense = PlainOutput(
        user=out.user,
        ran_parallel=out.ran_parallel,
        arrival_ns=out.arrival_ns,
        completion_ns=out.completion_ns,
        ready_ns=ready_ns,
        start_ns=start_ns,
        finish_ns=finish_ns,
        slot=slot,
        active_integral_ns=out.active_integral_ns[0],
        engine=out.engine,
    )
    if (out.join_start_ns != join_start_ns(given, dense)).any():
        return None
    return dense


def spread(values: IntArray, place: IntArray, size: int) -> IntArray:
    """Return values at their places among `NO_CALL`s."""
    filled = np.full(size, NO_CALL, dtype=np.int64)
    filled[place] = values
    return filled
