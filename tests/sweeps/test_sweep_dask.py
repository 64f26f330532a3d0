"""Sweeps on a Dask cluster of this machine: the same bytes, and the loss of a worker changes nothing."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sim.errors import EngineError
from sim.run.backend import DaskBackend
from sim.scenario import Scenario, load_scenario
from sim.sweeps.grid import Grid
from sim.sweeps.sweep import sweep
from sim.sweeps.table import write_parquet
from tests.small_scenarios import ROOT

pytest.importorskip("distributed")

SMALL = ("load.requests=20", "plans=[serial, parallel]")
VARY = ["load.active_requests=1:12", "provider.concurrency=10:40:10"]
VARY_MORE = ["load.active_requests=1:20", "workflow.shared_context.prefix_reuse_ratio=0:0.95:0.05"]
SECONDS_TO_START = 30


class Cluster:
    """A scheduler and two workers, processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        self.scheduler = self._dask("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        self.workers = [
            self._dask("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
            for _ in range(2)
        ]
        deadline_s = time.monotonic() + SECONDS_TO_START
        while not self.file.exists() or not self.file.read_text().endswith("}"):
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        self.address: str = json.loads(self.file.read_text())["address"]

    def _dask(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *words, "--scheduler-file", str(self.file)]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self) -> None:
        """End all of its processes."""
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path)
    yield started
    started.stop()


def small() -> Scenario:
    return load_scenario(ROOT / "scenarios" / "peak.yaml", SMALL)


def files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file of a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize(
    "vary", [pytest.param(VARY, id="48"), pytest.param(VARY_MORE, marks=pytest.mark.slow, id="400")]
)
def test_one_process_two_and_a_cluster_that_loses_a_worker_give_the_same_bytes(
    cluster: Cluster, tmp_path: Path, vary: list[str]
) -> None:
    grid = Grid.parsed(vary)
    alone, together, two = (tmp_path / name for name in ("alone", "together", "two"))
    write_parquet(sweep(small(), grid, out=alone, workers=1).rows, alone / "sweep.parquet")
    write_parquet(sweep(small(), grid, out=two, workers=2).rows, two / "sweep.parquet")
    lost_at: list[int] = []

    def lose_a_worker(done: int) -> None:
        if done >= len(grid) // 2 and not lost_at:
            lost_at.append(done)
            cluster.workers[0].kill()

    with DaskBackend(cluster.address) as backend:
        backend.wait_for(2)
        done = sweep(small(), grid, out=together, workers=backend, progress=lose_a_worker)
        assert backend.parallelism == 1
    write_parquet(done.rows, together / "sweep.parquet")
    assert 0 < lost_at[0] < len(grid)
    assert files(together) == files(alone) == files(two)


def test_what_goes_wrong_on_a_cluster_is_told_once(cluster: Cluster) -> None:
    with DaskBackend(cluster.address) as backend:
        with pytest.raises(ValueError, match="invalid literal"):
            list(backend.map(int, ["1", "x"]))
        assert list(backend.map(divmod, [3, 4], (10,))) == [(3, 1), (2, 2)]
        results = backend.map(time.sleep, [0.01] * 2000)
        next(results)
        cluster.stop()
        with pytest.raises(EngineError) as caught:
            list(results)
    assert str(caught.value) == f"Dask at {cluster.address}: the scheduler went away"
