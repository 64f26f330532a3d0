"""The provider as a SimPy resource: slots that all active requests borrow, and one dispatch per instant."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from sim.contract.plain import PlainInput
from sim.engine.call_queue import Call, Request, call_queue
from sim.engine.clock import DISPATCH, Clock, Moment


class Provider:
    """Slots under an allocation. Calls queue, are granted slots at the end of an instant, and finish."""

    def __init__(self, env: Clock, given: PlainInput, finished: Callable[[Call], None]) -> None:
        self.env = env
        self.given = given
        self.finished = finished
        self.queue = call_queue(given)
        self.calls_per_request = given.calls_per_request
        # (free since, slot): the slot free longest is granted first, ties to the lowest index.
        self.free: list[tuple[int, int]] = [(0, slot) for slot in range(given.slots)]
        self.service_ns: list[int] = given.service_ns.ravel().tolist()
        self.active = 0
        self.active_integral_ns = 0
        self.active_since_ns = 0
        self.dispatch_is_due = False

    def enter(self) -> None:
        """Count one more active request."""
        self._accumulate()
        self.active += 1

    def leave(self) -> None:
        """Count one active request less, which may raise every other request's cap."""
        self._accumulate()
        self.active -= 1
        self._plan_dispatch()

    def ask(self, request: Request, index: int) -> None:
        """Queue a call that is ready now."""
        row = request.number * self.calls_per_request + index
        self.queue.push(Call(self.env, request, index, row))
        self._plan_dispatch()

    def dispatch(self, _event: Any) -> None:
        """Grant free slots to the calls that the allocation picks, until either runs out."""
        self.dispatch_is_due = False
        cap = self.given.cap(self.active)
        while self.free and (call := self.queue.take(cap)):
            self.grant(call)

    def grant(self, call: Call) -> None:
        """Start a call on the slot that has been free longest."""
        call.slot = heappop(self.free)[1]
        call.start_ns = self.env.now
        call.callbacks.append(self._finish)
        self.env.complete(call, self.service_ns[call.row])

    def _finish(self, call: Any) -> None:
        heappush(self.free, (self.env.now, call.slot))
        self.queue.gave_back(call.request)
        self._plan_dispatch()
        self.finished(call)

    def _plan_dispatch(self) -> None:
        if self.queue.length and self.free and not self.dispatch_is_due:
            self.dispatch_is_due = True
            Moment(self.env, DISPATCH).callbacks.append(self.dispatch)

    def _accumulate(self) -> None:
        now = self.env.now
        self.active_integral_ns += self.active * (now - self.active_since_ns)
        self.active_since_ns = now
