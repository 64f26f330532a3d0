"""What each request of a run came to: delivered or not, and its price."""

from dataclasses import dataclass

import numpy as np

from sim.contract.output import DEGRADED
from sim.run.attempt_cost import request_costs_micros
from sim.run.simulation import Run
from sim.scenario import Scenario
from sim.units import BoolArray, FloatArray, IntArray


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
    costs = [request_costs_micros(part, run.out, index) for index, part in enumerate(scenario.parts)]
    return Accounts(np.sum(costs, axis=0), run.out.outcome, run.out.workload)
