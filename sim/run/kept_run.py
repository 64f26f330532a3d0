"""A run whose tables are kept; between processes a large one goes as what it takes to make it again."""

from functools import cached_property
from typing import Any

import numpy as np

from sim.engine import select_engine
from sim.run.breakdown import TimeSpent, time_spent
from sim.run.simulation import Run, simulate_once
from sim.scenario import Scenario
from sim.scenario.model import PlanChoice

MOST_SENT = 100_000
"""Requests of a run that is sent whole: simulating a larger one again takes less time than sending it."""


class KeptRun:
    """One run of a plan, and what every result shows of it.

    Parameters
    ----------
    engine
        The name of the engine that ran.
    dropped
        How many requests the warm-up left out.
    run
        The run itself.
    """

    def __init__(self, scenario: Scenario, plan: PlanChoice, engine: str, dropped: int, run: Run) -> None:
        self.scenario = scenario
        self.plan = plan
        self.replication = run.replication
        self.engine = engine
        self.dropped = dropped
        self.__dict__["run"] = run

    @cached_property
    def run(self) -> Run:
        """The run: as it was, or simulated again, which gives the same."""
        engine = select_engine(self.engine, 0)
        return simulate_once(self.scenario, self.plan, self.replication, engine=engine)

    @cached_property
    def time_spent(self) -> TimeSpent:
        """Where the time of the requests went that were delivered after the warm-up."""
        after_warmup = np.arange(self.run.out.requests) >= self.dropped
        return time_spent(self.run, after_warmup & self.run.out.delivered)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self.run.out.requests > MOST_SENT:
            state["time_spent"] = self.time_spent
            del state["run"]
        return state
