"""Rules held against figures: undelivered requests, shares, maxima, windows and single replications."""

import math
from typing import Any

import numpy as np
import pytest

import sim
from sim.result.measured_decision import UNDECIDED
from sim.result.objective import MET, MISSED
from sim.result.result import Result
from sim.scenario import Scenario
from sim.statistics.percentile import Missing
from tests.small_scenarios import ROOT, Plain, exponential, one_call, open_load

STORM = ROOT / "scenarios/retry-storm.yaml"


def ran(rules: list[str], duration_ms: Any = 100, load: Plain | None = None, **more: Any) -> Result:
    """Run one call on four slots, of a scenario with some rules."""
    experiment = {"replications": more.pop("replications", 5), "seed": more.pop("seed", 1)}
    scenario = one_call(
        load or open_load(10, 200), duration_ms, 4, slo={"rules": rules}, experiment=experiment, **more
    )
    return sim.simulate(scenario, engine="compiled")


def failing(
    share: float, seed: int, rules: list[str], requests: int = 200, replications: int = 5
) -> Scenario:
    """Return requests of one call, of which a share fails."""
    return one_call(
        open_load(10, requests),
        slots=4,
        workflow={"failures": {"server_error": share}},
        slo={"rules": rules},
        experiment={"replications": replications, "seed": seed},
    )


def test_a_rule_about_a_latency_is_missed_where_that_was_not_delivered() -> None:
    names = ("latency_ms_mean", "latency_ms_p50", "latency_ms_p95", "latency_ms_max")
    rules = [f"{name} <= 100000" for name in names]
    # One in ten fails: the median is that of a delivered request, the 95th percentile is not.
    result = sim.simulate(failing(0.1, 1, rules), engine="compiled")
    assert [one.verdict for one in result.slo] == [MISSED, MET, MISSED, MISSED]
    values = result.plans[0].values
    assert math.isnan(float(values["latency_ms_p95"][0]))
    assert max(map(float, values["delivered_latency_ms_p90"])) < 1000
    mean = result.slo[0]
    requests = int(float(values["requests"][0]))
    lost = requests - len(result.plans[0].latency_ns[0])
    assert math.isnan(mean.value.mean)
    words = f"missing in 5 of 5 replications: {lost} of {requests} requests were not delivered"
    assert mean.reason == mean.value.reason == words
    assert result.summary()["plans"]["parallel"]["missing"]["latency_ms_mean"] == words


def test_periods_workloads_and_pooled_percentiles_count_undelivered_requests() -> None:
    load = "{kind: steps, steps: [{at_s: 0, active_requests: 10, name: day}], end_s: 40}"
    rules = "slo.rules=['day:latency_ms_p95 <= 9e9', 'latency_ms_p95 <= 9e9']"
    scenario = sim.load_scenario(
        ROOT / "scenarios/faulty.yaml",
        [f"load={load}", "workflow.retry.attempts=1", "plans=[parallel]", "experiment.replications=2", rules],
    )
    result = sim.simulate(scenario, engine="compiled")
    assert [one.verdict for one in result.slo] == [MISSED, MISSED]
    plan = result.plans[0]
    assert plan.periods[0].estimates["latency_ms_p95"].undelivered
    pooled = plan.pooled_ms["latency_ms_p95"]
    assert isinstance(pooled, Missing)
    assert pooled.undelivered
    assert not math.isnan(plan.periods[0].estimates["delivered_latency_ms_p90"].mean)


def test_a_retry_storm_meets_no_latency() -> None:
    few = ["load.duration_s=60", "load.rate_per_s=20", "experiment.replications=5", "plans=[parallel]"]
    rules = "slo.rules=['latency_ms_mean <= 400', 'delivered_latency_ms_mean <= 1e9']"
    result = sim.simulate(sim.load_scenario(STORM, [*few, rules]), engine="compiled")
    assert result.slo[0].verdict == MISSED
    assert not math.isnan(result.slo[1].value.mean)


def test_decisions_go_on_with_delivered_latencies() -> None:
    few = ["load.requests=400", "experiment.replications=5", "plans=[serial, parallel]"]
    result = sim.simulate(sim.load_scenario(ROOT / "scenarios/faulty.yaml", few), engine="compiled")
    serial, parallel = (plan.estimates["delivered_latency_ms_mean"].mean for plan in result.plans)
    assert any(math.isnan(plan.estimates["latency_ms_mean"].mean) for plan in result.plans)
    assert result.decision.measured is not None
    assert result.decision.measured.saved_ms == pytest.approx(serial - parallel)


def test_a_share_below_the_bound_hardly_ever_meets_it() -> None:
    rule = "succeeded_share >= 0.999"
    results = [sim.simulate(failing(0.002, seed, [rule]), engine="compiled") for seed in range(1, 201)]
    assert any(plan.estimates["succeeded_share"].mean == 1 for plan in (one.plans[0] for one in results))
    assert sum(one.slo[0].verdict == MET for one in results) <= 10


def test_a_share_well_above_the_bound_meets_it() -> None:
    result = sim.simulate(failing(0.002, 1, ["succeeded_share >= 0.99"], 1000), engine="compiled")
    (verdict,) = result.slo
    assert verdict.verdict == MET
    assert verdict.value.low is not None
    assert 0.99 <= verdict.value.low < verdict.value.mean


def test_what_cannot_fail_succeeds_without_a_doubt() -> None:
    result = ran(["succeeded_share >= 1"], exponential(100))
    assert result.slo[0].verdict == MET
    assert result.slo[0].value.half_width == 0


def test_attainment_has_the_interval_of_a_share() -> None:
    found = ran(["latency_ms_p95 <= 2000"], exponential(100)).plans[0].estimates["share_within_2000_ms"]
    assert (found.mean, found.high) == (1.0, 1.0)
    assert found.low is not None
    assert 0.98 < found.low < 1


def test_a_maximum_is_about_every_run() -> None:
    loose = ran(["latency_ms_max <= 1e9"], exponential(100), replications=10)
    maxima = sorted(map(float, loose.plans[0].values["latency_ms_max"]))
    assert loose.slo[0].verdict == MET
    between = (maxima[-1] + maxima[-2]) / 2
    # The mean of the maxima lies far below, with its whole interval or not: one run is longer.
    rules = [f"latency_ms_max <= {bound!r}" for bound in (between, maxima[-1])]
    one_over, none_over = ran(rules, exponential(100), replications=10).slo
    assert (one_over.verdict, one_over.reason) == (MISSED, "1 of 10 replications break it")
    assert none_over.verdict == MET


def test_one_random_replication_proves_nothing() -> None:
    rules = [
        "latency_ms_mean <= 1e9",
        "latency_ms_mean <= 1",
        "succeeded_share >= 0.5",
        "latency_ms_max <= 1e9",
    ]
    for verdict in ran(rules, exponential(100), replications=1).slo:
        assert (verdict.verdict, verdict.reason) == (UNDECIDED, "one random replication proves nothing")
    # What happened has happened: a run over the bound is one.
    (over,) = ran(["latency_ms_max <= 1"], exponential(100), replications=1).slo
    assert over.verdict == MISSED


def test_where_nothing_is_random_one_replication_decides() -> None:
    load = {"kind": "closed", "active_requests": 4, "requests": 400}
    rules = ["latency_ms_mean <= 100", "latency_ms_max <= 99", "succeeded_share >= 1"]
    result = ran(rules, load=load, replications=1)
    assert [one.verdict for one in result.slo] == [MET, MISSED, MET]


def test_the_interval_of_a_throughput_covers_the_rate() -> None:
    covered = 0
    for seed in range(1, 201):
        found = (
            ran(["latency_ms_mean <= 1e9"], exponential(100), open_load(20, 400), seed=seed)
            .plans[0]
            .estimates["throughput_per_s"]
        )
        covered += (found.low or 0) <= 20 <= (found.high or 0)
    assert covered / 200 >= 0.90


def test_the_intervals_of_utilisation_and_active_requests_cover_erlang() -> None:
    covered = np.zeros(2)
    slots, erlangs = 4, 2.0
    wait_s = sim_wait_s(slots, erlangs)
    for seed in range(1, 101):
        found = (
            ran(["latency_ms_mean <= 1e9"], exponential(100), open_load(20, 1000), seed=seed)
            .plans[0]
            .estimates
        )
        true = {"utilisation": erlangs / slots, "active_requests_mean": erlangs + 20 * wait_s}
        covered += [
            (found[name].low or 0) <= value <= (found[name].high or 0) for name, value in true.items()
        ]
    assert covered.min() / 100 >= 0.88


def sim_wait_s(slots: int, erlangs: float) -> float:
    """Return Erlang C's mean wait for services of 0.1 s."""
    busy = [erlangs**k / math.factorial(k) for k in range(slots)]
    queued = erlangs**slots / math.factorial(slots) * slots / (slots - erlangs)
    return queued / (sum(busy) + queued) * 0.1 / (slots - erlangs)
