"""Every grant of a shared provider held against its allocation, its limits and its reservations.

The run is walked instant by instant from the table of attempts, with plain sorted lists: whatever the
allocation would have granted must have been granted, in that order and on that slot, and nothing else.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from sim.check.limits import ONE_CALL, Counted, LimitHistory
from sim.check.prefix_cache import CacheHistory
from sim.check.shared_timeline import SharedTimeline
from sim.contract.run import (
    CANCELLED,
    NEVER_NS,
    NO_SLOT,
    OK,
    RATE_LIMITED,
    REJECTED,
    TIMED_OUT,
    SharedInput,
    SharedOutput,
)
from sim.errors import CheckError
from sim.units import IntArray

Key = tuple[int, int, int, int]
"""An attempt's place in the queue: (ready time, request number, call, attempt)."""


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One row of the table of attempts, with its request's workload and position."""

    key: Key
    workload: int
    position: int
    start_ns: int
    finish_ns: int
    slot: int
    outcome: int
    hit: int


@dataclass(slots=True)
class Instant:
    """What the table says of one instant."""

    ready: list[AttemptRow] = field(default_factory=list)
    started: dict[Key, AttemptRow] = field(default_factory=dict)
    finished: list[AttemptRow] = field(default_factory=list)
    dropped: list[AttemptRow] = field(default_factory=list)
    rejected: dict[Key, AttemptRow] = field(default_factory=dict)


def walk_provider(given: SharedInput, out: SharedOutput, line: SharedTimeline, provider: int) -> None:
    """Walk a run at one provider.

    Raises
    ------
    CheckError
        An attempt waited beside a free slot that was its due, for a limit that admitted it, was overtaken, or
        took what was not its due.
    """
    instants = by_instant(rows_of(given, out, provider))
    walk = ProviderWalk(given, provider)
    attempts = out.attempts
    unsettled = set(attempts.finish_ns[attempts.outcome == REJECTED].tolist())
    caps = np.stack([line.cap(workload, provider) for workload in range(len(given.workloads))], axis=1)
    times_ns = line.instant_ns.tolist()
    for at_ns, next_ns, slots, cap in zip(
        times_ns, [*times_ns[1:], NEVER_NS], line.slots[provider].tolist(), caps.tolist(), strict=True
    ):
        what = instants.get(at_ns, NOTHING_HAPPENS)
        walk.begin_instant(at_ns, slots, what)
        if at_ns in unsettled:
            walk.dispatch_unsettled(at_ns, cap, what)
        else:
            walk.dispatch(at_ns, cap, dict(what.started))
        walk.look_between(at_ns, next_ns, cap)
    for key in (key for rows in walk.queued.values() for key in rows):
        raise CheckError(f"conservation: {named(key)} was never served")


NOTHING_HAPPENS = Instant()


def rows_of(given: SharedInput, out: SharedOutput, provider: int) -> list[AttemptRow]:
    """Return the attempts that were made to one provider."""
    attempts = out.attempts
    columns: tuple[IntArray, ...] = (
        out.workload[attempts.number], out.position[attempts.number],
        attempts.start_ns, attempts.finish_ns, attempts.slot, attempts.outcome, attempts.hit,
    )  # fmt: skip
    keys = zip(
        *(x.tolist() for x in (attempts.ready_ns, attempts.number, attempts.call, attempts.attempt)),
        strict=True,
    )
    values = zip(*(column.tolist() for column in columns), strict=True)
    rows = (AttemptRow(key, *row) for key, row in zip(keys, values, strict=True))
    return [row for row in rows if given.workloads[row.workload].provider_of(row.key[2]) == provider]


def by_instant(rows: Iterable[AttemptRow]) -> dict[int, Instant]:
    """Return what happened at each instant at which something did."""
    instants: defaultdict[int, Instant] = defaultdict(Instant)
    for row in rows:
        instants[row.key[0]].ready.append(row)
        if row.slot != NO_SLOT:
            instants[row.start_ns].started[row.key] = row
            if row.finish_ns > row.start_ns:
                instants[row.finish_ns].finished.append(row)
        elif row.outcome == REJECTED:
            instants[row.finish_ns].rejected[row.key] = row
        else:
            instants[row.finish_ns].dropped.append(row)
    return instants


def named(key: Key) -> str:
    """Return an attempt in words."""
    return f"attempt {key[3]} at call {key[2]} of request {key[1]}"


class ProviderWalk:
    """Who waits, who holds what, which slots are free since when, and what the limits have admitted."""

    def __init__(self, given: SharedInput, provider: int) -> None:
        self.given = given
        self.rules = given.providers[provider]
        self.limits = LimitHistory(self.rules.limits) if self.rules.limits.rates else None
        self.cache = CacheHistory(self.rules.cache) if self.rules.cache else None
        self.takes_cache_records = False
        self.granted: dict[Key, int] = {}
        self.admitted: dict[Key, Counted] = {}
        # Of each workload, by the slots held: the first waiting attempt of each request, in queue order.
        self.waiting: list[dict[int, list[Key]]] = [{} for _ in given.workloads]
        self.queued: defaultdict[int, dict[Key, AttemptRow]] = defaultdict(dict)
        self.in_order: defaultdict[int, list[Key]] = defaultdict(list)
        self.held: defaultdict[int, int] = defaultdict(int)
        self.busy = [0] * len(given.workloads)
        self.running: dict[int, AttemptRow] = {}
        self.slots = 0
        self.free: list[tuple[int, int]] = []

    def begin_instant(self, at_ns: int, slots: int, what: Instant) -> None:
        """Let everything at one instant happen that comes before its dispatch."""
        for row in sorted(what.finished, key=self.ends_in_order):
            self.finish(row, at_ns)
        for row in what.ready:
            self.take_out(row)
            self.queued[row.key[1]][row.key] = row
            insort(self.in_order[row.key[1]], row.key)
            self.put_in(row)
        for row in what.dropped:
            self.leave_queue(row)
        if slots != self.slots:
            self.set_slots(slots, at_ns)

    def ends_in_order(self, row: AttemptRow) -> tuple[int, int, Key]:
        """Return which of the attempts that end at an instant is settled first: in order of their grants.

        The cancelled come after all that end by themselves.
        """
        cancelled = row.outcome == CANCELLED
        return int(cancelled), 0 if cancelled else self.granted[row.key], row.key

    def set_slots(self, slots: int, at_ns: int) -> None:
        """Offer so many slots from now on."""
        new = [(at_ns, slot) for slot in range(self.slots, slots) if slot not in self.running]
        self.free = sorted(entry for entry in self.free + new if entry[1] < slots)
        self.slots = slots

    def dispatch(self, at_ns: int, cap: list[int], started: dict[Key, AttemptRow]) -> None:
        """Grant what the allocation grants, and compare it with what was granted."""
        while (row := self.admissible(at_ns, cap)) is not None:
            if row.key not in started:
                raise self.passed_over(row.key, at_ns, started)
            slot = self.free[0][1]
            if slot != row.slot:
                what = f"did not get the slot free longest, {slot}, but {row.slot}"
                raise CheckError(f"conservation: {named(row.key)} {what} at {at_ns} ns")
            self.grant(started.pop(row.key), at_ns)
        for key in started:
            raise CheckError(f"conservation: {named(key)} took what was not its due at {at_ns} ns")

    def dispatch_unsettled(self, at_ns: int, cap: list[int], what: Instant) -> None:
        """Take the grants of an instant as they are, and hold what they leave behind against the allocation.

        A rejection may answer a request, and so bring on cancellations, arrivals and another dispatch within
        the same instant; the tables do not say in which of its dispatches an attempt was granted, and so not
        either which of several prefixes was used last. A cache of limited capacity goes on that: its records
        are taken as they are from then on.
        """
        if self.cache and self.cache.rules.capacity is not None and len(self.given.workloads) > 1:
            self.takes_cache_records = True
        for row in what.rejected.values():
            self.leave_queue(row)
            if self.limits:
                self.limits.turn_away(at_ns)
        for row in (row for row in what.started.values() if row.finish_ns == at_ns):
            self.grant(row, at_ns)
            self.finish(row, at_ns)
        for row in (row for row in what.started.values() if row.finish_ns > at_ns):
            if row.slot not in {slot for _, slot in self.free}:
                raise CheckError(
                    f"conservation: {named(row.key)} took a slot that was not free at {at_ns} ns"
                )
            self.grant(row, at_ns)
        left = self.admissible(at_ns, cap)
        if left is not None:
            raise self.passed_over(left.key, at_ns, {})

    def look_between(self, at_ns: int, next_ns: int, cap: list[int]) -> None:
        """Make sure that the limits do not admit who waits for them until the next instant of the tables.

        What a waiting attempt needs changes when its prefix becomes cached, or is no longer.
        """
        if not self.limits or not self.free or sum(self.busy) >= self.slots:
            return
        row = self.due(cap)
        while row is not None:
            admitted_ns = self.limits.admits_from_ns(self.reserved_by(row, at_ns), at_ns)
            at_ns = min(admitted_ns, self.next_first_token_ns(row, at_ns))
            if at_ns >= next_ns:
                return
            if self.admits(row, at_ns):
                what = f"waited for a limit that admitted it at {at_ns} ns"
                raise CheckError(f"conservation: {named(row.key)} {what}")

    def next_first_token_ns(self, row: AttemptRow, at_ns: int) -> int:
        """Return when one that writes the prefix of a waiting attempt has its first token next."""
        if not self.cache or not self.prefix(row):
            return NEVER_NS
        writers = (one for one in self.running.values() if one.workload == row.workload and one.hit == 0)
        coming_ns = (one.start_ns + self.first_token_ns(one) for one in writers)
        return min((time_ns for time_ns in coming_ns if time_ns > at_ns), default=NEVER_NS)

    def admissible(self, at_ns: int, cap: list[int]) -> AttemptRow | None:
        """Return the attempt that is due, if there is a slot for it and the limits admit it."""
        if not self.free or sum(self.busy) >= self.slots:
            return None
        row = self.due(cap)
        return row if row is not None and self.admits(row, at_ns) else None

    def admits(self, row: AttemptRow, at_ns: int) -> bool:
        """Return whether every limit admits an attempt now."""
        return not self.limits or self.limits.admits_from_ns(self.reserved_by(row, at_ns), at_ns) == at_ns

    def due(self, cap: list[int]) -> AttemptRow | None:
        """Return the attempt that the allocation serves next."""
        best: tuple[tuple[int, int, int, Key], Key] | None = None
        for workload, lists in enumerate(self.waiting):
            if not self.has_room(workload):
                continue
            for held, calls in lists.items():
                if held < cap[workload]:
                    fewest = held if self.rules.allocation.fewest_first else 0
                    order = (*self.rank(workload), fewest, calls[0])
                    best = min(best, (order, calls[0])) if best else (order, calls[0])
        return self.queued[best[1][1]][best[1]] if best else None

    def has_room(self, workload: int) -> bool:
        """Return whether a workload may take one more of the slots, some of which may be kept for others."""
        if self.rules.lends or not self.rules.reserved or self.busy[workload] < self.rules.reserved[workload]:
            return True
        others = zip(self.rules.reserved, self.busy, strict=True)
        kept = sum(max(0, kept - busy) for other, (kept, busy) in enumerate(others) if other != workload)
        return sum(self.busy) + kept < self.slots

    def rank(self, workload: int) -> tuple[int, int]:
        """Return who goes first: workloads below what they lent to others, then the higher priority."""
        kept = self.rules.reserved[workload] if self.rules.reserved and self.rules.lends else 0
        priority = self.given.workloads[workload].priority if self.rules.allocation.by_priority else 0
        return int(self.busy[workload] >= kept), -priority

    def grant(self, row: AttemptRow, at_ns: int) -> None:
        """Give an attempt its slot, and hold its cache record against the cache."""
        reserved, reads = self.reserved_by(row, at_ns), self.reads(row, at_ns)
        self.free = [entry for entry in self.free if entry[1] != row.slot]
        self.leave_queue(row)
        self.running[row.slot] = row
        self.granted[row.key] = len(self.granted)
        self.busy[row.workload] += 1
        self.hold(row, 1)
        if self.limits:
            self.limits.admit(reserved, at_ns)
            self.admitted[row.key] = reserved
        if self.cache and self.prefix(row) and not self.takes_cache_records:
            self.cache.start(row.workload, row.key, at_ns, self.first_token_ns(row))
            if reads != row.hit:
                raise CheckError(f"conservation: the cache record of {named(row.key)} is wrong at {at_ns} ns")

    def finish(self, row: AttemptRow, at_ns: int) -> None:
        """Take an attempt's slot back and settle what it used."""
        self.running.pop(row.slot, None)
        if row.slot < self.slots:
            insort(self.free, (at_ns, row.slot))
        self.busy[row.workload] -= 1
        self.hold(row, -1)
        if self.limits:
            self.limits.settle(self.admitted.pop(row.key, ONE_CALL), self.used_by(row), row.start_ns, at_ns)
        if self.cache and row.hit == 0:
            self.cache.end(row.workload, row.key, at_ns)

    def hold(self, row: AttemptRow, change: int) -> None:
        """Change what a request holds, and file its first waiting attempt accordingly."""
        self.take_out(row)
        self.held[row.key[1]] += change
        self.put_in(row)

    def leave_queue(self, row: AttemptRow) -> None:
        """Take an attempt out of the queue."""
        self.take_out(row)
        keys = self.in_order[row.key[1]]
        del keys[bisect_left(keys, row.key)]
        del self.queued[row.key[1]][row.key]
        self.put_in(row)

    def put_in(self, row: AttemptRow) -> None:
        """File the first waiting attempt of a row's request, if any waits: only that one can be its next."""
        if keys := self.in_order[row.key[1]]:
            insort(self.waiting[row.workload].setdefault(self.held[row.key[1]], []), keys[0])

    def take_out(self, row: AttemptRow) -> None:
        """Take the first waiting attempt of a row's request out of where it is filed."""
        if keys := self.in_order[row.key[1]]:
            held, lists = self.held[row.key[1]], self.waiting[row.workload]
            del lists[held][bisect_left(lists[held], keys[0])]
            if not lists[held]:
                del lists[held]

    def reserved_by(self, row: AttemptRow, at_ns: int) -> Counted:
        """Return what admitting an attempt now counts for."""
        tokens = self.given.workloads[row.workload].tokens
        if tokens is None:
            return ONE_CALL
        return Counted(1, self.counted_input(row, self.reads(row, at_ns)), tokens.reserved_output[row.key[2]])

    def reads(self, row: AttemptRow, at_ns: int) -> bool:
        """Return whether an attempt that starts now reads its prefix."""
        if self.takes_cache_records:
            # The record is of its start; what the cache had before is not known.
            return row.hit == 1 and row.start_ns == at_ns
        return bool(self.cache and self.prefix(row) and self.cache.reads(row.workload, at_ns))

    def used_by(self, row: AttemptRow) -> Counted:
        """Return what an attempt has counted for at its end."""
        tokens = self.given.workloads[row.workload].tokens
        if tokens is None:
            return ONE_CALL
        used = int(tokens.output[row.position, row.key[2]])
        return Counted(1, self.counted_input(row, row.hit == 1), used)

    def counted_input(self, row: AttemptRow, hit: bool) -> int:
        """Return the input tokens that count against the limits."""
        tokens = self.given.workloads[row.workload].tokens
        assert tokens is not None
        uncounted = self.prefix(row) if hit and not self.rules.limits.cached_tokens_count else 0
        return max(0, int(tokens.input[row.position, row.key[2]]) - uncounted)

    def prefix(self, row: AttemptRow) -> int:
        """Return the tokens of the shared prefix that an attempt carries."""
        tokens = self.given.workloads[row.workload].tokens
        return tokens.prefix[row.key[2]] if tokens is not None else 0

    def first_token_ns(self, row: AttemptRow) -> int:
        """Return the time from an attempt's start to its first token; a whole answer is not shorter.

        One that is turned away, or has ended before, never has one.
        """
        workload, call, attempt = self.given.workloads[row.workload], *row.key[2:]
        if workload.tokens is None:
            return 0
        drawn_ns = int(workload.tokens.first_token_ns[row.position, call])
        faults = workload.faults
        if faults is None or call >= workload.branches:
            return min(drawn_ns, int(workload.service_ns[row.position, call]))
        lasts_ns = int(faults.service_ns[row.position, call, attempt])
        outcome = int(faults.outcome[row.position, call, attempt])
        timeout_ns = faults.timeout_ns[call]
        if timeout_ns is not None and (outcome == TIMED_OUT or lasts_ns > timeout_ns):
            lasts_ns, outcome = timeout_ns, TIMED_OUT
        if outcome == OK:
            return min(drawn_ns, lasts_ns)
        return NEVER_NS if outcome == RATE_LIMITED or drawn_ns > lasts_ns else drawn_ns

    def passed_over(self, key: Key, at_ns: int, started: dict[Key, AttemptRow]) -> CheckError:
        """Return the error for an eligible attempt that was not granted."""
        what = f"was overtaken by {named(min(started))}" if started else "waited beside a free slot"
        return CheckError(f"conservation: {named(key)} {what} at {at_ns} ns")
