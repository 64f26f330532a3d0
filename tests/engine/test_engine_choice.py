"""Which engine runs, and why."""

import subprocess
import sys

import pytest

from sim.engine import ENGINES, Engine, select_engine
from sim.engine.choice import WORTH_COMPILING, run_shared_compiled
from sim.engine.compiled import run as run_compiled
from sim.engine.shared.model import run_shared
from sim.engine.simpy_model import run
from sim.errors import ArgumentError


@pytest.mark.parametrize(
    ("name", "requests", "expected"),
    [
        ("simpy", 10**7, Engine("simpy", run, run_shared, "asked for")),
        ("compiled", 1, Engine("compiled", run_compiled, run_shared_compiled, "asked for")),
        ("auto", WORTH_COMPILING - 1, Engine("simpy", run, run_shared, "fewer than 30,000 requests")),
        (
            "auto",
            WORTH_COMPILING,
            Engine("compiled", run_compiled, run_shared_compiled, "30,000 requests or more"),
        ),
    ],
)
def test_an_engine_is_chosen_by_name_or_by_size(name: str, requests: int, expected: Engine) -> None:
    assert select_engine(name, requests) == expected


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(ArgumentError) as error:
        select_engine("numba", 1)
    assert ENGINES == ("auto", "compiled", "simpy")
    assert str(error.value) == "engine must be one of auto, compiled, simpy (got 'numba')"


def test_without_numba_auto_says_why_it_runs_simpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.engine.choice.find_spec", lambda _name: None)
    assert select_engine("auto", 10**7) == Engine("simpy", run, run_shared, "numba is not installed")


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
from sim.engine import select_engine
from sim.errors import EngineError
try:
    select_engine("compiled", 1)
except EngineError as error:
    print(error)
"""


def test_without_numba_the_compiled_engine_names_the_extra() -> None:
    found = subprocess.run([sys.executable, "-c", WITHOUT_NUMBA], capture_output=True, text=True, check=True)
    assert found.stdout == (
        "engine compiled needs numba, which is not installed: pip install 'slotsim[compiled]'\n"
    )


def test_auto_does_not_import_numba_for_a_small_run() -> None:
    code = "import sys, sim.engine; sim.engine.select_engine('auto', 10); sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
