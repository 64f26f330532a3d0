"""Everything at once: nothing is lost, nothing leaks, nobody waits beside a free slot."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.check.run import check_run
from sim.contract.allocation import ALLOCATIONS
from sim.contract.limit import UNITS
from sim.contract.load import ClosedUsers, OpenArrivals
from sim.contract.output import (
    CANCELLED,
    DEGRADED,
    OK,
    RATE_LIMITED,
    SERVER_ERROR,
    SUCCEEDED,
    TIMED_OUT,
    Attempts,
)
from sim.contract.provider import Limits, ProviderInput, RateLimit
from sim.contract.run import PPM, Faults, RunInput, Tokens, WorkloadInput
from sim.engine.shared.model import run_shared
from sim.units import NS_PER_MS
from tests.engine_inputs import arriving, closed
from tests.shared_checks import check_everything
from tests.shared_inputs import cache, checked, limits, provider, rate, workload
from tests.strategies import dependency_graphs


@st.composite
def fault_plans(draw: st.DrawFn, one: WorkloadInput) -> Faults:
    """Return faults of any kind; first attempts take what the calls take."""
    requests, calls = one.service_ns.shape
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    attempts = draw(st.integers(1, 4))
    shape = (requests, calls, attempts)
    likely = [0.5, 0.2, 0.1, 0.2]
    ticks = st.none() | st.integers(1, 5).map(lambda tick: tick * NS_PER_MS)
    timeout_ns = tuple(draw(ticks) for _ in range(calls))
    outcome = rng.choice([OK, SERVER_ERROR, RATE_LIMITED, TIMED_OUT], shape, p=likely).astype(np.int8)
    outcome[:, [timeout is None for timeout in timeout_ns]] %= TIMED_OUT
    service_ns = rng.integers(1, 6, shape) * NS_PER_MS
    service_ns[:, :, 0] = one.service_ns
    return Faults(
        outcome=outcome,
        service_ns=service_ns,
        timeout_ns=timeout_ns,
        backoff_ns=tuple(draw(st.integers(0, 3)) * NS_PER_MS for _ in range(attempts)),
        jitter_ppm=rng.choice([0, PPM // 2, PPM], shape),
        hedge_after_ns=tuple(draw(ticks) for _ in range(calls)),
        optional=tuple(draw(st.booleans()) for _ in range(one.branches)),
        retry_budget_ppm=draw(st.none() | st.sampled_from([0, PPM // 4, PPM])),
        deadline_ns=draw(st.none() | st.integers(1, 25).map(lambda tick: tick * NS_PER_MS)),
        needs=draw(st.none() | st.integers(1, one.branches)),
        cancels=draw(st.booleans()),
    )


@st.composite
def token_counts(draw: st.DrawFn, requests: int, calls: int) -> Tokens:
    """Return tokens, most of them with a prefix."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = (requests, calls)
    return Tokens(
        input=rng.integers(0, 8, shape),
        output=rng.integers(0, 8, shape),
        reserved_output=tuple(draw(st.integers(0, 8)) for _ in range(calls)),
        prefix=tuple(draw(st.integers(0, 4)) for _ in range(calls)),
        first_token_ns=rng.integers(1, 5, shape) * NS_PER_MS,
    )


@st.composite
def workloads(draw: st.DrawFn, providers: int) -> WorkloadInput:
    """Return a workload on a grid of ticks, where many things happen at one instant."""
    branches, requests = draw(st.integers(1, 4)), draw(st.integers(0, 12))
    load: OpenArrivals | ClosedUsers
    if draw(st.booleans()):
        load = closed(draw(st.integers(1, 5)), requests, draw(st.integers(0, 3)))
    else:
        load = arriving(*sorted(draw(st.lists(st.integers(0, 20), min_size=requests, max_size=requests))))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    join_ms, holds_slot = draw(st.integers(0, 3)), draw(st.booleans())
    one = workload(
        load,
        rng.integers(1, 6, (requests, branches)) if requests else [1] * branches,  # type: ignore[arg-type]
        join_ms=0 if holds_slot else join_ms,
        join_slot_ms=join_ms + 1 if holds_slot else None,
        dependencies=draw(dependency_graphs(branches)),
        max_degree=draw(st.none() | st.integers(1, 3)),
        priority=draw(st.integers(0, 2)),
        weight=draw(st.integers(1, 4)),
    )
    calls = one.calls_per_request
    tokens = draw(st.none() | token_counts(requests, calls))
    return replace(
        one,
        runs_parallel_at=rng.random(65) < draw(st.sampled_from([0, 0.5, 1])),
        provider=tuple(draw(st.integers(0, providers - 1)) for _ in range(calls)),
        faults=draw(st.none() | fault_plans(one)),
        tokens=tokens,
        warm_first=tokens is not None and draw(st.booleans()),
    )


@st.composite
def rate_limits(draw: st.DrawFn) -> RateLimit:
    """Return a limit tight enough to bind."""
    burst = draw(st.none() | st.integers(1, 12))
    return rate(draw(st.integers(1, 12)), draw(st.integers(1, 6)), burst, draw(st.sampled_from(UNITS)))


@st.composite
def provider_inputs(draw: st.DrawFn, workloads: int) -> ProviderInput:
    """Return a provider of few slots, more at first or later, of which some may be reserved."""
    steps = [(0, draw(st.integers(1, 6)))]
    for _ in range(draw(st.integers(0, 3))):
        steps.append((steps[-1][0] + draw(st.integers(1, 15)), draw(st.integers(1, 6))))
    # Somebody without reserved slots must be able to get one.
    spare = min(slots for _, slots in steps) - 1
    reserved = []
    for _ in range(workloads):
        reserved.append(draw(st.integers(0, spare)))
        spare -= reserved[-1]
    return provider(
        steps,
        draw(st.sampled_from(tuple(ALLOCATIONS))),
        reserved=tuple(reserved) if draw(st.booleans()) else (),
        lends=draw(st.booleans()),
        limits=Limits(
            tuple(draw(st.lists(rate_limits(), max_size=3))),
            draw(st.booleans()),
            draw(st.booleans()),
            draw(st.booleans()),
        ),
        cache=draw(st.none() | st.builds(cache, st.integers(1, 9), st.none() | st.integers(1, 2))),
    )


@st.composite
def shared_inputs(draw: st.DrawFn) -> RunInput:
    """Return small runs with everything that an input can say."""
    providers, number = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    return RunInput(
        tuple(draw(workloads(providers)) for _ in range(number)),
        tuple(draw(provider_inputs(number)) for _ in range(providers)),
    )


@given(shared_inputs())
@settings(max_examples=100, deadline=None)
def test_everything_holds_whatever_happens(run: RunInput) -> None:
    out = checked(run)
    check_everything(run, out)
    check_run(run, out, run_shared)


@pytest.mark.slow
@given(shared_inputs())
@settings(max_examples=3_000, deadline=None)
def test_everything_holds_whatever_happens_however_long_one_looks(run: RunInput) -> None:
    out = checked(run)
    check_everything(run, out)
    check_run(run, out, run_shared)


def troubled(requests: int) -> RunInput:
    """Return calls of which 30 % fail or hang, tried again and hedged, before a deadline and at a limit."""
    rng = np.random.default_rng(1)
    arrival_ns = np.cumsum(rng.integers(1, 2 * NS_PER_MS, requests))
    one = workload(OpenArrivals(arrival_ns), [1, 1], join_ms=5)
    shape = (requests, 2, 3)
    faults = Faults(
        outcome=rng.choice([OK, SERVER_ERROR, RATE_LIMITED, TIMED_OUT], shape, p=[0.7, 0.1, 0.1, 0.1]).astype(
            np.int8
        ),
        service_ns=rng.integers(1, 5 * NS_PER_MS, shape),
        timeout_ns=(10 * NS_PER_MS,) * 2,
        backoff_ns=(2 * NS_PER_MS, 4 * NS_PER_MS, 0),
        jitter_ppm=rng.integers(0, PPM, shape),
        hedge_after_ns=(4 * NS_PER_MS,) * 2,
        optional=(False, True),
        deadline_ns=40 * NS_PER_MS,
    )
    bucket = rate(3, 1, burst=20)
    return RunInput((replace(one, faults=faults),), (provider(10, "fair_share", limits=limits(bucket)),))


@pytest.mark.parametrize("requests", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_large_troubled_run_loses_and_leaks_nothing(requests: int) -> None:
    out = checked(troubled(requests))
    ends = np.bincount(out.outcome, minlength=4)
    assert ends.sum() == requests
    assert (ends > 0).all()
    table = out.attempts
    assert {OK, SERVER_ERROR, RATE_LIMITED, TIMED_OUT, CANCELLED} == set(table.outcome.tolist())
    # Each attempt once, none beyond the third, and one success for each branch of a request that succeeded.
    keys = (table.number * 2 + table.call) * 3 + table.attempt
    assert (len(np.unique(keys)), table.attempt.max()) == (len(keys), 2)
    done = np.bincount(table.number[table.outcome == OK], minlength=requests)
    assert (done[out.outcome == SUCCEEDED] == 2).all()
    assert (done[out.outcome == DEGRADED] == 1).all()
    assert (table.finish_ns <= out.completion_ns[table.number]).all()
    assert no_overlap(table)


def no_overlap(table: Attempts) -> bool:
    """Return whether no slot had two attempts at a time."""
    held = table.slot >= 0
    order = np.lexsort((table.finish_ns[held], table.start_ns[held], table.slot[held]))
    slot, start_ns, finish_ns = (
        column[held][order] for column in (table.slot, table.start_ns, table.finish_ns)
    )
    return bool(((slot[1:] != slot[:-1]) | (start_ns[1:] >= finish_ns[:-1])).all())
