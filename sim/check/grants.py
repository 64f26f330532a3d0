"""Every grant held against the allocation: the run walked instant by instant, from the call table.

Written apart from the engines' queue, with plain sorted lists, so that a fault in one is not a fault in both.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sim.check.history import violation
from sim.check.timeline import Timeline
from sim.contract.plain import EngineInput, EngineOutput
from sim.errors import CheckError
from sim.units import IntArray

Key = tuple[int, int, int]
"""A call's place in the queue: (ready time, request number, call index)."""


class CallRow(NamedTuple):
    """One row of the call table."""

    key: Key
    slot: int


def walk_instants(given: EngineInput, out: EngineOutput, line: Timeline) -> None:
    """Walk a run; at each dispatch the calls that started must be those that the allocation picks, in order.

    Raises
    ------
    CheckError
        A call waited beside a free slot, was overtaken, or took a slot that was not its due.
    """
    walk = Walk(given, out)
    rows = call_rows(out)
    ready, started, finished = (
        RowsByInstant(rows, line.at(times_ns[out.called]))
        for times_ns in (out.ready_ns, out.start_ns, out.finish_ns)
    )
    for instant, (at_ns, cap) in enumerate(zip(line.instant_ns.tolist(), line.cap.tolist(), strict=True)):
        for row in finished.at(instant):
            walk.finish(row, at_ns)
        for row in ready.at(instant):
            walk.queue(row.key)
        walk.dispatch(at_ns, cap, {row.key: row.slot for row in started.at(instant)})
    walk.end()


def call_rows(out: EngineOutput) -> list[CallRow]:
    """Return the calls that were made."""
    request, call = np.nonzero(out.called)
    columns = (out.ready_ns[out.called], request, call, out.slot[out.called])
    return [
        CallRow((ready_ns, number, index), slot)
        for ready_ns, number, index, slot in zip(*(column.tolist() for column in columns), strict=True)
    ]


class RowsByInstant:
    """Rows grouped by the index of an instant, handed out in ascending order of instants."""

    def __init__(self, rows: list[CallRow], instant: IntArray) -> None:
        order = np.argsort(instant, kind="stable")
        self.rows = [rows[place] for place in order.tolist()]
        self.instant = instant[order].tolist()
        self.next = 0

    def at(self, instant: int) -> Iterator[CallRow]:
        """Yield the rows of one instant, the next after those asked for before."""
        while self.next < len(self.rows) and self.instant[self.next] == instant:
            yield self.rows[self.next]
            self.next += 1


class Walk:
    """Who waits, who holds what, and which slots are free since when."""

    def __init__(self, given: EngineInput, out: EngineOutput) -> None:
        self.given, self.out = given, out
        # By the slots that requests hold: the first waiting call of each, in queue order.
        self.waiting: dict[int, list[Key]] = {}
        self.queued: list[list[Key]] = [[] for _ in range(out.requests)]
        self.held = [0] * out.requests
        self.free = [(0, slot) for slot in range(given.slots)]

    def finish(self, row: CallRow, at_ns: int) -> None:
        """Free the slot of a call."""
        insort(self.free, (at_ns, row.slot))
        self.hold(row.key[1], -1)

    def queue(self, key: Key) -> None:
        """Let a call wait."""
        self.take_out(key[1])
        insort(self.queued[key[1]], key)
        self.put_in(key[1])

    def dispatch(self, at_ns: int, cap: int, started: dict[Key, int]) -> None:
        """Grant what the allocation grants, and compare it with what was granted."""
        while self.free and (key := self.due(cap)) is not None:
            if key not in started:
                raise self.passed_over(key, at_ns, started)
            if started.pop(key) != self.free[0][1]:
                what = (
                    f"call {key[2]} of request {key[1]} did not get the slot free longest, {self.free[0][1]}"
                )
                raise self.violation(key, what, at_ns)
            self.grant(key)
        for key in started:
            what = f"call {key[2]} of request {key[1]} took a slot without being eligible for a free one"
            raise self.violation(key, what, at_ns)

    def due(self, cap: int) -> Key | None:
        """Return the call that the allocation serves next."""
        heads = [(held, calls[0]) for held, calls in self.waiting.items() if held < cap]
        if not heads:
            return None
        return min(heads)[1] if self.given.allocation.fewest_first else min(key for _, key in heads)

    def grant(self, key: Key) -> None:
        """Give a waiting call the slot free longest."""
        self.free.pop(0)
        self.take_out(key[1])
        self.queued[key[1]].remove(key)
        self.put_in(key[1])
        self.hold(key[1], 1)

    def hold(self, request: int, change: int) -> None:
        """Change what a request holds, and file its first waiting call accordingly."""
        self.take_out(request)
        self.held[request] += change
        self.put_in(request)

    def put_in(self, request: int) -> None:
        """File a request's first waiting call, if any waits: only that one can be its next."""
        if self.queued[request]:
            insort(self.waiting.setdefault(self.held[request], []), self.queued[request][0])

    def take_out(self, request: int) -> None:
        """Take a request's first waiting call out of where it is filed."""
        if self.queued[request]:
            calls = self.waiting[self.held[request]]
            del calls[bisect_left(calls, self.queued[request][0])]
            if not calls:
                del self.waiting[self.held[request]]

    def end(self) -> None:
        """Make sure that nothing is left waiting."""
        for key in (key for calls in self.queued for key in calls):
            raise self.violation(key, f"call {key[2]} of request {key[1]} was never served", key[0])

    def passed_over(self, key: Key, at_ns: int, started: dict[Key, int]) -> CheckError:
        """Return the error for an eligible call that was not granted."""
        what = f"call {key[2]} of request {key[1]} waited beside a free slot"
        if started:
            other = min(started)
            what = f"call {key[2]} of request {key[1]} was overtaken by call {other[2]} of request {other[1]}"
        return self.violation(key, what, at_ns)

    def violation(self, key: Key, what: str, at_ns: int) -> CheckError:
        """Return the error that tells the story of the call's request."""
        return violation(self.given, self.out, key[1], f"conservation: {what} at {at_ns} ns")
