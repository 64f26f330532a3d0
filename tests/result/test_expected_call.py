"""What a call comes to, by hand; and what simulations without contention make of the same."""

import math
from pathlib import Path
from typing import Any

import pytest

from sim.result.demand import Way, request_in
from sim.result.expected_call import ExpectedCall, expected_calls, unsettled_share
from sim.result.experiment import simulate
from sim.scenario import load_scenario
from tests.small_scenarios import exponential, lognormal, open_load, sample

NO_PAUSE = {"backoff_ms": 0, "jitter": 0}


def call(duration_ms: Any, *, retry: Any = None, failures: Any = None, **branch: Any) -> ExpectedCall:
    branches = [{"id": "call", "duration_ms": duration_ms, **branch}]
    workflow = {key: value for key, value in (("retry", retry), ("failures", failures)) if value}
    (found,) = expected_calls(sample(open_load(), branches=branches, workflow=workflow))
    return found


def values(one: ExpectedCall) -> tuple[float, float, float, float]:
    return one.attempts, one.slot_ms, one.duration_ms, one.lost


def test_a_call_that_cannot_go_wrong_is_its_mean() -> None:
    assert values(call(lognormal(100))) == (1, 100, 100, 0)


def test_errors_are_tried_again_up_to_the_last_attempt() -> None:
    # 1 + 0.1 + 0.01 attempts of 100 ms, pauses of 40 and 80 ms, each longer by a quarter on average.
    found = call(100, failures={"server_error": 0.1}, retry={"attempts": 3, "backoff_ms": 40, "jitter": 0.5})
    assert values(found) == pytest.approx((1.11, 111, 111 + 0.1 * 50 + 0.01 * 100, 0.001))


def test_an_attempt_that_is_turned_away_holds_its_slot_for_that_long() -> None:
    found = call(100, failures={"rate_limited": 0.2, "rejection_ms": 10}, retry={"attempts": 2, **NO_PAUSE})
    assert values(found) == pytest.approx((1.2, 1.2 * (0.2 * 10 + 0.8 * 100), 1.2 * 82, 0.04))


def test_an_attempt_that_hangs_holds_its_slot_until_its_timeout() -> None:
    found = call(100, failures={"timeout": 0.1}, timeout_ms=500, retry={"attempts": 2, **NO_PAUSE})
    assert values(found) == pytest.approx((1.1, 1.1 * 140, 1.1 * 140, 0.01))


def test_a_timeout_is_as_likely_as_the_time_is_longer() -> None:
    late = math.exp(-2)
    attempts = 1 + late + late**2
    found = call(exponential(100), timeout_ms=200, retry={"attempts": 3, **NO_PAUSE})
    assert values(found) == pytest.approx(
        (attempts, attempts * 100 * (1 - late), attempts * 100 * (1 - late), late**3), rel=1e-5
    )


@pytest.mark.parametrize(("timeout_ms", "lost"), [(100, 0), (99, 1)])
def test_a_call_that_takes_just_its_timeout_has_finished(timeout_ms: float, lost: float) -> None:
    assert values(call(100, timeout_ms=timeout_ms)) == pytest.approx((1, timeout_ms, timeout_ms, lost))


def test_a_hedge_joins_what_still_runs_and_the_first_answer_ends_both() -> None:
    # Both are exponential: of the two that run from 60 ms on, the first ends after 50 ms on average.
    both = math.exp(-0.6)
    found = call(exponential(100), hedge_after_ms=60, retry={"attempts": 2, **NO_PAUSE})
    assert values(found) == pytest.approx(
        (1 + both, 100, 100 * (1 - both) + 50 * both, 0), rel=1e-5, abs=1e-9
    )
    assert values(call(100, hedge_after_ms=60, retry={"attempts": 2})) == pytest.approx((2, 140, 100, 0))
    assert values(call(100, hedge_after_ms=100, retry={"attempts": 2})) == pytest.approx((1, 100, 100, 0))


def test_further_attempts_fit_the_budget() -> None:
    retry = {"attempts": 3, "budget_ratio": 0.05, **NO_PAUSE}
    found = call(100, failures={"server_error": 0.1}, retry=retry)
    assert values(found) == pytest.approx((1.05, 105, 105, 0.1 - 0.05 / 0.11 * (0.1 - 0.001)))
    generous = call(100, failures={"server_error": 0.1}, retry=retry | {"budget_ratio": 0.2})
    assert generous.attempts == pytest.approx(1.11)


def test_a_row_that_states_its_time_is_late_every_time(tmp_path: Path) -> None:
    rows = "".join(f"{second},{100 if second % 4 else 300}\n" for second in range(8))
    (tmp_path / "rows.csv").write_text("at,took\n" + rows)
    file = tmp_path / "scenario.yaml"
    file.write_text(
        "{schema_version: 1, name: rows, provider: {concurrency: 9}, workflow: {name: one, branches: "
        "[{id: call, duration_ms: {distribution: trace, column: took}, timeout_ms: 200}], "
        "retry: {attempts: 3, backoff_ms: 0, jitter: 0}}, load: {kind: trace, file: rows.csv, format: csv, "
        "columns: {timestamp: at}, time_unit: s}}"
    )
    (found,) = expected_calls(load_scenario(file))
    assert values(found) == pytest.approx((0.75 + 0.25 * 3, 75 + 0.25 * 600, 75 + 0.25 * 600, 0.25))


def test_the_share_that_ends_in_a_later_window() -> None:
    scenario = sample(open_load(), branches=[{"id": "call", "duration_ms": 250}])
    branch = scenario.workflow.branches[0]
    assert unsettled_share(scenario, branch, 1.0) == pytest.approx(0.25)
    assert unsettled_share(scenario, branch, 0.1) == pytest.approx(1.0)


FAULTS = {"server_error": 0.1, "timeout": 0.05, "rate_limited": 0.05}


@pytest.mark.parametrize(
    ("branch", "workflow"),
    [
        ({"timeout_ms": 150}, {"failures": FAULTS, "retry": {"attempts": 3, "backoff_ms": 20}}),
        (
            {"timeout_ms": 120},
            {
                "failures": {"server_error": 0.1},
                "retry": {"attempts": 3, "backoff_ms": 20, "budget_ratio": 0.1},
            },
        ),
        (
            {"timeout_ms": 250, "hedge_after_ms": 110},
            {"failures": {"server_error": 0.1, "timeout": 0.05}, "retry": {"attempts": 3, "backoff_ms": 20}},
        ),
        ({}, {"join_needs": 1, "retry": {"attempts": 2}}),
        ({"optional": True}, {"failures": {"server_error": 0.2}, "join_holds_slot": True}),
    ],
    ids=["retries", "budget", "hedge", "race", "join that holds a slot"],
)
@pytest.mark.parametrize("plan", ["serial", "parallel"])
def test_simulations_on_ample_slots_agree(
    branch: dict[str, Any], workflow: dict[str, Any], plan: str
) -> None:
    branches = [{"id": name, "duration_ms": lognormal(100, 0.7), **branch} for name in ("one", "two")]
    scenario = sample(
        open_load(5, 4000, arrivals="fixed"),
        branches=branches,
        slots=200,
        plans=[plan],
        workflow={
            "join_overhead_ms": 30,
            "siblings": "cancel" if "join_needs" in workflow else "finish",
            **workflow,
        },
    )
    held = simulate(scenario, workers=1, engine="simpy").calls.query("slot >= 0")
    demand = request_in(scenario, Way(plan == "parallel")).demands(5)["provider"]
    assert (held["finish_ms"] - held["start_ms"]).sum() / 4000 == pytest.approx(
        1000 * demand.slot_s, rel=0.025
    )
    assert len(held) / 4000 == pytest.approx(demand.calls, rel=0.015)
