"""Replications: the same bytes whoever runs them, precision, warm-up, and what shared draws are worth."""

import json
import math
from typing import Any

import pytest

from sim.errors import EngineError
from sim.result.experiment import Precision, simulate
from sim.result.result import Result
from sim.scenario import Scenario, load_scenario
from sim.statistics.interval import paired_difference
from tests.small_scenarios import (
    POLICY,
    ROOT,
    WORDS,
    closed_load,
    exponential,
    lognormal,
    one_call,
    open_load,
    sample,
)

VARIED = [{**POLICY, "duration_ms": lognormal(260)}, {**WORDS, "duration_ms": lognormal(160)}]
# 38 requests of 420 ms a second are 0.8 of the 20 slots.
RATE_AT_0_8 = 38


def varied(load: dict[str, Any] | None = None, **more: Any) -> Scenario:
    return sample(load or open_load(RATE_AT_0_8, 150), branches=VARIED, **more)


def digest(result: Result) -> str:
    return json.dumps(result.summary())


def test_workers_change_nothing() -> None:
    results = [simulate(varied(), replications=5, workers=workers) for workers in (1, 2, 4)]
    assert digest(results[0]) == digest(results[1]) == digest(results[2])
    tables = [result.requests.to_csv() + result.calls.to_csv() for result in results]
    assert tables[0] == tables[1] == tables[2]


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others() -> None:
    first, again, other = (
        simulate(varied(experiment={"seed": seed}), replications=3, workers=1) for seed in (1, 1, 2)
    )
    assert digest(first) == digest(again)
    means = [result.plan("serial").values["latency_ms_mean"] for result in (first, other)]
    assert not set(means[0]) & set(means[1])


def test_replications_are_independent_of_how_many_there_are() -> None:
    few, many = (simulate(varied(), replications=count, workers=1) for count in (2, 4))
    for plan in ("serial", "parallel"):
        assert few.plan(plan).values["latency_ms_mean"] == many.plan(plan).values["latency_ms_mean"][:2]


def test_the_stated_replications_count_unless_others_are_asked_for() -> None:
    scenario = varied(experiment={"replications": 3})
    assert simulate(scenario, workers=1).replications == 3
    assert simulate(scenario, replications=2, workers=1).replications == 2


def test_a_deterministic_scenario_runs_once_and_shows_no_interval() -> None:
    result = simulate(sample(closed_load(10, 100)), replications=5)
    assert (result.replications, result.deterministic) == (1, True)
    assert result.notes == ("deterministic: 1 replication stands for the 5 asked for",)
    estimate = result.plan("parallel").estimates["latency_ms_mean"]
    assert (estimate.mean, estimate.half_width, estimate.reason) == (295, None, "deterministic")


def test_precision_adds_replications_until_every_plan_has_it() -> None:
    result = simulate(varied(), precision=Precision(0.03, least=5), workers=1)
    assert result.replications > 5
    for plan in result.plans:
        estimate = plan.estimates["latency_ms_mean"]
        assert estimate.half_width is not None
        assert estimate.half_width <= 0.03 * estimate.mean
    assert result.notes[-1] == (
        f"{result.replications} replications reach a half-width of 3 % of latency_ms_mean for every plan"
    )
    # The replications are those that would have been run at once.
    at_once = simulate(varied(), replications=result.replications, workers=1)
    assert at_once.plan("serial").values == result.plan("serial").values


def test_a_cap_that_comes_first_is_told() -> None:
    result = simulate(varied(), precision=Precision(0.0001, least=5, most=6), workers=1)
    widest = max(
        (plan.estimates["latency_ms_mean"].half_width or 0) / plan.estimates["latency_ms_mean"].mean
        for plan in result.plans
    )
    assert result.replications == 6
    assert result.notes[-1] == (
        "the cap of 6 replications came before a half-width of 0.01 % of latency_ms_mean for every plan: "
        f"the widest reaches {100 * widest:.2g} %"
    )


def test_the_first_tables_are_kept_or_all() -> None:
    first = simulate(varied(), replications=2, workers=1)
    assert sorted(set(first.requests["replication"])) == [0]
    every = simulate(varied(), replications=2, workers=1, keep_tables=True)
    assert sorted(set(every.requests["replication"])) == [0, 1]
    assert len(every.requests) == 2 * 2 * 150


def test_progress_counts_every_request() -> None:
    seen: list[int] = []
    simulate(varied(), replications=2, workers=1, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 2 * 2 * 150


def test_a_figure_missing_in_one_replication_has_no_mean() -> None:
    result = simulate(varied(), replications=2, workers=1)
    tail = result.plan("serial").estimates["latency_ms_p99"]
    assert math.isnan(tail.mean)
    assert tail.reason is not None
    assert tail.reason.startswith("missing in 2 of 2 replications: needs 1,000 observations, has ")
    # Two replications together have enough for p95 but not for p99.
    assert float(result.plan("serial").pooled_ms["latency_ms_p95"]) > 0
    assert math.isnan(float(result.plan("serial").pooled_ms["latency_ms_p99"]))


def test_the_rule_of_the_warm_up_is_in_the_summary() -> None:
    for experiment, written in (
        ({}, "auto"),
        ({"warmup": {"count": 9}}, {"count": 9}),
        ({"warmup": "none"}, "none"),
    ):
        result = simulate(varied(experiment=experiment), workers=1)
        assert result.summary()["provenance"]["warmup"] == written


def test_auto_runs_simpy_where_the_compiled_engine_cannot_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sim.engine.choice.WORTH_COMPILING", 1)
    slow = {"concurrency": 20, "limits": {"rpm": 7, "burst": {"rpm": 10**8}}}
    scenario = varied(open_load(RATE_AT_0_8, 40), provider=slow)
    with pytest.raises(EngineError):
        simulate(scenario, workers=1, engine="compiled")
    result = simulate(scenario, workers=1)
    assert result.engine == "simpy"
    assert [note for note in result.notes if "engine" in note] == [
        "engine compiled cannot run a bucket of 100000000 calls that refills 7 per 60000000000 ns: "
        "its level does not fit in 64 bits (engine simpy can)"
    ]
    assert result.plan("serial").values == simulate(scenario, engine="simpy").plan("serial").values


def test_auto_says_that_a_long_run_lacks_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.engine.choice.WORTH_COMPILING", 1)
    monkeypatch.setattr("sim.engine.choice.find_spec", lambda _: None)
    result = simulate(varied(open_load(RATE_AT_0_8, 40)), workers=1)
    assert result.engine == "simpy"
    assert "engine simpy: numba is not installed" in result.notes


@pytest.mark.parametrize(("allocation", "most"), [("fifo", 0.6), ("fair_share", 1.0)])
def test_shared_draws_narrow_the_difference_between_plans(allocation: str, most: float) -> None:
    scenario = varied(open_load(RATE_AT_0_8, 1_500), allocation=allocation)
    result = simulate(scenario, replications=8, workers=1)
    serial, parallel = (result.plan(name).values["latency_ms_mean"] for name in ("serial", "parallel"))
    difference = paired_difference(serial, parallel)
    assert difference.half_width is not None
    assert difference.unpaired_half_width is not None
    assert difference.half_width <= most * difference.unpaired_half_width


def test_deletion_removes_the_bias_of_users_who_all_start_at_once() -> None:
    # 60 users ask at once and queue for 5 slots; once they think in turn, hardly anybody waits.
    def users(requests: int, warmup: Any) -> Scenario:
        load = closed_load(60, requests, think_time_ms=exponential(2_000))
        return one_call(load, exponential(100), slots=5, experiment={"warmup": warmup})

    long = simulate(users(6_000, {"count": 600}), replications=6, workers=1)
    truth = long.plan("parallel").estimates["latency_ms_mean"]
    raw, cut = (
        simulate(users(1_500, warmup), replications=25, workers=1)
        .plan("parallel")
        .estimates["latency_ms_mean"]
        for warmup in ("none", None)
    )
    assert truth.low is not None
    assert truth.high is not None
    assert raw.mean > truth.high
    assert truth.low <= cut.mean <= truth.high


def test_what_a_closed_load_counts_is_all_of_its_requests() -> None:
    # Under overload nothing is left out for not having completed in time.
    result = simulate(one_call(open_load(30, 500), exponential(100)), workers=1)
    plan = result.plan("parallel")
    assert plan.stability.label == "overloaded"
    assert plan.estimates["requests"].mean + plan.dropped[0] == 500


def test_the_shipped_random_scenarios_share_their_draws() -> None:
    calm, busy = (
        load_scenario(ROOT / "scenarios" / f"{name}.yaml", ["plans=[serial]", "load.requests=300"])
        for name in ("off-peak-random", "peak-random")
    )
    one, other = (simulate(each, replications=2, workers=1).plan("serial") for each in (calm, busy))
    # Nobody waits for a slot in either, so the same draws give the same latencies.
    assert one.values["latency_ms_mean"] == other.values["latency_ms_mean"]
