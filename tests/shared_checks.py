"""What must hold of every run of shared providers, from its tables alone; slow and plain, for small runs."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise

from sim.contract.run import (
    CANCELLED,
    DEADLINE_MISSED,
    DEGRADED,
    FAILED,
    NO_SLOT,
    OK,
    REJECTED,
    SUCCEEDED,
    TIMED_OUT,
    ProviderInput,
    SharedInput,
    SharedOutput,
    WorkloadInput,
)


class Attempt:
    """One row of the table of attempts, with what the input says of it."""

    def __init__(self, given: SharedInput, out: SharedOutput, row: int) -> None:
        table = out.attempts
        self.number, self.call, self.attempt = (
            int(column[row]) for column in (table.number, table.call, table.attempt)
        )
        self.ready, self.start, self.finish = (
            int(column[row]) for column in (table.ready_ns, table.start_ns, table.finish_ns)
        )
        self.slot, self.outcome, self.hit = (
            int(column[row]) for column in (table.slot, table.outcome, table.hit)
        )
        self.workload = int(out.workload[self.number])
        self.given = given.workloads[self.workload]
        self.position = int(out.position[self.number])
        self.provider = self.given.provider_of(self.call)

    def drawn(self) -> tuple[int, int]:
        """Return how long it takes and how it ends, if nothing cuts it short."""
        faults = self.given.faults
        if faults is None or self.call >= self.given.branches:
            return int(self.given.service_ns[self.position, self.call]), OK
        service = int(faults.service_ns[self.position, self.call, self.attempt])
        outcome = int(faults.outcome[self.position, self.call, self.attempt])
        timeout = faults.timeout_ns[self.call]
        if timeout is not None and (service > timeout or outcome == TIMED_OUT):
            return timeout, TIMED_OUT
        return service, outcome


def attempts_of(given: SharedInput, out: SharedOutput) -> list[Attempt]:
    """Return the attempts as they stand in the table."""
    return [Attempt(given, out, row) for row in range(len(out.attempts.number))]


def check_everything(given: SharedInput, out: SharedOutput) -> None:
    """Hold all that the tables must say."""
    attempts = attempts_of(given, out)
    by_request: dict[int, list[Attempt]] = defaultdict(list)
    for one in attempts:
        check_attempt(out, one)
        by_request[one.number].append(one)
    for number in range(len(out.outcome)):
        check_numbering(given, out, number, by_request[number])
        check_outcome(given, out, number, by_request[number])
    check_slots(given, attempts)
    check_rates(given, attempts)
    check_conservation(given, out, attempts)


def check_attempt(out: SharedOutput, one: Attempt) -> None:
    """Hold the times and the outcome of one attempt."""
    assert out.arrival_ns[one.number] <= one.ready <= one.start <= one.finish
    service, outcome = one.drawn()
    if one.slot == NO_SLOT:
        assert one.outcome in {CANCELLED, REJECTED}
        assert one.hit == -1
    elif one.outcome == CANCELLED:
        assert one.finish - one.start < service
    else:
        assert (one.finish - one.start, one.outcome) == (service, outcome)
    faults = one.given.faults
    if faults is None or faults.cancels:
        assert one.finish <= out.completion_ns[one.number]


def check_numbering(given: SharedInput, out: SharedOutput, number: int, attempts: list[Attempt]) -> None:
    """Hold that each attempt is there once, with no gaps, never too many, and never more than one success."""
    workload = given.workloads[int(out.workload[number])]
    most = workload.faults.most_attempts if workload.faults else 1
    by_call: dict[int, list[Attempt]] = defaultdict(list)
    for one in attempts:
        by_call[one.call].append(one)
    for call, mine in by_call.items():
        assert sorted(one.attempt for one in mine) == list(range(len(mine)))
        assert len(mine) <= most
        assert len({one.finish for one in mine if one.outcome == OK}) <= 1
        if out.ran_parallel[number]:
            done = {one.call: one.finish for one in attempts if one.outcome == OK}
            if call < workload.branches:
                needed = workload.dependencies[call]
                assert all(done[before] <= min(one.ready for one in mine) for before in needed)


def check_outcome(given: SharedInput, out: SharedOutput, number: int, attempts: list[Attempt]) -> None:
    """Hold that a request ended as its branches and its join did."""
    workload = given.workloads[int(out.workload[number])]
    faults, outcome = workload.faults, int(out.outcome[number])
    join_start, completion = int(out.join_start_ns[number]), int(out.completion_ns[number])
    latency = completion - int(out.arrival_ns[number])
    done = {
        one.call
        for one in attempts
        if one.outcome == OK and one.call < workload.branches and (join_start < 0 or one.finish <= join_start)
    }
    deadline = faults.deadline_ns if faults else None
    assert deadline is None or latency <= deadline
    if outcome == DEADLINE_MISSED:
        assert latency == deadline
        return
    if outcome == FAILED:
        joins = [one for one in attempts if one.call >= workload.branches]
        assert join_start == -1 or joins[-1].outcome == REJECTED
        return
    assert join_start >= 0
    assert outcome == (SUCCEEDED if len(done) == workload.branches else DEGRADED)
    if faults is not None and faults.needs is not None:
        before = {one.call for one in attempts if one.outcome == OK and one.finish < join_start}
        assert len(before - {workload.branches}) < faults.needs <= len(done)
    else:
        optional = faults.optional if faults else (False,) * workload.branches
        assert all(branch in done or optional[branch] for branch in range(workload.branches))
    if not out.ran_parallel[number]:
        assert completion == join_start
    elif not workload.join_holds_slot:
        assert completion == join_start + workload.join_ns[int(out.position[number])]


def slots_at(provider: ProviderInput, now: int) -> int:
    """Return a provider's concurrency at an instant."""
    return next(slots for at, slots in reversed(provider.slots) if at <= now)


def check_slots(given: SharedInput, attempts: list[Attempt]) -> None:
    """Hold that no slot has two attempts at a time, and that no grant goes beyond the concurrency."""
    for index, provider in enumerate(given.providers):
        held = [one for one in attempts if one.provider == index and one.slot != NO_SLOT]
        by_slot: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for one in held:
            by_slot[one.slot].append((one.start, one.finish))
            assert one.slot < slots_at(provider, one.start)
            in_flight = sum(other.start <= one.start < other.finish for other in held)
            assert in_flight <= slots_at(provider, one.start)
        for times in by_slot.values():
            assert all(earlier[1] <= later[0] for earlier, later in pairwise(sorted(times)))


def check_rates(given: SharedInput, attempts: list[Attempt]) -> None:
    """Hold that no limit on calls was exceeded, over any span of time."""
    for index, provider in enumerate(given.providers):
        starts = sorted(one.start for one in attempts if one.provider == index and one.slot != NO_SLOT)
        for rate in (rate for rate in provider.limits.rates if rate.unit == "calls"):
            if rate.burst is None:
                windows = Counter(start // rate.window_ns for start in starts)
                assert max(windows.values(), default=0) <= rate.amount
                continue
            for first, since in enumerate(starts):
                for number, until in enumerate(starts[first:], start=1):
                    refilled = rate.amount * (until - since)
                    assert number * rate.window_ns <= rate.burst * rate.window_ns + refilled


def check_conservation(given: SharedInput, out: SharedOutput, attempts: list[Attempt]) -> None:
    """Hold that after each instant nobody who may have a free slot waits beside it; where no limit does."""
    for index, provider in enumerate(given.providers):
        if provider.limits.rates:
            continue
        mine = [one for one in attempts if one.provider == index]
        for now in instants(given, out, attempts):
            after = After(given, out, index, now, mine)
            assert not [one for one in mine if one.ready <= now < one.start and after.may_start(one)]


def instants(given: SharedInput, out: SharedOutput, attempts: list[Attempt]) -> Iterator[int]:
    """Yield every instant at which something happened."""
    times = {time for one in attempts for time in (one.ready, one.start, one.finish)}
    times |= set(out.arrival_ns.tolist()) | set(out.completion_ns.tolist())
    times |= {at for provider in given.providers for at, _ in provider.slots}
    yield from sorted(times)


class After:
    """One provider after an instant."""

    def __init__(
        self, given: SharedInput, out: SharedOutput, index: int, now: int, attempts: list[Attempt]
    ) -> None:
        self.provider = given.providers[index]
        self.slots = slots_at(self.provider, now)
        self.held = [one for one in attempts if one.slot != NO_SLOT and one.start <= now < one.finish]
        number = range(len(given.workloads))
        self.busy = [sum(one.workload == workload for one in self.held) for workload in number]
        active = (out.arrival_ns <= now) & (out.completion_ns > now)
        self.active_weight = sum(
            self.weight(one) * int((active & (out.workload == workload)).sum())
            for workload, one in enumerate(given.workloads)
            if index in {one.provider_of(call) for call in range(one.calls_per_request)}
        )

    def weight(self, workload: WorkloadInput) -> int:
        """Return what one request of a workload counts for."""
        return workload.weight if self.provider.allocation.by_weight else 1

    def cap(self, workload: WorkloadInput) -> int:
        """Return how many slots a request of a workload may hold."""
        share = self.slots
        if self.provider.allocation.caps:
            share = max(1, self.slots * self.weight(workload) // max(1, self.active_weight))
        return share if workload.max_degree is None else min(share, workload.max_degree)

    def kept(self, workload: int) -> int:
        """Return how many free slots are kept for workloads other than this one."""
        if self.provider.lends:
            return 0
        reserved = self.provider.reserved or (0,) * len(self.busy)
        return sum(max(0, reserved[i] - self.busy[i]) for i in range(len(self.busy)) if i != workload)

    def may_start(self, one: Attempt) -> bool:
        """Return whether a waiting attempt could hold one of the slots that are free."""
        holds = sum(other.number == one.number for other in self.held)
        return len(self.held) + self.kept(one.workload) < self.slots and holds < self.cap(one.given)
