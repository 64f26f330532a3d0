"""One plan, one replication: draws in, a checked run out."""

from dataclasses import dataclass
from typing import Protocol

from sim.check import CheckReport, check_run
from sim.engine import DrawsExhaustedError, EngineInput, EngineOutput, Progress
from sim.engine import run as simpy_run
from sim.engine_input import engine_input
from sim.scenario import Scenario
from sim.scenario.model import PlanChoice
from sim.workload import draw


class Engine(Protocol):
    """What every engine is called with."""

    def __call__(self, given: EngineInput, progress: Progress | None = None) -> EngineOutput: ...


@dataclass(frozen=True)
class Run:
    """One checked run: what the engine was given, what came out, and what the checks counted."""

    plan: str
    replication: int
    given: EngineInput
    out: EngineOutput
    checks: CheckReport


def simulate_once(
    scenario: Scenario,
    plan: PlanChoice,
    replication: int,
    progress: Progress | None = None,
    engine: Engine = simpy_run,
) -> Run:
    """Simulate one replication (0-based) of one plan and check it.

    Raises
    ------
    CheckError
        The result contradicts a check.
    """
    draws = draw(scenario, replication)
    while True:
        given = engine_input(scenario, plan, draws)
        try:
            out = engine(given, progress)
            break
        except DrawsExhaustedError:
            draws = draw(scenario, replication, 2 * len(draws.join_ns))
    checks = check_run(given, out, engine)
    return Run(plan.label, replication, given, out, checks)
