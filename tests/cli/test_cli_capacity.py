"""`slotsim size`, `sensitivity` and `policy`: what they print, write and end with."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import sim
from tests.cli.test_cli import DATA, OFF_PEAK, PEAK, ROOT, json_of, key_paths, lines, slotsim

SHORT = ("--set", "load.requests=300", "--warmup", "60")
SIZE = ("size", PEAK, *SHORT, "--vary", "provider.concurrency=36:44", "--slo", "latency_ms_max <= 300")
PARALLEL = ("--plan", "parallel")
STEPS = (
    "load.steps=[{at_s: 0, active_requests: 10, name: off-peak}, "
    "{at_s: 6.13, active_requests: 20, name: peak}]"
)
POLICY = ("policy", "scenarios/day.yaml", "--set", STEPS, "--set", "load.end_s=12")
COMMANDS = {
    "size": (*SIZE, *PARALLEL),
    "sensitivity": ("sensitivity", OFF_PEAK),
    "policy": POLICY,
}


@pytest.fixture(autouse=True)
def _at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_size_says_why_a_row_is_missed_though_its_figure_keeps_the_rule(tmp_path: Path) -> None:
    """Buckets start full, so that a short run beyond the limit is over before they are empty."""
    file = tmp_path / "rpm.yaml"
    file.write_text(
        """
schema_version: 1
name: rpm
provider: {concurrency: 200, allocation: fifo, limits: {rpm: 600}}
workflow: {name: one, branches: [{id: a, duration_ms: 1000}]}
load: {kind: open, rate_per_s: 11, requests: 500}
plans: [serial]
"""
    )
    vary = ("--vary", "load.rate_per_s=8:11", "--largest", "--slo", "latency_ms_p95 <= 2000")
    shown = lines("size", str(file), *vary)
    assert shown[1] == "rpm: 9 is the largest load.rate_per_s that meets latency_ms_p95 <= 2000"
    assert shown[-5:-2] == [
        "9 1,000.0 - 5 serial met <-",
        "10 1,000.0 - 5 serial missed overloaded: rpm loaded to 100.0 %, 600 of 600 calls/min",
        "11 1,000.0 - 5 serial missed overloaded: rpm loaded to 110.0 %, 660 of 600 calls/min",
    ]
    reasons = [one["reason"] for one in json_of("size", str(file), *vary)["curve"]]
    assert reasons[-1] == "overloaded: rpm loaded to 110.0 %, 660 of 600 calls/min"


def test_size_shows_the_answer_first_and_every_candidate() -> None:
    shown = lines(*SIZE, *PARALLEL)
    assert shown[0] == (
        "at provider.concurrency 40: binding: slots, loaded to 71.2 %; 20 users; "
        "knee at 28.1 users (295 ms unloaded); at most 67.8 requests/s"
    )
    assert shown[1] == "peak: 40 is the smallest provider.concurrency that meets latency_ms_max <= 300"
    assert shown[2].startswith("with 41 slots the mean latency saves 0.0 ms, worth 0 micros an hour")
    assert shown[3] == "bounds and theory rule out no value of the range"
    assert "39 455.0 at least 295.0 1 parallel missed" in shown
    assert "40 295.0 at least 295.0 1 parallel met <-" in shown
    assert shown[-1] == "10 runs of 9 of 9 values; deterministic"


def test_size_tells_an_anomaly() -> None:
    max_min = ("--set", "provider.allocation=max_min", "--set", "load.requests=800", "--warmup", "80")
    words = ("--vary", "provider.concurrency=28:32", "--slo", "latency_ms_mean <= 300", *PARALLEL)
    shown = lines("size", PEAK, *max_min, *words, "--slot-price", "1e6")
    assert shown[1] == "peak: 29 is the smallest provider.concurrency that meets latency_ms_mean <= 300"
    assert shown[2] == "anomaly: latency_ms_mean is 296.4 at 29 and 303.0 at 30"
    assert shown[3] == "every value simulated from 31 up meets the rules"
    assert shown[4].startswith("with 30 slots the mean latency loses 6.6 ms, worth")
    assert shown[4].endswith("the slot costs 1,000,000: it does not pay")


def test_size_finds_the_largest_load() -> None:
    words = ("--vary", "load.active_requests=8:12", "--slo", "latency_ms_max <= 300", "--largest")
    shown = lines("size", PEAK, *SHORT, *words, *PARALLEL)
    assert shown[1] == "peak: 10 is the largest load.active_requests that meets latency_ms_max <= 300"


def test_size_says_why_a_figure_is_missing() -> None:
    words = ("--vary", "provider.concurrency=40", "--slo", "latency_ms_p99 <= 300", *PARALLEL)
    shown = lines("size", PEAK, *SHORT, *words, code=1)
    assert shown[1].startswith("peak: cannot decide within 160 replications whether latency_ms_p99 <= 300")
    assert shown[2] == ("latency_ms_p99: missing in 1 of 1 replications: needs 1,000 observations, has 240")


def test_size_holds_a_rule_of_one_workload_and_one_of_all() -> None:
    short = [word for place in range(3) for word in ("--set", f"workloads[{place}].load.duration_s=4")]
    rules = (
        "--slo",
        "chain-a:latency_ms_p50 <= 430",
        "--slo",
        "utilisation <= 0.5",
        "--max-replications",
        "5",
    )
    words = ("--vary", "provider.concurrency=12,60", *rules, "--plan", "serial")
    shown = json_of("size", "scenarios/mix-peak.yaml", *short, *words)
    assert shown["answer"] == 60
    assert [[one["verdict"] for one in point["rules"]] for point in shown["curve"]] == [
        ["missed", "missed"],
        ["met", "met"],
    ]


def test_size_ends_with_1_where_no_value_does() -> None:
    words = ("--vary", "provider.concurrency=30:32", "--slo", "latency_ms_max <= 300", *PARALLEL)
    shown = lines("size", PEAK, *SHORT, *words, code=1)
    assert shown[1].startswith("peak: none in the range 30 to 32 of provider.concurrency meets")
    assert json_of("size", PEAK, *SHORT, *words, code=1)["status"] == "none"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--vary", "provider.concurrency"), "--vary must be KEY=VALUES or KEY,KEY=VALUE:VALUE"),
        (("--vary", "a,b=1:2"), "--vary must name one key (got 'a,b=1:2')"),
        (
            ("--vary", "provider.allocation=fifo,max_min"),
            "--vary must have values that are numbers (got 'provider.allocation=fifo,max_min')",
        ),
        (("--vary", "provider.concurrency=1:3"), "slo must be given: the scenario has none (got None)"),
        (
            ("--vary", "provider.concurrency=0:3", "--slo", "latency_ms_max <= 1"),
            "replace: provider.concurrency must be >= 1 (got 0)",
        ),
    ],
)
def test_size_refuses(words: tuple[str, ...], message: str) -> None:
    assert message in slotsim("size", PEAK, *words, code=2)


def test_sensitivity_shows_break_even_values() -> None:
    shown = lines("sensitivity", OFF_PEAK)
    assert shown[0] == "off-peak, 10 active requests: now merge: 125 ms saved at 2.944 micros per ms"
    for line in (
        "join overhead 35 ms 68 ms 160 ms arithmetic workflow.join_overhead_ms",
        "prefix reuse 60 % 41.67 % - arithmetic workflow.shared_context.prefix_reuse_ratio",
        "exchange rate 4 micros 2.944 micros - arithmetic criteria.max_micros_per_saved_ms",
        "active requests 10 11 11 arithmetic load.active_requests",
        "active requests 9 125.0 (2.94) merge 11 -35.0 (-) keep-serial",
    ):
        assert line in shown


def test_sensitivity_of_several_workloads_is_about_each() -> None:
    found = json_of("sensitivity", "scenarios/mix-off-peak.yaml", "--active", "5", "--no-simulation")
    assert len(found["workloads"]) == 3
    paths = {one["path"] for one in found["workloads"][1]["inputs"]}
    assert "workloads[1].workflow.join_overhead_ms" in paths


def test_policy_shows_the_rule_and_its_worth() -> None:
    shown = lines(*POLICY, "--slo", "latency_ms_p50 <= 420")
    assert shown[0].startswith("day: parallel up to 10 active requests, serial from 11: mean latency ")
    assert "0 to 24 11 and more serial 1 keep-serial: loses 35 ms" in shown
    assert any(line.startswith("off-peak 420.0 295.0 295.0 0.00 % (parallel)") for line in shown)
    assert "slo: latency_ms_p50 <= 420 on policy: met" in shown


def test_policy_writes_what_a_service_loads(tmp_path: Path) -> None:
    target = tmp_path / "policy.json"
    slotsim(*POLICY, "--write", str(target), "--slo", "latency_ms_max <= 1", code=1)
    policy = sim.load_policy(target)
    assert [sim.choose_plan(policy, active).plan for active in (10, 11)] == ["parallel", "serial"]


@pytest.mark.parametrize("name", COMMANDS)
def test_json_keys_stay(name: str) -> None:
    """Keys may be added to JSON, but never renamed or dropped."""
    known = (DATA / f"{name}.keys").read_text().split("\n")
    assert sorted({key for key in known if key} - key_paths(json_of(*COMMANDS[name]))) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_out_writes_summary_scenario_and_report(name: str, tmp_path: Path) -> None:
    folders = [tmp_path / place for place in ("first", "again")]
    for folder in folders:
        slotsim(*COMMANDS[name], "--out", str(folder))
    files = {str(path.relative_to(folders[0])) for path in folders[0].rglob("*") if path.is_file()}
    more: dict[str, set[str]] = {"size": {"curve.csv"}, "policy": {"policy.json"}}
    assert files >= {"summary.json", "scenario.yaml", "report.html", "report.md", *more.get(name, set())}
    assert len([file for file in files if file.startswith("figures/")]) == 1
    for file in files:
        assert (folders[0] / file).read_bytes() == (folders[1] / file).read_bytes()
    summary: dict[str, Any] = json.loads((folders[0] / "summary.json").read_text())
    assert summary["scenario_file"] == COMMANDS[name][1]
    ElementTree.parse(folders[0] / "report.html")
    page = (folders[0] / "report.md").read_text()
    assert f"Command: slotsim {name} {COMMANDS[name][1]}" in page
    assert sim.load_scenario(folders[0] / "scenario.yaml").digest == summary["scenario_sha256"]
