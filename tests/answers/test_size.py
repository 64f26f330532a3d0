"""The smallest and the largest value that keep an SLO, held against the sample's table and Erlang C."""

import math
from pathlib import Path
from typing import Any

import pytest

import sim
from sim.answers.size import Sizing, looks_of
from sim.errors import ArgumentError, InputError
from sim.statistics.theory import mmc_wait
from tests.small_scenarios import ROOT, from_file, open_load

SLOTS, USERS = "provider.concurrency", "load.active_requests"


def sample(*overrides: str, requests: int = 300, warmup: int = 60) -> sim.Scenario:
    stated = [f"load.requests={requests}", f"experiment.warmup={{count: {warmup}}}", *overrides]
    return sim.load_scenario(ROOT / "scenarios/peak.yaml", stated)


def sized(scenario: sim.Scenario, vary: str, values: Any, *rules: str, **more: Any) -> Sizing:
    return sim.size(scenario, vary, values, slo=rules, workers=1, **more)


def test_slots_for_a_latency_under_fair_share() -> None:
    found = sized(sample(), SLOTS, range(1, 101), "latency_ms_max <= 300", plan="parallel")
    assert found.answer == 40
    assert found.sentence == "40 is the smallest provider.concurrency that meets latency_ms_max <= 300"
    verdicts = {point.value: point.verdict for point in found.points}
    assert (verdicts[39], verdicts[40]) == ("missed", "met")
    assert (found.by_theory, found.anomalies, found.safe_from) == (28, (), 40)
    assert found.runs == len(found.points) + 1


def test_users_that_the_quota_carries() -> None:
    found = sized(sample(), USERS, range(1, 61), "latency_ms_max <= 300", plan="parallel", largest=True)
    assert found.answer == 10
    assert found.sentence == "10 is the largest load.active_requests that meets latency_ms_max <= 300"
    assert found.by_theory == 14


def test_slots_for_serial() -> None:
    found = sized(sample(), SLOTS, range(1, 101), "latency_ms_max <= 420", plan="serial")
    assert (found.answer, found.by_theory) == (20, 20)


def test_the_recommended_plan_is_held_where_none_is_named() -> None:
    found = sized(sample(requests=120, warmup=40), SLOTS, (18, 20, 40), "latency_ms_max <= 420")
    assert [(point.value, point.rules[0].plan, point.verdict) for point in found.points] == [
        (18, "serial", "missed"),
        (20, "serial", "met"),
        (40, "parallel", "met"),
    ]


def test_an_anomaly_of_list_scheduling_is_found() -> None:
    max_min = sample("provider.allocation=max_min", requests=1600, warmup=160)
    found = sized(max_min, SLOTS, range(25, 34), "latency_ms_mean <= 300", plan="parallel")
    assert found.answer == 29
    (anomaly,) = found.anomalies
    assert (anomaly.value, anomaly.worse_value) == (29, 30)
    assert anomaly.worse_figure == pytest.approx(303.3, abs=0.2)
    assert found.safe_from == 31
    assert found.next_slot is not None
    assert found.next_slot.saved_ms < 0


def test_an_anomaly_shows_even_where_the_verdict_does_not_change() -> None:
    max_min = sample("provider.allocation=max_min", requests=800, warmup=80)
    found = sized(max_min, SLOTS, range(28, 32), "latency_ms_mean <= 310", plan="parallel")
    assert found.answer == 28
    assert [(one.value, one.worse_value) for one in found.anomalies] == [(29, 30)]
    assert found.anomalies[0].words.startswith("anomaly: latency_ms_mean is 29")


def test_a_value_that_bisection_steps_over_is_found_among_the_neighbours() -> None:
    # The grid meets 30 (missed) and 34 (met), and bisection between them gives 31; 29 is on the other side.
    max_min = sample("provider.allocation=max_min", requests=800, warmup=80)
    found = sized(max_min, SLOTS, range(14, 47), "latency_ms_mean <= 300", plan="parallel")
    assert found.answer == 29


def test_none_in_the_range() -> None:
    found = sized(sample(), SLOTS, range(1, 31), "latency_ms_max <= 300", plan="parallel")
    assert (found.status, found.answer, found.next_slot) == ("none", None, None)
    looked = len(found.points)
    assert found.sentence == (
        f"none in the range 1 to 30 of provider.concurrency meets latency_ms_max <= 300 "
        f"({looked} of 30 values simulated)"
    )


def test_cannot_decide(tmp_path: Path) -> None:
    load = open_load(rate_per_s=25, requests=300)
    scenario = from_file(tmp_path, load).replace({SLOTS: 4, "experiment.warmup": "none"})
    mean = sim.simulate(scenario, replications=40, workers=1).plans[0].estimates["waiting_ms_mean"].mean
    found = sized(scenario, SLOTS, (4,), f"waiting_ms_mean <= {mean}", most_replications=10)
    assert (found.status, found.in_doubt) == ("undecided", (4,))
    assert found.sentence == (
        f"cannot decide within 10 replications whether waiting_ms_mean <= {mean:.15g} holds at "
        "provider.concurrency 4"
    )
    assert found.points[0].replications == 10


def erlang(tmp_path: Path, rate: float, slots: int, requests: int, around: int) -> Sizing:
    below, above = (mmc_wait(rate / 1000, 100, count) for count in (slots, slots - 1))
    scenario = from_file(tmp_path, open_load(rate, requests))
    values = range(max(1, slots - around), slots + around + 1)
    return sized(scenario, SLOTS, values, f"waiting_ms_mean <= {math.sqrt(below * above)}")


@pytest.mark.parametrize(("rate", "slots"), [(12, 3), (60, 8)])
def test_slots_of_mmc(tmp_path: Path, rate: float, slots: int) -> None:
    found = erlang(tmp_path, rate, slots, 2000, 1)
    assert (found.answer, found.by_theory) == (slots, slots)
    kind, value = found.points[1].bounds[0] or ("", 0.0)
    assert kind == "exactly"
    assert value == pytest.approx(mmc_wait(rate / 1000, 100, slots))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "slots"),
    [(5, 2), (12, 3), (18, 3), (25, 4), (38, 6), (47, 6), (60, 8), (85, 11), (110, 13), (150, 17)],
)
def test_slots_of_mmc_at_ten_rates(tmp_path: Path, rate: float, slots: int) -> None:
    assert erlang(tmp_path, rate, slots, 8000, 6).answer == slots


def test_replications_are_added_near_the_boundary_only(tmp_path: Path) -> None:
    scenario = from_file(tmp_path, open_load(60, 400)).replace({"experiment.warmup": "none"})
    found = sized(scenario, SLOTS, (4, 7, 8, 12, 30), "waiting_ms_mean <= 30")
    spent = {point.value: point.replications for point in found.points}
    assert spent[4] == spent[30] == 5
    assert max(spent.values()) > 5


def test_several_rules_about_shares_and_periods() -> None:
    calm = "{at_s: 0, active_requests: 4, name: calm}"
    busy = "{at_s: 2, active_requests: 12, name: busy}"
    steps = f"load={{kind: steps, steps: [{calm}, {busy}], end_s: 4}}"
    scenario = sim.load_scenario(ROOT / "scenarios/peak.yaml", [steps])
    rules = ("busy:latency_ms_max <= 420", "calm:throughput_per_s >= 8", "succeeded_share >= 1")
    found = sized(scenario, SLOTS, range(8, 17), *rules, plan="serial")
    assert found.answer == 12
    # Four rounds of four users end within the first two seconds.
    assert found.points[0].rules[1].figure.mean == 8
    assert [one.verdict for one in found.points[0].rules] == ["missed", "met", "met"]


def test_the_price_of_a_slot_decides_whether_it_pays() -> None:
    # 39 slots give 455 ms and 40 give 295: the next slot saves 160 ms of each request.
    worth = 160 * 4 * 3600 * 20 / 0.455
    for price, pays in ((0.9 * worth, True), (1.2 * worth, False)):
        found = sized(
            sample(), SLOTS, (39,), "latency_ms_max <= 460", plan="parallel", slot_price_micros=price
        )
        next_slot = found.next_slot
        assert next_slot is not None
        assert (next_slot.slots, next_slot.pays) == (40, pays)
        assert next_slot.saved_ms == pytest.approx(160, abs=8)
        assert next_slot.worth_micros_per_hour == pytest.approx(worth, rel=0.08)


def test_workers_change_nothing() -> None:
    answers = [
        sim.size(sample(), SLOTS, range(15, 25), slo=["latency_ms_max <= 420"], plan="serial", workers=count)
        for count in (1, 2)
    ]
    assert answers[0].summary() == answers[1].summary()


def test_looks_double() -> None:
    assert looks_of(sample(), 160) == (5, 10, 20, 40, 80, 160)
    assert looks_of(sample("experiment.replications=30"), 50) == (30, 50)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"slo": []}, "slo must be given: the scenario has none (got None)"),
        ({"slo": ["nonsense"]}, "slo must be a rule such as 'latency_ms_p95 <= 400' (got 'nonsense')"),
        (
            {"slo": ["night:utilisation < 1"]},
            "slo must name a workload or a period; one of moderation.classify (got 'night:utilisation < 1')",
        ),
        (
            {"plan": "warm_first"},
            "plan must be one of the plans: serial, parallel, adaptive (got 'warm_first')",
        ),
        ({"values": []}, "values must have at least one value (got [])"),
        ({"most_replications": 4}, "most_replications must be >= 5 (got 4)"),
    ],
)
def test_what_is_refused(more: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"values": [20], "slo": ["latency_ms_max <= 1"], **more}
    with pytest.raises(ArgumentError) as caught:
        sim.size(sample(), SLOTS, **given)
    assert str(caught.value) == message


def test_a_value_that_the_scenario_cannot_have_is_refused() -> None:
    with pytest.raises(InputError, match=r"replace: provider.concurrency must be >= 1 \(got 0\)"):
        sized(sample(), SLOTS, (0, 20), "latency_ms_max <= 1")
