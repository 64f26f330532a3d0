"""The calls that wait for a slot, found without scanning them.

Calls queue in the order (ready time, request number, call index). `InLine` serves just so, where no cap can
hold a request back. Elsewhere who may be served depends on how many slots a request holds: `BelowCap` and
`FewestHeld` keep one line for each number of held slots.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from heapq import heappop, heappush

import simpy

from sim.contract.plain import PlainInput
from sim.engine.clock import Clock
from sim.engine.graph import Graph


class Request:
    """One request in flight: what it holds, what it waits for, what it still has to do."""

    __slots__ = ("blockers", "graph", "held", "join_ns", "joined", "number", "remaining", "waiting")

    def __init__(self, env: Clock, number: int, graph: Graph, join_ns: int) -> None:
        self.number = number
        self.graph = graph
        self.blockers = graph.blockers.copy()
        self.remaining = graph.calls
        self.join_ns = join_ns
        self.joined = env.event()
        self.held = 0
        self.waiting: list[Place] = []


class Call(simpy.Event):
    """One execution of a branch, from the moment it is ready. As an event, it happens when it finishes.

    `row` is its row in the table of calls, which is in order of (request number, call index).
    """

    def __init__(self, env: Clock, request: Request, index: int, row: int) -> None:
        super().__init__(env)
        self.request = request
        self.index = index
        self.row = row
        self.ready_ns = env.now
        self.start_ns = -1
        self.slot = -1


Place = tuple[int, int, Call]
"""A call's place in queue order: its ready time, its row, and the call itself."""


class InLine:
    """The first call in queue order, whatever its request holds."""

    def __init__(self) -> None:
        self.length = 0
        self.line: list[Place] = []

    def push(self, call: Call) -> None:
        """Queue a call that has just become ready."""
        self.length += 1
        heappush(self.line, (call.ready_ns, call.row, call))

    def take(self, _cap: int) -> Call | None:
        """Take out the call that a free slot goes to, if any waits."""
        if not self.line:
            return None
        self.length -= 1
        return heappop(self.line)[-1]

    def gave_back(self, request: Request) -> None:
        """Nobody's turn depends on what a request holds."""


class BelowCap:
    """The first call in queue order whose request holds fewer slots than the cap.

    A request stands in the line of those that hold as many slots as it does, at the place of its first
    waiting call. The places where it stood before are skipped when they come up. Only the lines in use are
    looked at, in `in_use` by the slots held: these add up to the provider's slots, so that there are few.
    """

    def __init__(self, calls_per_request: int) -> None:
        self.length = 0
        self.lines: list[list[Place]] = [[] for _ in range(calls_per_request + 1)]
        self.in_use: list[int] = []

    def push(self, call: Call) -> None:
        """Queue a call that has just become ready."""
        self.length += 1
        request = call.request
        place = (call.ready_ns, call.row, call)
        heappush(request.waiting, place)
        if request.waiting[0] is place:
            self.stand(request.held, place)

    def take(self, cap: int) -> Call | None:
        """Take out the call that a free slot goes to, if the cap lets any have it."""
        first = self.first(cap)
        if first is None:
            return None
        self.length -= 1
        call = first[-1]
        heappop(call.request.waiting)
        self.now_holds(call.request, call.request.held + 1)
        return call

    def gave_back(self, request: Request) -> None:
        """Count one slot less of those that a request holds."""
        self.now_holds(request, request.held - 1)

    def now_holds(self, request: Request, held: int) -> None:
        """Let a request that still waits change lines."""
        request.held = held
        if request.waiting:
            self.stand(held, request.waiting[0])

    def stand(self, held: int, place: Place) -> None:
        """Add a place to the line of those that hold so many slots."""
        if not self.lines[held]:
            insort(self.in_use, held)
        heappush(self.lines[held], place)

    def first(self, cap: int) -> Place | None:
        """Return the first place in queue order of the requests that hold fewer than `cap` slots."""
        return min(self.heads(cap), default=None)

    def heads(self, cap: int) -> Iterator[Place]:
        """Yield the first place of each line of requests that hold fewer than `cap` slots."""
        for held in self.in_use[: bisect_left(self.in_use, cap)]:
            head = self.head(held)
            if head is None:
                self.in_use.remove(held)
            else:
                yield head

    def head(self, held: int) -> Place | None:
        """Return the first place of the requests that hold so many slots."""
        line = self.lines[held]
        while line:
            request = line[0][-1].request
            if request.held == held and request.waiting and request.waiting[0] is line[0]:
                return line[0]
            heappop(line)
        return None


class FewestHeld(BelowCap):
    """The first call in queue order of those whose request holds fewest slots, below the cap."""

    def first(self, cap: int) -> Place | None:
        """Return the first place of the requests that hold fewest slots."""
        return next(self.heads(cap), None)


CallQueue = InLine | BelowCap


def call_queue(given: PlainInput) -> CallQueue:
    """Return the queue of a run's allocation."""
    calls = given.calls_per_request
    at_once = min(given.slots, calls) if given.runs_parallel_at[1:].any() else 1
    if at_once == 1 or (not given.allocation.minds_held and given.cap(active=1) >= at_once):
        return InLine()
    return FewestHeld(calls) if given.allocation.fewest_first else BelowCap(calls)
