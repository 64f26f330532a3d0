"""Figures of one run, against hand calculations, and the warm-up rules."""

import math
from pathlib import Path
from typing import Any

import pytest

from sim.contract.load import ClosedUsers
from sim.run.measure import Measured, left_over_at, measure, warm_up, warmup_rule
from sim.run.simulation import simulate_once
from sim.scenario import Scenario, load_scenario
from sim.scenario.model import WarmupCut
from sim.statistics.figures import Figures
from sim.statistics.percentile import Missing
from tests.small_scenarios import (
    ROOT,
    closed_load,
    exponential,
    from_file,
    lognormal,
    one_call,
    open_load,
    sample,
)

# One user, then two, on one slot of 100 ms: from 1 s on each waits for the other.
TWO_STEPS = {
    "kind": "steps",
    "steps": [{"at_s": 0, "active_requests": 1, "name": "calm"}, {"at_s": 1, "active_requests": 2}],
    "end_s": 2,
}


def measured(scenario: Scenario, plan: int = 0) -> Measured:
    return measure(scenario, simulate_once(scenario, scenario.plans[plan], 0))


def chosen(figures: Figures, *names: str) -> list[float]:
    return [float(figures[name]) for name in names]


def test_a_run_by_hand() -> None:
    # 21 requests from 0 to 2.1 s: ten of 100 ms, then one of 100 and ten of 200.
    whole = measured(one_call(TWO_STEPS))
    assert chosen(whole.figures, "requests", "latency_ms_mean", "latency_ms_p50", "latency_ms_max") == [
        21,
        (11 * 100 + 10 * 200) / 21,
        100,
        200,
    ]
    assert chosen(whole.figures, "waiting_ms_mean", "waiting_ms_max") == [10 * 100 / 21, 100]
    # From the first arrival to the last, at 1.9 s: 19 requests end, the last one at this very instant.
    assert chosen(whole.figures, "utilisation", "throughput_per_s") == [1.0, 19 / 1.9]
    # Time-weighted: 1 for a second, 2 until 1.9 s; not the mean over some samples.
    assert whole.figures["active_requests_mean"] == 2.8 / 1.9
    assert whole.active_mean == 3.1 / 2.1
    assert (whole.dropped, whole.note, whole.arrival_span_ns) == (0, None, 1_900_000_000)


def test_periods_by_hand() -> None:
    calm, busy = measured(one_call(TWO_STEPS)).periods
    assert (calm.period.name, busy.period.name) == ("calm", "step 2")
    names = ("requests", "latency_ms_mean", "latency_ms_max", "waiting_ms_mean")
    assert chosen(calm.figures, *names) == [10, 100, 100, 0]
    # Two arrive at 1 s, then one every 100 ms: eleven, of which the first alone does not wait.
    assert chosen(busy.figures, *names) == [11, 2100 / 11, 200, 1000 / 11]
    # What completes at the very end of a period belongs to the next one.
    ends = ("throughput_per_s", "active_at_start", "active_at_end", "utilisation")
    assert chosen(calm.figures, *ends) == [9, 0, 1, 1.0]
    assert chosen(busy.figures, *ends) == [10, 1, 2, 1.0]


def test_what_is_left_over_at_an_instant() -> None:
    scenario = one_call(TWO_STEPS)
    out = simulate_once(scenario, scenario.plans[0], 0).out
    counts = [left_over_at(out, at_ms * 1_000_000) for at_ms in (0, 1, 100, 101, 1_000, 1_001, 2_100, 2_101)]
    assert counts == [0, 1, 1, 1, 1, 2, 1, 0]


def test_latency_is_clocked_from_the_arrival() -> None:
    # Arrivals every 50 ms, service 100 ms on one slot: request k waits 50 k ms.
    load = open_load(rate_per_s=20, requests=5, arrivals="fixed")
    scenario = one_call(load, 100)
    run = simulate_once(scenario, scenario.plans[0], 0)
    assert (run.out.latency_ns / 1e6).tolist() == [100, 150, 200, 250, 300]
    # All five count, though most complete after the arrivals have ended.
    assert chosen(measure(scenario, run).figures, "requests", "latency_ms_mean") == [5, 200]


def test_serial_and_parallel_cost_what_the_plan_says() -> None:
    scenario = sample(closed_load(10, 100))
    serial, parallel = (measured(scenario, plan).figures for plan in (0, 1))
    assert chosen(serial, "cost_micros_per_request", "parallel_share") == [368, 0]
    assert chosen(parallel, "cost_micros_per_request", "parallel_share") == [736, 1]


@pytest.mark.parametrize("users", [1, 7, 20, 33])
def test_users_are_throughput_times_latency_and_think_time(users: int) -> None:
    # Exact to its end effects: the last think times lie outside, and users fall idle one after another.
    load = closed_load(users, 3_000, think_time_ms=exponential(80))
    scenario = one_call(load, exponential(100), slots=8, experiment={"warmup": "none"})
    run = simulate_once(scenario, scenario.plans[0], 0)
    figures = measure(scenario, run).figures
    users_given = run.given.workloads[0].load
    assert isinstance(users_given, ClosedUsers)
    think_ms = float(users_given.think_ns.mean()) / 1e6
    found = float(figures["throughput_per_s"]) * (float(figures["latency_ms_mean"]) + think_ms) / 1000
    assert found == pytest.approx(users, rel=0.02 + 0.002 * users)


def test_percentiles_without_ten_beyond_are_not_shown() -> None:
    figures = measured(one_call(closed_load(1, 300))).figures
    assert figures["latency_ms_p95"] == 100
    assert figures["latency_ms_p99"] == Missing("needs 1,000 observations, has 300")
    assert figures["latency_ms_p99_9"] == Missing("needs 10,000 observations, has 300")


def test_nothing_observed_is_missing_and_never_zero() -> None:
    empty = measured(one_call(open_load(requests=30), experiment={"warmup": {"time_s": 1e6}}))
    assert (empty.dropped, empty.note) == (30, "the warm-up leaves no request")
    assert len(empty.latency_ns) == 0
    for name in ("latency_ms_mean", "latency_ms_p50", "latency_ms_max", "waiting_ms_mean"):
        assert empty.figures[name] == Missing("no observations")
        assert math.isnan(float(empty.figures[name]))
    assert empty.figures["requests"] == 0


def test_a_period_without_arrivals_is_missing(tmp_path: Path) -> None:
    steps = [{"at_s": 0, "rate_per_s": 20}, {"at_s": 10, "rate_per_s": 0}]
    idle = measured(from_file(tmp_path, {"kind": "steps", "steps": steps, "end_s": 20})).periods[1]
    assert idle.figures["requests"] == 0
    assert idle.figures["latency_ms_mean"] == Missing("no observations")


def test_objectives_count_the_share_within_their_bounds() -> None:
    slo = {"rules": ["latency_ms_p95 <= 100", "latency_ms_mean <= 199.9", "utilisation <= 0.5"]}
    figures = measured(one_call(TWO_STEPS, slo=slo)).figures
    shares = {name: value for name, value in figures.items() if name.startswith("share_within")}
    assert shares == {"share_within_100_ms": 11 / 21, "share_within_199.9_ms": 11 / 21}


def test_a_count_or_a_time_is_left_out_by_arrival() -> None:
    scenario = one_call(TWO_STEPS)
    out = simulate_once(scenario, scenario.plans[0], 0).out
    for warmup, dropped in (
        ("none", 0),
        ({"count": 3}, 3),
        ({"count": 500}, 21),
        ({"time_s": 0.3}, 3),
        ({"time_s": 0.3001}, 4),
    ):
        changed = one_call(TWO_STEPS, experiment={"warmup": warmup})
        assert warm_up(changed, out)[0] == dropped, warmup


def test_the_warm_up_leaves_out_whole_requests_and_little_counts_them() -> None:
    all_kept, some = (
        measured(one_call(closed_load(3, 60), 100, experiment={"warmup": warmup}))
        for warmup in ("none", {"count": 2})
    )
    assert all_kept.figures["latency_ms_mean"] == (100 + 200 + 300 * 58) / 60
    assert some.figures["latency_ms_mean"] == 300
    assert some.figures["active_requests_mean"] == all_kept.figures["active_requests_mean"]


def test_a_run_too_short_for_its_start_says_so() -> None:
    # Every request waits longer than the one before: no deletion point is in sight.
    growing = one_call(
        open_load(rate_per_s=20, requests=100, arrivals="fixed"), 100, experiment={"warmup": "auto"}
    )
    short = measured(growing)
    assert (short.dropped, short.note) == (50, "the run is too short to tell where its start-up ends")


RANDOM = lognormal(160)


@pytest.mark.parametrize(
    ("load", "duration", "rule"),
    [
        (closed_load(), 160, "none"),
        (open_load(arrivals="fixed"), 160, "none"),
        (closed_load(), RANDOM, "auto"),
        (closed_load(think_time_ms=exponential(9)), 160, "auto"),
        (open_load(), 160, "auto"),
        (open_load(), RANDOM, "auto"),
        (TWO_STEPS, RANDOM, "none"),
    ],
)
def test_the_warm_up_that_a_load_gets(load: dict[str, Any], duration: Any, rule: str) -> None:
    assert warmup_rule(one_call(load, duration)) == rule


@pytest.mark.parametrize("stated", ["none", "auto"])
def test_a_stated_warm_up_stays(stated: str) -> None:
    assert warmup_rule(one_call(closed_load(), RANDOM, experiment={"warmup": stated})) == stated
    cut = one_call(closed_load(), experiment={"warmup": {"count": 5}})
    assert warmup_rule(cut) == WarmupCut(count=5)


@pytest.mark.parametrize("name", ["profile", "trace"])
def test_a_profile_and_a_trace_leave_nothing_out(name: str) -> None:
    scenario = load_scenario(ROOT / "scenarios" / f"{name}.yaml")
    assert scenario.experiment.warmup is None
    assert warmup_rule(scenario) == "none"


def test_rates_are_of_the_time_from_the_end_of_the_warm_up_to_the_last_arrival() -> None:
    # Arrivals at 50, 100, .. 250 ms, service 100 ms on one slot, ends at 150, 250, .. 550 ms.
    load = open_load(rate_per_s=20, requests=5, arrivals="fixed")
    names = ("utilisation", "throughput_per_s", "active_requests_mean")
    figures = measured(one_call(load, 100)).figures
    # From 50 to 250 ms: two ends, the one at 250 ms among them; 1, 2, 2 and 3 active in turn.
    assert chosen(figures, *names) == [1.0, 2 / 0.2, (1 + 2 + 2 + 3) / 4]
    late = measured(one_call(load, 100, experiment={"warmup": {"count": 2}})).figures
    # From 150 ms on: the end at 150 ms is no longer within, those active then are.
    assert chosen(late, *names) == [1.0, 1 / 0.1, (2 + 3) / 2]


def test_requests_that_arrive_at_one_instant_are_measured_until_the_last_one_ends() -> None:
    figures = measured(one_call(closed_load(4, 4), 100)).figures
    names = ("utilisation", "throughput_per_s", "active_requests_mean")
    assert chosen(figures, *names) == [1.0, 10, (4 + 3 + 2 + 1) / 4]


def test_a_request_that_is_not_delivered_is_later_than_any_other() -> None:
    short = load_scenario(
        ROOT / "scenarios/faulty.yaml",
        ["load.requests=3000", "plans=[parallel]", "experiment.warmup=none", "workflow.retry.attempts=2"],
    )
    run = simulate_once(short, short.plans[0], 0)
    figures, out = measure(short, run).figures, run.out
    lost = int((~out.delivered).sum())
    assert 30 < lost < 300
    reason = f"{lost:,} of 3,000 requests were not delivered"
    for name in ("latency_ms_mean", "latency_ms_max", "latency_ms_p99_9"):
        assert figures[name] == Missing(reason, undelivered=True)
    ordered_ms = sorted((out.latency_ns[out.delivered] / 1e6).tolist())
    assert figures["latency_ms_p50"] == ordered_ms[1499]
    assert figures["latency_ms_p90"] == ordered_ms[2699]
    delivered = len(ordered_ms)
    assert figures["delivered_latency_ms_p50"] == ordered_ms[math.ceil(delivered / 2) - 1]
    assert figures["delivered_latency_ms_max"] == ordered_ms[-1]
    assert figures["delivered_latency_ms_mean"] == pytest.approx(sum(ordered_ms) / delivered)


def test_where_all_are_delivered_both_latencies_are_the_same() -> None:
    figures = measured(one_call(open_load(requests=300), exponential(20))).figures
    for level in ("mean", "p50", "p90", "p95", "p99", "p99_9", "max"):
        assert figures[f"delivered_latency_ms_{level}"] == figures[f"latency_ms_{level}"]


def test_attainment_is_of_issued_requests() -> None:
    rules = ["latency_ms_p95 <= 500"]
    short = load_scenario(
        ROOT / "scenarios/faulty.yaml",
        [
            "load.requests=1000",
            "plans=[parallel]",
            "workflow.retry.attempts=2",
            f"slo.rules={rules}",
            "experiment.warmup=none",
        ],
    )
    run = simulate_once(short, short.plans[0], 0)
    within = int((run.out.delivered & (run.out.latency_ns <= 500_000_000)).sum())
    assert not run.out.delivered.all()
    assert measure(short, run).figures["share_within_500_ms"] == within / 1000
