"""What is measured, and how: CPU seconds of this one thread, everyone in turn, five times."""

import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sim.check.compiled import verdict
from sim.contract.plain import PlainInput, PlainOutput
from sim.engine.compiled import initial_world, run_events, to_the_end
from sim.engine.compiled import run as run_compiled
from sim.units import IntArray
from tests.benchmarks import event_loop
from tests.benchmarks.contenders import CIMBA, Contender
from tests.benchmarks.workloads import NAMES, workload

ROUNDS = 5
AGREEING_REQUESTS = 4_000


def say(what: str) -> None:
    """Tell at once how far the benchmark is."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {what}\n")
    sys.stderr.flush()


class Spread(NamedTuple):
    """The median of the rounds, and the least and the greatest."""

    median: float
    least: float
    most: float


def spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))


def cpu_s(action: Callable[[], object]) -> float:
    """Return the CPU seconds that an action takes: waiting for a busy machine does not count."""
    before = time.process_time()
    action()
    return time.process_time() - before


def wall_s(action: Callable[[], object]) -> float:
    before = time.perf_counter()
    action()
    return time.perf_counter() - before


def assert_all_agree(contenders: Sequence[Contender]) -> int:
    """Make sure that everyone gives the same latencies from the same draws; return how many comparisons."""
    compared = 0
    for name in NAMES:
        for slots, lognormal in ((20, False), (20, True), (2_000, False)):
            given = workload(name, AGREEING_REQUESTS, slots, lognormal)
            wanted = run_events(given).latency_ns
            for contender in contenders:
                if name in contender.workloads and slots <= contender.most_slots:
                    assert_same(contender, contender.simulate(given), wanted)
                    compared += 1
    return compared


def assert_same(contender: Contender, found: IntArray, wanted: IntArray) -> None:
    if contender.name == CIMBA:  # which counts in floats of seconds, and gives the mean
        assert abs(found.item() - wanted.mean()) < 1, contender.name
    else:
        assert np.array_equal(found, wanted), contender.name


def rates(
    contenders: Sequence[Contender], name: str, slots: int = 20, lognormal: bool = False
) -> dict[str, list[float]]:
    """Return requests per CPU second of everyone who can run a workload, one value for each round."""
    able = [one for one in contenders if name in one.workloads and slots <= one.most_slots]
    given = {one.requests: workload(name, one.requests, slots, lognormal) for one in able}
    for one in able:
        one.simulate(workload(name, 100, slots, lognormal))
    found: dict[str, list[float]] = {one.name: [] for one in able}
    for _ in range(ROUNDS):
        for one in able:
            seconds = cpu_s(partial(one.simulate, given[one.requests]))
            found[one.name].append(one.requests / seconds)
    return found


def ratios(found: dict[str, list[float]], of: str, to: str) -> Spread | None:
    """Return how many times as fast one is as another, round by round."""
    if of not in found or to not in found:
        return None
    return spread([fast / slow for fast, slow in zip(found[of], found[to], strict=True)])


def scaling(sizes: Sequence[int]) -> dict[str, dict[int, float]]:
    """Return nanoseconds per request of the event loop for runs of these sizes, the least of five rounds.

    It is the time of the kernel alone, in memory that was allocated and written to before. The least, because
    on a busy machine a long run never finds the quiet moment that a short one does.
    """
    found: dict[str, dict[int, float]] = {}
    for name in NAMES:
        given = {requests: workload(name, requests) for requests in sizes}
        rounds = [{of: kernel_s(given[of]) / of for of in sizes} for _ in range(ROUNDS)]
        found[name] = {of: 1e9 * min(seconds[of] for seconds in rounds) for of in sizes}
        say(f"time by size, {name}: {found[name]}")
    return found


def kernel_s(given: PlainInput) -> float:
    """Return the CPU seconds of the kernel alone, in memory that was written to before."""
    world = initial_world(given)
    run, _, held, _ = world
    for table in (run.start_ns, run.finish_ns, run.slot, run.completion_ns):
        table.fill(0)
    for table in (held.holds, held.first, held.last, held.bits) if held is not None else ():
        table.fill(0)
    return cpu_s(partial(to_the_end, world))


def check_rates() -> dict[str, float]:
    """Return requests per CPU second that the compiled check holds against the rules."""
    found = {}
    for name in NAMES:
        given = workload(name, 500_000)
        out = run_compiled(given)
        verdict(given, out)
        found[name] = 500_000 / statistics.median(cpu_s(partial(verdict, given, out)) for _ in range(3))
    return found


def two_threads() -> Spread:
    """Return how many times as fast two replications of W3 are on two threads as one after the other."""
    given = [workload("W3", 1_000_000, seed=seed) for seed in (1, 2)]
    found = []
    for _ in range(ROUNDS):
        alone = wall_s(lambda: [run_events(one) for one in given])
        with ThreadPoolExecutor(2) as pool:
            together = wall_s(partial(run_all, pool, given))
        found.append(alone / together)
    return spread(found)


def run_all(pool: ThreadPoolExecutor, given: Sequence[PlainInput]) -> list[PlainOutput]:
    return list(pool.map(run_events, given))


# In processes of their own

PEAK = """
import re, sys
from pathlib import Path
from sim.check.compiled import verdict
from sim.engine.compiled import run
from tests.benchmarks.workloads import workload
requests = int(sys.argv[1])
run(workload("W2", 100)), run(workload("W3", 100))
given = workload(sys.argv[2], requests)
out = run(given)
if sys.argv[3] == "checked":
    verdict(given, out)
# Not by getrusage, in which a process starts with the peak of the one that started it.
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""

START = """
from sim.engine import select_engine
from tests.benchmarks.workloads import workload
select_engine("compiled", 1).plain(workload("W3", 10))
"""

CHECK = """
from sim.check.compiled import verdict
from sim.engine.simpy_model import run
from tests.benchmarks.workloads import workload
given = workload("W3", 10)
verdict(given, run(given))
"""

NOTHING = """
import sim.engine
import tests.benchmarks.workloads
"""


def run_python(code: str, *arguments: str, cache: str | None = None) -> str:
    environment = dict(os.environ)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


def bytes_per_request(name: str, checked: bool) -> float | None:
    """Return by how much the peak memory grows with each request, draws included; None if not on Linux."""
    if not Path("/proc/self/status").exists():
        return None
    few, many = 1_000_000, 3_000_000
    what = "checked" if checked else "run"
    peaks = [int(run_python(PEAK, str(requests), name, what)) for requests in (few, many)]
    return 1024 * (peaks[1] - peaks[0]) / (many - few)


def start_up_s() -> dict[str, float]:
    """Return the CPU seconds before the first request: importing, loading, the first time compiling."""
    found: dict[str, float] = {}
    for what, code in (("engine", START), ("check", CHECK)):
        with tempfile.TemporaryDirectory() as cache:
            nothing = min(child_cpu_s(NOTHING, cache) for _ in range(3))
            cold = child_cpu_s(code, cache)
            warm = min(child_cpu_s(code, cache) for _ in range(3))
        found |= {f"{what}, compiling": cold - nothing, f"{what}, from the cache": warm - nothing}
    return found


def child_cpu_s(code: str, cache: str, *arguments: str) -> float:
    """Return the CPU seconds of a Python process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run_python(code, *arguments, cache=cache)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def machine() -> dict[str, Any]:
    """Return what ran: processor and versions, nothing that names the machine."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "compiler": event_loop.compiler_version(),
        **{package: installed_version(package) for package in ("numpy", "numba", "simpy", "ciw", "cimba")},
    }


def processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def installed_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
