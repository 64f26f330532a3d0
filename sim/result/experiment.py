"""A scenario's experiment: every plan over independent replications, with what they show."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypedDict

from sim.contract.figure import MEAN_LATENCY
from sim.contract.load import Progress
from sim.draws.drawing import expected_requests, is_deterministic
from sim.engine import select_engine
from sim.engine.choice import NO_NUMBA
from sim.errors import EngineError
from sim.result.observed import tellable
from sim.result.result import Result, collect
from sim.run.backend import Crew, Workers, backend_for
from sim.run.kept_run import KeptRun
from sim.run.measure import Measured, measure
from sim.run.simulation import simulate_once
from sim.scenario import Scenario
from sim.scenario.model import PlanChoice
from sim.statistics.interval import Estimate, precise_enough, replications_needed

# Below this many requests in all, starting worker processes takes longer than the runs.
WORTH_WORKERS = 60_000

Outcome = tuple[Measured, KeptRun | None]
"""What a run measured, and the run itself where it is kept."""


@dataclass(frozen=True, slots=True)
class Precision:
    """When to stop adding replications: a half-width relative to the mean, of one figure of every plan."""

    relative: float
    figure: str = MEAN_LATENCY
    least: int = 5
    most: int = 200


class Options(TypedDict, total=False):
    """How `simulate` is asked to do it; see there."""

    replications: int | None
    precision: Precision | None
    workers: Workers
    engine: str
    keep_tables: bool
    progress: Progress | None


def simulate(
    scenario: Scenario,
    *,
    replications: int | None = None,
    precision: Precision | None = None,
    workers: Workers = None,
    engine: str = "auto",
    keep_tables: bool = False,
    progress: Progress | None = None,
) -> Result:
    """Simulate every plan of a scenario and check every run.

    Parameters
    ----------
    replications
        Instead of the scenario's own. A deterministic scenario runs once, whatever is asked for.
    precision
        Add replications until this is reached, or its cap.
    workers
        Processes, or a backend; by default the machine's cores where the runs are long enough. Results do not
        depend on it.
    engine
        `simpy`, `compiled` or `auto`; both give the same results.
    keep_tables
        Keep the tables of every replication, not of the first alone.
    progress
        Called now and then with the number of requests simulated so far.

    Raises
    ------
    CheckError
        A run contradicts a check.
    EngineError
        The engine that was asked for cannot run the scenario; `auto` takes one that can, with a note.
    """
    count = 1 if is_deterministic(scenario) else replications or scenario.experiment.replications
    requests = count * len(scenario.plans) * sum(map(expected_requests, scenario.parts))
    chosen = select_engine(engine, requests)
    try:
        crew = ScenarioCrew(scenario, workers, chosen.name, keep_tables, progress)
        result = _replicate(scenario, crew, replications, precision)
    except EngineError as error:
        if engine != "auto":
            raise
        crew = ScenarioCrew(scenario, workers, "simpy", keep_tables, progress)
        return _replicate(scenario, crew, replications, precision).noted(str(error))
    return result.noted(f"engine {chosen.name}: {chosen.why}") if chosen.why == NO_NUMBA else result


def _replicate(
    scenario: Scenario, crew: "ScenarioCrew", replications: int | None, precision: Precision | None
) -> Result:
    """Run as many replications as are asked for, or as the precision takes."""
    count = replications or scenario.experiment.replications
    if is_deterministic(scenario):
        notes = [f"deterministic: 1 replication stands for the {count} asked for"] if count > 1 else []
        return collect(scenario, crew.run(range(1)), notes)
    if precision is None:
        return collect(scenario, crew.run(range(count)), [])
    return _until_precise(scenario, crew, max(count, precision.least), precision)


def _until_precise(scenario: Scenario, crew: "ScenarioCrew", count: int, precision: Precision) -> Result:
    """Add replications, as many as the spread so far asks for, until every plan is precise enough."""
    outcomes: list[list[Outcome]] = [[] for _ in scenario.plans]
    while True:
        for plan, more in zip(outcomes, crew.run(range(len(outcomes[0]), count)), strict=True):
            plan.extend(more)
        result = collect(scenario, outcomes, [])
        name = tellable(precision.figure, *result.plans)
        figures = [plan.estimates[name] for plan in result.plans]
        reached = _precision_words(precision, name)
        if all(precise_enough(figure, precision.relative) for figure in figures):
            return result.noted(f"{count} replications reach {reached}")
        if count >= precision.most:
            cap = f"the cap of {precision.most} replications came before {reached}"
            return result.noted(f"{cap}: {_reached_words(figures)}")
        needed = [replications_needed(plan.values[name], precision.relative) for plan in result.plans]
        count = min(precision.most, max(count + 1, *(number or precision.most for number in needed)))


def _reached_words(figures: Sequence[Estimate]) -> str:
    """Return how precise the figures are, or why one of them is not there at all."""
    missing = next((figure for figure in figures if math.isnan(figure.mean)), None)
    if missing is not None:
        return f"it is {missing.reason}"
    widest = max((figure.half_width or 0) / abs(figure.mean) for figure in figures if figure.mean)
    return f"the widest reaches {100 * widest:.2g} %"


def _precision_words(precision: Precision, figure: str) -> str:
    return f"a half-width of {100 * precision.relative:g} % of {figure} for every plan"


class ScenarioCrew(Crew):
    """Runs a scenario's tasks wherever, in an order that does not depend on it."""

    def __init__(
        self,
        scenario: Scenario,
        workers: Workers,
        engine: str,
        keep_tables: bool,
        progress: Progress | None,
    ) -> None:
        super().__init__(workers, engine, progress)
        self.scenario = scenario
        self.keep_tables = keep_tables

    def run(self, replications: Sequence[int]) -> list[list[Outcome]]:
        """Return the outcomes of each plan (outer, in order of the plans) and replication (inner)."""
        tasks = [
            (plan, number, self.keep_tables or number == 0, self.engine)
            for plan in self.scenario.plans
            for number in replications
        ]
        worth = len(tasks) * expected_requests(self.scenario) >= WORTH_WORKERS
        backend = backend_for(self.workers, len(tasks), worth_processes=worth)
        function = partial(run_task, progress=self._within) if backend.in_process else run_task
        outcomes = [self._counted(outcome) for outcome in backend.map(function, tasks, (self.scenario,))]
        count = len(replications)
        return [outcomes[start : start + count] for start in range(0, len(tasks), count)]

    def _within(self, completed: int) -> None:
        if self.progress is not None:
            self.progress(self.done + completed)

    def _counted(self, outcome: Outcome) -> Outcome:
        self.count(outcome[0].requests)
        return outcome


def run_task(
    scenario: Scenario, task: tuple[PlanChoice, int, bool, str], progress: Progress | None = None
) -> Outcome:
    """Run one task of a crew: a plan, a replication, whether its tables are kept, and on which engine."""
    plan, replication, keep, engine = task
    return run_one(scenario, plan, replication, keep=keep, engine=engine, progress=progress)


def run_one(
    scenario: Scenario,
    plan: PlanChoice,
    replication: int,
    *,
    keep: bool,
    engine: str = "simpy",
    progress: Progress | None = None,
) -> Outcome:
    """Simulate, check and measure one run; its tables come along only where they are kept."""
    chosen = select_engine(engine, 0)
    run = simulate_once(scenario, plan, replication, progress, chosen)
    measured = measure(scenario, run)
    return measured, KeptRun(scenario, plan, chosen.name, measured.dropped, run) if keep else None
