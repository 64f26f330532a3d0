"""Levels of load of scenarios that state their workload, or their providers, by name."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import sim
from sim.answers.flip import FlipTable, at_level, find_flip
from sim.errors import ArgumentError
from sim.scenario import Scenario, load_scenario

BRANCHES = [{"id": "policy", "duration_ms": 30}, {"id": "words", "duration_ms": 20}]
WORKLOAD = {
    "workflow": {"name": "same", "branches": BRANCHES, "join_overhead_ms": 5},
    "load": {"kind": "closed", "active_requests": 2, "think_time_ms": 1, "requests": 8},
}
PROVIDER = {"concurrency": 4}
AT_LEVEL = ("active_requests", 3, "fifo", 10, 100)


def read(folder: Path, **content: Any) -> Scenario:
    """Return a scenario, read from a file, with whatever it says of workloads and providers."""
    file = folder / "scenario.yaml"
    file.write_text(yaml.safe_dump({"schema_version": 1, "name": "named", **content}))
    return load_scenario(file)


def listed(*names: str, **more: Any) -> dict[str, Any]:
    return {"workloads": [{"name": name, **WORKLOAD, **more} for name in names]}


def flip_of(scenario: Scenario) -> FlipTable:
    return sim.flip(
        scenario, active=[1, 2, 3, 4], allocations=["fair_share"], requests_per_user=20, workers=1
    )


@pytest.mark.parametrize("content", [listed("same"), WORKLOAD])
@pytest.mark.parametrize("providers", [{"provider": PROVIDER}, {"providers": {"x.y[0]": PROVIDER}}])
def test_names_make_no_difference(content: Any, providers: Any, tmp_path: Path) -> None:
    plain = flip_of(read(tmp_path, **WORKLOAD, provider=PROVIDER))
    assert told(flip_of(read(tmp_path, **content, **providers))) == told(plain)


def told(table: FlipTable) -> list[tuple[object, ...]]:
    """Return what a table says of each level, but for the bounds, which are those of a plain file alone."""
    return [
        (level.value, level.best, level.decision, level.reason, *(one.mean for one in level.plans.values()))
        for level in table.levels
    ]


def test_a_level_is_stated_where_the_file_states_the_load(tmp_path: Path) -> None:
    providers = {"first": PROVIDER, "second": {"concurrency": 2}}
    slo = {"rules": ["latency_ms_mean <= 9"]}
    found = at_level(read(tmp_path, **listed("one", slo=slo), providers=providers), *AT_LEVEL)
    assert found.load.model_dump()["active_requests"] == 3
    assert found.load.model_dump()["think_time_ms"] == 1
    assert found.slo is None
    assert {name: one.allocation for name, one in found.providers.items()} == {
        "first": "fifo",
        "second": "fifo",
    }


def test_a_border_is_found_in_a_list_of_one_workload(tmp_path: Path) -> None:
    plain = read(tmp_path, **WORKLOAD, provider=PROVIDER)
    found = find_flip(read(tmp_path, **listed("same"), provider=PROVIDER), 1, 4)
    assert found == find_flip(plain, 1, 4)


def test_several_workloads_have_no_one_load_to_vary(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError) as error:
        at_level(read(tmp_path, **listed("one", "two"), provider=PROVIDER), *AT_LEVEL)
    assert str(error.value) == "workloads must be one: it is its load that varies (got 2)"


def test_no_flip_is_named_beyond_capacity() -> None:
    table = sim.flip(
        load_scenario("scenarios/open.yaml"), rates=[20, 50, 60], allocations=["fifo"], requests=400
    )
    assert [level.decision for level in table.of("fifo")][1:] == ["overloaded", "overloaded"]
    assert [level.best for level in table.of("fifo")][1:] == ["overloaded", "overloaded"]
    assert "->" not in table.sentences()[0]
    assert table.sentences()[0].endswith("overloaded from 50 on: no verdict there")
    assert table.binding[0].endswith(
        "no steady state; 60 requests/s; largest sustainable rate 47.6 requests/s"
    )
