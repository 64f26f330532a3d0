"""What every engine takes and gives: arrays in, arrays out, all times integer nanoseconds.

An engine never sees a random generator, a plan's name or a unit other than the nanosecond, so two engines
that follow the order of events in ARCHITECTURE.md must agree to the last nanosecond and slot index.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sim.contract.allocation import Allocation, require_known
from sim.errors import ArgumentError
from sim.units import IntArray

BoolArray = npt.NDArray[np.bool_]
Progress = Callable[[int], None]
"""Called now and then with the number of requests completed so far."""

NO_USER = -1
NO_CALL = -1


class DrawsExhaustedError(Exception):
    """The load of a workload outlasted its arrays: draw more for it (the first stay the same), run again.

    `workload` is its index among the workloads of the run.
    """

    def __init__(self, workload: int = 0) -> None:
        super().__init__(workload)
        self.workload = workload


def check_shape(name: str, array: npt.NDArray[Any], shape: tuple[int, ...]) -> None:
    """Refuse an array that is not drawn for the requests of its load: engines index it unseen.

    Raises
    ------
    ArgumentError
        Its shape is another.
    """
    if array.shape != shape:
        raise ArgumentError(
            name, f"must have the shape {shape}, by its workload's load and calls", array.shape
        )


def check_table(name: str, table: BoolArray, most_slots: int) -> None:
    """Refuse a table of plans without an element for each fair share that there can be.

    Raises
    ------
    ArgumentError
        It is too short.
    """
    if len(table) <= most_slots:
        raise ArgumentError(name, f"must have an element for each share up to {most_slots}", len(table))


@dataclass(frozen=True, slots=True, repr=False)
class OpenArrivals:
    """Requests that arrive whatever happens; `arrival_ns` (int64, one each) never decreases."""

    arrival_ns: IntArray

    @property
    def requests(self) -> int:
        """How many requests arrive."""
        return len(self.arrival_ns)


@dataclass(frozen=True, slots=True, repr=False)
class ClosedUsers:
    """Users who each wait for their answer, think, and ask again.

    `steps` holds (instant in ns, users from then on), the first at 0; `think_ns[i]` follows request i.
    Without `end_ns` the run issues one request per element of `think_ns`; with it nothing is issued from
    `end_ns` on, and running out of elements before raises `DrawsExhaustedError`.
    """

    steps: tuple[tuple[int, int], ...]
    think_ns: IntArray
    end_ns: int | None = None

    @property
    def requests(self) -> int:
        """How many requests can be issued before the elements run out."""
        return len(self.think_ns)


@dataclass(frozen=True, repr=False)
class EngineInput:
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

    def cap(self, active: int) -> int:
        """Return how many slots one request may hold while `active` requests are (at least 1)."""
        share = max(1, self.slots // active) if self.allocation.caps else self.slots
        return share if self.max_degree is None else min(share, self.max_degree)


@dataclass(frozen=True, repr=False)
class EngineOutput:
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
