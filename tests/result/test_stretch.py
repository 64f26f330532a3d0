from pathlib import Path
from typing import Any

import pytest

from sim.result.stretch import Stretch, arrivals_s, rate_per_s, stretches, users_in
from sim.scenario import Scenario, load_scenario
from tests.small_scenarios import closed_load, from_file, open_load, sample

USERS = {
    "kind": "steps",
    "steps": [{"at_s": 0, "active_requests": 10, "name": "off-peak"}, {"at_s": 30, "active_requests": 20}],
    "end_s": 60,
}
CONSTANT = {
    "kind": "profile",
    "points": [{"at_s": 0, "rate_per_s": 1}, {"at_s": 98, "rate_per_s": 9}],
    "end_s": 100,
}


def profile(folder: Path, **more: Any) -> Scenario:
    return from_file(folder, CONSTANT | more)


@pytest.mark.parametrize(
    ("load", "to_s"),
    [(open_load(4, 200), 50), ({"kind": "open", "rate_per_s": 4, "duration_s": 9}, 9), (closed_load(), None)],
)
def test_a_load_that_does_not_change_is_one_stretch(load: dict[str, Any], to_s: float | None) -> None:
    assert stretches(sample(load)) == (Stretch(None, 0, to_s),)


def test_users_in_steps_are_counted_step_by_step(tmp_path: Path) -> None:
    scenario = from_file(tmp_path, USERS)
    found = stretches(scenario)
    assert found == (Stretch("off-peak", 0, 30), Stretch("step 2", 30, 60))
    assert [users_in(scenario, one) for one in found] == [10, 20]
    assert users_in(scenario, Stretch(None, 0, 60)) == 15
    assert rate_per_s(scenario, found[0]) is None


def test_a_profile_has_its_periods(tmp_path: Path) -> None:
    periods = [{"name": "quiet", "from_s": 0, "to_s": 98}, {"name": "burst", "from_s": 98, "to_s": 100}]
    scenario = profile(tmp_path, periods=periods)
    found = stretches(scenario)
    assert found == (Stretch("quiet", 0, 98), Stretch("burst", 98, 100))
    assert [rate_per_s(scenario, one) for one in found] == pytest.approx([1, 9])


def test_a_profile_without_periods_is_its_whole_and_its_busiest_piece(tmp_path: Path) -> None:
    scenario = profile(tmp_path)
    found = stretches(scenario)
    assert found == (Stretch("whole", 0, 100), Stretch("busiest piece", 98, 100))
    assert [rate_per_s(scenario, one) for one in found] == pytest.approx([1.16, 9])


def test_a_straight_profile_is_averaged_over_a_period(tmp_path: Path) -> None:
    periods = [{"name": "first half", "from_s": 0, "to_s": 49}]
    (period,) = stretches(scenario := profile(tmp_path, interpolation="linear", periods=periods))
    assert rate_per_s(scenario, period) == pytest.approx(3)


def test_the_rate_of_a_trace_is_its_requests_over_its_span(tmp_path: Path) -> None:
    load = {
        "kind": "trace",
        "file": "rows.csv",
        "format": "csv",
        "columns": {"timestamp": "at"},
        "time_unit": "s",
    }
    scenario = from_file(tmp_path, load, rows="at\n5\n6\n15\n")
    assert arrivals_s(scenario) == 10
    assert rate_per_s(scenario, stretches(scenario)[0]) == 0.3
    lonely = from_file(tmp_path, load, rows="at\n5\n")
    assert rate_per_s(lonely, stretches(lonely)[0]) == 0


def test_the_span_of_several_workloads_is_the_longest() -> None:
    scenario = load_scenario("scenarios/mix-peak.yaml", ["workloads[1].load.duration_s=50"])
    assert stretches(scenario) == (Stretch(None, 0, 120),)
