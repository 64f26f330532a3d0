"""What theory says beside a plan: which formula, and when none applies."""

import pytest

from sim.result.expected import Expected, alone_ms, call_cv, expected, waits
from sim.scenario import Scenario
from sim.statistics.theory import allen_cunneen_wait, mmc_wait
from tests.small_scenarios import Plain, closed_load, exponential, lognormal, one_call, open_load, sample

THIRD = [{"id": name, "duration_ms": ms} for name, ms in (("a", 300), ("b", 200), ("c", 100))]


def said(scenario: Scenario, plan: int = 0) -> list[Expected]:
    return list(waits(scenario, scenario.plans[plan]))


@pytest.mark.parametrize(
    ("plan", "alone"),
    [
        ("serial", 420),
        ("parallel", 295),
        ({"plan": "parallel", "max_degree": 1}, 455),
        ("adaptive", 295),
        ({"plan": "adaptive", "max_degree": 1}, 420),
        ({"plan": "parallel", "max_degree": 7}, 295),
    ],
)
def test_a_request_alone(plan: object, alone: float) -> None:
    scenario = sample(plans=[plan])
    assert alone_ms(scenario, scenario.plans[0]) == alone


def test_a_provider_of_few_slots_bounds_a_request_alone() -> None:
    scenario = sample(slots=1)
    assert alone_ms(scenario, scenario.plans[1]) == 455


def test_bounds_stand_beside_every_load() -> None:
    scenario = sample(closed_load(20))
    assert expected(scenario, scenario.plans[0], active_mean=19.0, work_ms=420.0) == (
        Expected("latency_ms_mean", "at least", 420, "critical path and join, without waiting"),
        Expected("latency_ms_mean", "at least", 19 * 420 / 20, "mean active requests x work / slots"),
    )


def test_one_exponential_call_is_erlang_c() -> None:
    scenario = one_call(open_load(rate_per_s=160), exponential(100), slots=20)
    assert said(scenario) == [Expected("waiting_ms_mean", "exactly", mmc_wait(0.16, 100, 20), "Erlang C")]
    assert said(scenario)[0].value == pytest.approx(6.402, rel=1e-3)


@pytest.mark.parametrize(
    ("arrivals", "cv"), [({"arrivals": "fixed"}, 0.0), ({"arrivals": "gamma", "cv": 1.7}, 1.7), ({}, 1.0)]
)
def test_other_single_calls_are_approximated(arrivals: Plain, cv: float) -> None:
    scenario = one_call(open_load(rate_per_s=160, **arrivals), lognormal(100, 0.5), slots=20)
    (wait,) = said(scenario)
    assert wait.kind == "about"
    assert wait.value == pytest.approx(allen_cunneen_wait(0.16, 100, 20, cv, 0.5))


def test_exponential_calls_without_poisson_arrivals_are_approximated() -> None:
    scenario = one_call(open_load(rate_per_s=160, arrivals="fixed"), exponential(100), slots=20)
    assert [wait.kind for wait in said(scenario)] == ["about"]


def test_serial_calls_are_mixed_and_parallel_ones_left_out() -> None:
    scenario = sample(open_load(rate_per_s=30), branches=THIRD)
    (wait,) = said(scenario, plan=0)
    # 90 calls a second of 200 ms on average; their second moment is 46,667.
    assert call_cv(scenario) == pytest.approx((140_000 / 3 / 40_000 - 1) ** 0.5)
    assert wait.kind == "about"
    assert wait.value == pytest.approx(allen_cunneen_wait(0.09, 200, 20, 1, call_cv(scenario)))
    assert said(scenario, plan=1) == []


def test_no_wait_is_said_of_users_of_overload_or_of_a_join_that_queues() -> None:
    assert said(sample(closed_load())) == []
    assert said(one_call(open_load(rate_per_s=200), exponential(100), slots=20)) == []
    workflow = {"join_holds_slot": True, "join_overhead_ms": 5}
    assert said(one_call(open_load(rate_per_s=100), exponential(100), slots=20, workflow=workflow)) == []
