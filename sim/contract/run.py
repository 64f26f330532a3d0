"""What every engine is given: workloads in order, and the providers whose slots they borrow.

An engine never sees a random generator, a plan's name or a unit other than the nanosecond, so two engines
that follow the order of events in ARCHITECTURE.md must agree to the last nanosecond and slot index.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sim.contract.load import ClosedUsers, OpenArrivals
from sim.contract.output import ATTEMPT_OUTCOMES, OK, TIMED_OUT, RunOutput
from sim.contract.provider import ProviderInput
from sim.errors import ArgumentError
from sim.units import NS_PER_S, BoolArray, IntArray

NEVER_NS = (1 << 63) - 1
PPM = 1_000_000
DAY_NS = 24 * 3600 * NS_PER_S


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
class Work:
    """What is to be done: the graph of a request, its plan, the load, and every drawn time.

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
    max_degree
        The most slots of a provider that one request may hold, whatever the allocation would let it.
    """

    service_ns: IntArray
    join_ns: IntArray
    dependencies: tuple[tuple[int, ...], ...]
    serial_order: tuple[int, ...]
    runs_parallel_at: BoolArray
    load: OpenArrivals | ClosedUsers
    max_degree: int | None = None

    @property
    def calls_per_request(self) -> int:
        return len(self.dependencies)


@dataclass(frozen=True, repr=False)
class WorkloadInput(Work):
    """One workload: its work, and its place among the others.

    Parameters
    ----------
    join_holds_slot
        Whether the last call is the join.
    daily_plans
        Tables that take the place of `runs_parallel_at` by the hour of the day; None where the hour does not
        matter.
    warm_first
        Whether a parallel request waits for the first token of its first call before it makes the others.
    provider
        For each call, the index of its provider.
    priority, weight
        Rank (higher goes first) and share, where the allocation goes by priority or by weight; whole numbers.
    faults, tokens
        None where nothing goes wrong, and where neither limits nor caches look at tokens.
    """

    join_holds_slot: bool = False
    warm_first: bool = False
    daily_plans: DailyPlans | None = None
    provider: tuple[int, ...] = ()
    priority: int = 0
    weight: int = 1
    faults: Faults | None = None
    tokens: Tokens | None = None

    @property
    def branches(self) -> int:
        """Calls that are branches, not the join."""
        return self.calls_per_request - self.join_holds_slot

    def provider_of(self, call: int) -> int:
        """Return the index of a call's provider."""
        return self.provider[call] if self.provider else 0


@dataclass(frozen=True, repr=False)
class RunInput:
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

    def providers_of(self, workload: IntArray, call: IntArray) -> IntArray:
        """Return the index of the provider of calls, from the workload and the index of each (int64[n])."""
        most_calls = max(one.calls_per_request for one in self.workloads)
        table = np.zeros((len(self.workloads), most_calls), dtype=np.int64)
        for row, one in zip(table, self.workloads, strict=True):
            row[: one.calls_per_request] = [one.provider_of(place) for place in range(one.calls_per_request)]
        return np.asarray(table[workload, call])

    def providers_of_attempts(self, out: RunOutput) -> IntArray:
        """Return the index of the provider of each attempt (int64[attempts])."""
        return self.providers_of(out.workload[out.attempts.number], out.attempts.call)

    def most_usable_slots(self, workload: WorkloadInput) -> int:
        """Return the most slots that a plan is chosen at: see `WorkloadInput.runs_parallel_at`."""
        branches_at = Counter(workload.provider_of(call) for call in range(workload.branches))
        most = {provider: self.providers[provider].most_slots for provider in branches_at}
        if len(most) == 1:
            return next(iter(most.values()))
        return sum(min(slots, branches_at[provider]) for provider, slots in most.items())


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


def check_shape(name: str, array: npt.NDArray[Any], shape: tuple[int, ...]) -> None:
    """Refuse an array that is not drawn for the requests of its load: engines index it unseen.

    Raises
    ------
    ArgumentError
        Its shape is another.
    """
    if array.shape != shape:
        raise ArgumentError(
            name, f"must have the shape {shape}, by its workload's load and calls", array.shape
        )


def check_table(name: str, table: BoolArray, most_slots: int) -> None:
    """Refuse a table of plans without an element for each fair share that there can be.

    Raises
    ------
    ArgumentError
        It is too short.
    """
    if len(table) <= most_slots:
        raise ArgumentError(name, f"must have an element for each share up to {most_slots}", len(table))
