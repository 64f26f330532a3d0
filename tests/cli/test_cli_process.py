"""The command line as a process: what it imports, and what it leaves when it is stopped."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SLOTSIM = (sys.executable, "-m", "sim")
PEAK, OFF_PEAK = "scenarios/peak.yaml", "scenarios/off-peak.yaml"
SLOW_TO_IMPORT = ("matplotlib", "pandas", "scipy", "simpy", "numpy", "jinja2", "joblib")


def slotsim(*words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end, with additions to the environment."""
    return subprocess.run(
        [*SLOTSIM, *words], cwd=ROOT, env={**os.environ, **environment}, capture_output=True, check=False
    )


@pytest.mark.parametrize(
    ("words", "slow"),
    [
        (("--help",), (*SLOW_TO_IMPORT, "pydantic")),
        (("--version",), (*SLOW_TO_IMPORT, "pydantic")),
        (("run", "--help"), SLOW_TO_IMPORT),
        (("capacity", "scenarios/limits.yaml"), [name for name in SLOW_TO_IMPORT if name != "numpy"]),
    ],
)
def test_help_and_arithmetic_import_nothing_slow(words: tuple[str, ...], slow: Sequence[str]) -> None:
    code = (
        "import sys\nfrom sim.cli import app\n"
        f"try:\n    app({list(words)!r}, prog_name='slotsim')\n"
        f"finally:\n    print([name for name in {slow!r} if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines()[-1] == "[]"


def test_help_names_every_command_in_a_whole_sentence() -> None:
    commands = slotsim("--help").stdout.decode().split("Commands:\n")[1].splitlines()
    assert [line.split()[0] for line in commands] == [
        "run", "compare", "decide", "gains", "capacity", "flip", "size", "sensitivity", "policy", "sweep",
        "map", "report", "verify", "validate", "schema",
    ]  # fmt: skip
    assert all(line.endswith(".") and not line.endswith("...") for line in commands)


def processor_s(*words: str) -> float:
    """Return the processor time of a command, seconds."""
    before = os.times()
    assert slotsim(*words).returncode == 0
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "scenarios").glob("*.yaml")))
def test_capacity_takes_half_a_second_more_than_the_version(name: str) -> None:
    """On a machine that others use as well the least of some runs counts."""
    more_s = [processor_s("capacity", f"scenarios/{name}") - processor_s("--version") for _ in range(5)]
    assert min(more_s) <= 0.5


def test_a_whole_report_with_its_figures(tmp_path: Path) -> None:
    result = slotsim("run", PEAK, "--set", "load.requests=40", "--no-curve", "--out", str(tmp_path))
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.decode().endswith(f"report: {tmp_path}/report.html\n")
    names = {path.name for path in tmp_path.iterdir()}
    assert {"summary.json", "scenario.yaml", "requests.csv", "calls.csv", "report.html", "report.md"} <= names
    assert list((tmp_path / "figures").glob("*.svg"))


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    words = ("run", "scenarios/open.yaml", "--set", "load.requests=5000000", "--workers", "1")
    process = subprocess.Popen(
        [*SLOTSIM, *words, "--out", str(tmp_path / "out")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    process.kill()


def test_ctrl_c_leaves_nothing_and_says_so_in_one_line(
    running: subprocess.Popen[str], tmp_path: Path
) -> None:
    time.sleep(4)
    running.send_signal(signal.SIGINT)
    shown, told = running.communicate(timeout=60)
    # Python ends by the signal itself, which a shell calls 130 too, where Ctrl-C met the text of an exec().
    assert running.returncode in (130, -signal.SIGINT)
    assert (shown, told) == ("", "interrupted; nothing half-written is left\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [f"gains {PEAK}", f"decide {PEAK} --json", "schema", "--help"])
def test_a_closed_pipe_is_quiet(words: str) -> None:
    line = f"{sys.executable} -m sim {words} | true"
    result = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told() -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [*SLOTSIM, "gains", PEAK], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    told = "standard output could not be written: No space left on device\n"
    assert (result.returncode, result.stderr) == (2, told)


def test_output_in_a_pipe_has_no_colours_and_does_not_depend_on_the_terminal() -> None:
    words = ("compare", OFF_PEAK, PEAK, "--set", "load.requests=40")
    narrow, wide = (slotsim(*words, COLUMNS=columns).stdout for columns in ("40", "300"))
    assert narrow == wide
    assert narrow
    assert b"\x1b" not in narrow


def test_an_ascii_terminal_gets_question_marks_instead_of_an_error() -> None:
    words = ("run", "scenarios/off-peak-random.yaml", "--set", "load.requests=60", "--plan", "serial")
    result = slotsim(*words, PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert b" ? " in result.stdout
