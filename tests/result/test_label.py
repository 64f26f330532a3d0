"""Labels of runs and of periods, from what was simulated."""

from pathlib import Path
from typing import Any

import pytest

from sim.engine import select_engine
from sim.result.capacity import capacity_of
from sim.result.experiment import simulate
from sim.result.label import label_run as label_of_run
from sim.run.measure import Measured, measure
from sim.run.simulation import simulate_once
from sim.scenario import Scenario, load_scenario
from sim.statistics.stability import Stability
from tests.small_scenarios import closed_load, exponential, from_file, one_call, open_load, sample

UNIT_MS = 100


def measured(scenario: Scenario, plan: int = 0) -> Measured:
    return measure(scenario, simulate_once(scenario, scenario.plans[plan], 0))


def label_run(scenario: Scenario, measured: list[Measured], plan: int = 0) -> Stability:
    return label_of_run(scenario, capacity_of(scenario, scenario.plans[plan]), measured)


@pytest.mark.parametrize(
    ("share", "label"),
    [(0.5, "stable"), (0.92, "near saturation"), (1.0, "overloaded"), (1.05, "overloaded")],
)
def test_an_open_load_is_labelled_by_its_offered_load(share: float, label: str) -> None:
    scenario = one_call(open_load(rate_per_s=share * 20 * 10, requests=600), exponential(UNIT_MS), slots=20)
    assert label_run(scenario, [measured(scenario)]).label == label


@pytest.mark.parametrize(("share", "label"), [(0.5, "stable"), (1.05, "overloaded")])
def test_a_result_says_it_of_every_plan_and_in_its_summary(share: float, label: str) -> None:
    scenario = sample(
        open_load(rate_per_s=share * 20 / 0.42, requests=400), plans=["serial", "parallel", "adaptive"]
    )
    result = simulate(scenario, replications=2)
    assert [plan.stability.label for plan in result.plans] == [label] * 3
    plans = result.summary()["plans"]
    assert [plans[name]["stability"]["label"] for name in ("serial", "parallel", "adaptive")] == [label] * 3


def test_overload_beats_deterministic() -> None:
    fixed: dict[str, Any] = {"arrivals": "fixed", "requests": 300}
    over = one_call(open_load(rate_per_s=11, **fixed), UNIT_MS)
    assert label_run(over, [measured(over)]).label == "overloaded"
    under = one_call(open_load(rate_per_s=8, **fixed), UNIT_MS)
    assert label_run(under, [measured(under)]) == Stability(
        "deterministic", "arrivals and service times are fixed; slots loaded to 80.0 %", "slots"
    )


@pytest.mark.parametrize(
    ("users", "duration", "label"),
    [
        (5, exponential(UNIT_MS), "stable"),
        (40, exponential(UNIT_MS), "near saturation"),
        (40, UNIT_MS, "deterministic"),
    ],
)
def test_users_limit_themselves(users: int, duration: Any, label: str) -> None:
    scenario = one_call(closed_load(users, 2_000), duration, slots=20)
    assert label_run(scenario, [measured(scenario)]).label == label


def test_a_join_that_holds_a_slot_is_work_of_parallel_requests() -> None:
    workflow = {"join_holds_slot": True, "join_overhead_ms": 35}
    scenario = sample(open_load(rate_per_s=10, requests=50), workflow=workflow)
    serial, parallel = (measured(scenario, plan) for plan in (0, 1))
    assert label_run(scenario, [serial], 0).reason.startswith("slots loaded to 21.0 % and")
    assert label_run(scenario, [parallel], 1).reason.startswith("slots loaded to 22.8 % and")


def trace_of(folder: Path, gap_ms: int, rows: int) -> Scenario:
    lines = "".join(f"{number * gap_ms}\n" for number in range(rows))
    load = {
        "kind": "trace",
        "file": "trace.csv",
        "format": "csv",
        "columns": {"timestamp": "at"},
        "time_unit": "ms",
    }
    return from_file(folder, load, trace=f"at\n{lines}")


def test_a_trace_is_offered_its_work_over_the_time_of_its_arrivals(tmp_path: Path) -> None:
    scenario = trace_of(tmp_path, 10, 400)
    one = measured(scenario)
    assert label_run(scenario, [one]).label == "stable"
    crowded = trace_of(tmp_path, 4, 2_000)
    assert label_run(crowded, [measured(crowded)]).label == "overloaded"


def test_a_single_request_offers_nothing_over_time(tmp_path: Path) -> None:
    scenario = trace_of(tmp_path, 10, 1)
    assert label_run(scenario, [measured(scenario)]).label == "stable"


def test_a_changing_load_is_as_steady_as_its_worst_period(tmp_path: Path) -> None:
    steps = [
        {"at_s": 0, "rate_per_s": 100, "name": "off-peak"},
        {"at_s": 10, "rate_per_s": 230, "name": "peak"},
        {"at_s": 20, "rate_per_s": 100, "name": "recovery"},
    ]
    scenario = from_file(tmp_path, {"kind": "steps", "steps": steps, "end_s": 40})
    (plan,) = simulate(scenario, replications=2).plans
    assert [period.stability.label for period in plan.periods] == ["stable", "overloaded", "stable"]
    assert plan.stability == Stability(
        "overloaded", "peak: slots loaded to 115.0 %, 23 of 20 slots", "slots", is_finite=True
    )
    # The queue of the peak spills over into the recovery.
    before, after = (plan.periods[1].estimates[f"active_at_{end}"].mean for end in ("start", "end"))
    assert after > 20 > before
    assert plan.periods[2].estimates["active_at_start"].mean == after


def served(load: dict[str, Any], duration: Any, **provider: Any) -> Scenario:
    """Return one call a request, under a provider of its own."""
    branches = [{"id": "call", "duration_ms": duration}]
    return Scenario.model_validate(
        {
            "schema_version": 1,
            "name": "small",
            "provider": {"allocation": "fifo", **provider},
            "workflow": {"name": "one", "branches": branches},
            "load": load,
            "plans": ["serial"],
        }
    )


def limited(rate_per_s: float, requests: int = 300, **limits: Any) -> Scenario:
    load = open_load(rate_per_s=rate_per_s, requests=requests)
    return served(load, 1000, concurrency=200, limits={"rpm": 600, **limits})


def test_a_limit_is_named_where_slots_are_idle() -> None:
    # The buckets start full and the run is over before they are empty: nobody waits.
    scenario = limited(11)
    found = label_run(scenario, [measured(scenario)])
    assert found == Stability("overloaded", "rpm loaded to 110.0 %, 660 of 600 calls/min", "rpm")
    scenario = limited(9.5)
    assert label_run(scenario, [measured(scenario)]).label == "near saturation"


@pytest.mark.parametrize("on_limit", ["queue", "reject"])
@pytest.mark.parametrize("share", [0.90, 0.97, 1.0, 1.03, 1.10])
def test_labels_around_a_limit(share: float, on_limit: str) -> None:
    scenario = limited(10 * share, on_limit=on_limit)
    label = label_run(scenario, [measured(scenario)]).label
    assert label == ("overloaded" if share >= 1 else "near saturation")


def test_slots_of_providers_are_not_added_up() -> None:
    branches = [
        {"id": "few", "duration_ms": 100, "provider": "small"},
        {"id": "many", "duration_ms": 100, "provider": "large"},
    ]
    providers = {"small": {"concurrency": 5}, "large": {"concurrency": 200}}
    load = {"kind": "open", "rate_per_s": 65, "requests": 400}
    workflow = {"name": "two", "branches": branches}
    scenario = Scenario.model_validate(
        {"schema_version": 1, "name": "two", "providers": providers, "workflow": workflow, "load": load}
    )
    found = simulate(scenario, replications=1)
    assert {plan.stability for plan in found.plans} == {
        Stability("overloaded", "slots of small loaded to 130.0 %, 6.5 of 5 slots", "slots of small")
    }
    assert found.decision.decision == "overloaded"
    assert found.decision.reason == (
        "overloaded: no steady state, so no verdict: slots of small loaded to 130.0 %, 6.5 of 5 slots; "
        "at most 50 requests/s can be sustained"
    )


@pytest.mark.parametrize(
    ("before", "after", "label"), [(40, 16, "overloaded"), (10, 20, "near saturation"), (10, 40, "stable")]
)
def test_slots_that_change_have_a_steady_state_at_the_last_of_them(
    before: int, after: int, label: str
) -> None:
    # 18 erlang for 100 s.
    steps = [{"at_s": 5, "concurrency": after}]
    load = open_load(rate_per_s=180, requests=18_000)
    scenario = served(load, exponential(UNIT_MS), concurrency=before, concurrency_steps=steps)
    assert label_run(scenario, [measured(scenario)]).label == label


def test_a_short_burst_is_the_label_of_its_period_and_refuses_no_objective(tmp_path: Path) -> None:
    steps = [
        {"at_s": 0, "rate_per_s": 20},
        {"at_s": 100, "rate_per_s": 400, "name": "burst"},
        {"at_s": 102, "rate_per_s": 20},
    ]
    scenario = from_file(tmp_path, {"kind": "steps", "steps": steps, "end_s": 300})
    scenario = scenario.replace(
        {"slo": {"plan": scenario.plans[0].label, "rules": ["latency_ms_mean <= 5000"]}}
    )
    found = simulate(scenario, replications=5)
    assert [one.stability.label for one in found.plans[0].periods] == ["stable", "overloaded", "stable"]
    assert found.plans[0].stability.is_finite
    assert [one.verdict for one in found.slo] == ["met"]
    assert found.decision.decision != "overloaded"


def test_users_held_by_a_limit_are_told_so() -> None:
    scenario = served(closed_load(50, 400), 1000, concurrency=200, limits={"rpm": 600})
    found = label_run(scenario, [measured(scenario)])
    assert (found.label, found.constraint) == ("limited by rpm", "rpm")
    assert found.reason.endswith("users wait for rpm, not for slots, 3,000 of 600 calls/min")


def test_retries_that_crowd_out_first_attempts_are_a_collapse() -> None:
    scenario = from_storm(9.9)
    found = simulate(scenario, replications=1, engine="simpy")
    assert found.plans[0].stability.label == "collapsed"
    assert found.plans[0].stability.reason.startswith(
        "first attempts alone would fit, loading it to 99.0 %, but "
    )
    assert found.summary()["plans"]["serial"]["stability"]["constraint"] == "rpm"
    calm = simulate(from_storm(5), replications=1, engine="simpy")
    assert calm.plans[0].stability.label == "stable"


def from_storm(rate_per_s: float) -> Scenario:
    changes = {"load.rate_per_s": rate_per_s, "load.duration_s": 120, "plans": ["serial"]}
    return load_scenario("scenarios/retry-storm.yaml").replace(changes)


def test_where_one_plan_alone_is_overloaded_the_decision_is_the_other() -> None:
    # Joins hold a slot: 0.42 s a request serial, 0.62 s parallel; 40 per second.
    workflow = {"join_holds_slot": True, "join_overhead_ms": 200}
    found = simulate(sample(open_load(rate_per_s=40, requests=300), workflow=workflow), replications=2)
    assert [plan.stability.label for plan in found.plans] == ["stable", "overloaded"]
    assert found.decision.decision == "keep-serial"
    assert found.decision.reason == (
        "keep-serial: parallel has no steady state: overloaded, slots loaded to 124.0 %, 24.8 of 20 slots; "
        "at most 32.26 requests/s can be sustained"
    )
    assert found.summary()["capacity"]["plans"].keys() == {"serial", "parallel"}


@pytest.mark.parametrize("share", [1.0, 1.03, 1.10])
def test_every_overload_is_labelled_however_short_the_run(share: float) -> None:
    scenario = one_call(open_load(rate_per_s=share * 200, requests=100), exponential(UNIT_MS), slots=20)
    assert label_run(scenario, [measured(scenario)]).label == "overloaded"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "queue", "reject", "two", "steps"])
def test_a_load_of_97_percent_is_seldom_called_overloaded(kind: str) -> None:
    false_alarms = 0
    for replication in range(100):
        scenario = at_97(kind)
        run = simulate_once(scenario, scenario.plans[0], replication, engine=select_engine("compiled", 0))
        false_alarms += label_run(scenario, [measure(scenario, run)]).has_no_steady_state
    assert false_alarms <= 2


def at_97(kind: str) -> Scenario:
    """Return 10,000 requests at 97 % of what binds."""
    if kind in {"queue", "reject"}:
        return limited(9.7, 10_000, on_limit=kind)
    if kind == "two":
        branches = [{"id": name, "duration_ms": exponential(UNIT_MS), "provider": name} for name in "ab"]
        return Scenario.model_validate(
            {
                "schema_version": 1,
                "name": "two",
                "providers": {"a": {"concurrency": 5}, "b": {"concurrency": 200}},
                "workflow": {"name": "two", "branches": branches},
                "load": {"kind": "open", "rate_per_s": 48.5, "requests": 10_000},
            }
        )
    steps = [{"at_s": 1, "concurrency": 20}] if kind == "steps" else []
    load = open_load(rate_per_s=194, requests=10_000)
    concurrency = 10 if steps else 20
    return served(load, exponential(UNIT_MS), concurrency=concurrency, concurrency_steps=steps)
