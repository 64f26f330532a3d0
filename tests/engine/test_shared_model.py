"""Shared providers where nothing is shared: the plain model, to the nanosecond."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.contract.allocation import FAIR_SHARE, FIFO, MAX_MIN, PRIORITY, WEIGHTED, Allocation
from sim.contract.output import RunOutput
from sim.contract.plain import PlainInput, PlainOutput, run_input
from sim.contract.provider import ProviderInput
from sim.contract.run import RunInput, WorkloadInput
from sim.engine.shared.model import run_shared
from sim.engine.simpy_model import run
from tests.check.test_check import contended_inputs
from tests.engine_inputs import arriving, closed, engine_input
from tests.shared_inputs import answers, cache, checked, failing, limits, provider, rate, simulate, workload

PLAIN_AS = {FIFO: PRIORITY, FAIR_SHARE: WEIGHTED, MAX_MIN: MAX_MIN}


def same(out: RunOutput, plain: PlainOutput) -> bool:
    """Return whether two engines did the same, call by call."""
    calls = out.attempts
    at = (calls.number, calls.call)
    columns = ("ready_ns", "start_ns", "finish_ns", "slot")
    return (
        all(
            np.array_equal(getattr(out, name), getattr(plain, name))
            for name in ("user", "ran_parallel", "arrival_ns", "completion_ns")
        )
        and len(calls.number) == int(plain.called.sum())
        and all(np.array_equal(getattr(calls, name), getattr(plain, name)[at]) for name in columns)
        and out.active_integral_ns == (plain.active_integral_ns,)
    )


def identical(one: RunOutput, other: RunOutput) -> bool:
    """Return whether two runs are the same in every column."""
    requests = ("workload", "user", "ran_parallel", "arrival_ns", "completion_ns", "outcome", "join_start_ns")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in requests) and all(
        np.array_equal(getattr(one.attempts, name), getattr(other.attempts, name))
        for name in vars(one.attempts)
    )


def altered(given: PlainInput, workload: dict[str, Any], provider: dict[str, Any]) -> RunInput:
    """Return a plain run with parts of its workload and its provider replaced."""
    plain = run_input(given)
    (one,), (only,) = plain.workloads, plain.providers
    return RunInput((replace(one, **workload),), (replace(only, **provider),))


@given(contended_inputs())
@settings(max_examples=75, deadline=None)
def test_a_plain_run_is_the_plain_model(given: PlainInput) -> None:
    assert same(checked(run_input(given)), run(given))


@given(contended_inputs(), st.integers(-3, 3), st.integers(1, 9))
@settings(max_examples=75, deadline=None)
def test_one_workload_of_one_class_gets_what_it_got_before(
    given: PlainInput, priority: int, weight: int
) -> None:
    allocation = {"allocation": PLAIN_AS[given.allocation]}
    out = checked(altered(given, {"priority": priority, "weight": weight}, allocation))
    assert same(out, run(given))


@given(contended_inputs(), st.booleans(), st.data())
@settings(max_examples=60, deadline=None)
def test_what_does_not_bind_changes_nothing(given: PlainInput, lends: bool, data: st.DataObject) -> None:
    provider = {
        "reserved": (data.draw(st.integers(0, given.slots)),),
        "lends": lends,
        "slots": ((0, given.slots), (3_000_000, given.slots)),
        "limits": limits(rate(10_000, 1, burst=10_000), rate(10_000, 1), rejects=data.draw(st.booleans())),
        "cache": cache(5),
    }
    requests, calls = given.service_ns.shape
    plain = altered(given, {}, {}).workloads[0]
    faults = failing(
        plain, [["..."] * calls] * requests, timeout_ms=5_000, deadline_ms=10**6, backoff_ms=1, jitter=0.5
    ).faults
    out = checked(altered(given, {"faults": faults}, provider))
    assert same(out, run(given))
    assert (out.outcome == 0).all()


@given(contended_inputs(), contended_inputs())
@settings(max_examples=30, deadline=None)
def test_workloads_on_providers_of_their_own_do_not_meet(one: PlainInput, other: PlainInput) -> None:
    workloads: list[WorkloadInput] = []
    providers: list[ProviderInput] = []
    for index, alone in enumerate((one, other)):
        plain = run_input(alone)
        workloads.append(replace(plain.workloads[0], provider=(index,) * alone.calls_per_request))
        providers += plain.providers
    out = checked(RunInput(tuple(workloads), tuple(providers)))
    for index, alone in enumerate((one, other)):
        assert out.latency_ns[out.workload == index].tolist() == run(alone).latency_ns.tolist()


def test_a_double_run_is_the_same() -> None:
    given = RunInput(
        (failing(workload(closed(9, 60, think_ms=2), [7, 9, 3]), ["x.", "..", ".."], hedge_after_ms=6),),
        (provider(5, "max_min", limits=limits(rate(3, 10, burst=4))),),
    )
    assert identical(run_shared(given), run_shared(given))


@pytest.mark.parametrize("allocation", [FAIR_SHARE, WEIGHTED], ids=["fair_share", "weighted"])
def test_the_flip_between_10_and_11_active_requests(allocation: Allocation) -> None:
    for active, latency_ms in ((10, 295), (11, 455)):
        given = altered(engine_input(closed(active, 10 * active)), {}, {"allocation": allocation})
        assert set((checked(given).latency_ns / 1_000_000).tolist()) == {latency_ms}


def test_arrivals_of_one_instant_are_numbered_by_workload_and_user() -> None:
    one, other = workload(arriving(0, 5, 5), [20]), workload(closed(2, 4), [5])
    out = simulate([one, other], provider(9))
    assert out.workload.tolist() == [0, 1, 1, 0, 0, 1, 1]
    assert out.user.tolist() == [-1, 0, 1, -1, -1, 0, 1]
    assert (out.arrival_ns // 1_000_000).tolist() == [0, 0, 0, 5, 5, 5, 5]
    assert out.position.tolist() == [0, 0, 1, 1, 2, 2, 3]


def test_an_adaptive_request_looks_at_the_slots_that_its_branches_can_use() -> None:
    # One branch at provider 0 uses one of ten slots, two at provider 1 two, or one beside another request.
    adaptive = np.arange(65) >= 3
    one = replace(workload(arriving(0, 100), [10, 10, 10], provider=(0, 1, 1)), runs_parallel_at=adaptive)
    other = workload(arriving(100), [10], provider=(1,))
    out = simulate([one, other], [provider(10), provider(2)])
    assert out.ran_parallel[out.workload == 0].tolist() == [True, False]
    assert answers(out) == ["succeeded at 10", "succeeded at 130", "succeeded at 110"]


def test_progress_is_reported_every_thousand_requests() -> None:
    seen: list[int] = []
    run_shared(RunInput((workload(closed(4, 2_500), [1]),), (provider(),)), seen.append)
    assert seen == [1_000, 2_000]


def test_an_empty_run_gives_empty_tables() -> None:
    out = simulate(workload(arriving(), np.empty((0, 2)).tolist() or [1, 1]))
    assert (len(out.arrival_ns), len(out.attempts.number), out.active_integral_ns) == (0, 0, (0,))
