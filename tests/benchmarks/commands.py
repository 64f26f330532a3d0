"""Whole commands: how long they take from the shell, and how much memory."""

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import sim
from tests.benchmarks import event_loop
from tests.benchmarks.measuring import ROUNDS, child_cpu_s, cpu_s, say, spread, wall_s
from tests.benchmarks.workloads import workload

SCENARIO = """
schema_version: 1
name: {name}
provider: {{concurrency: 20, allocation: {allocation}}}
workflow:
  name: fork_join
  branches:
    - {{id: policy, duration_ms: 260}}
    - {{id: sensitive_words, duration_ms: 160}}
  join_overhead_ms: 35
load: {{kind: open, arrivals: poisson, rate_per_s: 38.0952380952, requests: {requests}}}
plans: [parallel]
experiment: {{seed: 1, replications: {replications}}}
"""
SMALL, LARGE, REPEATED = 10_000, 10**7, 2 * 10**6
REPLICATIONS = 8

# The peak is not that of getrusage, in which a process starts with the peak of the one that started it.
RUN = """
import re, sys
from pathlib import Path
from sim.cli import main
sys.argv[0] = "slotsim"
try:
    main()
finally:
    status = Path("/proc/self/status")
    peak = re.search(r"VmHWM:\\s+(\\d+) kB", status.read_text())[1] if status.exists() else ""
    Path(sys.argv[2] + ".peak").write_text(peak)
"""


class Limit(NamedTuple):
    """What a command was measured at, and what it is to stay within (or to reach)."""

    what: str
    measured: float
    limit: float
    unit: str
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit


def limits(library: ctypes.CDLL | None, quick: bool) -> list[dict[str, Any]]:
    """Measure commands one after another; wall seconds mean little on a busy machine."""
    found: list[Limit] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measures: list[Callable[[], list[Limit]]] = [partial(start, folder), help_]
        if not quick:
            measures += [partial(large, library, folder), partial(workers, folder)]
        for measure in measures:
            found += told(measure())
    return [one._asdict() | {"met": one.met} for one in found]


def told(measured: list[Limit]) -> list[Limit]:
    """Say what was measured."""
    for one in measured:
        say(f"{one.what}: {one.measured:.3g} {one.unit}")
    return measured


def scenario(folder: Path, name: str, requests: int, replications: int = 1) -> Path:
    """Write a workload as a scenario file and return its path."""
    path = folder / f"{name}-{requests}-{replications}.yaml"
    allocation = "fair_share" if name == "W3" else "fifo"
    stated = {"name": name, "allocation": allocation, "requests": requests, "replications": replications}
    path.write_text(SCENARIO.format(**stated))
    return path


def command_s(*arguments: str, cache: str) -> float:
    """Return the wall seconds of a Python process of its own."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, *arguments]
    return wall_s(partial(subprocess.run, command, env=environment, check=True, capture_output=True))


def start(folder: Path) -> list[Limit]:
    """Measure `slotsim run` of 10,000 requests of W3, compiling and not; wall, the median of five."""
    run = ("-m", "sim", "run", str(scenario(folder, "W3", SMALL)), "--engine", "compiled")
    cold = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(command_s(*run, cache=cache))
    kept = str(folder / "kept")
    command_s(*run, cache=kept)
    warm = [command_s(*run, cache=kept) for _ in range(ROUNDS)]
    return [
        Limit(f"slotsim run, {SMALL:,} requests of W3, nothing kept", spread(cold).median, 4, "s"),
        Limit(f"slotsim run, {SMALL:,} requests of W3, kernels kept", spread(warm).median, 1.5, "s"),
    ]


def help_() -> list[Limit]:
    """Measure `slotsim --help` beside what it cannot do without."""
    rounds = [
        command_s("-m", "sim", "--help", cache="") / command_s("-c", "import typer", cache="")
        for _ in range(ROUNDS)
    ]
    return [Limit("slotsim --help against `import typer`", spread(rounds).median, 3, "times as long")]


def large(library: ctypes.CDLL | None, folder: Path) -> list[Limit]:
    """Measure `slotsim run` of 10**7 requests of W2: CPU against the C++ loop alone, in turn; peak memory."""
    path, cache = str(scenario(folder, "W2", LARGE)), str(folder / "kept")
    run = partial(child_cpu_s, RUN, cache, "run", path, "--engine", "compiled")
    found = []
    if library is not None:
        given = workload("W2", LARGE)
        loop = partial(event_loop.call, library, "fifo_loop", given, True)
        rounds = [run() / cpu_s(loop) for _ in range(3)]
        found.append(
            Limit(
                f"slotsim run, {LARGE:,} requests of W2, against the C++ loop with tables",
                spread(rounds).median,
                5,
                "times as long",
            )
        )
    else:
        run()
    # sys.argv[2] of the command is the path of the scenario
    peak = Path(path + ".peak").read_text()
    if peak:
        found.append(
            Limit(f"its peak memory, {LARGE:,} requests", 1024 * int(peak) / LARGE, 200, "bytes per request")
        )
    return found


def workers(folder: Path) -> list[Limit]:
    """Measure replications in two processes, once they are there, against one; wall, in turn."""
    loaded = sim.load_scenario(scenario(folder, "W2", REPEATED, REPLICATIONS))

    def simulate(workers: int) -> None:
        """Do what `slotsim run` does but for printing it."""
        sim.simulate(loaded, engine="compiled", workers=workers).summary()

    simulate(workers=2)
    rounds = [
        wall_s(partial(simulate, workers=1)) / wall_s(partial(simulate, workers=2)) for _ in range(ROUNDS)
    ]
    return [
        Limit(
            f"{REPLICATIONS} replications of {REPEATED:,} requests of W2 on two workers against one",
            spread(rounds).median,
            1.7,
            "times as fast",
            at_least=True,
        )
    ]
