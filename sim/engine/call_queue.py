"""The calls that wait for a slot, found without scanning them.

Calls queue in the order (ready time, request number, call index). Who may be served depends on how many
slots a call's request holds, so there is one heap for each number of held slots. A call whose request's
holding changes is pushed again where it now belongs; the old entry is skipped when it comes up.
"""

from heapq import heappop, heappush

import simpy

from sim.engine.graph import Graph


class Request:
    """One request in flight: what it holds, what it waits for, what it still has to do."""

    __slots__ = ("blockers", "branches_done", "graph", "held", "number", "queued", "remaining")

    def __init__(self, number: int, graph: Graph, branches_done: simpy.Event) -> None:
        self.number = number
        self.graph = graph
        self.blockers = graph.blockers.copy()
        self.remaining = graph.calls
        self.branches_done = branches_done
        self.held = 0
        self.queued: list[Call] = []


class Call:
    """One execution of a branch, from the moment it is ready."""

    __slots__ = ("index", "is_queued", "key", "request", "slot", "start_ns")

    def __init__(self, request: Request, index: int, ready_ns: int) -> None:
        self.request = request
        self.index = index
        self.key = (ready_ns, request.number, index)
        self.is_queued = True
        self.slot = -1
        self.start_ns = -1


Entry = tuple[tuple[int, int, int], Call]


class CallQueue:
    """Waiting calls by the number of slots that their request holds."""

    def __init__(self, calls_per_request: int) -> None:
        self.by_held: list[list[Entry]] = [[] for _ in range(calls_per_request + 1)]
        self.length = 0

    def push(self, call: Call) -> None:
        """Queue a call that has just become ready."""
        self.length += 1
        call.request.queued.append(call)
        heappush(self.by_held[call.request.held], (call.key, call))

    def remove(self, call: Call) -> None:
        """Take out a call that is being served; its entries are dropped when they come up."""
        self.length -= 1
        call.is_queued = False
        call.request.queued.remove(call)

    def holding_changed(self, request: Request) -> None:
        """File the request's waiting calls under what it now holds."""
        for call in request.queued:
            heappush(self.by_held[request.held], (call.key, call))

    def first(self, cap: int) -> Call | None:
        """Return the first call in queue order whose request holds fewer than `cap` slots."""
        heads = [head for held in range(min(cap, len(self.by_held))) if (head := self._head(held))]
        return min(heads)[1] if heads else None

    def first_holding_fewest(self, cap: int) -> Call | None:
        """Return the first call, in queue order, of those whose request holds fewest slots, below `cap`."""
        for held in range(min(cap, len(self.by_held))):
            if head := self._head(held):
                return head[1]
        return None

    def _head(self, held: int) -> Entry | None:
        heap = self.by_held[held]
        while heap:
            call = heap[0][1]
            if call.is_queued and call.request.held == held:
                return heap[0]
            heappop(heap)
        return None
