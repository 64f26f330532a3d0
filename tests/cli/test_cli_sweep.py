"""`slotsim sweep` and `slotsim map` on the command line."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sim.cli import app
from sim.sweeps.folder_lock import NAME
from tests.small_scenarios import ROOT

PEAK = str(ROOT / "scenarios" / "peak.yaml")
SMALL = ("--set", "load.requests=20", "--workers", "1")
REUSE = "workflow.shared_context.prefix_reuse_ratio"


def run(*words: str) -> tuple[int, str, str]:
    """Return exit code, standard output and standard error of a command."""
    result = CliRunner().invoke(app, words, prog_name="slotsim")
    return result.exit_code, result.stdout, result.stderr


def test_a_sweep_writes_table_and_report_and_goes_on_from_its_points(tmp_path: Path) -> None:
    words = ("sweep", PEAK, *SMALL, "--vary", "load.active_requests=10,11", "--out", str(tmp_path), "--csv")
    code, out, err = run(*words, "--plan", "serial", "--plan", "parallel")
    assert (code, err) == (0, "")
    assert out.splitlines()[-3:] == [
        "merge → keep-serial between 10 and 11 load.active_requests",
        "peak: Merge at 1, keep serial at 1 of 2 points",
        f"report: {tmp_path}/report.html",
    ]
    names = {path.name for path in tmp_path.iterdir()}
    assert {"points.jsonl", "sweep.parquet", "sweep.csv", "summary.json", "report.html"} <= names
    before = {name: (tmp_path / name).read_bytes() for name in names if "." in name}
    code, again, err = run(*words, "--plan", "serial", "--plan", "parallel")
    assert (code, again) == (0, out)
    assert err == f"2 points were there already: {tmp_path}/points.jsonl\n"
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


def full_pipe() -> tuple[int, int]:
    """Return the ends of a pipe that takes nothing more, so that whoever writes to it waits."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while True:
            os.write(writing, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writing, True)
    return reading, writing


@pytest.mark.parametrize("command", ["sweep", "map"])
def test_a_second_process_on_a_folder_is_told_who_holds_it_until_that_one_dies(
    tmp_path: Path, command: str
) -> None:
    axes = {"sweep": ("--vary", "load.active_requests=10,11"),
            "map": ("--x", "load.active_requests=10,11", "--y", f"{REUSE}=0.3")}  # fmt: skip
    out = tmp_path / "out"
    words = [sys.executable, "-m", "sim", command, PEAK, *SMALL, *axes[command], "--out", str(out)]
    reading, writing = full_pipe()
    first = subprocess.Popen(words, cwd=ROOT, stdout=writing)
    os.close(writing)
    try:
        since = since_when_all_is_written(first, out)
        before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
        fresh = subprocess.run([*words, "--fresh"], cwd=ROOT, capture_output=True, text=True, check=False)
        assert {path: path.read_bytes() for path in before} == before
    finally:
        first.send_signal(signal.SIGKILL)
        first.wait()
        os.close(reading)
    who = f"process {first.pid} on {socket.gethostname()} since {since}: {shlex.join(words)}"
    told = f"{out} is in use by {who}; wait for its end, or use another folder\n"
    assert (fresh.returncode, fresh.stdout, fresh.stderr) == (2, "", told)
    after = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (after.returncode, after.stderr) == (0, f"2 points were there already: {out}/points.jsonl\n")
    assert list(out.glob(".*")) == []


def since_when_all_is_written(process: "subprocess.Popen[bytes]", out: Path) -> str:
    """Return since when a process holds a folder, once it has all but its last words, which must wait."""
    deadline_s = time.monotonic() + 120
    while not (out / "summary.json").exists() or [path.name for path in out.glob(".*")] != [NAME]:
        assert process.poll() is None
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    since: str = json.loads((out / NAME).read_text())["since"]
    return since


def test_a_map_marks_what_it_does_not_know(tmp_path: Path) -> None:
    words = ("map", PEAK, *SMALL, "--x", "load.active_requests=9:12", "--y", f"{REUSE}=0.3,0.6")
    code, out, err = run(*words, "--out", str(tmp_path), "--json")
    assert (code, err) == (0, f"report: {tmp_path}/report.html\n")
    summary = json.loads(out)
    assert summary["verdicts"] == {"keep-serial": 6, "merge": 2}
    assert (summary["points"], summary["points_simulated"]) == (8, 8)
    assert summary["plans"] == ["serial", "parallel"]
    page = (tmp_path / "report.html").read_text()
    assert f"{REUSE} 0.6: merge → keep-serial between 10 and 11 load.active_requests" in page
    assert "Keep serial, inferred" not in page
    svg = (tmp_path / "figures" / "verdicts.svg").read_text()
    assert "#0072b2" in svg
    assert "#e69f00" in svg


def test_overload_and_doubt_have_patterns_and_no_colour(tmp_path: Path) -> None:
    load = "load={kind: open, rate_per_s: 1, requests: 100}"
    words = ("map", PEAK, *SMALL, "--set", load, "--set", "provider.concurrency=4")
    code, _, _ = run(*words, "--x", "load.rate_per_s=30,40", "--y", f"{REUSE}=0,0.6", "--out", str(tmp_path))
    assert code == 0
    assert json.loads((tmp_path / "summary.json").read_text())["verdicts"] == {"overloaded": 4}
    svg = (tmp_path / "figures" / "verdicts.svg").read_text()
    assert "<pattern" in svg
    assert "#0072b2" not in svg
    assert "#e69f00" not in svg


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--vary", "load.active_requests"), "--vary must be KEY=VALUES or KEY,KEY=VALUE:VALUE (got "),
        (("--vary", "load.active_requests=5:1"), "--vary must have FROM <= TO (got "),
        (
            ("--vary", "load.active_requests=0:1"),
            "varied: load.active_requests must be >= 1 (got 0)\n",
        ),
        (
            ("--vary", "load.active_requests=1", "--dask", "x", "--workers", "1"),
            "--workers must be left out beside --dask (got 1)\n",
        ),
    ],
)
def test_a_fault_is_one_line_and_nothing_is_written(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    code, out, err = run("sweep", PEAK, *words, "--out", str(tmp_path / "new"))
    assert (code, out) == (2, "")
    assert err.startswith(message)
    assert err.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_a_scheduler_that_does_not_answer_is_one_line() -> None:
    pytest.importorskip("distributed")
    code, out, err = run("run", PEAK, "--dask", "tcp://127.0.0.1:9")
    assert (code, out) == (2, "")
    assert err == "Dask at tcp://127.0.0.1:9: no scheduler answers there\n"
