"""What the commands print and end with, run in this process."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sim.cli import app
from sim.contract.load import Progress
from sim.contract.plain import PlainInput, PlainOutput
from sim.engine import Engine
from sim.engine.simpy_model import run as simpy_run
from sim.run.simulation import Run, simulate_once
from sim.scenario import Scenario
from sim.scenario.model import PlanChoice

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parents[1] / "data"
PEAK, OFF_PEAK = "scenarios/peak.yaml", "scenarios/off-peak.yaml"
SHORT = ("--set", "load.requests=200")
RANDOM = ("scenarios/off-peak-random.yaml", "--set", "load.requests=60", "--warmup", "none")


@pytest.fixture(autouse=True)
def _at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def slotsim(*words: str, code: int = 0) -> str:
    """Run a command and return what it prints; it must end with `code` and print nothing else on errors."""
    result = CliRunner().invoke(app, words, prog_name="slotsim")
    assert result.exit_code == code, result.output
    return result.stdout if code in (0, 1) else result.stderr


def lines(*words: str, code: int = 0) -> list[str]:
    """Run a command and return its lines with every run of spaces as one."""
    return [" ".join(line.split()) for line in slotsim(*words, code=code).splitlines()]


def json_of(*words: str, code: int = 0) -> Any:
    return json.loads(slotsim(*words, "--json", code=code))


def key_paths(data: Any, path: str = "") -> set[str]:
    """Return the paths of all keys; the items of a list share one, and so do things called by their name."""
    if isinstance(data, list):
        return set().union(*(key_paths(item, f"{path}[]") for item in data))
    if not isinstance(data, dict):
        return set()
    named = path.rpartition(".")[2] in (
        "plans",
        "scenarios",
        "workloads",
        "by_period",
        "by_plan",
        "by_workload",
    )
    if named:
        return set().union(*(key_paths(item, f"{path}.*") for item in data.values()))
    below = {f"{path}.{key}".removeprefix("."): item for key, item in data.items()}
    return set().union(below, *(key_paths(item, key) for key, item in below.items()))


def test_run_shows_the_verdict_first_and_every_plan() -> None:
    shown = lines("run", PEAK, *SHORT)
    assert shown[0] == (
        "peak (scenarios/peak.yaml): 20 slots fair_share; load closed, 20 active requests; deterministic; "
        "seed 1; engine simpy"
    )
    assert shown[1:9] == [
        "serial, adaptive: binding: slots, loaded to 100.0 %; users wait; 20 users; "
        "knee at 20 users (420 ms unloaded); at most 47.6 requests/s",
        "parallel: binding: slots, loaded to 142.4 %; users wait; 20 users; "
        "knee at 14.0 users (295 ms unloaded); at most 47.6 requests/s",
        "keep-serial: loses 35 ms (measured)",
        "FAIL loses 35 ms",
        "FAIL costs 368 micros extra and saves no time",
        "FAIL no prefix reuse ratio breaks even",
        "pass 2 slots earn their keep",
        "by arithmetic at 20 active requests, 1 slot each: keep-serial: loses 35 ms",
    ]
    for line in (
        "parallel serial adaptive",
        "latency mean, ms 455.0 420.0 420.0",
        "latency p90, ms 455.0 420.0 420.0",
        "latency p99, ms - - -",
        "utilisation, % 92.3 100.0 100.0",
        "cost per request, micros 736 368 368",
        "latency_ms_p99: missing in 1 of 1 replications: needs 1,000 observations, has 200 "
        "(parallel, serial, adaptive)",
        "latency mean, ms, at least (critical path and join, without waiting) 295.0 420.0 295.0",
        "latency mean, ms, at least (mean active requests x work / slots) 420.0 420.0 420.0",
        "checks: 600 requests: 600 exact, 0 bounded, 0 violated; 1,200 calls conserved; 6 isolated replays; "
        "Little's law exact; by the readable check",
    ):
        assert line in shown


def test_run_shows_half_widths_of_random_scenarios() -> None:
    shown = "\n".join(lines("run", *RANDOM, "--plan", "serial"))
    assert " 5 replications; seed 1" in shown
    assert "latency mean, ms 4" in shown
    assert "±" in shown


def test_run_shows_periods_of_a_load_that_changes() -> None:
    shown = lines("run", "scenarios/day.yaml", "--plan", "serial")
    assert "serial peak 2,860 420.0 420.0 420.0 0.0 100.0 10 -> 20 deterministic" in shown
    assert "by arithmetic at 20 active requests, 1 slot each: keep-serial: loses 35 ms" in shown


def test_run_marks_an_overloaded_plan() -> None:
    stated = ("--set", "load={kind: open, rate_per_s: 60, requests: 1000}", "--plan", "serial")
    shown = lines("run", PEAK, *stated)
    assert "serial (overloaded)" in shown
    assert "stability overloaded" in shown
    assert shown[1:4] == [
        "binding: slots, loaded to 126.0 %; no steady state; 60 requests/s; "
        "largest sustainable rate 47.6 requests/s",
        "serial: overloaded: slots loaded to 126.0 %, 25.2 of 20 slots",
        "overloaded: no steady state, so no verdict: slots loaded to 126.0 %, 25.2 of 20 slots; "
        "at most 47.62 requests/s can be sustained",
    ]
    assert sum("25.2 of 20" in line for line in shown) == 2


def test_run_shows_each_of_several_workloads() -> None:
    short = [word for number in range(3) for word in ("--set", f"workloads[{number}].load.duration_s=3")]
    plans = ("--plan", "parallel", "--plan", "serial", "--set", "experiment.warmup=none")
    shown = lines("run", "scenarios/mix-off-peak.yaml", *short, *plans, code=1)
    assert "load chain-a open" in shown[0]
    assert "plan workload requests latency mean, ms latency p95, ms" in "\n".join(shown)
    rows = [line.split()[:3] for line in shown if line.startswith(("parallel chain", "serial chain"))]
    assert [(plan, workload) for plan, workload, _ in rows] == [
        (plan, f"chain-{letter}") for plan in ("parallel", "serial") for letter in "abc"
    ]
    assert "chain-c: keep-serial: no independent branches (measured)" in shown


def test_compare_shows_the_flip_and_its_price() -> None:
    shown = lines("compare", OFF_PEAK, PEAK, *SHORT)
    start = shown.index("") + 1
    assert shown[start : start + 3] == [
        "latency mean, ms load parallel serial adaptive decision",
        "off-peak closed, 10 active requests 295.0 420.0 295.0 merge",
        "peak closed, 20 active requests 455.0 420.0 420.0 keep-serial",
    ]
    (flip,) = (line for line in shown if line.startswith("The verdict flips"))
    assert flip.startswith("The verdict flips between 10 and 11 active requests. ")
    assert "125.0 ms saved at 2.94 micros per ms" in flip
    assert "off-peak parallel serial -125.0 -125.0 +368.0 faster" in shown
    assert "peak parallel off-peak +160.0 +160.0 0.0 slower" in shown


def test_compare_tells_scenarios_of_one_name_apart(tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(f"schema_version: 1\nname: peak\nextends: {ROOT / OFF_PEAK}\n")
    shown = json_of("compare", PEAK, str(other), *SHORT)
    assert list(shown["scenarios"]) == [f"peak ({PEAK})", f"peak ({other})"]


def test_compare_refuses_a_file_given_twice() -> None:
    assert slotsim("compare", PEAK, "scenarios/../scenarios/peak.yaml", code=2).splitlines() == [
        "scenarios/peak.yaml: must be given once",
        "scenarios/../scenarios/peak.yaml: must be given once",
    ]


def test_decide_tells_the_three_chains_apart() -> None:
    shown = lines("decide", *(f"scenarios/chain-{letter}.yaml" for letter in "abc"))
    assert [line for line in shown if line.startswith("chain")] == [
        "chain-a, 10 active requests, 2 slots each: merge: saves 125 ms; costs 368 micros extra "
        "(2.94 <= 4 micros per saved ms); prefix reuse 60 % reaches the break-even 41.67 %; "
        "2 slots earn their keep",
        "chain-b, 10 active requests, 2 slots each: keep-serial: costs 368 micros extra "
        "(4.09 > 4 micros per saved ms); prefix reuse 60 % is below the break-even 61.11 %",
        "chain-c, 10 active requests, 2 slots each: keep-serial: no independent branches",
    ]


def test_decide_and_gains_tell_workloads_apart() -> None:
    decisions = json_of("decide", "scenarios/mix-peak.yaml", "--slots", "2")["decisions"]
    assert [(one["workload"], one["decision"]) for one in decisions] == [
        ("chain-a", "merge"),
        ("chain-b", "keep-serial"),
        ("chain-c", "keep-serial"),
    ]
    gains = json_of("gains", "scenarios/mix-peak.yaml")["workloads"]
    assert [each["serial_ms"] for each in gains.values()] == [420, 760, 1080]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("scenarios/day.yaml",), [(10, 10, 2, "merge"), (20, 20, 1, "keep-serial")]),
        (("scenarios/open.yaml",), [(1, 10, 2, "merge"), (11, None, 1, "keep-serial")]),
        (("scenarios/open.yaml", "--active", "7"), [(7, 7, 2, "merge")]),
        ((PEAK, "--slots", "2"), [(None, None, 2, "merge")]),
        (
            (PEAK, "--set", "criteria.max_micros_per_saved_ms=2", "--slots", "2"),
            [(None, None, 2, "keep-serial")],
        ),
    ],
)
def test_decide_at_the_shares_of_the_load(words: tuple[str, ...], expected: list[tuple[Any, ...]]) -> None:
    names = ("active_requests_from", "active_requests_to", "concurrency", "decision")
    found = [tuple(one[name] for name in names) for one in json_of("decide", *words)["decisions"]]
    capped = [(first, last, min(slots, 2), decision) for first, last, slots, decision in found]
    assert capped == expected


def test_gains_slot_by_slot() -> None:
    assert lines("gains", "scenarios/gains.yaml") == [
        "gains: one request alone, serial 860.0 ms",
        "slots makespan, ms gain of the last slot, ms",
        "1 860.0",
        "2 440.0 420.0",
        "3 300.0 140.0",
        "4 300.0 0.0",
        "recommended degree: 3 slots",
    ]


def test_flip_shows_ranges_bounds_and_where_it_changes() -> None:
    words = ("--active", "10:11", "--allocation", "fair_share", "--requests-per-user", "20", "--workers", "1")
    shown = lines("flip", PEAK, *words)
    assert shown[0].startswith("at 11 active requests: ")
    assert shown[shown.index("") + 1 :] == [
        "peak, fair_share: latency mean, ms [least..greatest of a request] >= the bound no allocation "
        "can beat",
        "active requests parallel serial adaptive best decision",
        "10 295.0 [295.0..295.0] >= 295.0 420.0 [420.0..420.0] >= 420.0 295.0 [295.0..295.0] >= 295.0 "
        "parallel merge",
        "11 455.0 [455.0..455.0] >= 295.0 420.0 [420.0..420.0] >= 420.0 420.0 [420.0..420.0] >= 295.0 "
        "serial keep-serial <-",
        "",
        "fair_share: merge -> keep-serial between 10 and 11 active requests",
    ]


def test_flip_along_a_rate() -> None:
    words = ("--rate", "5,60", "--allocation", "fifo", "--requests", "300", "--workers", "1")
    shown = json_of("flip", "scenarios/open-light.yaml", *words)
    assert [level["value"] for level in shown["levels"]] == [5, 60]
    assert shown["levels"][1]["plans"]["serial"]["stability"] == "overloaded"


@pytest.mark.parametrize("words", [(), ("--active", "1", "--rate", "1")])
def test_flip_needs_one_kind_of_level(words: tuple[str, ...]) -> None:
    assert slotsim("flip", PEAK, *words, code=2) == "slotsim flip: needs --active or --rate, one of them\n"


def test_flip_refuses_an_unknown_allocation() -> None:
    assert slotsim("flip", PEAK, "--active", "1", "--allocation", "lifo", code=2) == (
        "--allocation must be one of fair_share, fifo, max_min, priority, weighted (got 'lifo')\n"
    )


def test_verify_counts_what_the_checks_found() -> None:
    assert lines("verify", PEAK, "--plan", "parallel", *SHORT) == [
        "scenario plan requests exact bounded violated calls conserved isolated replays Little's law check",
        "peak parallel 200 200 0 0 400 2 exact readable",
    ]


def test_verify_tells_the_story_of_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    def late_by_1_ns(given: PlainInput, progress: Progress | None = None) -> PlainOutput:
        out = simpy_run(given, progress)
        finish_ns = out.finish_ns.copy()
        finish_ns[-1, 0] += 1
        return replace(out, finish_ns=finish_ns)

    def simulate_late(
        scenario: Scenario,
        plan: PlanChoice,
        replication: int,
        progress: Progress | None,
        engine: Engine,
    ) -> Run:
        return simulate_once(scenario, plan, replication, progress, replace(engine, plain=late_by_1_ns))

    monkeypatch.setattr("sim.result.experiment.simulate_once", simulate_late)
    result = CliRunner().invoke(app, ["verify", PEAK, OFF_PEAK, *SHORT, "--json"])
    assert result.exit_code == 1
    stories = [one["story"] for one in json.loads(result.stdout)["scenarios"]]
    assert all("request 199" in story for story in stories)
    assert result.stderr == "".join(
        f"{file}: {story}\n" for file, story in zip((PEAK, OFF_PEAK), stories, strict=True)
    )
    assert CliRunner().invoke(app, ["run", PEAK, *SHORT]).exit_code == 1


@pytest.mark.parametrize(("bound", "verdict", "code"), [(425, "met", 0), (400, "missed", 1)])
def test_an_slo_decides_the_exit_code(bound: int, verdict: str, code: int) -> None:
    stated = ("--set", f"slo.rules=['latency_ms_p90 <= {bound}']", *SHORT)
    assert f"slo: latency_ms_p90 <= {bound} on serial: {verdict} (420.0)" in lines(
        "run", PEAK, *stated, code=code
    )
    slotsim("compare", OFF_PEAK, PEAK, *stated, code=code)


def test_an_slo_on_a_percentile_that_cannot_be_shown_counts_as_missed() -> None:
    stated = ("--set", "slo.rules=['latency_ms_p99 <= 9999']", *SHORT)
    reason = "missing in 1 of 1 replications: needs 1,000 observations, has 200"
    told = f"slo: latency_ms_p99 <= 9999 on serial: undecided (-; {reason})"
    assert told in lines("run", PEAK, *stated, code=1)


def test_options_are_recorded_and_beat_the_file() -> None:
    words = (
        "--seed",
        "7",
        "--set",
        "experiment.seed=3",
        "--replications",
        "2",
        "--warmup",
        "10",
        "--plan",
        "serial",
    )
    shown = json_of("run", *RANDOM[:3], *words)
    assert shown["provenance"]["seed"] == 7
    assert shown["provenance"]["overrides"] == [
        "load.requests=60",
        "experiment.seed=3",
        "plans=[serial]",
        "experiment.warmup={count: 10}",
        "experiment.replications=2",
        "experiment.seed=7",
    ]
    assert list(shown["plans"]) == ["serial"]
    assert shown["plans"]["serial"]["warmup_requests_dropped"] == [10, 10]


def test_another_seed_gives_other_draws() -> None:
    first, second = (json_of("run", *RANDOM, "--seed", seed, "--plan", "serial") for seed in ("1", "2"))
    assert first["plans"]["serial"]["latency_ms_mean"] != second["plans"]["serial"]["latency_ms_mean"]


def test_a_plan_with_a_degree() -> None:
    assert list(json_of("run", PEAK, "--plan", "parallel_max_2", *SHORT)["plans"]) == ["parallel_max_2"]


def test_precision_adds_replications_up_to_its_cap() -> None:
    shown = json_of("run", *RANDOM, "--plan", "serial", "--precision", "5%")
    assert shown["notes"][-1].endswith(
        "replications reach a half-width of 5 % of latency_ms_mean for every plan"
    )
    few = ("--precision", "0.1%", "--max-replications", "6", "--precision-figure", "throughput_per_s")
    capped = json_of("run", *RANDOM, "--plan", "serial", *few)
    assert capped["replications"] == 6
    assert capped["notes"][-1].startswith(
        "the cap of 6 replications came before a half-width of 0.1 % of throu"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--precision", "0.02"), "--precision must be a percentage such as 2% (got '0.02')"),
        (("--precision", "0%"), "--precision must be a percentage such as 2% (got '0%')"),
        (("--max-replications", "9"), "--max-replications must come with --precision (got 9)"),
        (("--precision", "2%", "--max-replications", "4"), "--max-replications must be >= 5 (got 4)"),
        (
            ("--warmup", "1m"),
            "--warmup must be none, auto, a count such as 200 or a time such as 10s (got '1m')",
        ),
        (
            ("--plan", "fast"),
            "--set: plans[0] must be one of serial, parallel, adaptive, warm_first (got 'fast')",
        ),
        (("--replications", "0"), "--set: experiment.replications must be >= 1 (got 0)"),
        (("--set", "load.request=3"), "--set: load.request is not a known key; did you mean 'requests'?"),
        (("--set", "load"), "--set: must be key.path=value (got 'load')"),
    ],
)
def test_bad_options_are_told_in_one_line(words: tuple[str, ...], message: str) -> None:
    assert slotsim("run", PEAK, *words, code=2).splitlines() == [message]


def test_bad_files_are_told_all_at_once() -> None:
    told = slotsim("compare", "scenarios/missing.yaml", "scenarios", "-", PEAK, code=2)
    assert told.splitlines() == [
        "scenarios/missing.yaml: cannot be read: No such file or directory",
        "scenarios: cannot be read: Is a directory",
        "-: cannot be read: No such file or directory",
    ]


def test_a_fault_of_an_override_is_told_once() -> None:
    told = slotsim("decide", PEAK, OFF_PEAK, "--set", "provider.concurrency=0", code=2)
    assert told == "--set: provider.concurrency must be >= 1 (got 0)\n"


def test_validate_tells_good_files_from_bad_ones() -> None:
    bad = "scenarios/invalid/duration-negative.yaml"
    result = CliRunner().invoke(app, ["validate", PEAK, bad])
    message = f"{bad}:9: workflow.branches[1].duration_ms must be >= 1 (got -5)"
    assert (result.exit_code, result.stdout, result.stderr) == (2, f"{PEAK}: ok\n", f"{message}\n")
    result = CliRunner().invoke(app, ["validate", PEAK, bad, "--json"])
    files = json.loads(result.stdout)["files"]
    assert [one["ok"] for one in files] == [True, False]
    assert files[1]["faults"][0] == {
        "file": bad,
        "line": 9,
        "path": "workflow.branches[1].duration_ms",
        "rule": "must be >= 1",
        "value": "-5",
        "has_value": True,
        "message": message,
    }


def test_every_invalid_scenario_gives_its_line() -> None:
    paths = sorted(Path("scenarios/invalid").glob("*.yaml"))
    told = slotsim("validate", *(str(path) for path in paths), code=2).splitlines()
    assert told == [expected_message(path) for path in paths]


def expected_message(path: Path) -> str:
    """Return the message that an invalid scenario states in its first line."""
    stated = path.read_text().splitlines()[0].removeprefix("# expect: ")
    if stated.split(":")[0].isdecimal():
        return f"{path}:{stated}"
    return f"{path.parent}/{stated}" if stated.startswith("data/") else stated


def test_every_shipped_scenario_is_valid() -> None:
    paths = sorted(str(path) for path in Path("scenarios").glob("*.yaml"))
    assert slotsim("validate", *paths) == "".join(f"{path}: ok\n" for path in paths)


def test_schema_is_printed_or_written(tmp_path: Path) -> None:
    shown = slotsim("schema")
    assert json.loads(shown)["title"] == "slotsim scenario"
    target = tmp_path / "new" / "schema.json"
    assert slotsim("schema", "--out", str(target)) == f"wrote {target}\n"
    assert target.read_text() == shown


def test_version() -> None:
    assert slotsim("--version") == "slotsim 0.1.0\n"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("run", ("run", "scenarios/day.yaml", "--set", "slo.rules=['latency_ms_p50 <= 500']")),
        ("compare", ("compare", OFF_PEAK, PEAK, *SHORT)),
        ("decide", ("decide", PEAK)),
        ("gains", ("gains", PEAK)),
        (
            "capacity",
            (
                "capacity",
                "scenarios/day.yaml",
                "--set",
                "provider.concurrency_steps=[{at_s: 9, concurrency: 8}]",
            ),
        ),
        ("flip", ("flip", PEAK, "--active", "1", "--allocation", "fifo", "--workers", "1")),
        ("verify", ("verify", PEAK, *SHORT)),
        ("validate", ("validate", PEAK)),
    ],
)
def test_json_keys_stay(name: str, words: tuple[str, ...]) -> None:
    """Keys may be added to JSON, but never renamed or dropped."""
    known = (DATA / f"{name}.keys").read_text().split("\n")
    assert sorted({key for key in known if key} - key_paths(json_of(*words))) == []
