"""Where a request's time went: its latency split along the calls that it waited for last, exactly.

From the answer backwards: the join, the call that ended last, what made that call ready, and so on to the
arrival. Each stretch belongs to one part, so that the parts add up to the latency to the nanosecond.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sim.contract.output import NO_SLOT, OK, SUCCEEDED
from sim.contract.run import WorkloadInput
from sim.run.own_cap import OwnCap
from sim.run.simulation import Run
from sim.units import NS_PER_MS, BoolArray, IntArray

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
CALLS_AT_ONCE = 1_000_000
NEVER = (1 << 63) - 1
NOT_CALLED = -1


@dataclass(frozen=True, repr=False)
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


@dataclass(frozen=True, repr=False)
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
    slowest = requests[longest(run.out.latency_ns[requests], SLOWEST)]
    # One by one, as they may be far apart and the time between them is of no interest.
    one_by_one = [break_down(run, slowest[[place]]).parts_ns for place in range(len(slowest))]
    return TimeSpent(
        len(requests),
        break_down(run, requests[:MOST_REQUESTS]),
        Breakdown(slowest, np.array(one_by_one, dtype=np.int64).reshape(-1, len(PARTS))),
    )


def longest(latency_ns: IntArray, count: int) -> IntArray:
    """Return the places of the longest latencies, the longest first, of equal ones the first."""
    if len(latency_ns) > count:
        least_ns = np.partition(latency_ns, -count)[-count]
        places = np.flatnonzero(latency_ns >= least_ns)
    else:
        places = np.arange(len(latency_ns))
    return places[np.argsort(-latency_ns[places], kind="stable")][:count]


def break_down(run: Run, requests: IntArray) -> Breakdown:
    """Return the parts of the latencies of delivered requests, by number and in the order given."""
    out = run.out
    period = int(out.arrival_ns[requests].min(initial=NEVER)), int(out.completion_ns[requests].max(initial=0))
    waits = [ProviderWaits(run, provider, period) for provider in range(len(run.given.providers))]
    parts_ns = np.zeros((len(requests), len(PARTS)), dtype=np.int64)
    straight = is_straight(run, requests)
    for index, workload in enumerate(run.given.workloads):
        mine = np.flatnonzero(straight & (out.workload[requests] == index))
        for some in np.array_split(mine, 1 + len(mine) * workload.calls_per_request // CALLS_AT_ONCE):
            parts_ns[some] = straight_parts(run, workload, requests[some], waits)
    for place in np.flatnonzero(~straight).tolist():
        parts_ns[place] = Way(run, int(requests[place]), waits).parts()
    return Breakdown(requests, parts_ns)


def rows_of(run: Run, requests: IntArray) -> tuple[IntArray, IntArray]:
    """Return the rows of the attempts of some requests, and the place of its request for each."""
    number = run.out.attempts.number
    first, last = (np.searchsorted(number, requests, side=side) for side in ("left", "right"))
    count = last - first
    place = np.repeat(np.arange(len(requests)), count)
    return first[place] + np.arange(len(place)) - (np.cumsum(count) - count)[place], place


def is_straight(run: Run, requests: IntArray) -> BoolArray:
    """Return which requests made each call once, without trouble, and waited for all (bool[n])."""
    out, attempts = run.out, run.out.attempts
    straight = np.equal(out.outcome[requests], SUCCEEDED)
    warm = np.array([one.warm_first for one in run.given.workloads])
    straight &= ~(warm[out.workload[requests]] & out.ran_parallel[requests])
    rows, place = rows_of(run, requests)
    troubled = (attempts.outcome[rows] != OK) | (attempts.attempt[rows] > 0)
    # With k of n, a straggler may run on after the join.
    troubled |= (attempts.finish_ns[rows] > out.join_start_ns[requests][place]) & (
        attempts.ready_ns[rows] < out.join_start_ns[requests][place]
    )
    straight[place[troubled]] = False
    return straight


def straight_parts(
    run: Run, workload: WorkloadInput, requests: IntArray, waits: Sequence["ProviderWaits"]
) -> IntArray:
    """Return the parts of straight requests of one workload (int64[n, parts]), all ways back together."""
    out, attempts = run.out, run.out.attempts
    rows, place = rows_of(run, requests)
    shape = (len(requests), workload.calls_per_request)
    tables = [np.full(shape, NOT_CALLED, dtype=np.int64) for _ in range(3)]
    for table, column in zip(tables, (attempts.ready_ns, attempts.start_ns, attempts.finish_ns), strict=True):
        table[place, attempts.call[rows]] = column[rows]
    ready_ns, start_ns, finish_ns = tables
    arrival_ns, completion_ns = out.arrival_ns[requests], out.completion_ns[requests]
    parallel = out.ran_parallel[requests]
    parts = np.zeros((len(requests), len(PARTS)), dtype=np.int64)
    if not workload.join_holds_slot:
        parts[:, JOIN] = completion_ns - out.join_start_ns[requests]
    ended_ns = completion_ns - parts[:, JOIN]
    ended_then = last_ended(start_ns, finish_ns, np.column_stack([ready_ns, ended_ns]))
    on_the_way = np.zeros(shape, dtype=np.bool_)
    place = np.flatnonzero(ended_ns > arrival_ns)
    call = ended_then[place, -1]
    while len(place):
        on_the_way[place, call] = True
        waited = ready_ns[place, call] > arrival_ns[place]
        place, call = place[waited], ended_then[place, call][waited]
    row, call = np.nonzero(on_the_way)
    became_ready_ns, started_ns = ready_ns[row, call], start_ns[row, call]
    is_join = (call >= workload.branches) & parallel[row]
    np.add.at(parts, (row, np.where(is_join, JOIN, SERVICE)), finish_ns[row, call] - started_ns)
    for index, wait in enumerate(waits):
        here = np.array([workload.provider_of(one) == index for one in range(shape[1])])[call]
        full_ns = wait.all_full_ns(started_ns[here]) - wait.all_full_ns(became_ready_ns[here])
        np.add.at(parts[:, SLOTS_BUSY], row[here], full_ns)
        beside_ns = (started_ns - became_ready_ns)[here] - full_ns
        np.add.at(parts[:, wait.beside_free], row[here], beside_ns)
        if wait.own_cap is not None:
            for at in np.flatnonzero(here)[beside_ns > 0].tolist():
                own_ns = wait.own_cap_ns(
                    int(requests[row[at]]), int(became_ready_ns[at]), int(started_ns[at])
                )
                parts[row[at], OWN_CAP] += own_ns
                parts[row[at], LIMITS] -= own_ns
    return parts


def last_ended(start_ns: IntArray, finish_ns: IntArray, time_ns: IntArray) -> IntArray:
    """Return the call that ended at each time (int64[requests, n]), each request's times in one sort.

    Of several calls it is the one that started last, as it is the one that was waited for, ties to the first.
    What is asked of times at which no call ended means nothing.
    """
    calls = start_ns.shape[1]
    by_start = calls - 1 - np.argsort(start_ns[:, ::-1], axis=1, kind="stable")
    times = np.concatenate([np.take_along_axis(finish_ns, by_start, axis=1), time_ns], axis=1)
    order = np.argsort(times, axis=1, kind="stable")
    latest = np.maximum.accumulate(np.where(order < calls, np.arange(order.shape[1]), 0), axis=1)
    ended = np.minimum(np.take_along_axis(order, latest, axis=1), calls - 1)
    found = np.empty_like(order)
    np.put_along_axis(found, order, np.take_along_axis(by_start, ended, axis=1), axis=1)
    return found[:, calls:]


class ProviderWaits:
    """Splits a wait at one provider, within a period (from, to), by its cause."""

    def __init__(self, run: Run, provider: int, period: tuple[int, int]) -> None:
        start_ns, finish_ns, slots_ns, slots = held_slots(run, provider, period)
        self.at_ns = np.unique(np.concatenate([start_ns, finish_ns, slots_ns]))
        busy = np.searchsorted(np.sort(start_ns), self.at_ns, side="right") - np.searchsorted(
            np.sort(finish_ns), self.at_ns, side="right"
        )
        offered = slots[np.searchsorted(slots_ns, self.at_ns, side="right") - 1]
        self.is_full = busy >= offered
        full_ns = np.where(self.is_full[:-1], np.diff(self.at_ns), 0)
        self.full_before_ns = np.concatenate([[0], np.cumsum(full_ns)])
        rules = run.given.providers[provider]
        held_back = rules.limits.rates or (any(rules.reserved) and not rules.allocation.caps)
        self.beside_free = LIMITS if held_back else OWN_CAP
        capped = rules.allocation.caps or any(one.max_degree is not None for one in run.given.workloads)
        # A limit that lets a call pass is not what it waits for while its request holds all that it may.
        self.own_cap = OwnCap(run, provider) if held_back and capped else None

    def own_cap_ns(self, request: int, from_ns: int, to_ns: int) -> int:
        """Return how much of a wait beside a free slot was at the request's own cap, where a limit is too."""
        if self.own_cap is None:
            return 0
        return self.own_cap.held_ns(request, from_ns, to_ns, self.at_ns, self.is_full_at)

    def is_full_at(self, time_ns: IntArray) -> BoolArray:
        """Return whether every slot was taken at each time (bool[n])."""
        place = np.searchsorted(self.at_ns, time_ns, side="right") - 1
        full: BoolArray = (place >= 0) & self.is_full[place]
        return full

    def full_ns(self, time_ns: int) -> int:
        """Return for how long, up to a time within the period, every slot had been taken since some time."""
        place = int(np.searchsorted(self.at_ns, time_ns, side="right")) - 1
        if place < 0:
            return 0
        since = time_ns - int(self.at_ns[place]) if self.is_full[place] else 0
        return int(self.full_before_ns[place]) + since

    def split(self, from_ns: int, to_ns: int) -> tuple[int, int]:
        """Return (time with every slot taken, time beside a free slot) of a wait."""
        full_ns = self.full_ns(to_ns) - self.full_ns(from_ns)
        return full_ns, to_ns - from_ns - full_ns

    def all_full_ns(self, time_ns: IntArray) -> IntArray:
        """Return `full_ns` of each time (int64[n])."""
        place = np.searchsorted(self.at_ns, time_ns, side="right") - 1
        since_ns = np.where(self.is_full[place], time_ns - self.at_ns[place], 0)
        return np.where(place < 0, 0, self.full_before_ns[place] + since_ns)


def held_slots(
    run: Run, provider: int, period: tuple[int, int]
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return (starts, finishes) of what held a provider's slots, and (instants, slots) of its concurrency."""
    out, attempts = run.out, run.out.attempts
    # Requests are numbered in order of arrival, and attempts by request.
    requests = np.searchsorted(out.arrival_ns, [period[0] - out.longest_stay_ns, period[1] + 1])
    first, last = np.searchsorted(attempts.number, requests)
    number, call, start_ns, finish_ns, slot = (
        column[first:last]
        for column in (attempts.number, attempts.call, attempts.start_ns, attempts.finish_ns, attempts.slot)
    )
    mine = run.given.providers_of(out.workload[number], call) == provider
    mine &= (slot != NO_SLOT) & overlaps(start_ns, finish_ns, period)
    at_ns, slots = (
        np.array(column, dtype=np.int64) for column in zip(*run.given.providers[provider].slots, strict=True)
    )
    return start_ns[mine], finish_ns[mine], at_ns, slots


def overlaps(start_ns: IntArray, finish_ns: IntArray, period: tuple[int, int]) -> BoolArray:
    """Return what was there at some time of a period."""
    return (start_ns <= period[1]) & (finish_ns >= period[0])


Stretch = tuple[Leg, int, int]
"""An attempt, until when it counts, and as which part of the latency."""


def legs_of(run: Run, workload: WorkloadInput, request: int) -> Iterator[Leg]:
    """Yield the attempts of a request."""
    attempts = run.out.attempts
    first, last = np.searchsorted(attempts.number, [request, request + 1])
    for row in range(first, last):
        call = int(attempts.call[row])
        yield Leg(
            call=call,
            attempt=int(attempts.attempt[row]),
            ready_ns=int(attempts.ready_ns[row]),
            start_ns=int(attempts.start_ns[row]),
            finish_ns=int(attempts.finish_ns[row]),
            provider=workload.provider_of(call),
            ok=bool(attempts.outcome[row] == OK),
        )


class Way:
    """One request's way from its answer back to its arrival."""

    def __init__(self, run: Run, request: int, waits: Sequence[ProviderWaits]) -> None:
        self.request = request
        self.workload = run.given.workloads[int(run.out.workload[request])]
        self.legs = {(leg.call, leg.attempt): leg for leg in legs_of(run, self.workload, request)}
        self.ended_at: defaultdict[int, list[Leg]] = defaultdict(list)
        for leg in self.legs.values():
            self.ended_at[leg.finish_ns].append(leg)
        self.arrival_ns, self.completion_ns, self.join_start_ns = (
            int(column[request])
            for column in (run.out.arrival_ns, run.out.completion_ns, run.out.join_start_ns)
        )
        self.waits = waits
        self.spent = [0] * len(PARTS)
        self.passed: set[Leg] = set()

    def parts(self) -> list[int]:
        """Return the time spent on each part, ns."""
        joins = [leg for leg in self.legs.values() if leg.call >= self.workload.branches]
        if joins:
            stretch = self.through(max(joins, key=_finish), self.completion_ns, JOIN)
        else:
            self.spent[JOIN] += self.completion_ns - self.join_start_ns
            stretch = self.before(self.join_start_ns)
        while stretch is not None:
            stretch = self.through(*stretch)
        return self.spent

    def before(self, time_ns: int) -> Stretch | None:
        """Return the stretch that ended when something became ready at `time_ns`; None at the arrival."""
        if time_ns == self.arrival_ns:
            return None
        # An attempt turned away at once has no length, so that its end may be its own beginning.
        ended = [leg for leg in self.ended_at[time_ns] if leg not in self.passed]
        if ended:
            # Of those that started together, the one that was granted first.
            leg = max(ended, key=lambda leg: (leg.ok, leg.ready_ns < time_ns, *_last_granted(leg)))
            # Of an attempt and its hedge that succeed at one instant, the hedge was not needed.
            same = [one for one in ended if one.call == leg.call and one.ok]
            leg = min(same, key=_attempt, default=leg)
            return leg, time_ns, SERVICE if leg.ok else LOST_ATTEMPTS
        # Nothing ended then: what became ready waited for the first token of a call that was running.
        running = [leg for leg in self.legs.values() if leg.start_ns <= time_ns < leg.finish_ns]
        return min(running, key=lambda leg: (leg.ready_ns, leg.call)), time_ns, SERVICE

    def through(self, leg: Leg, until_ns: int, part: int) -> Stretch | None:
        """Account for an attempt up to a time and for its wait; return the stretch before it."""
        self.passed.add(leg)
        self.spent[part] += until_ns - leg.start_ns
        wait = self.waits[leg.provider]
        full_ns, beside_free_ns = wait.split(leg.ready_ns, leg.start_ns)
        self.spent[SLOTS_BUSY] += full_ns
        self.spent[wait.beside_free] += beside_free_ns
        if beside_free_ns and wait.own_cap is not None:
            own_ns = wait.own_cap_ns(self.request, leg.ready_ns, leg.start_ns)
            self.spent[OWN_CAP] += own_ns
            self.spent[LIMITS] -= own_ns
        if leg.attempt == 0:
            return self.before(leg.ready_ns)
        earlier = [self.legs[leg.call, attempt] for attempt in range(leg.attempt)]
        failed = [one for one in earlier if one.finish_ns <= leg.ready_ns]
        if failed:
            last = max(failed, key=lambda one: one.finish_ns)
            self.spent[PAUSES] += leg.ready_ns - last.finish_ns
            return last, last.finish_ns, LOST_ATTEMPTS
        # A hedge: it joined an attempt that was still running.
        return earlier[0], leg.ready_ns, PAUSES


def _finish(leg: Leg) -> int:
    return leg.finish_ns


def _last_granted(leg: Leg) -> tuple[int, int, int]:
    return leg.start_ns, -leg.provider, -leg.ready_ns


def _attempt(leg: Leg) -> int:
    return leg.attempt
