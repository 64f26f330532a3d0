"""The public face: every name can be imported, and an import costs nothing before its name is used."""

import subprocess
import sys
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
