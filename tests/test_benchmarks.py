"""The benchmark compares like with like: everyone gives the same latencies from the same draws."""

from pathlib import Path

import numpy as np
import pytest

from sim.engine.compiled import run_events
from tests.benchmarks import event_loop
from tests.benchmarks.contenders import HANDWRITTEN, PRODUCT, contenders
from tests.benchmarks.measuring import Spread, assert_all_agree, ratios
from tests.benchmarks.workloads import workload


@pytest.mark.slow
def test_everyone_agrees(tmp_path: Path) -> None:
    everyone = contenders(event_loop.build(tmp_path))
    assert {HANDWRITTEN, PRODUCT} < {one.name for one in everyone}
    assert assert_all_agree(everyone) >= 17


@pytest.mark.parametrize(("name", "function"), [("W2", "fifo_loop"), ("W3", "fair_share_loop")])
def test_the_tables_of_the_yardstick_are_the_engine_s(tmp_path: Path, name: str, function: str) -> None:
    library = event_loop.build(tmp_path)
    if library is None:
        pytest.skip("there is no g++")
    given = workload(name, 3_000)
    out = run_events(given)
    loop = event_loop.call(library, function, given, records=True)
    wanted = (out.ready_ns, out.start_ns, out.finish_ns, out.slot)
    assert all(np.array_equal(found, table) for found, table in zip(loop.tables, wanted, strict=True))
    assert np.array_equal(loop.latency_ns, out.latency_ns)


def test_workloads_load_the_slots_by_0_8() -> None:
    for name in ("W1", "W2", "W3"):
        for lognormal in (False, True):
            given = workload(name, 20_000, lognormal=lognormal)
            horizon_ns = given.load.arrival_ns[-1]  # type: ignore[union-attr]
            assert given.service_ns.sum() / (horizon_ns * given.slots) == pytest.approx(0.8, rel=0.03)


def test_ratios_are_taken_round_by_round() -> None:
    found = {"fast": [100.0, 90.0, 120.0], "slow": [10.0, 10.0, 10.0]}
    assert ratios(found, "fast", "slow") == Spread(10, 9, 12)
    assert ratios(found, "fast", "absent") is None
