"""Where a request's time went: its latency split along the calls that it waited for last, exactly.

From the answer backwards: the join, the call that ended last, what made that call ready, and so on to the
arrival. Each stretch belongs to one part, so that the parts add up to the latency to the nanosecond.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sim.engine.interface import BoolArray
from sim.engine.shared.interface import NO_SLOT, OK
from sim.shared_simulation import SharedRun
from sim.shared_view import provider_of
from sim.simulation import Run
from sim.units import NS_PER_MS, IntArray

PARTS: Final = {
    "service": "service on the critical path",
    "slots_busy": "waiting while every slot was taken",
    "own_cap": "waiting at its own cap, beside free slots",
    "limits": "waiting for a rate limit or a kept slot",
    "lost_attempts": "attempts that failed",
    "pauses": "pauses before another attempt",
    "join": "join",
}
SERVICE, SLOTS_BUSY, OWN_CAP, LIMITS, LOST_ATTEMPTS, PAUSES, JOIN = range(len(PARTS))
MOST_REQUESTS = 20_000
SLOWEST = 10


@dataclass(frozen=True)
class Breakdown:
    """The parts of some requests' latencies.

    Parameters
    ----------
    request
        int64[n]: the requests, by number.
    parts_ns
        int64[n, parts], in the order of `PARTS`; each row adds up to the latency.
    """

    request: IntArray
    parts_ns: IntArray

    @property
    def mean_ms(self) -> dict[str, float]:
        """The mean of each part by its name, ms; they add up to the mean latency. Empty for no request."""
        if not len(self.request):
            return {}
        return dict(zip(PARTS, (self.parts_ns.mean(axis=0) / NS_PER_MS).tolist(), strict=True))


@dataclass(frozen=True)
class TimeSpent:
    """Where the time of one run went.

    Parameters
    ----------
    requests
        How many requests its figures count: delivered, after warm-up.
    covered
        The parts of their latencies, of the first `MOST_REQUESTS` of a long run.
    slowest
        The parts of the `SLOWEST` longest latencies among all of them, the longest first.
    """

    requests: int
    covered: Breakdown
    slowest: Breakdown


@dataclass(frozen=True, slots=True)
class Leg:
    """One attempt at a call of a request."""

    call: int
    attempt: int
    ready_ns: int
    start_ns: int
    finish_ns: int
    provider: int
    ok: bool


def time_spent(run: Run, counted: BoolArray) -> TimeSpent:
    """Return where the time of a run's requests went; `counted` (bool[requests]) says whose time counts."""
    requests = np.flatnonzero(counted)
    longest_first = np.argsort(-run.out.latency_ns[requests], kind="stable")
    return TimeSpent(
        len(requests),
        break_down(run, requests[:MOST_REQUESTS]),
        break_down(run, requests[longest_first[:SLOWEST]]),
    )


def break_down(run: Run, requests: IntArray) -> Breakdown:
    """Return the parts of the latencies of delivered requests, by number and in the order given."""
    legs = legs_of(run, requests)
    waits = [ProviderWaits(run, provider) for provider in range(providers_of(run))]
    join_start_ns = join_starts_ns(run)
    rows = [
        Way(legs[request], int(run.out.arrival_ns[request]), waits).parts(
            int(join_start_ns[request]), int(run.out.completion_ns[request]), join_call(run, request)
        )
        for request in requests.tolist()
    ]
    return Breakdown(requests, np.array(rows, dtype=np.int64).reshape(-1, len(PARTS)))


def providers_of(run: Run) -> int:
    """Return how many providers a run has."""
    return 1 if run.shared is None else len(run.shared.given.providers)


def join_starts_ns(run: Run) -> IntArray:
    """Return when each request's join began (int64): at its last finish where it holds no slot."""
    if run.shared is not None:
        return run.shared.out.join_start_ns
    given, out = run.given, run.out
    joins_ns = np.where(out.ran_parallel, given.join_ns[: out.requests], 0)
    return out.completion_ns - joins_ns


def join_call(run: Run, request: int) -> int:
    """Return the index of the call that is a request's join, -1 where the join is no call."""
    if run.shared is not None:
        workload = run.shared.given.workloads[int(run.shared.out.workload[request])]
        return workload.branches if workload.join_holds_slot else -1
    branches = len(run.given.serial_order)
    return branches if branches < run.given.calls_per_request else -1


def legs_of(run: Run, requests: IntArray) -> dict[int, list[Leg]]:
    """Return the attempts of each request."""
    wanted = np.zeros(run.out.requests, dtype=np.bool_)
    wanted[requests] = True
    legs: defaultdict[int, list[Leg]] = defaultdict(list)
    columns = plain_legs(run, wanted) if run.shared is None else shared_legs(run.shared, wanted)
    for request, *leg in zip(*(column.tolist() for column in columns), strict=True):
        legs[request].append(Leg(*leg))
    return legs


def plain_legs(run: Run, wanted: BoolArray) -> tuple[IntArray, ...]:
    """Return the requests and the fields of `Leg`, a column each, of the calls of a plain run."""
    out = run.out
    called = out.called & wanted[:, None]
    number, call = np.nonzero(called)
    nothing = np.zeros(len(call), dtype=np.int64)
    times_ns = (out.ready_ns[called], out.start_ns[called], out.finish_ns[called])
    return number, call, nothing, *times_ns, nothing, nothing + 1


def shared_legs(run: SharedRun, wanted: BoolArray) -> tuple[IntArray, ...]:
    """Return the requests and the fields of `Leg`, a column each, of the attempts on shared providers."""
    attempts = run.out.attempts
    mine = wanted[attempts.number]
    columns = (
        attempts.number,
        attempts.call,
        attempts.attempt,
        attempts.ready_ns,
        attempts.start_ns,
        attempts.finish_ns,
        provider_of(run.given, run.out),
        (attempts.outcome == OK).astype(np.int64),
    )
    return tuple(column[mine] for column in columns)


class ProviderWaits:
    """Splits a wait at one provider by its cause."""

    def __init__(self, run: Run, provider: int) -> None:
        start_ns, finish_ns, slots_ns, slots = held_slots(run, provider)
        self.at_ns = np.unique(np.concatenate([start_ns, finish_ns, slots_ns]))
        busy = np.searchsorted(np.sort(start_ns), self.at_ns, side="right") - np.searchsorted(
            np.sort(finish_ns), self.at_ns, side="right"
        )
        offered = slots[np.searchsorted(slots_ns, self.at_ns, side="right") - 1]
        self.is_full = busy >= offered
        full_ns = np.where(self.is_full[:-1], np.diff(self.at_ns), 0)
        self.full_before_ns = np.concatenate([[0], np.cumsum(full_ns)])
        self.beside_free = OWN_CAP
        if run.shared is not None:
            rules = run.shared.given.providers[provider]
            capped = rules.allocation in {"fair_share", "weighted"}
            self.beside_free = OWN_CAP if capped and not rules.limits.rates else LIMITS
            if not rules.limits.rates and not any(rules.reserved):
                self.beside_free = OWN_CAP

    def full_ns(self, time_ns: int) -> int:
        """Return for how long, up to a time, every slot had been taken."""
        place = int(np.searchsorted(self.at_ns, time_ns, side="right")) - 1
        if place < 0:
            return 0
        since = time_ns - int(self.at_ns[place]) if self.is_full[place] else 0
        return int(self.full_before_ns[place]) + since

    def split(self, from_ns: int, to_ns: int) -> tuple[int, int]:
        """Return (time with every slot taken, time beside a free slot) of a wait."""
        full_ns = self.full_ns(to_ns) - self.full_ns(from_ns)
        return full_ns, to_ns - from_ns - full_ns


def held_slots(run: Run, provider: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return (starts, finishes) of what held a provider's slots, and (instants, slots) of its concurrency."""
    if run.shared is None:
        out, zero = run.out, np.zeros(1, dtype=np.int64)
        return out.start_ns[out.called], out.finish_ns[out.called], zero, zero + run.given.slots
    given, attempts = run.shared.given, run.shared.out.attempts
    mine = (provider_of(given, run.shared.out) == provider) & (attempts.slot != NO_SLOT)
    at_ns, slots = (
        np.array(column, dtype=np.int64) for column in zip(*given.providers[provider].slots, strict=True)
    )
    return attempts.start_ns[mine], attempts.finish_ns[mine], at_ns, slots


class Way:
    """One request's way from its answer back to its arrival."""

    def __init__(self, legs: Sequence[Leg], arrival_ns: int, waits: Sequence[ProviderWaits]) -> None:
        self.legs = {(leg.call, leg.attempt): leg for leg in legs}
        self.arrival_ns = arrival_ns
        self.waits = waits
        self.spent = [0] * len(PARTS)
        self.passed: set[Leg] = set()

    def parts(self, join_start_ns: int, completion_ns: int, join_call: int) -> list[int]:
        """Return the time spent on each part, ns."""
        if (join_call, 0) in self.legs:
            last = max((leg for (call, _), leg in self.legs.items() if call == join_call), key=_finish)
            self.through(last, completion_ns, JOIN)
        else:
            self.spent[JOIN] += completion_ns - join_start_ns
            self.before(join_start_ns)
        return self.spent

    def before(self, time_ns: int) -> None:
        """Account for the time before something became ready at `time_ns`."""
        if time_ns == self.arrival_ns:
            return
        # An attempt turned away at once has no length, so that its end may be its own beginning.
        ended = [leg for leg in self.legs.values() if leg.finish_ns == time_ns and leg not in self.passed]
        if ended:
            leg = max(ended, key=lambda leg: (leg.ok, leg.ready_ns < time_ns, leg.start_ns))
            self.through(leg, time_ns, SERVICE if leg.ok else LOST_ATTEMPTS)
            return
        # Nothing ended then: what became ready waited for the first token of a call that was running.
        running = [leg for leg in self.legs.values() if leg.start_ns <= time_ns < leg.finish_ns]
        self.through(min(running, key=lambda leg: (leg.ready_ns, leg.call)), time_ns, SERVICE)

    def through(self, leg: Leg, until_ns: int, part: int) -> None:
        """Account for an attempt up to a time, for its wait, and for what was before it."""
        self.passed.add(leg)
        self.spent[part] += until_ns - leg.start_ns
        wait = self.waits[leg.provider]
        full_ns, beside_free_ns = wait.split(leg.ready_ns, leg.start_ns)
        self.spent[SLOTS_BUSY] += full_ns
        self.spent[wait.beside_free] += beside_free_ns
        if leg.attempt == 0:
            self.before(leg.ready_ns)
            return
        earlier = [self.legs[leg.call, attempt] for attempt in range(leg.attempt)]
        failed = [one for one in earlier if one.finish_ns <= leg.ready_ns]
        if failed:
            last = max(failed, key=lambda one: one.finish_ns)
            self.spent[PAUSES] += leg.ready_ns - last.finish_ns
            self.through(last, last.finish_ns, LOST_ATTEMPTS)
        else:
            # A hedge: it joined an attempt that was still running.
            self.through(earlier[0], leg.ready_ns, PAUSES)


def _finish(leg: Leg) -> int:
    return leg.finish_ns
