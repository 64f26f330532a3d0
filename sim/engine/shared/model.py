"""Workloads that share providers, in SimPy: each request is a process that calls and is answered."""

from collections.abc import Generator
from typing import Any

import numpy as np
import simpy

from sim.contract.load import OpenArrivals, Progress
from sim.contract.output import Attempts, RunOutput
from sim.contract.run import RunInput
from sim.engine.clock import SETTLED, Clock, Moment, Tally
from sim.engine.shared.calls import Call, Request
from sim.engine.shared.fork_join import ForkJoin
from sim.engine.shared.provider import Provider
from sim.engine.shared.workload import Workload
from sim.engine.source import ClosedSource, OpenSource

ATTEMPT_COLUMNS = (
    "number", "call", "attempt", "ready_ns", "start_ns", "finish_ns", "slot", "outcome", "hit",
)  # fmt: skip
REQUEST_COLUMNS = (
    "workload", "position", "user", "ran_parallel", "arrival_ns", "completion_ns", "outcome", "join_start_ns",
)  # fmt: skip


class SharedModel:
    """One run of workloads on the providers that they share."""

    def __init__(self, given: RunInput, progress: Progress | None = None) -> None:
        self.given = given
        self.tally = Tally(progress)
        self.env = Clock()
        self.workloads = [
            Workload(index, one, len(given.providers)) for index, one in enumerate(given.workloads)
        ]
        self.fork_join = ForkJoin(self.env, self.record)
        self.providers = [
            Provider(self.env, index, one, self.workloads, self.fork_join)
            for index, one in enumerate(given.providers)
        ]
        self.fork_join.providers = self.providers
        self.sources = [self.make_source(workload) for workload in self.workloads]
        self.arrived: list[tuple[int, int, int]] = []
        self.requests: list[list[int]] = []
        self.attempts: list[list[int]] = [[] for _ in ATTEMPT_COLUMNS]

    def make_source(self, workload: Workload) -> OpenSource | ClosedSource:
        """Return what issues the requests of a workload."""

        def issue(position: int, user: int) -> None:
            self.arrive(workload.index, position, user)

        if isinstance(workload.given.load, OpenArrivals):
            return OpenSource(self.env, workload.given.load, issue)
        return ClosedSource(self.env, workload.given.load, issue, workload.index)

    def run(self) -> RunOutput:
        """Issue every request that the loads ask for, and drain."""
        self.env.run()
        return RunOutput(
            **self.request_arrays(),
            attempts=self.attempts_made(),
            active_integral_ns=tuple(workload.active_integral_ns for workload in self.workloads),
            tokens_outstanding=sum(one.limiter.outstanding for one in self.providers if one.limiter),
            slots_held=sum(len(one.held) for one in self.providers),
            engine="simpy",
        )

    def attempts_made(self) -> Attempts:
        """Return the attempts by column, in order of request, call and attempt."""
        table = np.array(self.attempts, dtype=np.int64)
        return Attempts(*table[:, np.lexsort(table[2::-1])])

    def request_arrays(self) -> dict[str, Any]:
        """Return the requests by column."""
        table = np.array(self.requests, dtype=np.int64).reshape(-1, len(REQUEST_COLUMNS))
        columns: dict[str, Any] = dict(zip(REQUEST_COLUMNS, table.T.copy(), strict=True))
        columns["ran_parallel"] = columns["ran_parallel"].astype(np.bool_)
        return columns

    def arrive(self, workload: int, position: int, user: int) -> None:
        """Note an arrival; the arrivals of one instant are numbered together, in order of workload."""
        if not self.arrived:
            Moment(self.env, SETTLED).callbacks.append(self.start_arrived)
        self.arrived.append((workload, position, user))

    def start_arrived(self, _event: Any) -> None:
        """Give the arrivals of this instant their numbers, count them all as active, and start them."""
        arrived, self.arrived = sorted(self.arrived), []
        for workload, position, user in arrived:
            row = [workload, position, user, 0, self.env.now, -1, -1, -1]
            number = len(self.requests)
            self.requests.append(row)
            request = Request(self.workloads[workload], number, position, user, self.env.event())
            self.count_active(request, 1)
            self.env.process(self.request(request))

    def request(self, request: Request) -> Generator[simpy.Event, Any, None]:
        """Run one request: choose its plan, make its calls, and complete when it is answered."""
        self.fork_join.begin(request, self.chooses_parallel(request.workload))
        outcome = yield request.answer
        self.count_active(request, -1)
        row = self.requests[request.number]
        row[3:] = [request.parallel, row[4], self.env.now, outcome, request.join_start_ns]
        self.sources[request.workload.index].completed(request.position, request.user)
        self.tally.count()

    def count_active(self, request: Request, change: int) -> None:
        """Change the number of active requests of a workload, at every provider that it calls."""
        workload = request.workload
        workload.count_active(change, self.env.now)
        for index in workload.uses:
            self.providers[index].active[workload.index] += change
            self.providers[index].plan_dispatch()

    def chooses_parallel(self, workload: Workload) -> bool:
        """Return whether the plan runs a request in parallel on the slots that its branches can use."""
        daily = workload.given.daily_plans
        table = workload.given.runs_parallel_at if daily is None else daily.at(self.env.now)
        return bool(table[self.usable_slots(workload)])

    def usable_slots(self, workload: Workload) -> int:
        """Return the fair share of the provider that branches call; of several, what branches use of each."""
        shares = {index: self.providers[index].share(workload) for index in workload.branches_at}
        if len(shares) == 1:
            return sum(shares.values())
        return sum(min(share, workload.branches_at[index]) for index, share in shares.items())

    def record(self, call: Call, outcome: int, now_ns: int) -> None:
        """Add an attempt that is over to the table."""
        start_ns = call.start_ns if call.slot >= 0 else now_ns
        row = (call.request.number, call.index, call.attempt, call.key[0], start_ns, now_ns, call.slot)
        for column, value in zip(self.attempts, (*row, outcome, call.hit), strict=True):
            column.append(value)


def run_shared(given: RunInput, progress: Progress | None = None) -> RunOutput:
    """Simulate one run of workloads on shared providers.

    Raises
    ------
    DrawsExhaustedError
        A closed load with an end outlasted its arrays.
    """
    return SharedModel(given, progress).run()
