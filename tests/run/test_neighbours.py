"""Workloads beside each other: each has the requests that its own load asks for, whatever the others draw."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from sim.contract.load import DrawsExhaustedError, OpenArrivals
from sim.contract.output import RunOutput
from sim.draws.run_input import run_input_of
from sim.engine import select_engine
from sim.engine.choice import Run as EngineRun
from sim.run.simulation import Run, simulate_once
from sim.scenario import Scenario, load_scenario
from sim.units import NS_PER_MS, IntArray
from tests.engines import general_only

ENGINES = ("simpy", "compiled")
# A serial request has no join, so that its user asks eleven times as often as a parallel one would.
BUSIER_THAN_EXPECTED = {"kind": "steps", "steps": [{"at_s": 0, "active_requests": 2}], "end_s": 1}
LOADS: dict[str, Any] = {
    "closed": {"kind": "closed", "active_requests": 2, "requests": 10},
    "open": {"kind": "open", "arrivals": "fixed", "rate_per_s": 50, "duration_s": 1},
    "trace": {
        "kind": "trace",
        "file": "trace.csv",
        "format": "csv",
        "columns": {"timestamp": "at"},
        "time_unit": "ms",
    },
    "profile": {"kind": "profile", "points": [{"at_s": 0, "rate_per_s": 20}], "end_s": 1},
    "steps": BUSIER_THAN_EXPECTED,
}
TRACE_MS = [0, 5, 5, 400]


def beside_each_other(folder: Path, *kinds: str) -> Scenario:
    """Return a scenario with a workload for each kind of load, named by its place and kind."""
    workloads = [
        {
            "name": f"{place}_{kind}",
            "workflow": {
                "name": f"{place}_{kind}",
                "branches": [{"id": "call", "duration_ms": 10}],
                "join_overhead_ms": 100,
            },
            "load": LOADS[kind],
        }
        for place, kind in enumerate(kinds)
    ]
    (folder / "trace.csv").write_text("\n".join(["at", *map(str, TRACE_MS)]))
    content = {
        "schema_version": 1,
        "name": "neighbours",
        "provider": {"concurrency": 20},
        "workloads": workloads,
        "plans": ["serial"],
    }
    file = folder / "neighbours.yaml"
    file.write_text(yaml.safe_dump(content))
    return load_scenario(file)


def shared_engine(name: str) -> EngineRun:
    return select_engine(name, 0).general


def run_of(scenario: Scenario, engine: str) -> Run:
    return simulate_once(scenario, scenario.plans[0], 0, engine=general_only(shared_engine(engine)))


def arrivals_ms(out: RunOutput, workload: int) -> list[float]:
    return in_ms(out.arrival_ns[out.workload == workload])


def in_ms(times_ns: IntArray) -> list[float]:
    return [time_ns / NS_PER_MS for time_ns in times_ns.tolist()]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_workload_that_outlasts_its_draws_leaves_its_neighbours_as_they_are(
    tmp_path: Path, engine: str
) -> None:
    scenario = beside_each_other(tmp_path, "closed", "open", "steps", "trace", "profile")
    run = run_of(scenario, engine)
    assert arrivals_ms(run.out, 0) == [10 * (place // 2) for place in range(10)]
    assert arrivals_ms(run.out, 1) == [20 * place for place in range(1, 50)]
    assert arrivals_ms(run.out, 2) == [10 * (place // 2) for place in range(200)]
    assert arrivals_ms(run.out, 3) == TRACE_MS
    expected = run_input_of(scenario, scenario.plans[0], 0)
    profile = expected.workloads[4].load
    assert isinstance(profile, OpenArrivals)
    assert arrivals_ms(run.out, 4) == in_ms(profile.arrival_ns)
    # Only the one that ran out was drawn again, with twice as many each time: 25 at first.
    assert [one.load.requests for one in expected.workloads] == [10, 49, 25, 4, len(arrivals_ms(run.out, 4))]
    assert [len(one.join_ns) for one in run.given.workloads] == [10, 49, 200, 4, len(arrivals_ms(run.out, 4))]


def test_two_workloads_that_outlast_their_draws_are_drawn_longer_each_for_itself(tmp_path: Path) -> None:
    scenario = beside_each_other(tmp_path, "steps", "closed", "steps")
    runs = [run_of(scenario, engine) for engine in ENGINES]
    for run in runs:
        assert [len(one.join_ns) for one in run.given.workloads] == [200, 10, 200]
        assert np.bincount(run.out.workload).tolist() == [200, 10, 200]
    assert np.array_equal(runs[0].out.completion_ns, runs[1].out.completion_ns)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_says_which_workload_ran_out(tmp_path: Path, engine: str) -> None:
    scenario = beside_each_other(tmp_path, "closed", "steps")
    with pytest.raises(DrawsExhaustedError) as error:
        shared_engine(engine)(run_input_of(scenario, scenario.plans[0], 0))
    assert error.value.workload == 1


def test_the_first_workload_of_a_run_has_the_draws_of_the_run(tmp_path: Path) -> None:
    scenario = beside_each_other(tmp_path, "steps", "closed")
    run = simulate_once(scenario, scenario.plans[0], 0)
    assert len(run.given.workloads[0].join_ns) == 200
    assert run.out.requests == 210


def test_more_draws_leave_the_first_ones_as_they_were(tmp_path: Path) -> None:
    scenario = beside_each_other(tmp_path, "steps", "closed")
    few = run_input_of(scenario, scenario.plans[0], 0)
    many = run_input_of(scenario, scenario.plans[0], 0, {0: 70})
    assert many.workloads[0].service_ns[:25].tolist() == few.workloads[0].service_ns.tolist()
    assert len(many.workloads[0].service_ns) == 70
    assert many.workloads[1].service_ns.tolist() == few.workloads[1].service_ns.tolist()
