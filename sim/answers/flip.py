"""Where the best plan changes: along active requests or along a rate, under each allocation."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise, takewhile
from typing import Any

import numpy as np

from sim.answers.boundary import Cell, search
from sim.contract.allocation import PLAIN_ALLOCATIONS
from sim.contract.figure import MAX_LATENCY, MEAN_LATENCY
from sim.contract.load import Progress
from sim.contract.plan import PARALLEL, SERIAL, USUAL_PLANS
from sim.draws.drawing import expected_requests
from sim.draws.run_input import evaluate
from sim.engine import select_engine
from sim.errors import ArgumentError
from sim.plan.criteria import KEEP_SERIAL, MERGE, MarginalGain, marginal_gains
from sim.result.binding import binding_lines
from sim.result.capacity import capacities
from sim.result.experiment import simulate
from sim.result.measured_decision import UNDECIDED
from sim.result.plan_result import PlanResult
from sim.result.result import Result
from sim.result.summary import plain
from sim.run.backend import Crew, Workers, backend_for
from sim.scenario import Scenario
from sim.statistics.interval import FASTER, Estimate
from sim.statistics.stability import OVERLOADED
from sim.units import ns_to_ms

REQUESTS_PER_USER = 400
OPEN_REQUESTS = 20_000
MOST_LEVELS_SCANNED = 100
"""Of more levels only those are simulated that it takes to find where the answer changes."""
WARMUP_SHARE = 10
"""One request in so many is left out at the start."""


@dataclass(frozen=True, slots=True)
class PlanFigure:
    """A plan's latency at one level of load, ms: mean over replications, and its range over requests."""

    mean: Estimate
    least_ms: float
    greatest_ms: float
    bound_ms: float
    stability: str

    def summary(self) -> dict[str, Any]:
        """Return the latency as plain data."""
        return {
            MEAN_LATENCY: plain(self.mean.mean),
            "half_width_95": plain(self.mean.half_width),
            "latency_ms_min": plain(self.least_ms),
            MAX_LATENCY: plain(self.greatest_ms),
            "latency_ms_mean_at_least": plain(self.bound_ms),
            "stability": self.stability,
        }


@dataclass(frozen=True)
class Level:
    """One level of load under one allocation.

    Parameters
    ----------
    value
        Active requests, or arrivals per second.
    plans
        By label.
    best
        The plan with the lowest mean latency; serial where parallel gains nothing.
    decision, reason
        The four criteria on measured savings.
    """

    allocation: str
    value: float
    plans: dict[str, PlanFigure]
    best: str
    decision: str
    reason: str

    def summary(self) -> dict[str, Any]:
        """Return the level as plain data."""
        return {
            "allocation": self.allocation,
            "value": self.value,
            "best": self.best,
            "decision": self.decision,
            "reason": self.reason,
            "plans": {label: figure.summary() for label, figure in self.plans.items()},
        }


@dataclass(frozen=True)
class Flip:
    """Where the decision flips between two levels that are next to each other."""

    allocation: str
    merge_at: float
    keep_at: float
    level: str


@dataclass(frozen=True)
class FlipTable:
    """Every level under every allocation, and where the best plan and the decision change.

    `level` is `active_requests` or `rate_per_s`; `engine` is the one that ran.
    """

    scenario: Scenario
    level: str
    levels: tuple[Level, ...]
    engine: str

    def of(self, allocation: str) -> tuple[Level, ...]:
        """Return the levels under one allocation, ascending."""
        return tuple(level for level in self.levels if level.allocation == allocation)

    @property
    def allocations(self) -> tuple[str, ...]:
        """The allocations, in order."""
        return tuple(dict.fromkeys(level.allocation for level in self.levels))

    def changes(self, allocation: str) -> Iterator[tuple[Level, Level]]:
        """Yield neighbouring levels between which the best plan or the decision changes."""
        for low, high in pairwise(self.of(allocation)):
            if (low.best, low.decision) != (high.best, high.decision):
                yield low, high

    def sentences(self) -> list[str]:
        """Return one sentence per allocation: where the decision changes, or that it does not."""
        return [self._sentence(allocation) for allocation in self.allocations]

    def _sentence(self, allocation: str) -> str:
        flips = [
            (low, high)
            for low, high in self.changes(allocation)
            if low.decision != high.decision and OVERLOADED not in (low.decision, high.decision)
        ]
        name, beyond = LEVEL_WORDS[self.level], self.beyond(allocation)
        decision = self.of(allocation)[0].decision
        if beyond is not None and not flips:
            until = f"{decision} below {beyond:g} {name}, " if decision != OVERLOADED else ""
            return f"{allocation}: {until}overloaded from {beyond:g} on: no verdict there"
        if not flips:
            return f"{allocation}: {decision} at every level from {self._span(allocation)} {name}"
        words = ", ".join(
            f"{low.decision} -> {high.decision} between {low.value:g} and {high.value:g} {name}"
            for low, high in flips
        )
        ending = "" if beyond is None else f"; overloaded from {beyond:g} on: no verdict there"
        return f"{allocation}: {words}{ending}"

    def beyond(self, allocation: str) -> float | None:
        """Return the level from which on no plan has a steady state; None where there is none."""
        unsteady = takewhile(lambda level: level.decision == OVERLOADED, reversed(self.of(allocation)))
        return min((level.value for level in unsteady), default=None)

    @property
    def binding(self) -> list[str]:
        """What binds at the highest level, under the first allocation."""
        last = max(level.value for level in self.levels)
        there = at_level(
            self.scenario, self.level, last, self.allocations[0], REQUESTS_PER_USER, OPEN_REQUESTS
        )
        return [
            f"at {last:g} {LEVEL_WORDS[self.level]}: {line}"
            for line in binding_lines(there, capacities(there))
        ]

    def _span(self, allocation: str) -> str:
        levels = self.of(allocation)
        return f"{levels[0].value:g} to {levels[-1].value:g}"

    def summary(self) -> dict[str, Any]:
        """Return the table level by level as plain data."""
        return {
            "scenario": self.scenario.name,
            "scenario_sha256": self.scenario.digest,
            "level": self.level,
            "engine": self.engine,
            "sentences": self.sentences(),
            "levels": [level.summary() for level in self.levels],
        }

    def __repr__(self) -> str:
        return f"<FlipTable of {self.scenario.name}: {'; '.join(self.sentences())}>"


LEVEL_WORDS = {"active_requests": "active requests", "rate_per_s": "requests per second"}


def flip(
    scenario: Scenario,
    *,
    active: Sequence[int] = (),
    rates: Sequence[float] = (),
    allocations: Sequence[str] = PLAIN_ALLOCATIONS,
    requests_per_user: int = REQUESTS_PER_USER,
    requests: int = OPEN_REQUESTS,
    workers: Workers = None,
    engine: str = "auto",
    progress: Progress | None = None,
) -> FlipTable:
    """Simulate serial, parallel and adaptive at levels of load and find where the best plan changes.

    Of more than a hundred levels, those that a search needs: a coarse grid, then halfway between levels that
    differ, then the neighbours of every border.

    Parameters
    ----------
    active
        Numbers of users of a closed load; or
    rates
        arrivals per second of a Poisson load.
    allocations
        Who gets a free slot; each is simulated.
    requests_per_user, requests
        How long the runs are: per user of a closed load, in all of an open one. The first tenth is left out.
    workers, engine, progress
        As for `simulate`; progress counts levels.
    """
    level, values = ("active_requests", active) if active else ("rate_per_s", rates)

    def at(allocation: str, value: float) -> Scenario:
        return at_level(scenario, level, value, allocation, requests_per_user, requests)

    total = len(USUAL_PLANS) * sum(expected_requests(at(allocations[0], value)) for value in values)
    crew = LevelCrew(at, select_engine(engine, total * len(allocations)).name, workers, progress)
    if len(values) <= MOST_LEVELS_SCANNED:
        pairs = [(allocation, value) for allocation in allocations for value in values]
        return FlipTable(scenario, level, tuple(crew.simulate(pairs)), crew.engine)
    levels = [each for allocation in allocations for each in crew.follow_borders(allocation, values)]
    return FlipTable(scenario, level, tuple(levels), crew.engine)


class LevelCrew(Crew):
    """Simulates levels of load wherever; all of some, or what it takes to find where the answer changes."""

    def __init__(
        self,
        at: Callable[[str, float], Scenario],
        engine: str,
        workers: Workers,
        progress: Progress | None,
    ) -> None:
        super().__init__(workers, engine, progress)
        self.at = at

    def simulate(self, pairs: Sequence[tuple[str, float]]) -> list[Level]:
        """Simulate levels, each an allocation and a value, in order."""
        variants = [
            (allocation, value, self.at(allocation, value), self.engine) for allocation, value in pairs
        ]
        levels = []
        for level in backend_for(self.workers, len(variants)).map(simulate_level, variants):
            levels.append(level)
            self.count(1)
        return levels

    def follow_borders(self, allocation: str, values: Sequence[float]) -> list[Level]:
        """Return the levels that it takes to find where the decision changes, ascending."""
        levels: dict[Cell, Level] = {}

        def label(cells: Sequence[Cell]) -> list[str]:
            found = self.simulate([(allocation, values[column]) for _, column in cells])
            levels.update(zip(cells, found, strict=True))
            return [level.decision for level in found]

        search(1, len(values), label)
        return [levels[cell] for cell in sorted(levels)]


def at_level(  # noqa: PLR0917  one argument for each thing that is varied
    scenario: Scenario, level: str, value: float, allocation: str, requests_per_user: int, requests: int
) -> Scenario:
    """Return the scenario at one level of load under one allocation, with the three plans.

    Raises
    ------
    ArgumentError
        It has several workloads: there is no one load that varies.
    """
    if len(scenario.parts) > 1:
        raise ArgumentError("workloads", "must be one: it is its load that varies", len(scenario.parts))
    if level == "active_requests":
        stated = scenario.to_dict()
        think = stated.get("workloads", [stated])[0]["load"].get("think_time_ms", 0)
        count = requests_per_user * int(value)
        load = {"kind": "closed", "active_requests": int(value), "think_time_ms": think, "requests": count}
    else:
        count = requests
        load = {"kind": "open", "arrivals": "poisson", "rate_per_s": float(value), "requests": count}
    return scenario.replace(
        {
            **allocated(scenario, allocation),
            scenario.key_path("load"): load,
            "plans": list(USUAL_PLANS),
            "experiment.warmup": {"count": count // WARMUP_SHARE},
            scenario.key_path("slo"): None,
        }
    )


def allocated(scenario: Scenario, allocation: str) -> dict[str, Any]:
    """Return the changes that give the slots of every provider to whom an allocation says."""
    providers = scenario.to_dict().get("providers")
    if providers is None:
        return {"provider.allocation": allocation}
    return {"providers": {name: {**one, "allocation": allocation} for name, one in providers.items()}}


def simulate_level(variant: tuple[str, float, Scenario, str]) -> Level:
    """Simulate one level of load under one allocation, on an engine."""
    allocation, value, scenario, engine = variant
    result = simulate(scenario, workers=1, engine=engine)
    decision = result.decision
    return Level(
        allocation=allocation,
        value=value,
        plans={plan.label: plan_figure(plan) for plan in result.plans},
        best=best_plan(result),
        decision=decision.decision,
        reason=decision.reason,
    )


def plan_figure(plan: PlanResult) -> PlanFigure:
    """Return a plan's mean latency and its range over the requests of all replications.

    NaN where no request was delivered, and where calls may fail or wait for limits, which no bound is about.
    """
    latency_ns = np.concatenate(plan.latency_ns)
    return PlanFigure(
        mean=plan.estimates[MEAN_LATENCY],
        least_ms=ns_to_ms(int(latency_ns.min())) if len(latency_ns) else math.nan,
        greatest_ms=ns_to_ms(int(latency_ns.max())) if len(latency_ns) else math.nan,
        bound_ms=max((item.value for item in plan.expected if item.kind == "at least"), default=math.nan),
        stability=plan.stability.label,
    )


def best_plan(result: Result) -> str:
    """Return the plan with the lowest mean latency, `serial` where parallel is not shown to be faster.

    Of plans without a steady state none is best, nor one that has none beside one that has.
    """
    measured = result.decision.measured
    if measured is not None and measured.verdict is None and measured.decision != UNDECIDED:
        return {MERGE: PARALLEL, KEEP_SERIAL: SERIAL}.get(measured.decision, OVERLOADED)
    faster = measured is not None and measured.difference.words == FASTER
    return PARALLEL if faster else SERIAL


def find_flip(scenario: Scenario, merge_at: int, keep_at: int, engine: str = "auto") -> Flip | None:
    """Return the neighbouring numbers of active requests between which merging stops, by simulation.

    The ends are known to differ; None where a level in between is undecided.
    """
    while abs(keep_at - merge_at) > 1:
        middle = (merge_at + keep_at) // 2
        between = scenario.replace({scenario.key_path("load.active_requests"): middle})
        decision = simulate(between, workers=1, engine=engine).decision.decision
        if decision == UNDECIDED:
            return None
        merge_at, keep_at = (middle, keep_at) if decision == MERGE else (merge_at, middle)
    return Flip(scenario.provider.allocation, merge_at, keep_at, "active_requests")


@dataclass(frozen=True)
class Gains:
    """Makespan and gain slot by slot, for one request alone."""

    scenario: Scenario
    gains: tuple[MarginalGain, ...]
    recommended_degree: int
    serial_ms: float

    def summary(self) -> dict[str, Any]:
        """Return the table as plain data."""
        return {
            "scenario": self.scenario.name,
            "serial_ms": self.serial_ms,
            "recommended_degree": self.recommended_degree,
            "gains": [asdict(gain) for gain in self.gains],
        }


def gains(scenario: Scenario) -> Gains:
    """Return what each slot saves, at the workflow's mean times."""
    plan = scenario.parallel_plan(len(scenario.workflow.branches))
    evaluation = evaluate(scenario, plan.concurrency)
    return Gains(scenario, marginal_gains(plan), evaluation.recommended_degree, evaluation.serial_ms)
