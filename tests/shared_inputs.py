"""Inputs of shared providers for tests, in milliseconds, and traces of what happened."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sim.check.run import check_run
from sim.check.shared_compiled import first_broken
from sim.contract.allocation import ALLOCATIONS
from sim.contract.load import ClosedUsers, OpenArrivals
from sim.contract.output import (
    ATTEMPT_OUTCOMES,
    CANCELLED,
    NO_SLOT,
    OK,
    RATE_LIMITED,
    REQUEST_OUTCOMES,
    SERVER_ERROR,
    TIMED_OUT,
    RunOutput,
)
from sim.contract.provider import Limits, PrefixCache, ProviderInput, RateLimit
from sim.contract.run import PPM, Faults, RunInput, Tokens, WorkloadInput
from sim.engine.shared.compiled import run_shared as run_compiled
from sim.engine.shared.model import run_shared
from sim.plan.schedule import serial_order
from sim.units import NS_PER_MS, IntArray
from tests.engine_inputs import ms

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
MOST_SLOTS = 64
OUTCOME_OF_LETTER = {".": OK, "x": SERVER_ERROR, "r": RATE_LIMITED, "t": TIMED_OUT}

Durations = float | Sequence[Any]
"""One for all, one for each call, or one row for each request."""


def workload(
    load: ClosedUsers | OpenArrivals,
    service_ms: Sequence[Any] = (10,),
    *,
    join_ms: float = 0,
    join_slot_ms: float | None = None,
    dependencies: Sequence[Sequence[int]] | None = None,
    parallel: bool = True,
    **options: Any,
) -> WorkloadInput:
    """Return a workload; `service_ms` is one row for all requests or a row each.

    With `join_slot_ms` the join holds a slot for so long. `options` are those of `WorkloadInput`.
    """
    requests = len(load.arrival_ns) if isinstance(load, OpenArrivals) else len(load.think_ns)
    service_ns = ms(service_ms)
    if service_ns.ndim == 1:
        service_ns = np.tile(service_ns, (requests, 1))
    branches = service_ns.shape[1]
    graph = tuple(map(tuple, dependencies)) if dependencies else ((),) * branches
    order = serial_order(graph)
    if join_slot_ms is not None:
        service_ns = np.insert(service_ns, branches, ms([join_slot_ms]), axis=1)
        graph += (tuple(range(branches)),)
    return WorkloadInput(
        service_ns=service_ns,
        join_ns=ms([join_ms] * requests),
        dependencies=graph,
        serial_order=order,
        runs_parallel_at=np.full(MOST_SLOTS + 1, parallel),
        load=load,
        join_holds_slot=join_slot_ms is not None,
        **options,
    )


def failing(
    given: WorkloadInput,
    outcomes: Sequence[Any],
    *,
    attempt_ms: Sequence[Any] | None = None,
    timeout_ms: float | None = None,
    backoff_ms: Durations = 0,
    jitter: float = 0,
    hedge_after_ms: float | None = None,
    deadline_ms: float | None = None,
    budget: float | None = None,
    optional: Sequence[int] = (),
    needs: int | None = None,
    cancels: bool = True,
) -> WorkloadInput:
    """Return the workload with faults.

    `outcomes` has one word for each branch, or a row of words for each request; its letters are the outcomes
    of the attempts: `.` fine, `x` server error, `r` turned away, `t` hangs. `attempt_ms` is how long they
    take, where that is not what the call takes: numbers [calls][attempts], or the same for each request.
    """
    words = np.array(outcomes)
    requests, calls = given.service_ns.shape
    words = np.broadcast_to(words, (requests, words.shape[-1]))
    attempts = len(words[0][0])
    shape = (requests, calls, attempts)
    outcome = np.zeros(shape, dtype=np.int8)
    for request, row in enumerate(words):
        for branch, word in enumerate(row):
            outcome[request, branch] = [OUTCOME_OF_LETTER[letter] for letter in word]
    times = given.service_ns[:, :, None] if attempt_ms is None else ms(attempt_ms)
    faults = Faults(
        outcome=outcome,
        service_ns=np.broadcast_to(times, shape),
        timeout_ns=(in_ns(timeout_ms),) * calls,
        backoff_ns=tuple(np.broadcast_to(ms(np.atleast_1d(backoff_ms).tolist()), attempts).tolist()),
        jitter_ppm=np.full(shape, round(jitter * PPM)),
        hedge_after_ns=(in_ns(hedge_after_ms),) * calls,
        optional=tuple(branch in optional for branch in range(given.branches)),
        retry_budget_ppm=None if budget is None else round(budget * PPM),
        deadline_ns=in_ns(deadline_ms),
        needs=needs,
        cancels=cancels,
    )
    return replace(given, faults=faults)


def speaking(
    given: WorkloadInput,
    *,
    inputs: Durations = 0,
    outputs: Durations = 0,
    reserved_outputs: Durations = 0,
    prefix: Durations = 0,
    first_token_ms: Durations = 0,
) -> WorkloadInput:
    """Return the workload with tokens: a number for all, a row for the calls, or a row per request."""
    shape = given.service_ns.shape

    def spread(values: Any, to: tuple[int, ...]) -> npt.NDArray[np.int64]:
        return np.broadcast_to(np.array(values, dtype=np.int64), to)

    tokens = Tokens(
        input=spread(inputs, shape),
        output=spread(outputs, shape),
        reserved_output=tuple(spread(reserved_outputs, shape[1:]).tolist()),
        prefix=tuple(spread(prefix, shape[1:]).tolist()),
        first_token_ns=np.broadcast_to(ms(np.atleast_1d(first_token_ms).tolist()), shape),
    )
    return replace(given, tokens=tokens)


def provider(
    slots: int | Sequence[tuple[float, int]] = 4, allocation: str = "fifo", **options: Any
) -> ProviderInput:
    """Return a provider; slots that change are (instant in ms, slots). `options` are `ProviderInput`'s."""
    steps = ((0, slots),) if isinstance(slots, int) else slots
    given = tuple((round(at * NS_PER_MS), n) for at, n in steps)
    return ProviderInput(given, ALLOCATIONS[allocation], **options)


def limits(*rates: RateLimit, **options: Any) -> Limits:
    """Return rate limits; `options` are those of `Limits`."""
    return Limits(rates, **options)


def rate(amount: int, window_ms: float, burst: int | None = None, unit: str = "calls") -> RateLimit:
    """Return one rate limit: a bucket if it has a burst, else fixed windows."""
    return RateLimit(unit, amount, round(window_ms * NS_PER_MS), burst)


def cache(ttl_ms: float, capacity: int | None = None) -> PrefixCache:
    """Return a prefix cache."""
    return PrefixCache(round(ttl_ms * NS_PER_MS), capacity)


def simulate(
    workloads: WorkloadInput | Sequence[WorkloadInput],
    providers: ProviderInput | Sequence[ProviderInput] | None = None,
) -> RunOutput:
    """Run on the providers (one with four slots), and hold what must hold of every run."""
    return checked(given_of(workloads, providers))


def given_of(
    workloads: WorkloadInput | Sequence[WorkloadInput],
    providers: ProviderInput | Sequence[ProviderInput] | None = None,
) -> RunInput:
    """Return the input of a run on the providers (one with four slots)."""
    providers = provider() if providers is None else providers
    return RunInput(
        (workloads,) if isinstance(workloads, WorkloadInput) else tuple(workloads),
        (providers,) if isinstance(providers, ProviderInput) else tuple(providers),
    )


def run_everywhere(
    workloads: WorkloadInput | Sequence[WorkloadInput],
    providers: ProviderInput | Sequence[ProviderInput] | None = None,
) -> RunOutput:
    """Run as `simulate` does, and hold the compiled engine and every check to it, compiled or to read."""
    given = given_of(workloads, providers)
    out = checked(given)
    compiled = run_compiled(given)
    assert (trace(compiled), answers(compiled)) == (trace(out), answers(out))
    assert compiled.attempts.hit.tolist() == out.attempts.hit.tolist()
    assert compiled.join_start_ns.tolist() == out.join_start_ns.tolist()
    check_run(given, out, run_shared)
    assert first_broken(given, out) is None
    return out


def checked(given: RunInput) -> RunOutput:
    """Run, and hold what must hold of every run: all answered, nothing leaked, Little's law."""
    out = run_shared(given)
    assert (out.slots_held, out.tokens_outstanding) == (0, 0)
    assert (out.outcome >= 0).all()
    for index, one in enumerate(given.workloads):
        mine = out.workload == index
        assert sorted(out.position[mine].tolist()) == list(range(len(one.join_ns)))
        assert out.active_integral_ns[index] == sum(out.latency_ns[mine].tolist())
    return out


def trace(out: RunOutput) -> list[str]:
    """Return each attempt in order of its end: `request.call.attempt ready start-finish slot outcome`.

    Of those that end together, the cancelled are last, and of the others who started first is first.
    """
    table = out.attempts
    lines = []
    for row in np.lexsort((table.start_ns, table.outcome == CANCELLED, table.finish_ns)):
        ready, start, finish = (
            f"{times[row] / NS_PER_MS:g}" for times in (table.ready_ns, table.start_ns, table.finish_ns)
        )
        held = "never" if table.slot[row] == NO_SLOT else f"{start}-{finish} slot {table.slot[row]}"
        where = f"{table.number[row]}.{table.call[row]}.{table.attempt[row]}"
        ended = f"at {finish} " if held == "never" else ""
        lines.append(f"{where} {ready} {held} {ended}{ATTEMPT_OUTCOMES[table.outcome[row]]}")
    return lines


def answers(out: RunOutput) -> list[str]:
    """Return how each request ended, and when (ms)."""
    return [
        f"{REQUEST_OUTCOMES[outcome]} at {completion_ns / NS_PER_MS:g}"
        for outcome, completion_ns in zip(out.outcome, out.completion_ns, strict=True)
    ]


def starts_ms(out: RunOutput) -> list[float]:
    """Return when the attempts that got a slot started, in order (ms)."""
    starts: IntArray = out.attempts.start_ns[out.attempts.slot != NO_SLOT]
    return sorted((starts / NS_PER_MS).tolist())


def in_ns(value_ms: float | None) -> int | None:
    """Return milliseconds as nanoseconds, None as None."""
    return None if value_ms is None else round(value_ms * NS_PER_MS)
