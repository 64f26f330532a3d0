"""Labels of runs and of periods, from what was simulated."""

import math
from pathlib import Path
from typing import Any

import pytest

from sim.result.experiment import simulate
from sim.result.label import label_run, mean_work_s, offered_load
from sim.run.measure import Measured, measure
from sim.run.simulation import simulate_once
from sim.scenario import Scenario
from sim.statistics.stability import Stability
from tests.small_scenarios import closed_load, exponential, from_file, one_call, open_load, sample

UNIT_MS = 100


def measured(scenario: Scenario, plan: int = 0) -> Measured:
    return measure(scenario, simulate_once(scenario, scenario.plans[plan], 0))


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
        "deterministic", "arrivals and service times are fixed; the offered load is 80.0 % of the slots"
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
    assert mean_work_s(scenario, [serial.figures]) == pytest.approx(0.420)
    assert mean_work_s(scenario, [parallel.figures]) == pytest.approx(0.455)
    assert mean_work_s(scenario, [serial.figures, parallel.figures]) == pytest.approx(0.4375)
    assert offered_load(scenario, [parallel]) == pytest.approx(4.55)


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
    assert offered_load(scenario, [one]) == one.work_ns / 3_990_000_000
    assert label_run(scenario, [one]).label == "stable"
    crowded = trace_of(tmp_path, 4, 2_000)
    assert label_run(crowded, [measured(crowded)]).label == "overloaded"


def test_a_single_request_offers_nothing_over_time(tmp_path: Path) -> None:
    scenario = trace_of(tmp_path, 10, 1)
    assert math.isnan(offered_load(scenario, [measured(scenario)]))
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
    assert plan.stability == Stability("overloaded", "peak: the offered load of 23.00 reaches the 20 slots")
    # The queue of the peak spills over into the recovery.
    before, after = (plan.periods[1].estimates[f"active_at_{end}"].mean for end in ("start", "end"))
    assert after > 20 > before
    assert plan.periods[2].estimates["active_at_start"].mean == after
