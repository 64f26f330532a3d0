"""What each request of a run came to: delivered or not, and its price."""

from dataclasses import dataclass

import numpy as np

from sim.contract.plain import BoolArray
from sim.contract.run import DEGRADED, SUCCEEDED
from sim.plan.cost import parallel_cost_micros, serial_cost_micros
from sim.run.attempt_cost import request_costs_micros
from sim.run.simulation import Run
from sim.scenario import Scenario
from sim.units import FloatArray, IntArray


@dataclass(frozen=True, repr=False)
class Accounts:
    """One element per request of a run, all workloads together.

    Parameters
    ----------
    cost_micros
        float64: everything that its attempts cost.
    outcome
        int64: one of `SUCCEEDED` .. `DEADLINE_MISSED` of `sim.contract.run`.
    workload
        int64: the index of its workload.
    """

    cost_micros: FloatArray
    outcome: IntArray
    workload: IntArray

    @property
    def delivered(self) -> BoolArray:
        """Whether a request was answered with a join, of all branches or of those that were left."""
        return np.less_equal(self.outcome, DEGRADED)


def accounts_of(scenario: Scenario, run: Run) -> Accounts:
    """Return what each request of a run came to."""
    if run.shared is not None:
        out = run.shared.out
        costs = [request_costs_micros(part, out, index) for index, part in enumerate(scenario.parts)]
        return Accounts(np.sum(costs, axis=0), out.outcome, out.workload)
    plan = scenario.parallel_plan(1)
    costs_micros = np.array([serial_cost_micros(plan), parallel_cost_micros(plan)], dtype=np.float64)
    succeeded, first = np.broadcast_to(np.array([[SUCCEEDED], [0]]), (2, run.out.requests))
    return Accounts(costs_micros[run.out.ran_parallel.view(np.int8)], succeeded, first)
