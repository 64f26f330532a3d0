"""Wide workflows: a thousand branches take what as many calls of narrow ones do, and a little more."""

import random
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

import pytest
from rich.table import Table

import sim
from sim.check.replay import slot_numbers
from sim.check.report import CheckReport
from sim.cli.curve import curve_levels
from sim.cli.show import checks_words
from sim.cli.show_checks import checks_parts
from sim.run.simulation import simulate_once
from tests.small_scenarios import Plain, closed_load, sample

KINDS = ("independent", "chain", "random")


def wide(branches: int, requests: int, kind: str, *, shared: bool = False) -> sim.Scenario:
    """Return five users of a wide workflow on 50 slots; `shared` with a limit that never binds."""
    rng = random.Random(1)
    listed: list[Plain] = []
    for place in range(branches):
        one: Plain = {"id": f"b{place}", "duration_ms": rng.randint(50, 300)}
        before = range(max(0, place - 50), place)
        if kind == "chain" and place:
            one["depends_on"] = [f"b{place - 1}"]
        elif kind == "random" and place:
            one["depends_on"] = [f"b{call}" for call in rng.sample(before, min(place, rng.randint(0, 3)))]
        listed.append({**one, "carries_shared_context": place < 3})
    provider: Plain = {"concurrency": 50, "limits": {"rpm": 10_000_000}} if shared else {"concurrency": 50}
    plans = ["serial", "parallel", "adaptive"]
    return sample(closed_load(5, requests), branches=listed, plans=plans, provider=provider)


def events(work: Callable[[], object]) -> int:
    """Return how many functions are called by some work: what it takes on every machine alike."""
    count = 0

    def counted(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.fixture
def _checks_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every run be walked by the checks that are not compiled."""
    monkeypatch.setattr("sim.check.run.check_of", lambda *_: "readable")


@pytest.mark.usefixtures("_checks_to_read")
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_as_many_calls_take_as_long_in_wide_requests(kind: str, shared: bool) -> None:
    def run(branches: int, requests: int) -> int:
        scenario = wide(branches, requests, kind, shared=shared)
        return sum(events(partial(simulate_once, scenario, plan, 0)) for plan in scenario.plans)

    narrow, broad = run(25, 40), run(250, 4)
    assert broad < 2.5 * narrow


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_branches_are_simulated_by_both_engines_alike(kind: str, shared: bool) -> None:
    scenario = wide(1000, 6, kind, shared=shared)
    results = [sim.simulate(scenario, engine=engine, workers=1) for engine in ("simpy", "compiled")]
    first, second = (result.summary() for result in results)
    assert [one.pop("provenance")["engine"] for one in (first, second)] == ["simpy", "compiled"]
    runs_by = [
        [each.pop("run_by") for each in (one["checks"], *(plan["checks"] for plan in one["plans"].values()))]
        for one in (first, second)
    ]
    assert runs_by == [["readable"] * 4, ["compiled"] * 4]
    assert first == second
    replays, left_out = 3 * 13, 3 * 987
    checks = results[0].checks
    assert (checks.requests, checks.calls_conserved) == (18, 18_000)
    assert (checks.isolated_replays, checks.slot_numbers_left_out) == (replays, left_out)
    assert first["checks"]["slot_numbers_left_out"] == left_out
    assert checks_words(checks).endswith(
        "; 39 of 3,000 isolated replays, at a spread of slot numbers; Little's law exact; "
        "by the readable check"
    )
    (table,) = checks_parts([(scenario, results[0])])
    assert isinstance(table, Table)
    assert list(table.columns[7].cells) == ["13 of 1,000"] * 3


def test_a_request_is_replayed_at_every_number_of_slots_or_at_a_spread_of_them() -> None:
    assert list(slot_numbers(1)) == [1]
    assert list(slot_numbers(64)) == list(range(1, 65))
    assert list(slot_numbers(65)) == [1, 2, 3, 4, 8, 16, 32, 64, 65]
    assert list(slot_numbers(1000)) == [1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 999, 1000]


def test_counts_of_replays_are_as_before_where_all_are_made() -> None:
    assert CheckReport(isolated_replays=6).replays_words == "6"
    assert "slot_numbers_left_out" not in CheckReport(isolated_replays=6).summary()


def test_a_report_simulates_no_curve_that_takes_longer_than_its_scenario() -> None:
    assert curve_levels([wide(1000, 20, "independent")]) is None
    assert curve_levels([wide(4, 20, "independent")]) is not None


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_a_chain_of_a_thousand_branches_can_be_lost(engine: str) -> None:
    failing: list[Plain] = [
        {
            "id": f"b{place}",
            "duration_ms": 5,
            "optional": True,
            "depends_on": [f"b{place - 1}"] if place else [],
        }
        for place in range(1000)
    ]
    failing[0]["failures"] = {"server_error": 1.0}
    branches = [*failing[:999], {"id": "alone", "duration_ms": 20}]
    result = sim.simulate(
        sample(closed_load(2, 4), branches=branches, plans=["parallel"]), engine=engine, workers=1
    )
    (outcome,) = result.plans
    assert outcome.estimates["degraded_share"].mean == 1
    assert result.requests["latency_ms"].tolist() == [55.0] * 4
