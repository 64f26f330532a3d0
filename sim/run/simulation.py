"""One plan, one replication: draws in, a checked run out."""

from dataclasses import dataclass

import numpy as np

from sim.check import CheckReport, check_run
from sim.contract.load import DrawsExhaustedError, Progress
from sim.contract.output import NO_SLOT, RunOutput
from sim.contract.run import RunInput
from sim.draws.run_input import run_input_of
from sim.engine import Engine, simpy_engine
from sim.scenario import Scenario
from sim.scenario.model import PlanChoice
from sim.units import stretches, sum_exact


@dataclass(frozen=True, repr=False)
class Run:
    """One checked run: what the engine was given, what came out, and what the checks counted."""

    plan: str
    replication: int
    given: RunInput
    out: RunOutput
    checks: CheckReport

    def busy_ns(self, start_ns: int, end_ns: int) -> int:
        """Return the slot-time in use between two instants, by calls of any outcome."""
        attempts = self.out.attempts
        return sum(
            sum_exact(
                np.where(
                    attempts.slot[rows] != NO_SLOT,
                    np.clip(attempts.finish_ns[rows], start_ns, end_ns)
                    - np.clip(attempts.start_ns[rows], start_ns, end_ns),
                    0,
                )
            )
            for rows in stretches(len(attempts.slot))
        )

    def available_ns(self, start_ns: int, end_ns: int) -> int:
        """Return the slot-time that the providers offered between two instants."""
        return sum(one.slot_time_ns(start_ns, end_ns) for one in self.given.providers)


def simulate_once(
    scenario: Scenario,
    plan: PlanChoice,
    replication: int,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> Run:
    """Simulate one replication (0-based) of one plan and check it; on the SimPy models, where none is given.

    Raises
    ------
    CheckError
        The result contradicts a check.
    """
    engine = engine or simpy_engine()
    requests: dict[int, int] = {}
    while True:
        given = run_input_of(scenario, plan, replication, requests)
        run = engine.path_of(given)
        try:
            out = run(given, progress)
            break
        except DrawsExhaustedError as error:
            requests[error.workload] = 2 * given.workloads[error.workload].load.requests
    return Run(plan.label, replication, given, out, check_run(given, out, run))
