"""A provider that is not plain: shared by workloads, limited, failing, cached. Arrays in, tables out, ns.

`sim.contract.plain` is the plain case: one workload, one provider whose slots do not change, and nothing
that can go wrong. The order of events within an instant is the same, and written down in ARCHITECTURE.md.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sim.contract.allocation import FAIR_SHARE, Allocation, require_known
from sim.contract.limit import UNITS
from sim.contract.plain import (
    BoolArray,
    ClosedUsers,
    EngineInput,
    OpenArrivals,
    check_shape,
    check_table,
)
from sim.errors import ArgumentError, require_one_of
from sim.units import NS_PER_S, IntArray

# How an attempt ended.
OK, SERVER_ERROR, RATE_LIMITED, TIMED_OUT, REJECTED, CANCELLED = range(6)
ATTEMPT_OUTCOMES = ("ok", "server_error", "rate_limited", "timed_out", "rejected", "cancelled")

# How a request ended.
SUCCEEDED, DEGRADED, FAILED, DEADLINE_MISSED = range(4)
REQUEST_OUTCOMES = ("succeeded", "degraded", "failed", "timed_out")

NO_SLOT = -1
NEVER_NS = (1 << 63) - 1
PPM = 1_000_000
DAY_NS = 24 * 3600 * NS_PER_S


@dataclass(frozen=True, slots=True)
class RateLimit:
    """So many calls or tokens may be admitted per window.

    Parameters
    ----------
    unit
        What is counted, one of `UNITS`.
    amount, window_ns
        The limit, and the time it holds for.
    burst
        The capacity of a bucket that refills all the time and starts full; None for windows that start at
        the multiples of `window_ns` and forget what was left of the one before.
    """

    unit: str
    amount: int
    window_ns: int
    burst: int | None = None

    def __post_init__(self) -> None:
        require_one_of("unit", self.unit, UNITS)


@dataclass(frozen=True, slots=True)
class Limits:
    """A provider's rate limits. On a limit a call waits, or is rejected and told when to come again."""

    rates: tuple[RateLimit, ...] = ()
    rejects: bool = False
    rejections_count: bool = False
    cached_tokens_count: bool = True


@dataclass(frozen=True, slots=True)
class PrefixCache:
    """Prefixes that the provider remembers for `ttl_ns` after their last use, at most `capacity` of them."""

    ttl_ns: int
    capacity: int | None = None


@dataclass(frozen=True)
class ProviderInput:
    """One provider.

    Parameters
    ----------
    slots
        (instant in ns, concurrency from then on), the first at 0.
    allocation
        Who gets a free slot.
    reserved
        Slots kept for each workload; empty for none.
    lends
        Whether others may use reserved slots while nobody they are kept for waits.
    """

    slots: tuple[tuple[int, int], ...]
    allocation: Allocation = FAIR_SHARE
    reserved: tuple[int, ...] = ()
    lends: bool = True
    limits: Limits = Limits()
    cache: PrefixCache | None = None

    def __post_init__(self) -> None:
        require_known(self.allocation)

    @property
    def most_slots(self) -> int:
        """The highest concurrency of the run."""
        return max(slots for _, slots in self.slots)

    def slot_time_ns(self, start_ns: int, end_ns: int) -> int:
        """Return slots x time between two instants."""
        ends_ns = [at_ns for at_ns, _ in self.slots[1:]] + [max(end_ns, self.slots[-1][0])]
        steps = zip(self.slots, ends_ns, strict=True)
        return sum(
            slots * max(0, min(to_ns, end_ns) - max(from_ns, start_ns)) for (from_ns, slots), to_ns in steps
        )


@dataclass(frozen=True, repr=False)
class Faults:
    """What may go wrong with a workload's calls, and what is done about it.

    A join that holds a slot is one of the calls, the last; nothing goes wrong with it, whatever is said here.

    Parameters
    ----------
    outcome
        int8[requests, calls, attempts]: how each attempt ends, `OK`, `SERVER_ERROR`, `RATE_LIMITED`, or
        `TIMED_OUT` for one that hangs until its timeout.
    service_ns
        int64[requests, calls, attempts]: how long each attempt takes, each >= 1.
    timeout_ns
        For each call, how long an attempt may hold its slot; None for as long as it takes.
    backoff_ns
        For each attempt, the least pause after it.
    jitter_ppm
        int64[requests, calls, attempts]: by how many millionths each pause is longer; never shorter.
    retry_budget_ppm
        Attempts beyond the first are made while they are at most this many millionths of first attempts.
    hedge_after_ns
        For each call, when a second attempt joins a first one that still runs; None for never.
    deadline_ns
        How long a request may take, from its arrival; None for as long as it takes.
    optional
        For each branch, whether the join can do without it where it is lost. While it is not, the join waits.
    needs
        How many branches, whichever, the join waits for; None for all, done or lost.
    cancels
        Whether calls that are no longer needed give their slots back at once, instead of running on.
    """

    outcome: npt.NDArray[np.int8]
    service_ns: IntArray
    timeout_ns: tuple[int | None, ...]
    backoff_ns: tuple[int, ...]
    jitter_ppm: IntArray
    hedge_after_ns: tuple[int | None, ...]
    optional: tuple[bool, ...]
    retry_budget_ppm: int | None = None
    deadline_ns: int | None = None
    needs: int | None = None
    cancels: bool = True

    def __post_init__(self) -> None:
        drawn = ATTEMPT_OUTCOMES[: TIMED_OUT + 1]
        unknown = self.outcome[(self.outcome < OK) | (self.outcome > TIMED_OUT)]
        if len(unknown):
            rule = f"must be the number of one of {', '.join(drawn)}"
            raise ArgumentError("outcome", rule, int(unknown[0]))

    @property
    def most_attempts(self) -> int:
        """The most attempts that a call may have."""
        return int(self.outcome.shape[2])


@dataclass(frozen=True, repr=False)
class Tokens:
    """What calls ask of the limits and the cache.

    Parameters
    ----------
    input, output
        int64[requests, calls]: tokens sent, and tokens that come back.
    reserved_output
        For each call, the output tokens that its admission reserves; the rest is settled at its end.
    prefix
        For each call, the tokens of the workload's shared prefix that it carries; 0 for none.
    first_token_ns
        int64[requests, calls]: from the start of an attempt to its first token, at the latest when a
        whole answer is there. A failing attempt that is shorter never has one, nor has one that is turned
        away (`RATE_LIMITED`), however long that takes.
    """

    input: IntArray
    output: IntArray
    reserved_output: tuple[int, ...]
    prefix: tuple[int, ...]
    first_token_ns: IntArray


@dataclass(frozen=True, slots=True, repr=False)
class DailyPlans:
    """Plans by the hour of the day.

    Parameters
    ----------
    start_ns
        The time of day at which the run starts.
    tables
        (time of day in ns, bool[slots + 1] as `runs_parallel_at` from then on), the first at 0.
    """

    start_ns: int
    tables: tuple[tuple[int, BoolArray], ...]

    def at(self, now_ns: int) -> BoolArray:
        """Return the table of an instant of the run."""
        time_ns = (self.start_ns + now_ns) % DAY_NS
        return [table for from_ns, table in self.tables if from_ns <= time_ns][-1]


@dataclass(frozen=True, repr=False)
class WorkloadInput:
    """One workload: its graph, its load, and every drawn time.

    Parameters
    ----------
    service_ns
        int64[requests, calls], each >= 1. A join that holds a slot is the last call.
    join_ns
        int64[requests], each >= 0: the join of a parallel request where it holds no slot.
    dependencies
        For each call, the calls that a parallel request must finish before it.
    serial_order
        The calls that a serial request makes, one after another. It has no join.
    runs_parallel_at
        bool[slots + 1]: whether a request that starts on k slots runs in parallel, k being its fair share at
        the provider that its branches call, and of several the sum of min(fair share, branches that call it);
        `slots` the most there can be. All true is the plan `parallel`, all false is `serial`, a mixture is
        `adaptive`. Element 0 is never read.
    load
        Open arrivals or closed users. It says how many requests there are: all that is drawn must be for as
        many.
    daily_plans
        Tables that take the place of `runs_parallel_at` by the hour of the day; None where the hour does not
        matter.
    max_degree
        The most slots of a provider that one request may hold, whatever the allocation would let it.
    join_holds_slot
        Whether the last call is the join.
    warm_first
        Whether a parallel request waits for the first token of its first call before it makes the others.
    provider
        For each call, the index of its provider.
    priority, weight
        Rank (higher goes first) and share, where the allocation goes by priority or by weight; whole numbers.
    faults, tokens
        None where nothing goes wrong, and where neither limits nor caches look at tokens.
    """

    service_ns: IntArray
    join_ns: IntArray
    dependencies: tuple[tuple[int, ...], ...]
    serial_order: tuple[int, ...]
    runs_parallel_at: BoolArray
    load: OpenArrivals | ClosedUsers
    max_degree: int | None = None
    join_holds_slot: bool = False
    warm_first: bool = False
    daily_plans: DailyPlans | None = None
    provider: tuple[int, ...] = ()
    priority: int = 0
    weight: int = 1
    faults: Faults | None = None
    tokens: Tokens | None = None

    @property
    def calls_per_request(self) -> int:
        return len(self.dependencies)

    @property
    def branches(self) -> int:
        """Calls that are branches, not the join."""
        return self.calls_per_request - self.join_holds_slot

    def provider_of(self, call: int) -> int:
        """Return the index of a call's provider."""
        return self.provider[call] if self.provider else 0


@dataclass(frozen=True, repr=False)
class SharedInput:
    """One run: workloads in order, and the providers whose slots they borrow.

    Raises
    ------
    ArgumentError
        An array of a workload is not as long as that workload's load and calls have it.
    """

    workloads: tuple[WorkloadInput, ...]
    providers: tuple[ProviderInput, ...]

    def __post_init__(self) -> None:
        for index, one in enumerate(self.workloads):
            for name, array, shape in drawn_shapes(one):
                check_shape(f"workloads[{index}].{name}", array, shape)
            for name, table in plan_tables(one):
                check_table(f"workloads[{index}].{name}", table, self.most_usable_slots(one))

    def most_usable_slots(self, workload: WorkloadInput) -> int:
        """Return the most slots that a plan is chosen at: see `WorkloadInput.runs_parallel_at`."""
        branches_at = Counter(workload.provider_of(call) for call in range(workload.branches))
        most = {provider: self.providers[provider].most_slots for provider in branches_at}
        if len(most) == 1:
            return next(iter(most.values()))
        return sum(min(slots, branches_at[provider]) for provider, slots in most.items())


@dataclass(frozen=True, repr=False)
class Attempts:
    """Every attempt at a call, in order of (number, call, attempt), each once; one element each, int64.

    Parameters
    ----------
    number, call, attempt
        The request, its call, and the 0-based attempt.
    ready_ns, start_ns, finish_ns
        It joined the queue, got its slot, gave it back. One that never got a slot starts when it ends.
    slot
        `NO_SLOT` where it never got one.
    outcome
        One of `OK` .. `CANCELLED`.
    hit
        1 where the provider had its prefix cached, 0 where it had not, -1 where it carries none.
    """

    number: IntArray
    call: IntArray
    attempt: IntArray
    ready_ns: IntArray
    start_ns: IntArray
    finish_ns: IntArray
    slot: IntArray
    outcome: IntArray
    hit: IntArray


@dataclass(frozen=True, repr=False)
class SharedOutput:
    """What happened. Requests of all workloads are numbered together, in order of arrival.

    Parameters
    ----------
    workload, position
        int64[requests]: which workload, and the 0-based place among its requests (the row of its draws).
    user, ran_parallel, arrival_ns, completion_ns, outcome
        As for one workload; `outcome` is one of `SUCCEEDED` .. `DEADLINE_MISSED`.
    join_start_ns
        int64[requests]: when the join began; -1 where it never did.
    attempts
        Every attempt of every request.
    active_integral_ns
        For each workload, its active requests x time, summed by the engine as it went.
    tokens_outstanding
        What the limits reserved and never settled: 0, or something leaked.
    slots_held
        Slots that were still held at the end: 0, or something leaked.
    """

    workload: IntArray
    position: IntArray
    user: IntArray
    ran_parallel: BoolArray
    arrival_ns: IntArray
    completion_ns: IntArray
    outcome: IntArray
    join_start_ns: IntArray
    attempts: Attempts
    active_integral_ns: tuple[int, ...]
    tokens_outstanding: int
    slots_held: int
    engine: str

    @cached_property
    def latency_ns(self) -> IntArray:
        """int64[requests]: completion - arrival, whatever the outcome."""
        return self.completion_ns - self.arrival_ns


def drawn_shapes(one: WorkloadInput) -> Iterator[tuple[str, npt.NDArray[Any], tuple[int, ...]]]:
    """Yield (name, array, the shape that it must have) of everything that is drawn for a workload."""
    requests = (one.load.requests,)
    calls = (*requests, one.calls_per_request)
    yield "service_ns", one.service_ns, calls
    yield "join_ns", one.join_ns, requests
    if one.faults is not None:
        attempts = (*calls, one.faults.most_attempts)
        for name in ("outcome", "service_ns", "jitter_ppm"):
            yield f"faults.{name}", getattr(one.faults, name), attempts
    if one.tokens is not None:
        for name in ("input", "output", "first_token_ns"):
            yield f"tokens.{name}", getattr(one.tokens, name), calls


def plan_tables(one: WorkloadInput) -> Iterator[tuple[str, BoolArray]]:
    """Yield (name, table) of every table of plans that a workload may look at."""
    yield "runs_parallel_at", one.runs_parallel_at
    if one.daily_plans is not None:
        for place, (_, table) in enumerate(one.daily_plans.tables):
            yield f"daily_plans.tables[{place}]", table


def shared_input(given: EngineInput) -> SharedInput:
    """Return a plain run in these terms."""
    workload = WorkloadInput(
        service_ns=given.service_ns,
        join_ns=given.join_ns,
        dependencies=given.dependencies,
        serial_order=given.serial_order,
        runs_parallel_at=given.runs_parallel_at,
        load=given.load,
        max_degree=given.max_degree,
        join_holds_slot=len(given.serial_order) < given.calls_per_request,
    )
    return SharedInput((workload,), (ProviderInput(((0, given.slots),), given.allocation),))
