"""The public face: every name can be imported, and an import costs nothing before its name is used."""

import importlib
import pkgutil
import subprocess
import sys
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from typing import Any

import pytest

import sim

NAMES = sorted(sim.public_imports())


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(sim, name).__name__ == name
    assert name in dir(sim)


def test_results_errors_and_the_version_are_public() -> None:
    results = {"Result", "PlanResult", "Comparison", "FlipTable", "Gains", "Sizing", "Sensitivity", "Sweep"}
    errors = {
        "SlotsimError",
        "InputError",
        "ArgumentError",
        "PlanError",
        "EngineError",
        "OutputError",
        "CheckError",
    }
    assert {*results, *errors, "PolicyResult", "Scenario"} <= set(NAMES)
    assert sim.__version__ == version("slotsim")


def test_a_star_takes_the_public_names_alone() -> None:
    taken: dict[str, Any] = {}
    exec("from sim import *", taken)
    assert set(taken) - {"__builtins__"} == {*NAMES, "choose_plan", "__version__"}


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'sim' has no attribute 'simulat'$"):
        _ = sim.simulat


def test_importing_the_package_imports_no_library() -> None:
    code = "import sim, sys; print(*sorted({'numpy', 'pandas', 'simpy', 'pydantic'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""


def dataclasses_of_the_package() -> list[type]:
    for module in pkgutil.walk_packages(sim.__path__, "sim."):
        if module.name != "sim.__main__":
            importlib.import_module(module.name)
    return [
        found
        for module in list(sys.modules.values())
        if module is not None and module.__name__.split(".")[0] == "sim"
        for found in vars(module).values()
        if isinstance(found, type) and is_dataclass(found) and found.__module__ == module.__name__
    ]


def test_a_repr_never_prints_arrays() -> None:
    found = dataclasses_of_the_package()
    assert len(found) > 100
    printing = [
        one.__qualname__
        for one in found
        if any("ndarray" in str(field.type) for field in fields(one))
        and "__repr__" in vars(one)
        and one is not sim.PlanResult
    ]
    assert printing == []


def test_results_say_what_they_are_in_a_line() -> None:
    scenario = sim.load_scenario("scenarios/off-peak.yaml").replace({"load.requests": 20})
    result = sim.simulate(scenario, engine="simpy")
    assert repr(result.plan("serial")) == "<PlanResult of serial: mean latency 420.0 ms, deterministic>"
    shown = [repr(one) for one in (result, *result.plans, result.plans[0].first_run, scenario)]
    assert max(map(len, shown)) < 400
    assert "array" not in "".join(shown)
