"""Sweeps: rows, tables, and a process killed half-way."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import sim.sweeps.sweep
from sim.errors import ArgumentError, InputError
from sim.result.experiment import simulate
from sim.scenario import Scenario, load_scenario
from sim.statistics.interval import estimate
from sim.sweeps.grid import Grid
from sim.sweeps.point_store import NAME
from sim.sweeps.sweep import sweep
from sim.sweeps.table import write_csv, write_parquet
from tests.small_scenarios import ROOT

PEAK = str(ROOT / "scenarios" / "peak.yaml")
SMALL = ("load.requests=20", "plans=[serial, parallel]")
VARY = ["load.active_requests=6:13", "provider.allocation=fair_share,fifo,max_min"]
POINTS = 24


@pytest.fixture
def peak() -> Scenario:
    return small()


def files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file of a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def small(*overrides: str) -> Scenario:
    """Return the sample, short, with other values."""
    return load_scenario(PEAK, [*SMALL, *overrides])


def test_a_row_has_what_the_point_simulated_alone_shows() -> None:
    random = "workflow.branches[0].duration_ms={distribution: lognormal, mean_ms: 260, cv: 0.5}"
    scenario = small("load.requests=60", "experiment.replications=3", random)
    swept = sweep(scenario, {"load.active_requests": [5, 30]})
    alone = simulate(scenario.replace({"load.active_requests": 30}))
    rows = [row for row in swept.rows() if row["load.active_requests"] == 30]
    assert [row["plan"] for row in rows] == [plan.label for plan in alone.plans]
    for row, plan in zip(rows, alone.plans, strict=True):
        mean = estimate(plan.values["latency_ms_mean"])
        assert row["latency_ms_mean"] == mean.mean
        assert row["latency_ms_mean_half_width_95"] == mean.half_width
        assert row["succeeded_share"] == 1
        assert (row["decision"], row["stability"]) == (alone.decision.decision, plan.stability.label)
        assert row["verdict"] == alone.decision.decision


def test_an_overloaded_point_has_no_verdict_to_believe() -> None:
    load = "load={kind: open, rate_per_s: 1, requests: 100}"
    swept = sweep(small("provider.concurrency=4", load), {"load.rate_per_s": [1, 40]})
    assert [row["verdict"] for row in swept.rows()] == ["merge", "merge", "overloaded", "overloaded"]


def test_without_serial_there_is_no_verdict() -> None:
    swept = sweep(small("plans=[parallel]"), {"provider.concurrency": [1, 2]})
    assert swept.verdicts == {"not compared": 2}


def test_values_of_any_kind_have_a_column(tmp_path: Path) -> None:
    swept = sweep(
        small(),
        {
            "provider.allocation": ["fifo", "fair_share"],
            ("workflow.join_overhead_ms", "load.think_time_ms"): [(35, None), (40.5, 10)],
        },
    )
    write_parquet(swept.rows, tmp_path / "t.parquet")
    write_csv(swept.rows, tmp_path / "t.csv")
    table = pq.read_table(tmp_path / "t.parquet").to_pydict()
    assert table["provider.allocation"] == ["fifo"] * 4 + ["fair_share"] * 4
    assert table["workflow.join_overhead_ms"] == [35.0, 35.0, 40.5, 40.5] * 2
    assert table["load.think_time_ms"] == [None, None, 10, 10] * 2
    assert table["plan"] == ["serial", "parallel"] * 4
    assert table["meets_slo"] == [None] * 8
    assert list(swept.frame.columns) == list(table)
    lines = (tmp_path / "t.csv").read_text().splitlines()
    varied = "provider.allocation,workflow.join_overhead_ms,load.think_time_ms"
    assert lines[0].startswith(f"{varied},plan,verdict,decision,")
    assert lines[1].startswith("fifo,35,,serial,")
    assert len(lines) == 9


def test_every_bad_value_is_told_before_anything_is_simulated(peak: Scenario, tmp_path: Path) -> None:
    grid = Grid.parsed(["load.active_request=1:3", "provider.concurrency=0:2,x"])
    with pytest.raises(InputError) as caught:
        sweep(peak, grid, out=tmp_path / "new")
    assert str(caught.value) == (
        "varied: provider.concurrency must be >= 1 (got 0)\n"
        "varied: load.active_request is not a known key; did you mean 'active_requests'?\n"
        "varied: provider.concurrency must be a whole number (got 'x')"
    )
    assert not (tmp_path / "new").exists()


def test_workers_change_nothing(peak: Scenario, tmp_path: Path) -> None:
    grid = Grid.parsed(VARY)
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        done = sweep(peak, grid, out=folder, workers=workers)
        write_parquet(done.rows, folder / "sweep.parquet")
    assert files(tmp_path / "1") == files(tmp_path / "2")


def test_more_values_simulate_only_what_is_new(
    peak: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep(peak, {"load.active_requests": [9, 10]}, out=tmp_path)
    simulated: list[int] = []

    def counting(scenario: Scenario, **more: object) -> object:
        simulated.append(scenario.to_dict()["load"]["active_requests"])
        return simulate(scenario, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(sim.sweeps.sweep, "simulate", counting)
    done = sweep(peak, {"load.active_requests": range(9, 13)}, out=tmp_path, workers=1)
    assert (simulated, done.reused) == ([11, 12], 2)


def test_a_changed_scenario_is_not_mixed_in(peak: Scenario, tmp_path: Path) -> None:
    sweep(peak, {"load.active_requests": [9]}, out=tmp_path)
    changed = peak.replace({"workflow.join_overhead_ms": 36})
    with pytest.raises(InputError, match="holds points of scenario_sha256"):
        sweep(changed, {"load.active_requests": [9]}, out=tmp_path)
    assert sweep(changed, {"load.active_requests": [9]}, out=tmp_path, fresh=True).reused == 0


def test_a_killed_sweep_goes_on_with_the_missing_points(peak: Scenario, tmp_path: Path) -> None:
    grid = Grid.parsed(VARY)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    sweep(peak, grid, out=whole, workers=1)
    words = [word for text in VARY for word in ("--vary", text)]
    sets = [word for text in SMALL for word in ("--set", text)]
    command = [
        sys.executable,
        "-m",
        "sim",
        "sweep",
        PEAK,
        *words,
        *sets,
        "--out",
        str(killed),
        "--workers",
        "1",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    points = killed / NAME
    deadline_s = time.monotonic() + 60
    while not points.exists() or points.read_bytes().count(b"\n") < POINTS // 3:
        assert process.poll() is None
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = points.read_bytes().count(b"\n") - 1
    assert 0 < kept < POINTS
    assert sweep(peak, grid, out=killed, workers=1).reused == kept
    assert files(killed) == files(whole)


def test_a_search_agrees_with_a_scan_and_simulates_fewer(peak: Scenario) -> None:
    grid = Grid.parsed(["load.active_requests=1:60"])
    scanned, searched = sweep(peak, grid, workers=1), sweep(peak, grid, search=True, workers=1)
    assert scanned.cells == searched.cells | searched.inferred
    assert len(searched.cells) < len(scanned.cells) / 2
    assert not scanned.inferred
    assert sum(searched.verdicts.values()) == len(list(searched.points())) == len(searched.cells)


def test_a_search_has_two_axes_at_most(peak: Scenario) -> None:
    with pytest.raises(ArgumentError, match="search must have one or two axes"):
        sweep(peak, Grid.parsed([*VARY, "workflow.join_overhead_ms=1,2"]), search=True)
