"""One plan, one replication: draws in, a checked run out."""

from dataclasses import dataclass

import numpy as np

from sim.check import CheckReport, check_run
from sim.contract.allocation import allocation_named
from sim.contract.run import WorkloadInput
from sim.draws.drawing import draw
from sim.draws.engine_input import engine_input
from sim.engine import DrawsExhaustedError, Engine, EngineInput, EngineOutput, Progress, SharedEngine
from sim.engine import run as simpy_run
from sim.engine.shared.model import run_shared as simpy_run_shared
from sim.run.shared_simulation import SharedRun, simulate_shared
from sim.run.shared_view import merged_view
from sim.scenario import Scenario
from sim.scenario.model import PlanChoice
from sim.units import stretches, sum_exact


@dataclass(frozen=True, repr=False)
class Run:
    """One checked run.

    Parameters
    ----------
    given, out
        What the engine was given and what came out. Of a run on shared providers, `given` is its first
        workload as if alone, and `out` the calls that counted, all workloads together.
    checks
        What the checks counted.
    shared
        The run itself, where providers are shared, limited, failing or cached.
    """

    plan: str
    replication: int
    given: EngineInput
    out: EngineOutput
    checks: CheckReport
    shared: SharedRun | None = None

    def busy_ns(self, start_ns: int, end_ns: int) -> int:
        """Return the slot-time in use between two instants, by calls of any outcome."""
        if self.shared is not None:
            held = self.shared.out.attempts
            from_ns, to_ns = held.start_ns[held.slot >= 0], held.finish_ns[held.slot >= 0]
        else:  # a call that was not made begins and ends at the same time
            from_ns, to_ns = self.out.start_ns, self.out.finish_ns
        return sum(
            sum_exact(np.clip(to_ns[rows], start_ns, end_ns) - np.clip(from_ns[rows], start_ns, end_ns))
            for rows in stretches(len(to_ns))
        )

    def available_ns(self, start_ns: int, end_ns: int) -> int:
        """Return the slot-time that the providers offered between two instants."""
        if self.shared is None:
            return self.given.slots * (end_ns - start_ns)
        return sum(one.slot_time_ns(start_ns, end_ns) for one in self.shared.given.providers)


def simulate_once(
    scenario: Scenario,
    plan: PlanChoice,
    replication: int,
    progress: Progress | None = None,
    engine: Engine = simpy_run,
    *,
    shared_engine: SharedEngine = simpy_run_shared,
) -> Run:
    """Simulate one replication (0-based) of one plan and check it.

    Providers that are shared, limited, failing or cached take the `shared_engine`.

    Raises
    ------
    CheckError
        The result contradicts a check.
    """
    if not scenario.is_plain:
        shared = simulate_shared(scenario, plan, replication, progress, shared_engine)
        given = first_alone(scenario, shared.given.workloads[0])
        return Run(
            plan.label, replication, given, merged_view(shared.given, shared.out), shared.checks, shared
        )
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


def first_alone(scenario: Scenario, first: WorkloadInput) -> EngineInput:
    """Return the first workload of a run on shared providers, with the draws of that run, as if alone."""
    return EngineInput(
        slots=scenario.provider.concurrency,
        allocation=allocation_named(scenario.provider.allocation),
        service_ns=first.service_ns,
        join_ns=first.join_ns,
        dependencies=first.dependencies,
        serial_order=first.serial_order,
        runs_parallel_at=first.runs_parallel_at,
        load=first.load,
        max_degree=first.max_degree,
    )
