"""From a scenario to a run on shared providers, and from a plain scenario to the same nanoseconds on both."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from sim.contract.run import shared_input
from sim.draws.drawing import draw
from sim.draws.engine_input import engine_input
from sim.engine import EngineOutput, run
from sim.engine.shared.model import run_shared
from sim.run.shared_simulation import shared_input_of
from sim.run.shared_view import merged_view
from sim.scenario import Scenario, load_scenario

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SHORT = {"closed": "load.requests=120", "open": "load.requests=120", "trace": "load.count=120"}
PLAIN = [
    path.stem for path in sorted(SCENARIOS.glob("*.yaml"))
    if load_scenario(path).is_plain and load_scenario(path).load.kind in SHORT
]  # fmt: skip


def assert_same(one: EngineOutput, other: EngineOutput) -> None:
    for field in fields(EngineOutput):
        if field.name != "engine":
            assert np.array_equal(getattr(one, field.name), getattr(other, field.name)), field.name


@pytest.mark.parametrize("name", PLAIN)
def test_a_shipped_plain_scenario_runs_the_same_on_shared_providers(name: str) -> None:
    kind = load_scenario(SCENARIOS / f"{name}.yaml").load.kind
    scenario = load_scenario(SCENARIOS / f"{name}.yaml", [SHORT[kind]])
    for plan in scenario.plans:
        given = engine_input(scenario, plan, draw(scenario, 0))
        plain = run(given)
        for shared in (shared_input(given), shared_input_of(scenario, plan, 0)):
            assert_same(plain, merged_view(shared, run_shared(shared)))


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


def test_slots_are_reserved_only_on_the_providers_that_a_workload_calls(tmp_path: Path) -> None:
    scenario = two_providers(tmp_path, {"reserved_slots": 2})
    given = shared_input_of(scenario, scenario.plans[0], 0)
    assert [provider.reserved for provider in given.providers] == [(0, 0, 2), (0, 2, 2)]
