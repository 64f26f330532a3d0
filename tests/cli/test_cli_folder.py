"""Folders of results: what they hold, that they hold the same again, and how they are read."""

import hashlib
import json
import shlex
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import sim.cli.folder
from sim.answers.flip import FlipTable
from sim.cli import app
from sim.cli.curve import curve_levels
from sim.report.output_folder import OutputFolder
from sim.sweeps.folder_lock import NAME, held

ROOT = Path(__file__).parents[2]
PEAK, OFF_PEAK, TRACE = (f"scenarios/{name}.yaml" for name in ("peak", "off-peak", "trace"))
RANDOM = (
    "scenarios/off-peak-random.yaml", "--set", "load.requests=60", "--warmup", "none", "--plan", "serial",
)  # fmt: skip
TABLES = ("summary.json", "requests.csv", "calls.csv")


class Reports:
    """Stands in for the report, whose drawings take long: notes what it is given."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.curves: list[FlipTable | None] = []

    def add(self, output: OutputFolder, _subject: Any, *, flip_table: FlipTable | None, command: str) -> None:
        output.write_text("report.html", command)
        self.commands.append(command)
        self.curves.append(flip_table)


@pytest.fixture(autouse=True)
def reports(monkeypatch: pytest.MonkeyPatch) -> Reports:
    monkeypatch.chdir(ROOT)
    noted = Reports()
    monkeypatch.setattr(sim.cli.folder, "add_report", noted.add)
    return noted


def slotsim(*words: str, code: int = 0) -> str:
    """Run a command and return what it prints, or its errors where it is to end with 2."""
    result = CliRunner().invoke(app, words, prog_name="slotsim")
    assert result.exit_code == code, result.output
    return result.stderr if code == 2 else result.stdout


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_command_gives_the_same_bytes_over_an_older_folder(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    words = ("run", *RANDOM, "--out", str(out), "--no-curve")
    assert slotsim(*words, "--workers", "1").endswith(f"report: {out}/report.html\n")
    first = contents(out)
    assert sorted(first) == ["calls.csv", "report.html", "requests.csv", "scenario.yaml", "summary.json"]
    (out / "requests.csv").write_text("older\n")
    (out / "mine.txt").write_text("kept\n")
    slotsim(*words, "--workers", "2")
    assert contents(out) == first | {"mine.txt": b"kept\n"}
    slotsim(*words, "--seed", "2")
    assert all(contents(out)[name] != first[name] for name in TABLES)


def test_the_summary_is_what_json_shows_and_how_it_came_about(tmp_path: Path, reports: Reports) -> None:
    words = ("run", *RANDOM, "--precision", "20%", "--keep-tables", "--no-curve")
    shown = json.loads(slotsim(*words, "--json", "--out", str(tmp_path)))
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary.pop("rerun") == {
        "command": "run",
        "scenarios": [
            {
                "file": "scenario.yaml",
                "stated_file": "scenarios/off-peak-random.yaml",
                "overrides": ["load.requests=60", "plans=[serial]", "experiment.warmup=none"],
                "sha256": summary["provenance"]["scenario_sha256"],
            }
        ],
        "given": {
            "precision": {"relative": 0.2, "figure": "latency_ms_mean", "least": 5, "most": 200},
            "keep_tables": True,
            "curve": False,
        },
    }
    files = summary.pop("files")
    assert files == {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "size_bytes": len(content)}
        for name, content in sorted(contents(tmp_path).items())
        if name != "summary.json"
    }
    assert summary == shown
    assert reports.commands == [
        "slotsim run scenarios/off-peak-random.yaml --set load.requests=60 --set 'plans=[serial]' "
        "--set experiment.warmup=none --keep-tables --no-curve --precision 20% "
        "--precision-figure latency_ms_mean --max-replications 200"
    ]


def test_tables_read_back_as_they_were(tmp_path: Path) -> None:
    slotsim("run", *RANDOM, "--out", str(tmp_path), "--keep-tables", "--no-curve")
    scenario = sim.load_scenario(RANDOM[0], ["load.requests=60", "plans=[serial]", "experiment.warmup=none"])
    result = sim.simulate(scenario, keep_tables=True)
    for name, table in (("requests.csv", result.requests), ("calls.csv", result.calls)):
        assert b"\r" not in (tmp_path / name).read_bytes()
        read = pd.read_csv(tmp_path / name)
        pd.testing.assert_frame_equal(
            read, table, check_exact=True, check_categorical=False, check_dtype=False
        )
    assert sorted(result.requests["replication"].unique()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "command",
    [
        f"run {TRACE} --set load.count=40 --set slo=null --plan serial --no-curve",
        f"compare {OFF_PEAK} {PEAK} --set load.requests=40 --no-curve",
        f"flip {PEAK} --set load.requests=40 --active 10:11 --allocation fifo --requests-per-user 10",
    ],
)
def test_a_folder_can_be_made_again(command: str, tmp_path: Path, reports: Reports) -> None:
    words = command.split()
    out = tmp_path / "out"
    slotsim(*words, "--out", str(out))
    first = contents(out)
    (out / "report.html").unlink()
    shown = json.loads(slotsim("report", str(out), "--json", "--workers", "1"))
    assert shown == {"out": str(out), "report": f"{out}/report.html"}
    assert contents(out) == first
    typed = shlex.split(reports.commands[0])[1:]
    slotsim(*typed, "--workers", "1", "--out", str(tmp_path / "typed"))
    assert contents(tmp_path / "typed")["summary.json"] == first["summary.json"]


def test_compare_writes_the_scenarios_below_each_other(tmp_path: Path) -> None:
    short = ("--set", "load.requests=40", "--plan", "serial", "--plan", "parallel", "--no-curve")
    slotsim("compare", OFF_PEAK, PEAK, *short, "--out", str(tmp_path))
    assert {"scenario-1.yaml", "scenario-2.yaml"} <= set(contents(tmp_path))
    requests = pd.read_csv(tmp_path / "requests.csv")
    assert requests.columns[0] == "scenario"
    assert requests.groupby("scenario").size().to_dict() == {"off-peak": 80, "peak": 80}


def test_flip_writes_its_levels(tmp_path: Path) -> None:
    words = ("--active", "10:11", "--allocation", "fair_share", "--requests-per-user", "10", "--workers", "1")
    slotsim("flip", PEAK, "--set", "load.requests=40", *words, "--out", str(tmp_path))
    table = pd.read_csv(tmp_path / "levels.csv").query("plan == 'parallel'")
    assert table[["active_requests", "latency_ms_mean", "decision"]].values.tolist() == [
        [10, 295.0, "merge"],
        [11, 455.0, "keep-serial"],
    ]


USERS = "2 4 6 8 9 10 11 13 15 17 19 20 21 22 24 26 28 30"


@pytest.mark.parametrize(
    ("names", "overrides", "levels"),
    [
        (("off-peak", "peak"), (), USERS),
        (("day",), (), USERS),
        (("off-peak",), ("provider.concurrency=1", "load.active_requests=3"), "1 2 3"),
        (("open-light",), (), "9.52381 14.3 19.047619 28.571429 33.333333 38.095238 42.857143 45.238095 50"),
        (("off-peak", "chain-b"), (), ""),
        (("trace",), (), ""),
        (("mix-peak",), (), ""),
        (("peak",), ("provider.concurrency=1000",), ""),
    ],
)
def test_a_report_has_a_curve_where_its_scenarios_are_points_on_one(
    names: tuple[str, ...], overrides: tuple[str, ...], levels: str
) -> None:
    found = curve_levels([sim.load_scenario(f"scenarios/{name}.yaml", overrides) for name in names])
    values = (found.active or found.rates) if found else ()
    assert " ".join(f"{value:.8g}" for value in values) == levels


def test_a_report_gets_its_curve(tmp_path: Path, reports: Reports) -> None:
    short = (
        "--set",
        "load.requests=40",
        "--set",
        "provider.concurrency=2",
        "--set",
        "load.active_requests=1",
    )
    slotsim("run", PEAK, *short, "--out", str(tmp_path), "--workers", "1")
    (curve,) = reports.curves
    assert curve is not None
    assert [(level.value, level.allocation) for level in curve.levels] == [
        (value, "fair_share") for value in (1, 2, 3)
    ]


def test_a_folder_that_was_changed_is_not_taken_for_what_it_was(tmp_path: Path) -> None:
    slotsim("run", *RANDOM, "--out", str(tmp_path), "--no-curve")
    assert slotsim("report", str(tmp_path), "--seed", "2", code=2) == (
        f"{tmp_path}: is a folder of results; --set and its like need a scenario\n"
    )
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(scenario.read_text().replace("requests: 60", "requests: 61"))
    assert slotsim("report", str(tmp_path), code=2) == (
        f"{scenario}: must be as it was simulated; it or a table of it has changed\n"
    )


def test_a_folder_with_files_of_two_runs_is_refused(tmp_path: Path) -> None:
    first, second = (tmp_path / name for name in ("first", "second"))
    for folder, seed in ((first, "1"), (second, "2")):
        slotsim("run", *RANDOM, "--seed", seed, "--out", str(folder), "--no-curve")
    was = hashlib.sha256((first / "requests.csv").read_bytes()).hexdigest()[:12]
    found = hashlib.sha256((second / "requests.csv").read_bytes()).hexdigest()[:12]
    (second / "requests.csv").replace(first / "requests.csv")
    before = contents(first)
    assert slotsim("report", str(first), code=2) == (
        f"{first}/requests.csv: must be the file that summary.json names, sha256 {was}; "
        f"it has changed, or is of another run: run the command again (got '{found}')\n"
    )
    assert contents(first) == before


def test_another_command_over_a_folder_leaves_no_tables_of_the_first(tmp_path: Path) -> None:
    slotsim("run", *RANDOM, "--out", str(tmp_path), "--no-curve")
    (tmp_path / "mine.txt").write_text("kept\n")
    slotsim("size", PEAK, "--set", "load.requests=40", "--vary", "provider.concurrency=18:20",
            "--slo", "latency_ms_max <= 500", "--plan", "parallel", "--out", str(tmp_path))  # fmt: skip
    names = set(contents(tmp_path))
    assert {"curve.csv", "summary.json", "mine.txt"} <= names
    assert not {"requests.csv", "calls.csv"} & names


@pytest.mark.parametrize(
    "command", ["run", "flip", "size", "sensitivity", "policy", "sweep", "map", "report"]
)
def test_a_folder_in_use_is_told_before_anything_is_simulated(command: str, tmp_path: Path) -> None:
    endless = ("--set", "load.requests=90000000", "--out", str(tmp_path))
    options = {
        "flip": ("--active", "1:2"),
        "size": ("--vary", "provider.concurrency=1:9", "--slo", "latency_ms_max <= 1"),
        "sweep": ("--vary", "provider.concurrency=1:9"),
        "map": ("--x", "provider.concurrency=1:9", "--y", "load.active_requests=1:9"),
    }
    told = []
    with held(tmp_path):
        lock = json.loads((tmp_path / NAME).read_text())
        thread = threading.Thread(
            target=lambda: told.append(slotsim(command, PEAK, *options.get(command, ()), *endless, code=2))
        )
        thread.start()
        thread.join()
    who = f"process {lock['pid']} on {lock['host']} since {lock['since']}: {lock['command']}"
    assert told == [f"{tmp_path} is in use by {who}; wait for its end, or use another folder\n"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "summary", ["", "[]", "{}", '{"rerun": {"command": "flip", "scenarios": [], "given": {"active": 3}}}']
)
def test_a_folder_that_is_none_is_refused(summary: str, tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    assert slotsim("report", str(tmp_path), code=2) == f"{file}: cannot be read: No such file or directory\n"
    file.write_text(summary)
    assert slotsim("report", str(tmp_path), code=2) == (
        f"{file}: must be the summary of a folder that slotsim wrote\n"
    )


def test_the_folder_of_a_sweep_is_pointed_to_its_command(tmp_path: Path) -> None:
    slotsim("sweep", *RANDOM, "--vary", "load.active_requests=1,2", "--out", str(tmp_path))
    told = slotsim("report", str(tmp_path), code=2)
    assert told.startswith(f"{tmp_path / 'summary.json'}: must be of run, compare or flip; ")


def test_a_report_of_a_scenario_goes_where_its_name_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    slo = (
        "--set",
        "slo.rules=['latency_ms_p50 <= 1']",
        "--set",
        "name=Peak hour",
        "--set",
        "load.requests=40",
    )
    monkeypatch.setattr("sim.cli.folder.curve_levels", lambda _: None)
    assert slotsim("report", str(ROOT / PEAK), *slo, code=1) == "report: reports/peak-hour/report.html\n"
    assert (tmp_path / "reports" / "peak-hour" / "summary.json").exists()


def test_a_folder_that_cannot_be_written_is_told_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    endless = ("--set", "load.requests=90000000", "--out", f"{tmp_path}/file/below")
    assert slotsim("run", PEAK, *endless, code=2) == (
        f"{tmp_path}/file/below could not be written: {tmp_path}/file is not a folder\n"
    )


def test_nothing_is_written_on_bad_input_or_by_a_run_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slotsim("run", "scenarios/invalid/rate-zero.yaml", "--out", str(tmp_path / "out"), code=2)

    def stopped(*_given: Any, **_named: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sim.cli.folder, "add_report", stopped)
    slotsim("run", *RANDOM, "--out", str(tmp_path / "out"), "--no-curve", code=130)
    assert list(tmp_path.iterdir()) == []
