"""One value of what is varied: simulated, and held against an SLO with as many replications as that takes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from sim.contract.plan import PARALLEL, SERIAL
from sim.draws.drawing import expected_requests, is_deterministic
from sim.engine import select_engine
from sim.errors import ArgumentError
from sim.result.decision import decide
from sim.result.experiment import WORTH_WORKERS, run_one
from sim.result.measured_decision import UNDECIDED
from sim.result.objective import MET, MISSED, held_on, plan_to_hold
from sim.result.plan_result import PlanResult, plan_result
from sim.result.summary import plain
from sim.run.backend import Backend, Workers, backend_for
from sim.run.measure import Measured
from sim.scenario import Scenario
from sim.scenario.model import PlanChoice
from sim.scenario.slo import SloRule
from sim.statistics.interval import Estimate

Task = tuple[Scenario, PlanChoice, int]
"""A scenario, a plan and a replication."""


@dataclass(frozen=True)
class Asked:
    """What has to hold, and of which plan.

    Parameters
    ----------
    rules
        (workload, rule); the workload is empty for a rule about all of several workloads.
    plan
        The label of a plan; None for what the SLO names, else for the recommended plan at each value.
    confidence
        Of one look at an interval: so high that all looks together leave the wanted confidence.
    """

    rules: tuple[tuple[str, SloRule], ...]
    plan: str | None
    confidence: float


@dataclass(frozen=True, slots=True)
class HeldRule:
    """One rule at one value: `verdict` is `met`, `missed` or `undecided`, by the whole interval."""

    rule: SloRule
    workload: str
    plan: str
    figure: Estimate
    verdict: str
    reason: str

    def summary(self) -> dict[str, Any]:
        """Return the rule as plain data, its figure with both ends of its interval."""
        return {
            "rule": str(self.rule),
            "workload": self.workload,
            "plan": self.plan,
            "figure": plain(self.figure.mean),
            "low": plain(self.figure.low),
            "high": plain(self.figure.high),
            "verdict": self.verdict,
            "reason": self.reason,
        }


@dataclass(repr=False)
class Candidate:
    """One value, and what its replications have measured so far, plan by plan."""

    value: float
    scenario: Scenario
    asked: Asked
    choices: tuple[PlanChoice, ...]
    measured: list[list[Measured]] = field(default_factory=list)

    @property
    def replications(self) -> int:
        """How many replications each plan has."""
        return len(self.measured[0]) if self.measured else 0

    @property
    def is_deterministic(self) -> bool:
        """Whether one replication says everything."""
        return is_deterministic(self.scenario)

    def tasks(self, replications: int) -> list[Task]:
        """Return the runs that are missing for so many replications."""
        most = min(1, replications) if self.is_deterministic else replications
        return [
            (self.scenario, choice, number)
            for choice in self.choices
            for number in range(self.replications, most)
        ]

    def add(self, measured: Sequence[Measured]) -> None:
        """Take the outcomes of `tasks`, in the same order."""
        each = len(measured) // len(self.choices)
        self.measured = self.measured or [[] for _ in self.choices]
        for number, known in enumerate(self.measured):
            known.extend(measured[number * each : (number + 1) * each])
        self.__dict__.pop("results", None)
        self.__dict__.pop("rules", None)

    @cached_property
    def results(self) -> tuple[PlanResult, ...]:
        """The plans over the replications so far; without their latencies one by one."""
        return tuple(
            plan_result(self.scenario, choice, [(one, None) for one in measured])
            for choice, measured in zip(self.choices, self.measured, strict=True)
        )

    @cached_property
    def rules(self) -> tuple[HeldRule, ...]:
        """Every rule, held against its plan."""
        return tuple(self._held())

    def _held(self) -> Iterator[HeldRule]:
        decision = decide(self.scenario, self.results) if len(self.results) > 1 else None
        for workload, rule in self.asked.rules:
            part = next((one for one in self.scenario.parts if one.part_name == workload), self.scenario)
            named = next((one for one in self.results if one.label == self.asked.plan), None)
            chosen = named or (plan_to_hold(part, self.results, decision) if decision else self.results[0])
            yield self._rule(workload, rule, chosen)

    def _rule(self, workload: str, rule: SloRule, plan: PlanResult) -> HeldRule:
        return HeldRule(rule, workload, plan.label, *held_on(rule, plan, workload, self.asked.confidence))

    @property
    def verdict(self) -> str:
        """`met` where every rule is, `missed` where any is, else `undecided`."""
        verdicts = {one.verdict for one in self.rules}
        if MISSED in verdicts:
            return MISSED
        return MET if verdicts == {MET} else UNDECIDED

    @property
    def seems_met(self) -> bool:
        """Whether every rule holds at its mean."""
        return all(one.verdict != MISSED and one.rule.holds(one.figure.mean) for one in self.rules)

    @property
    def plan(self) -> PlanResult:
        """The plan that the first rule was held against."""
        return next(one for one in self.results if one.label == self.rules[0].plan)


def choices_for(scenario: Scenario, plan: str | None) -> tuple[PlanChoice, ...]:
    """Return the plans to simulate: the one that has to keep the SLO, or those that the decision takes.

    Raises
    ------
    ArgumentError
        The scenario has no such plan.
    """
    if plan is not None:
        named = tuple(choice for choice in scenario.plans if choice.label == plan)
        if not named:
            labels = ", ".join(choice.label for choice in scenario.plans)
            raise ArgumentError("plan", f"must be one of the plans: {labels}", plan)
        return named
    serial = [choice for choice in scenario.plans if choice.plan == SERIAL]
    others = [choice for choice in scenario.plans if choice.plan != SERIAL]
    named_by_slo = {part.slo.plan for part in scenario.parts if part.slo is not None}
    first = sorted(others, key=lambda choice: choice.plan != PARALLEL)[:1]
    return tuple(
        choice for choice in scenario.plans if choice in [*serial, *first] or choice.label in named_by_slo
    )


@dataclass(frozen=True)
class Runner:
    """Where and on which engine the plans of every candidate run."""

    choices: tuple[PlanChoice, ...]
    engine: str
    backend: Backend

    def run(self, tasks: Sequence[Task]) -> list[Measured]:
        """Return what each run measured, in order."""
        return list(self.outcomes(tasks))

    def outcomes(self, tasks: Sequence[Task]) -> Iterator[Measured]:
        """Yield what each run measured, in order."""
        return self.backend.map(measured_run, tasks, (self.engine,))


def runner_for(  # noqa: PLR0917  each says how much there is to run, or where
    scenario: Scenario, asked: Asked, candidates: int, replications: int, workers: Workers, engine: str
) -> Runner:
    """Return where so many candidates run, each with so many replications at first."""
    choices = choices_for(scenario, asked.plan)
    runs = candidates * len(choices) * (1 if is_deterministic(scenario) else replications)
    return runner_of(scenario, choices, runs, workers, engine)


def runner_of(
    scenario: Scenario, choices: tuple[PlanChoice, ...], runs: int, workers: Workers, engine: str
) -> Runner:
    """Return where so many runs of some plans happen."""
    requests = runs * expected_requests(scenario)
    backend = backend_for(workers, runs, worth_processes=requests >= WORTH_WORKERS)
    return Runner(choices, select_engine(engine, requests).name, backend)


def measured_run(engine: str, task: Task) -> Measured:
    """Simulate one run and return its figures, without its latencies one by one."""
    measured, _ = run_one(*task, keep=False, engine=engine)
    workloads = tuple(replace(one, latency_ns=one.latency_ns[:0]) for one in measured.workloads)
    return replace(measured, latency_ns=measured.latency_ns[:0], workloads=workloads)
