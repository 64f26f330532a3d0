"""The model to read: each request is a SimPy process that runs its branches, then its join.

The order of events within an instant is written down in ARCHITECTURE.md; `sim.engine.clock` holds it as
SimPy priorities. Time is an int of nanoseconds throughout.
"""

from collections.abc import Generator
from typing import Any

import simpy

from sim.contract.load import OpenArrivals, Progress
from sim.contract.plain import PlainInput, PlainOutput
from sim.engine.call_queue import Call, Request
from sim.engine.clock import SETTLED, Clock, Moment, Tally
from sim.engine.columns import CallColumns, RequestColumns
from sim.engine.graph import chain_graph, dependency_graph
from sim.engine.provider import Provider
from sim.engine.source import ClosedSource, OpenSource


class Model:
    """One run of the simulation; `run` gives its tables."""

    provider_class = Provider

    def __init__(self, given: PlainInput, progress: Progress | None = None) -> None:
        self.given = given
        self.tally = Tally(progress)
        self.env = Clock()
        self.provider = self.provider_class(self.env, given, self.call_finished)
        self.source = self.make_source()
        self.graphs = (chain_graph(given.serial_order), dependency_graph(given.dependencies))
        self.join_ns: list[int] = given.join_ns.tolist()
        self.runs_parallel_at: list[bool] = given.runs_parallel_at.tolist()
        # A plan that is the same at every share need not wait until the arrivals of its instant are counted.
        self.share_decides = len(set(self.runs_parallel_at[1:])) > 1
        self.settled_event: simpy.Event | None = None
        self.requests = RequestColumns()
        self.calls = CallColumns(given.service_ns.size, given.calls_per_request)

    def make_source(self) -> OpenSource | ClosedSource:
        """Return what issues the requests of this run's load."""
        if isinstance(self.given.load, OpenArrivals):
            return OpenSource(self.env, self.given.load, self.issue)
        return ClosedSource(self.env, self.given.load, self.issue)

    def run(self) -> PlainOutput:
        """Issue every request that the load asks for, and drain."""
        self.env.run()
        return PlainOutput(
            **self.requests.arrays(),
            **self.calls.arrays(len(self.requests.user)),
            active_integral_ns=self.provider.active_integral_ns,
            engine="simpy",
        )

    def issue(self, number: int, user: int) -> None:
        """Start the process of one request."""
        self.requests.arrive(user, self.env.now)
        self.env.process(self.request(number, user))

    def request(self, number: int, user: int) -> Generator[simpy.Event, Any, None]:
        """Run one request: arrive, choose the plan, run the branches, join, complete."""
        self.provider.enter()
        if self.share_decides:
            yield self.settled()
        parallel = self.chooses_parallel()
        join_ns = self.join_ns[number] if parallel else 0
        request = Request(self.env, number, self.graphs[parallel], join_ns)
        for call in request.graph.roots:
            self.provider.ask(request, call)
        yield request.joined
        self.provider.leave()
        self.requests.complete(number, parallel, self.env.now)
        self.source.completed(number, user)
        self.tally.count()

    def settled(self) -> simpy.Event:
        """Return the event at which every arrival of this instant has been counted."""
        if self.settled_event is None:
            self.settled_event = Moment(self.env, SETTLED)
            self.settled_event.callbacks.append(self.forget_settled)
        return self.settled_event

    def forget_settled(self, _event: Any) -> None:
        """Let the next instant have an event of its own."""
        self.settled_event = None

    def chooses_parallel(self) -> bool:
        """Return whether the plan runs a request in parallel at the fair share of this instant."""
        share = max(1, self.given.slots // self.provider.active)
        return self.runs_parallel_at[share]

    def call_finished(self, call: Call) -> None:
        """Record a call, queue the calls that waited for it, and begin the join after the last."""
        self.calls.record(call, self.env.now)
        request = call.request
        for dependent in request.graph.dependents[call.index]:
            request.blockers[dependent] -= 1
            if request.blockers[dependent] == 0:
                self.provider.ask(request, dependent)
        request.remaining -= 1
        if request.remaining == 0:
            self.env.complete(request.joined, request.join_ns)


def run(given: PlainInput, progress: Progress | None = None) -> PlainOutput:
    """Simulate one run with SimPy.

    Raises
    ------
    DrawsExhaustedError
        A closed load with an end outlasted its arrays.
    """
    return Model(given, progress).run()
