"""Requests in flight, and the calls that wait for a slot of one provider, by what their requests hold."""

from bisect import bisect_left, insort
from heapq import heappop, heappush

import simpy

from sim.contract.output import OK, RATE_LIMITED, TIMED_OUT
from sim.contract.run import NEVER_NS, PPM
from sim.engine.graph import Graph
from sim.engine.shared.limiter import NOTHING, Use
from sim.engine.shared.workload import Workload

# Where a branch stands.
PENDING, LIVE, DONE, LOST = range(4)


class Request:
    """One request: what it holds of each provider, and where each of its branches stands."""

    __slots__ = (
        "answer",
        "attempts",
        "blockers",
        "graph",
        "held",
        "join_start_ns",
        "live",
        "number",
        "parallel",
        "position",
        "queued",
        "state",
        "succeeded",
        "unresolved",
        "user",
        "workload",
    )

    def __init__(
        self, workload: Workload, number: int, position: int, user: int, answer: simpy.Event
    ) -> None:
        self.workload = workload
        self.number = number
        self.position = position
        self.user = user
        calls = workload.given.calls_per_request
        self.held = [0] * workload.providers
        self.queued: list[list[Entry]] = [[] for _ in range(workload.providers)]
        self.live: list[list[Call]] = [[] for _ in range(calls)]
        self.attempts = [0] * calls
        self.state = [PENDING] * calls
        self.succeeded = 0
        self.unresolved = workload.given.branches
        self.join_start_ns = -1
        self.parallel = False
        self.graph: Graph
        self.blockers: list[int] = []
        self.answer = answer

    @property
    def is_settled(self) -> bool:
        """Whether no more calls are needed: its join has begun, or it has been answered."""
        return self.join_start_ns >= 0 or self.answer.triggered


class Call:
    """One attempt at a call, from the moment it is ready; `slot` and times are -1 until it has them."""

    __slots__ = (
        "attempt",
        "end_ns",
        "hit",
        "index",
        "is_queued",
        "key",
        "request",
        "reserved",
        "slot",
        "start_ns",
    )

    def __init__(self, request: Request, index: int, attempt: int, ready_ns: int) -> None:
        self.request = request
        self.index = index
        self.attempt = attempt
        self.key = (ready_ns, request.number, index, attempt)
        self.is_queued = True
        self.slot = -1
        self.start_ns = -1
        self.end_ns = -1
        self.hit = -1
        self.reserved = NOTHING

    @property
    def is_over(self) -> bool:
        """Whether it has ended, with a slot or without."""
        return self.end_ns >= 0

    def service(self) -> tuple[int, int]:
        """Return how long it holds its slot (ns), and how it ends."""
        workload, position, index = self.request.workload, self.request.position, self.index
        faults = workload.given.faults
        if faults is None or index >= workload.given.branches:
            return workload.service_ns[position][index], OK
        service_ns = int(faults.service_ns[position, index, self.attempt])
        outcome = int(faults.outcome[position, index, self.attempt])
        timeout_ns = faults.timeout_ns[index]
        if timeout_ns is not None and (outcome == TIMED_OUT or service_ns > timeout_ns):
            return timeout_ns, TIMED_OUT
        return service_ns, outcome

    def allows_more(self) -> bool:
        """Return whether another attempt is allowed, by their number and by the budget."""
        workload = self.request.workload
        faults = workload.given.faults
        if faults is None or self.request.attempts[self.index] >= faults.most_attempts:
            return False
        budget = faults.retry_budget_ppm
        return budget is None or (workload.more_attempts + 1) * PPM <= budget * workload.first_attempts

    def pause_ns(self, retry_after_ns: int) -> int:
        """Return the pause before the next attempt: at least the backoff, and what the provider asked."""
        given = self.request.workload.given
        assert given.faults is not None
        least_ns = max(given.faults.backoff_ns[self.attempt], retry_after_ns)
        if self.index >= given.branches:
            return least_ns  # a join has no jitter drawn
        jitter_ppm = int(given.faults.jitter_ppm[self.request.position, self.index, self.attempt])
        return least_ns + least_ns * jitter_ppm // PPM

    def first_token_ns(self) -> int:
        """Return the time from its start to its first token; a whole answer is not shorter.

        `NEVER_NS` for an attempt that fails before, and for one that is turned away.
        """
        tokens = self.request.workload.given.tokens
        service_ns, outcome = self.service()
        if outcome == RATE_LIMITED:
            return NEVER_NS
        if tokens is None:
            return 0
        first_token_ns = int(tokens.first_token_ns[self.request.position, self.index])
        if outcome == OK:
            return min(first_token_ns, service_ns)
        return first_token_ns if first_token_ns <= service_ns else NEVER_NS

    def reserved_use(self, uncounted: int) -> Use:
        """Return what admitting it reserves; `uncounted` input tokens do not count."""
        tokens = self.request.workload.given.tokens
        if tokens is None:
            return NOTHING
        return Use(self._counted_input(uncounted), tokens.reserved_output[self.index])

    def actual_use(self, uncounted: int) -> Use:
        """Return what it has used, if it held a slot."""
        tokens = self.request.workload.given.tokens
        if tokens is None:
            return NOTHING
        return Use(self._counted_input(uncounted), int(tokens.output[self.request.position, self.index]))

    def _counted_input(self, uncounted: int) -> int:
        tokens = self.request.workload.given.tokens
        assert tokens is not None
        return max(0, int(tokens.input[self.request.position, self.index]) - uncounted)


Entry = tuple[tuple[int, int, int, int], Call]


class CallQueue:
    """Waiting calls of one provider, by workload and by the slots that their request holds of it.

    A request stands in the heap of those that hold as many slots as it does, with its first waiting call.
    Where it stood before is skipped when it comes up. Only heaps in use are looked at: what requests hold
    adds up to the provider's slots, so that they are few.
    """

    def __init__(self, provider: int, calls_per_request: list[int]) -> None:
        self.provider = provider
        self.by_held: list[list[list[Entry]]] = [
            [[] for _ in range(calls + 1)] for calls in calls_per_request
        ]
        self.in_use: list[list[int]] = [[] for _ in calls_per_request]
        self.length = 0

    def push(self, call: Call) -> None:
        """Queue an attempt that has just become ready."""
        self.length += 1
        line, entry = call.request.queued[self.provider], (call.key, call)
        heappush(line, entry)
        if line[0] is entry:
            self.holding_changed(call.request)

    def remove(self, call: Call) -> None:
        """Take out an attempt; its entries are dropped when they come up."""
        self.length -= 1
        call.is_queued = False
        line = call.request.queued[self.provider]
        if line[0][1] is call:
            while line and not line[0][1].is_queued:
                heappop(line)
            self.holding_changed(call.request)

    def holding_changed(self, request: Request) -> None:
        """File the request's first waiting attempt under what it now holds."""
        line, held = request.queued[self.provider], request.held[self.provider]
        if not line:
            return
        heaps = self.by_held[request.workload.index]
        # What runs on after its request has ended, and a hedge, may hold more slots than there are calls.
        while len(heaps) <= held:
            heaps.append([])
        if not heaps[held]:
            insort(self.in_use[request.workload.index], held)
        heappush(heaps[held], line[0])

    def heads(self, workload: int, cap: int) -> list[tuple[int, Entry]]:
        """Return (slots held, first entry) for each number of held slots below `cap` at which calls wait."""
        heaps, in_use = self.by_held[workload], self.in_use[workload]
        found = []
        for held in in_use[: bisect_left(in_use, cap)]:
            head = self._head(heaps[held], held)
            if head is None:
                in_use.remove(held)
            else:
                found.append((held, head))
        return found

    def _head(self, heap: list[Entry], held: int) -> Entry | None:
        while heap:
            call = heap[0][1]
            line = call.request.queued[self.provider]
            if call.request.held[self.provider] == held and line and line[0][1] is call:
                return heap[0]
            heappop(heap)
        return None
