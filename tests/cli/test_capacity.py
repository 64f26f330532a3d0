"""`slotsim capacity`: what it prints and ends with."""

from pathlib import Path

import pytest

from tests.cli.test_cli import PEAK, ROOT, json_of, lines, slotsim

LIMITS, MIX = "scenarios/limits.yaml", "scenarios/mix-peak.yaml"


@pytest.fixture(autouse=True)
def _at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_it_shows_what_binds_and_what_to_buy() -> None:
    assert slotsim("capacity", LIMITS, "--plan", "serial", "--set", "load.rate_per_s=14") == (
        "limits (scenarios/limits.yaml): by arithmetic, nothing simulated\n"
        "\n"
        "serial: binding: tpm, loaded to 131.6 %; no steady state\n"
        "  14 requests/s; largest sustainable rate 10.6 requests/s\n"
        "constraint    offered   capacity        unit  load, %  load, | is 100 %\n"
        "slots            5.88         20       slots     29.4  ######              |\n"
        "rpm             1,680      1,500   calls/min    112.0  ####################|##\n"
        "tpm         5,527,200  4,200,000  tokens/min    131.6  ####################|###### <- binds\n"
        "  to buy: rpm 1,867 for a load of 90 %\n"
        "  to buy: tpm 6,141,334 for a load of 90 %\n"
        "\n"
        "assumed: tokens count as they are settled at the end of a call, not as they are reserved\n"
    )


def test_it_shows_the_knee_of_users_under_each_plan() -> None:
    shown = lines("capacity", PEAK)
    assert "serial: binding: slots, loaded to 100.0 %; users wait" in shown
    assert "20 users; knee at 14.0 users (295 ms unloaded); at most 47.6 requests/s" in shown
    assert "adaptive: binding: slots, loaded to 100.0 %; users wait (all in parallel: 142.4 %)" in shown
    assert shown[-1] == (
        "assumed: adaptive is looked at as it decides when requests pile up, or with all users active"
        " (adaptive)"
    )


def test_it_shows_each_step_of_the_slots_and_the_last_one() -> None:
    sets = (
        "--set",
        "provider.concurrency=40",
        "--set",
        "provider.concurrency_steps=[{at_s: 60, concurrency: 16}]",
    )
    load = ("--set", "load={kind: open, rate_per_s: 45, duration_s: 120}", "--plan", "parallel")
    shown = lines("capacity", "scenarios/gains.yaml", *sets, *load)
    assert shown[2] == "parallel: binding: slots, loaded to 138.2 %; no steady state"
    assert "slots from 0 s: 40, loaded to 96.8 %" in shown
    assert "slots from 60 s: the last step, 16, loaded to 241.9 %" in shown


def test_it_tells_periods_providers_and_workloads_apart(tmp_path: Path) -> None:
    assert "parallel, peak, 60 to 120 s: binding: slots, loaded to 142.4 %; users wait" in lines(
        "capacity", "scenarios/day.yaml"
    )
    assert "chain-b: 7 requests/s; largest sustainable rate 7.32 requests/s" in lines("capacity", MIX)
    file = tmp_path / "two.yaml"
    file.write_text(
        "{schema_version: 1, name: two, providers: {small: {concurrency: 5}, large: {concurrency: 200}},\n"
        "workflow: {name: one, branches: [{id: a, duration_ms: 1000, provider: small},\n"
        "{id: b, duration_ms: 10, provider: large}]},\n"
        "load: {kind: open, rate_per_s: 6.5, requests: 100}, plans: [serial]}"
    )
    shown = lines("capacity", str(file))
    assert shown[2] == "serial: binding: slots of small, loaded to 130.0 %; no steady state"
    assert shown[-1] == "to buy: slots of small 8 for a load of 90 %"


def test_a_load_beyond_the_bar_is_cut() -> None:
    shown = slotsim("capacity", PEAK, "--plan", "serial", "--set", "load.active_requests=500")
    assert "2,500.0  ####################|##########> <- binds\n" in shown


def test_a_period_without_requests_asks_for_nothing() -> None:
    steps = "load={kind: steps, steps: [{at_s: 0, rate_per_s: 5}, {at_s: 9, rate_per_s: 0}], end_s: 20}"
    shown = lines("capacity", PEAK, "--plan", "serial", "--set", steps)
    assert "serial, step 2, 9 to 20 s: nothing is asked for" in shown


def test_json_has_the_target() -> None:
    found = json_of("capacity", LIMITS, "--plan", "parallel", "--target-load", "0.5")["capacity"]
    assert (found["scenario"], found["scenario_file"], found["target_load"]) == ("limits", LIMITS, 0.5)
    assert list(found["plans"]) == ["parallel"]
    (period,) = found["plans"]["parallel"]["periods"]
    assert [one["needed"] for one in period["constraints"]] == [9, 2400, 7_896_000]
    assert period["binding"] == {"provider": "provider", "name": "tpm"}


@pytest.mark.parametrize("target", ["0", "1.01", "nan"])
def test_a_target_that_is_none_is_refused(target: str) -> None:
    shown = slotsim("capacity", PEAK, "--target-load", target, code=2)
    assert shown == f"--target-load must be above 0 and at most 1 (got {float(target)})\n"


def test_a_bad_file_is_told_with_its_line() -> None:
    shown = slotsim("capacity", PEAK, "--set", "load.active_requests=0", code=2)
    assert "load.active_requests must be >= 1 (got 0)" in shown
