"""Which engine runs: by its name, or by what the run is large enough for."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol

from sim.contract.load import Progress
from sim.contract.output import RunOutput
from sim.contract.plain import PlainInput, PlainOutput, PlainRunOutput, plain_view
from sim.contract.run import RunInput
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


class Run(Protocol):
    """Simulates any run; `progress` is called now and then with the number of completed requests."""

    def __call__(self, given: RunInput, progress: Progress | None = None) -> RunOutput: ...


class PlainRun(Protocol):
    """Simulates a plain run."""

    def __call__(self, given: PlainInput, progress: Progress | None = None) -> PlainOutput: ...


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine: a fast path for plain runs, a model for all runs, and why it was chosen, in words."""

    name: str
    plain: PlainRun
    general: Run
    why: str = ""

    def run(self, given: RunInput, progress: Progress | None = None) -> RunOutput:
        """Simulate one run.

        Raises
        ------
        DrawsExhaustedError
            A closed load with an end outlasted its arrays.
        EngineError
            The compiled engine cannot run this input.
        """
        return self.path_of(given)(given, progress)

    def path_of(self, given: RunInput) -> Run:
        """Return what this run takes: the fast path, which runs plain inputs alone, or the model."""
        return self.general if plain_view(given) is None else self.run_plain

    def run_plain(self, given: RunInput, progress: Progress | None = None) -> RunOutput:
        """Simulate a run that is plain."""
        plain = plain_view(given)
        assert plain is not None
        return PlainRunOutput(plain, self.plain(plain, progress))


def select_engine(name: str, requests: int) -> Engine:
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


def simpy_engine(why: str = "") -> Engine:
    """Return the SimPy models, the ones to read."""
    return Engine("simpy", run_simpy, run_shared_simpy, why)


def compiled_engine(why: str) -> Engine:
    """Return the compiled engine."""
    from sim.engine.compiled import run  # noqa: PLC0415  it needs numba to be there

    return Engine("compiled", run, run_shared_compiled, why)


def run_shared_compiled(given: RunInput, progress: Progress | None = None) -> RunOutput:
    """Simulate one run on shared providers with compiled kernels, which import numba."""
    from sim.engine.shared.compiled import run_shared  # noqa: PLC0415  only where it is used

    return run_shared(given, progress)
