"""The plain case of a run, as a view: one workload, one provider, and nothing that can go wrong.

Here every request makes each of its calls once, so that tables have a row per request and a column per call.
Engines and compiled checks have a fast path for it; all others see `RunInput` and `RunOutput` alone.
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from sim.contract.allocation import Allocation, require_known
from sim.contract.output import OK, SUCCEEDED, Attempts, RunOutput
from sim.contract.provider import Limits, ProviderInput
from sim.contract.run import RunInput, Work, WorkloadInput, check_shape, check_table
from sim.units import BoolArray, IntArray

NO_CALL = -1


@dataclass(frozen=True, repr=False, kw_only=True)
class PlainInput(Work):
    """One workload, alone on one provider.

    Parameters
    ----------
    slots, allocation
        The provider's concurrency, and who gets a free slot.

    Raises
    ------
    ArgumentError
        An array is not as long as the load and the calls have it.
    """

    slots: int
    allocation: Allocation

    def __post_init__(self) -> None:
        require_known(self.allocation)
        check_shape("service_ns", self.service_ns, (self.load.requests, self.calls_per_request))
        check_shape("join_ns", self.join_ns, (self.load.requests,))
        check_table("runs_parallel_at", self.runs_parallel_at, self.slots)

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
    return PlainInput(**parts_of(one), slots=provider.slots[0][1], allocation=provider.allocation)


def run_input(given: PlainInput) -> RunInput:
    """Return a plain run in general terms."""
    workload = WorkloadInput(**parts_of(given), join_holds_slot=given.join_holds_slot)
    return RunInput((workload,), (ProviderInput(((0, given.slots),), given.allocation),))


def parts_of(work: Work) -> dict[str, Any]:
    """Return what plain and other workloads have in common, by name."""
    return {part.name: getattr(work, part.name) for part in fields(Work)}


class PlainRunOutput(RunOutput):
    """What happened in a plain run, in general terms: what its tables imply is made when it is asked for."""

    given: PlainInput
    tables: PlainOutput

    def __init__(self, given: PlainInput, tables: PlainOutput) -> None:
        vars(self).update(
            given=given,
            tables=tables,
            workload=same(0, tables.requests),
            user=tables.user,
            ran_parallel=tables.ran_parallel,
            arrival_ns=tables.arrival_ns,
            completion_ns=tables.completion_ns,
            outcome=same(SUCCEEDED, tables.requests),
            active_integral_ns=(tables.active_integral_ns,),
            tokens_outstanding=0,
            slots_held=0,
            engine=tables.engine,
        )

    @property
    def latency_ns(self) -> IntArray:
        return self.tables.latency_ns

    @cached_property
    def position(self) -> IntArray:
        return np.arange(self.requests)

    @cached_property
    def join_start_ns(self) -> IntArray:
        """When each join began, or was ready for its slot; a serial request's is of no length."""
        given, tables = self.given, self.tables
        if given.join_holds_slot:
            return np.asarray(np.where(tables.ran_parallel, tables.ready_ns[:, -1], tables.completion_ns))
        return np.asarray(
            tables.completion_ns - np.where(tables.ran_parallel, given.join_ns[: self.requests], 0)
        )

    @cached_property
    def attempts(self) -> Attempts:
        """The one attempt at each call that was made."""
        calls, out = self.given.calls_per_request, self.tables
        columns = [
            np.repeat(np.arange(self.requests), calls),
            np.tile(np.arange(calls), self.requests),
            *(column.reshape(-1) for column in (out.ready_ns, out.start_ns, out.finish_ns, out.slot)),
        ]
        made = out.called.reshape(-1)
        if not made.all():
            columns = [column[made] for column in columns]
        number, call, ready_ns, start_ns, finish_ns, slot = columns
        first, succeeded, no_prefix = (same(value, len(number)) for value in (0, OK, -1))
        return Attempts(number, call, first, ready_ns, start_ns, finish_ns, slot, succeeded, no_prefix)


def same(value: int, count: int) -> IntArray:
    """Return one value as often as asked for (int64, read-only)."""
    return np.broadcast_to(np.int64(value), count)
