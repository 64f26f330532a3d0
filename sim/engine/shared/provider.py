"""A shared provider: slots under an allocation across workloads, rate limits, a prefix cache."""

from collections.abc import Generator, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Protocol, cast

import simpy
from simpy.events import EventPriority

from sim.contract.output import CANCELLED, REJECTED
from sim.contract.provider import ProviderInput
from sim.contract.run import NEVER_NS
from sim.engine.clock import CAPACITY, DISPATCH, Clock, Moment
from sim.engine.shared.cache import Cache
from sim.engine.shared.calls import Call, CallQueue
from sim.engine.shared.limiter import Limiter, Use
from sim.engine.shared.workload import Workload


class Watcher(Protocol):
    """Told of every attempt that starts or ends."""

    def started(self, call: Call) -> None:
        """Take note of an attempt that has got its slot."""

    def ended(self, call: Call, outcome: int, retry_after_ns: int) -> None:
        """Take note of an attempt that is over; one that was turned away may come again after a while."""


class Provider:
    """Attempts queue, are granted slots at the end of an instant, and end."""

    def __init__(
        self, env: Clock, index: int, given: ProviderInput, workloads: Sequence[Workload], watcher: Watcher
    ) -> None:
        self.env = env
        self.index = index
        self.given = given
        self.workloads = workloads
        self.started, self.ended = watcher.started, watcher.ended
        self.queue = CallQueue(index, [workload.given.calls_per_request for workload in workloads])
        self.limiter = Limiter(given.limits) if given.limits.rates else None
        self.cache = Cache(given.cache) if given.cache else None
        self.active = [0] * len(workloads)
        self.busy = [0] * len(workloads)
        self.reserved = given.reserved or (0,) * len(workloads)
        self.slots = 0
        # (free since, slot): the slot free longest is granted first, ties to the lowest index.
        self.free: list[tuple[int, int]] = []
        self.held: set[int] = set()
        # Providers dispatch in order of their index, which is the order in which what they start ends.
        self.dispatch_order = cast(EventPriority, DISPATCH + index)
        self.dispatch_is_due = False
        self.wakes_at_ns = -1
        self.set_slots(given.slots[0][1])
        if len(given.slots) > 1:
            env.process(self.change_slots())

    def change_slots(self) -> Generator[simpy.Event, Any, None]:
        """Change the concurrency at each step; more slots are dispatched in that instant."""
        for at_ns, slots in self.given.slots[1:]:
            yield Moment(self.env, CAPACITY, at_ns - self.env.now)
            self.set_slots(slots)

    def set_slots(self, slots: int) -> None:
        """Offer so many slots. Slots that are taken away while a call holds them are gone when it ends."""
        for slot in range(self.slots, slots):
            if slot not in self.held:
                self.free.append((self.env.now, slot))
        self.slots = slots
        self.free = [entry for entry in self.free if entry[1] < slots]
        heapify(self.free)
        self.plan_dispatch()

    def ask(self, call: Call) -> None:
        """Queue an attempt that is ready now."""
        self.queue.push(call)
        self.plan_dispatch()

    def plan_dispatch(self) -> None:
        """Dispatch at the end of this instant, if anyone waits."""
        if self.queue.length and not self.dispatch_is_due:
            self.dispatch_is_due = True
            Moment(self.env, self.dispatch_order).callbacks.append(self.dispatch)

    def dispatch(self, _event: Any) -> None:
        """Grant free slots to the attempts that the allocation picks, as far as the limits admit them."""
        self.dispatch_is_due = False
        while self.free and sum(self.busy) < self.slots and (call := self.pick()) is not None:
            use = self.use_of(call)
            wait_ns = self.limiter.wait_ns(use, self.env.now) if self.limiter else 0
            if wait_ns == 0:
                self.grant(call, use)
            elif self.given.limits.rejects:
                self.reject(call, use)
            else:
                # The first in line waits for the limit, and nobody overtakes it.
                self.wake_after(min(wait_ns, self.needs_less_after_ns(call)))
                return

    def pick(self) -> Call | None:
        """Return the attempt that the allocation serves next."""
        best: tuple[Any, Call] | None = None
        fewest_first = self.given.allocation.fewest_first
        for workload in self.workloads:
            if not self.has_room(workload.index):
                continue
            rank = self.rank(workload)
            for held, (key, call) in self.queue.heads(workload.index, self.cap(workload)):
                order = (rank, held if fewest_first else 0, key)
                if best is None or order < best[0]:
                    best = (order, call)
        return best[1] if best else None

    def cap(self, workload: Workload) -> int:
        """Return how many slots one request of a workload may hold now."""
        cap = self.share(workload) if self.given.allocation.caps else self.slots
        degree = workload.given.max_degree
        return cap if degree is None else min(cap, degree)

    def share(self, workload: Workload) -> int:
        """Return a request's fair share under any allocation: by number, or by weight where that counts."""
        if self.given.allocation.by_weight:
            return max(1, self.slots * workload.given.weight // max(1, self.active_weight()))
        return max(1, self.slots // max(1, sum(self.active)))

    def active_weight(self) -> int:
        """Return the weights of all active requests together."""
        return sum(
            active * workload.given.weight
            for active, workload in zip(self.active, self.workloads, strict=True)
        )

    def has_room(self, workload: int) -> bool:
        """Return whether a workload may take a free slot that is perhaps kept for another."""
        if self.given.lends or self.busy[workload] < self.reserved[workload]:
            return True
        kept = sum(
            max(0, reserved - busy)
            for other, (reserved, busy) in enumerate(zip(self.reserved, self.busy, strict=True))
            if other != workload
        )
        return sum(self.busy) + kept < self.slots

    def rank(self, workload: Workload) -> tuple[int, int]:
        """Return a workload's rank: first those whose reserved slots are lent, then by priority."""
        below = self.given.lends and self.busy[workload.index] < self.reserved[workload.index]
        priority = workload.given.priority if self.given.allocation.by_priority else 0
        return (0 if below else 1, -priority)

    def grant(self, call: Call, use: Use) -> None:
        """Start an attempt on the slot that has been free longest."""
        request, now = call.request, self.env.now
        workload = request.workload
        self.queue.remove(call)
        call.slot = heappop(self.free)[1]
        call.start_ns = now
        call.reserved = use
        self.held.add(call.slot)
        self.busy[workload.index] += 1
        request.held[self.index] += 1
        self.queue.holding_changed(request)
        if self.limiter:
            self.limiter.admit(use, now)
        if self.cache and workload.prefix(call.index):
            writer = (request.number, call.index, call.attempt)
            call.hit = int(self.cache.use(workload.index, writer, now, call.first_token_ns()))
        service_ns, outcome = call.service()
        end = self.env.timeout(service_ns, (call, outcome))
        end.callbacks.append(self._ends)
        self.started(call)

    def cancel(self, call: Call) -> None:
        """End an attempt that is no longer needed: out of the queue, or off its slot at once."""
        if call.is_over:
            return
        if call.is_queued:
            self._leave(call)
        else:
            self._give_back(call)
        self.ended(call, CANCELLED, 0)

    def reject(self, call: Call, use: Use) -> None:
        """Turn an attempt away, and say after how long it may come again."""
        self._leave(call)
        retry_after_ns = self.limiter.reject(use, self.env.now) if self.limiter else 0
        self.ended(call, REJECTED, retry_after_ns)

    def use_of(self, call: Call) -> Use:
        """Return what admitting an attempt now reserves."""
        workload = call.request.workload
        hit = bool(
            self.cache and workload.prefix(call.index) and self.cache.holds(workload.index, self.env.now)
        )
        return call.reserved_use(self.uncounted(call, hit))

    def used_by(self, call: Call) -> Use:
        """Return what an attempt that held a slot has used."""
        return call.actual_use(self.uncounted(call, call.hit == 1))

    def uncounted(self, call: Call, hit: bool) -> int:
        """Return the tokens that the limits do not count because they came from the cache."""
        counts = self.given.limits.cached_tokens_count
        return call.request.workload.prefix(call.index) if hit and not counts else 0

    def needs_less_after_ns(self, call: Call) -> int:
        """Return after how long a waiting attempt may find its prefix cached, and need fewer tokens."""
        workload = call.request.workload
        if self.cache is None or self.given.limits.cached_tokens_count or not workload.prefix(call.index):
            return NEVER_NS
        after_ns = self.cache.readable_after_ns(workload.index, self.env.now)
        return NEVER_NS if after_ns is None else after_ns

    def wake_after(self, wait_ns: int) -> None:
        """Dispatch again when the limits will admit the first in line, or may: then it is looked at again."""
        at_ns = self.env.now + wait_ns
        if self.wakes_at_ns != at_ns:
            self.wakes_at_ns = at_ns
            Moment(self.env, CAPACITY, wait_ns).callbacks.append(lambda _event: self.plan_dispatch())

    def _ends(self, event: Any) -> None:
        call, outcome = event.value
        if not call.is_over:
            self._give_back(call)
            self.ended(call, outcome, 0)

    def _leave(self, call: Call) -> None:
        self.queue.remove(call)
        call.end_ns = self.env.now
        # It may have been the first in line, which waited for a limit that admits those behind it.
        self.plan_dispatch()

    def _give_back(self, call: Call) -> None:
        request, now = call.request, self.env.now
        call.end_ns = now
        self.held.remove(call.slot)
        if call.slot < self.slots:
            heappush(self.free, (now, call.slot))
        self.busy[request.workload.index] -= 1
        request.held[self.index] -= 1
        self.queue.holding_changed(request)
        if self.limiter:
            self.limiter.settle(call.reserved, self.used_by(call), call.start_ns, now)
        if self.cache and call.hit == 0:
            self.cache.abandon(request.workload.index, (request.number, call.index, call.attempt), now)
        self.plan_dispatch()
