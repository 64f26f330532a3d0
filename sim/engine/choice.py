"""Which engine runs: by its name, or by what the run is large enough for."""

from importlib.util import find_spec
from typing import NamedTuple, Protocol

from sim.contract.plain import EngineInput, EngineOutput, Progress
from sim.contract.run import SharedInput, SharedOutput
from sim.engine.shared.model import run_shared as run_shared_simpy
from sim.engine.simpy_model import run as run_simpy
from sim.errors import ArgumentError

ENGINES = ("auto", "compiled", "simpy")

WORTH_COMPILING = 30_000
"""From so many requests on, the compiled engine is taken.

Measured with two branches, see `make bench`: it pays from 2,500 requests on where its kernel is kept already,
and from 110,000 to 150,000 on where it is compiled first. It cannot go by whether one is kept: the same
command would name another engine the second time.
"""

NO_NUMBA = "numba is not installed"


class Engine(Protocol):
    """What every engine is called with."""

    def __call__(self, given: EngineInput, progress: Progress | None = None) -> EngineOutput: ...


class SharedEngine(Protocol):
    """What every engine is called with where providers are shared, limited, failing or cached."""

    def __call__(self, given: SharedInput, progress: Progress | None = None) -> SharedOutput: ...


class EngineChoice(NamedTuple):
    """What to call, plain and shared, its name as outputs have it, and why it was chosen, in words."""

    run: Engine
    run_shared: SharedEngine
    name: str
    why: str


def select_engine(name: str, requests: int) -> EngineChoice:
    """Return the engine that simulates so many requests.

    Both give the same tables. Nothing but the arguments, and whether numba is installed, has an influence,
    so a command that is repeated chooses the same engine again.

    Parameters
    ----------
    name
        One of `ENGINES`. `auto` takes the compiled engine from `WORTH_COMPILING` requests on.
    requests
        Requests simulated in one process: those of all plans and replications together.

    Raises
    ------
    ArgumentError
        There is no engine of this name.
    EngineError
        The compiled engine is asked for and numba is not installed; the text names the extra.
    """
    if name not in ENGINES:
        raise ArgumentError("engine", f"must be one of {', '.join(ENGINES)}", name)
    if name == "simpy":
        return simpy_engine("asked for")
    if name == "compiled":
        return compiled_engine("asked for")
    if requests < WORTH_COMPILING:
        return simpy_engine(f"fewer than {WORTH_COMPILING:,} requests")
    if find_spec("numba") is None:
        return simpy_engine(NO_NUMBA)
    return compiled_engine(f"{WORTH_COMPILING:,} requests or more")


def simpy_engine(why: str) -> EngineChoice:
    """Return the SimPy models."""
    return EngineChoice(run_simpy, run_shared_simpy, "simpy", why)


def compiled_engine(why: str) -> EngineChoice:
    """Return the compiled engine."""
    from sim.engine.compiled import run  # noqa: PLC0415  it needs numba to be there

    return EngineChoice(run, run_shared_compiled, "compiled", why)


def run_shared_compiled(given: SharedInput, progress: Progress | None = None) -> SharedOutput:
    """Simulate one run on shared providers with compiled kernels, which import numba."""
    from sim.engine.shared.compiled import run_shared  # noqa: PLC0415  only where it is used

    return run_shared(given, progress)
