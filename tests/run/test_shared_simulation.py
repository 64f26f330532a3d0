"""From a scenario to a run on shared providers, and from a plain scenario to the same nanoseconds on both."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from sim.contract.output import RunOutput
from sim.contract.plain import PlainRunOutput, plain_view, run_input
from sim.draws.run_input import run_input_of
from sim.engine.choice import Run as EngineRun
from sim.engine.shared.compiled import run_shared as run_compiled
from sim.engine.shared.model import run_shared
from sim.engine.simpy_model import run
from sim.run.simulation import simulate_once
from sim.scenario import Scenario, load_scenario
from sim.units import NS_PER_MS
from tests.engines import every_column, general_only
from tests.small_scenarios import Plain, closed_load, sample

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SHORT = {"closed": "load.requests=120", "open": "load.requests=120", "trace": "load.count=120"}
PLAIN = [
    path.stem for path in sorted(SCENARIOS.glob("*.yaml"))
    if load_scenario(path).is_plain and load_scenario(path).load.kind in SHORT
]  # fmt: skip


def assert_same(one: RunOutput, other: RunOutput) -> None:
    assert every_column(one) == every_column(other)


@pytest.mark.parametrize("name", PLAIN)
def test_a_shipped_plain_scenario_runs_the_same_on_shared_providers(name: str) -> None:
    kind = load_scenario(SCENARIOS / f"{name}.yaml").load.kind
    scenario = load_scenario(SCENARIOS / f"{name}.yaml", [SHORT[kind]])
    for plan in scenario.plans:
        given = run_input_of(scenario, plan, 0)
        plain = plain_view(given)
        assert plain is not None
        assert_same(PlainRunOutput(plain, run(plain)), run_shared(given))
        assert_same(PlainRunOutput(plain, run(plain)), run_shared(run_input(plain)))


def test_every_kind_of_plain_scenario_with_a_short_run_is_among_them() -> None:
    assert {"peak", "off-peak-random", "open", "trace", "chain-a", "gains"} <= set(PLAIN)


def two_providers(folder: Path, share: dict[str, Any]) -> Scenario:
    """Return workloads that call the first provider, the second, and both with a join on the first."""

    def workload(name: str, *providers: str, **more: Any) -> dict[str, Any]:
        branches = [
            {"id": f"call_{place}", "duration_ms": 10, "provider": provider}
            for place, provider in enumerate(providers)
        ]
        load = {"kind": "closed", "active_requests": 1, "requests": 2}
        return {"name": name, "workflow": {"name": name, "branches": branches, **more}, "load": load}

    content = {
        "schema_version": 1,
        "name": "two-providers",
        "providers": {"first": {"concurrency": 4}, "second": {"concurrency": 4}},
        "workloads": [
            workload("one", "first"),
            workload("two", "second") | {"share": share},
            workload("joins", "second", join_overhead_ms=5, join_holds_slot=True) | {"share": share},
        ],
    }
    file = folder / "two-providers.yaml"
    file.write_text(yaml.safe_dump(content))
    return load_scenario(file)


@pytest.mark.parametrize(
    "more",
    [
        {"deadline_ms": 1_000},
        {"retry": {"attempts": 3}},
        {"failures": {"server_error": 0.5}, "retry": {"attempts": 20, "backoff_ms": 0}},
        {"join_needs": 1},
        {"join_needs": 2, "siblings": "finish"},
    ],
)
@pytest.mark.parametrize("engine", [run_shared, run_compiled])
def test_a_join_that_holds_a_slot_beside_what_can_go_wrong(engine: EngineRun, more: Plain) -> None:
    branches = [{"id": "first", "duration_ms": 10, "timeout_ms": 500}, {"id": "second", "duration_ms": 10}]
    workflow = {"branches": branches, "join_overhead_ms": 20, "join_holds_slot": True, **more}
    scenario = sample(closed_load(1, 3), plans=["parallel"], workflow=workflow)
    run = simulate_once(scenario, scenario.plans[0], 0, engine=general_only(engine))
    attempts, is_join = run.out.attempts, run.out.attempts.call == 2
    last_ns = np.zeros(3, dtype=np.int64)
    np.maximum.at(last_ns, attempts.number[~is_join], attempts.finish_ns[~is_join])
    assert attempts.ready_ns[is_join].tolist() == last_ns.tolist()
    assert run.out.completion_ns.tolist() == (last_ns + 20 * NS_PER_MS).tolist()
    if "failures" not in more:
        assert run.out.latency_ns.tolist() == [30 * NS_PER_MS] * 3


def test_slots_are_reserved_only_on_the_providers_that_a_workload_calls(tmp_path: Path) -> None:
    scenario = two_providers(tmp_path, {"reserved_slots": 2})
    given = run_input_of(scenario, scenario.plans[0], 0)
    assert [provider.reserved for provider in given.providers] == [(0, 0, 2), (0, 2, 2)]
