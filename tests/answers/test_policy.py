"""Policies: the rule by load and hour, and the same rule simulated beside both fixed plans."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sim
from sim.answers.policy import POLICY, PolicyResult, policy_for
from sim.answers.policy_table import PolicyTable, policy_table
from sim.errors import ArgumentError
from sim.run.simulation import simulate_once
from tests.small_scenarios import ROOT

# No step is at a multiple of 295, 420 or 455 ms.
STEPS = (
    "load.steps=[{at_s: 0, active_requests: 10, name: off-peak}, "
    "{at_s: 12.13, active_requests: 20, name: peak}, {at_s: 24.27, active_requests: 10, name: recovery}]"
)
HOUR_NS = 3600 * 10**9


def scenario(name: str, *overrides: str) -> sim.Scenario:
    return sim.load_scenario(ROOT / f"scenarios/{name}.yaml", overrides)


@pytest.fixture(scope="module")
def day() -> PolicyResult:
    return policy_for(scenario("day", STEPS, "load.end_s=36.1"), slo=["latency_ms_p90 <= 420"])


def levels(table: PolicyTable, hours: int = 0) -> list[tuple[int, int | None, str, int]]:
    return [(one.active_from, one.active_to, one.plan, one.max_degree) for one in table.hours[hours].levels]


def test_the_rule_of_the_sample(day: PolicyResult) -> None:
    assert levels(day.table) == [(1, 10, "parallel", 2), (11, None, "serial", 1)]
    assert day.sentence.startswith("parallel up to 10 active requests, serial from 11: mean latency 34")


def test_the_policy_is_as_good_as_the_better_plan_in_each_period_and_better_over_the_day(
    day: PolicyResult,
) -> None:
    assert [one.better_fixed for one in day.periods] == ["parallel", "serial", "parallel"]
    assert all(abs(one.above_better_share) < 0.01 for one in day.periods)
    assert day.beats_both
    assert {label: each.words for label, each in day.differences.items()} == {
        "serial": "faster",
        "parallel": "faster",
    }
    # 295 ms off-peak and 420 at peak, by the requests of each.
    whole = day.whole.figures
    assert whole["parallel"]["latency_ms_mean"].mean > whole[POLICY]["latency_ms_mean"].mean + 10
    assert day.meets_slo
    assert [one.verdict for one in day.slo] == ["met", "missed", "met"]


def decisions_are_the_same(table: PolicyTable, asked: sim.Scenario) -> set[str]:
    """Hold what the simulation ran against what a service would have been told; return the plans met."""
    policy = json.loads(json.dumps(table.to_dict()))
    run = simulate_once(asked, table.choice, 0)
    out, (one,), (provider,) = run.out, run.given.workloads, run.given.providers
    arrived = np.searchsorted(out.arrival_ns, out.arrival_ns, side="right")
    completed = np.searchsorted(np.sort(out.completion_ns), out.arrival_ns, side="right")
    plans = set()
    for arrival_ns, active, parallel in zip(
        out.arrival_ns.tolist(), (arrived - completed).tolist(), out.ran_parallel.tolist(), strict=True
    ):
        hour = (asked.experiment.start_hour + arrival_ns / HOUR_NS) % 24
        told = sim.choose_plan(policy, active, hour)
        assert told.plan == ("parallel" if parallel else "serial")
        plans.add(told.plan)
        if parallel:
            share = max(1, provider.most_slots // active) if provider.allocation.caps else provider.most_slots
            assert told.max_degree == min(share, one.max_degree or share, one.calls_per_request)
    return plans


def test_the_table_drives_a_service_to_the_simulated_decisions(day: PolicyResult) -> None:
    assert decisions_are_the_same(day.table, day.scenario) == {"parallel", "serial"}


@pytest.mark.parametrize("name", ["open", "gains"])
def test_random_arrivals_and_degrees_are_decided_alike(name: str) -> None:
    asked = scenario(name, "load.requests=300", "experiment.replications=1", "experiment.warmup=none")
    assert "parallel" in decisions_are_the_same(policy_table(asked), asked)


PRICES = "provider.prices=[{from_hour: 8, to_hour: 20, ratio: 2}]"


def test_prices_by_the_hour_change_the_rule() -> None:
    asked = scenario("moderation", PRICES, "experiment.start_hour=7.9995", "load.requests=200")
    result = policy_for(asked, workers=1)
    assert [(one.from_hour, one.to_hour, one.price_ratio) for one in result.table.hours] == [
        (0, 8, 1),
        (8, 20, 2),
        (20, 24, 1),
    ]
    assert levels(result.table, 0) == [(1, 10, "parallel", 2), (11, None, "serial", 1)]
    assert levels(result.table, 1) == [(1, None, "serial", 1)]
    assert "from 8 to 20: always serial" in result.sentence
    # The run starts at 7:59:58.2 and goes past 8.
    share = result.whole.figures[POLICY]["parallel_share"].mean
    assert 0.1 < share < 0.9
    assert decisions_are_the_same(result.table, result.scenario) == {"parallel", "serial"}


def test_a_price_window_past_midnight_and_one_that_is_free() -> None:
    asked = scenario("moderation", "provider.prices=[{from_hour: 22, to_hour: 6, ratio: 0}]")
    costly = asked.replace({"criteria.max_micros_per_saved_ms": 1.0})
    table = policy_table(costly)
    assert [(one.from_hour, one.price_ratio) for one in table.hours] == [(0, 0), (6, 1), (22, 0)]
    assert [levels(table, hours)[0][2] for hours in range(3)] == ["parallel", "serial", "parallel"]


def test_no_more_slots_than_earn_their_keep() -> None:
    result = policy_for(scenario("gains"), active=[4, 10, 30], workers=1)
    assert result.table.max_degree == 3
    assert levels(result.table) == [
        (1, 8, "parallel", 3),
        (9, 12, "parallel", 2),
        (13, None, "serial", 1),
    ]
    assert [one.name for one in result.periods] == ["4 active", "10 active", "30 active"]
    assert result.sentence.startswith("parallel up to 12 active requests, serial from 13: ")


def test_other_allocations_do_not_cap_by_the_share() -> None:
    table = policy_table(scenario("gains", "provider.allocation=fifo"))
    assert levels(table) == [(1, 12, "parallel", 3), (13, None, "serial", 1)]


def test_workers_change_nothing(day: PolicyResult) -> None:
    again = policy_for(scenario("day", STEPS, "load.end_s=36.1"), slo=["latency_ms_p90 <= 420"], workers=2)
    assert again.summary() == day.summary()


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("mix-peak", [], "workloads must be one for a policy (got 3)"),
        (
            "moderation",
            ["provider.concurrency_steps=[{at_s: 1, concurrency: 2}]"],
            "concurrency_steps must be left out for a policy (got 1)",
        ),
    ],
)
def test_what_no_policy_fits_is_refused(name: str, overrides: list[str], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        policy_table(scenario(name, *overrides))
    assert str(caught.value) == message


def test_levels_have_to_be_positive() -> None:
    with pytest.raises(ArgumentError, match="active must be >= 1"):
        policy_for(scenario("peak"), active=[0])


def test_the_summary_is_plain(day: PolicyResult, tmp_path: Path) -> None:
    summary: dict[str, Any] = json.loads(json.dumps(day.summary(), allow_nan=False))
    assert [one["period"] for one in summary["periods"]] == ["off-peak", "peak", "recovery"]
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(summary["policy"]))
    assert sim.choose_plan(sim.load_policy(file), 10).plan == "parallel"
