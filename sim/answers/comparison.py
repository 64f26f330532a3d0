"""Scenarios beside each other: plans paired on the same draws, where the verdict flips, and its price."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Unpack

from sim.answers.flip import Flip, find_flip
from sim.contract.figure import COST_PER_REQUEST, MEAN_DELIVERED_LATENCY, MEAN_LATENCY, P95_LATENCY
from sim.contract.plan import SERIAL
from sim.plan.criteria import KEEP_SERIAL, MERGE
from sim.result.experiment import Options, simulate
from sim.result.measured_decision import UNDECIDED
from sim.result.observed import tellable
from sim.result.plan_result import PlanResult
from sim.result.result import Result
from sim.result.summary import difference_summary
from sim.scenario import Scenario
from sim.scenario.load import ClosedLoad
from sim.statistics.interval import Difference, Estimate, paired_difference
from sim.statistics.stability import OVERLOADED

COMPARED = (MEAN_LATENCY, P95_LATENCY, COST_PER_REQUEST)


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """One plan against another in one scenario, or the same plan in two scenarios."""

    scenario: str
    plan: str
    against: str
    figure: str
    difference: Difference

    def summary(self) -> dict[str, Any]:
        """Return the difference and what was compared as plain data."""
        return {
            "scenario": self.scenario,
            "plan": self.plan,
            "against": self.against,
            "figure": self.figure,
            **difference_summary(self.difference),
        }


@dataclass(frozen=True)
class Comparison:
    """Simulated scenarios beside each other.

    Parameters
    ----------
    results
        One per scenario, in the order given.
    between_plans
        Each plan against the first one, scenario by scenario.
    between_scenarios
        Each scenario against the first one, plan by plan, where they share a plan and replications.
    flip
        Where between two closed loads the decision flips, where it was looked for.
    sentence
        The flip in one sentence, with its numbers and its price.
    """

    results: tuple[Result, ...]
    between_plans: tuple[PlanDifference, ...]
    between_scenarios: tuple[PlanDifference, ...]
    flip: Flip | None
    sentence: str

    def summary(self) -> dict[str, Any]:
        """Return everything but the tables as plain data."""
        return {
            "sentence": self.sentence,
            "flip": asdict(self.flip) if self.flip else None,
            "between_plans": [pair.summary() for pair in self.between_plans],
            "between_scenarios": [pair.summary() for pair in self.between_scenarios],
            "scenarios": {
                name: result.summary()
                for name, result in zip(result_names(self.results), self.results, strict=True)
            },
        }

    def __repr__(self) -> str:
        return (
            f"<Comparison of {', '.join(result.scenario.name for result in self.results)}: {self.sentence}>"
        )


def compare(scenarios: Sequence[Scenario], **options: Unpack[Options]) -> Comparison:
    """Simulate scenarios and compare them; `options` are those of `simulate`.

    Scenarios with the same seed and workflow name share their draws.
    """
    results = tuple(simulate(scenario, **options) for scenario in scenarios)
    flip = flip_of(results, options.get("engine", "auto"))
    return Comparison(
        results=results,
        between_plans=tuple(item for result in results for item in plan_differences(result)),
        between_scenarios=tuple(item for result in results[1:] for item in shared_plans(results[0], result)),
        flip=flip,
        sentence=flip_sentence(results, flip),
    )


def result_names(results: Sequence[Result]) -> list[str]:
    """Return the scenarios' names; equal ones with their file, and with a number where that is equal too."""
    names = [result.scenario.name for result in results]
    files = [
        f"{name} ({result.scenario.path})" if names.count(name) > 1 else name
        for name, result in zip(names, results, strict=True)
    ]
    return [
        f"{file} {files[:place].count(file) + 1}" if files.count(file) > 1 else file
        for place, file in enumerate(files)
    ]


def plan_differences(result: Result) -> list[PlanDifference]:
    """Return each plan against the first, paired by replication."""
    first, *others = result.plans
    return [
        PlanDifference(
            result.scenario.name, plan.label, first.label, figure, paired(first, plan, figure, result)
        )
        for plan in others
        for figure in compared(first, plan)
    ]


def compared(first: PlanResult, second: PlanResult) -> list[str]:
    """Return the figures to compare: latencies of delivered requests where some were not delivered."""
    return [tellable(figure, first, second) for figure in COMPARED]


def shared_plans(first: Result, other: Result) -> list[PlanDifference]:
    """Return the plans that two scenarios share, the second against the first."""
    if first.replications != other.replications:
        return []
    labels = {plan.label for plan in other.plans}
    return [
        PlanDifference(
            other.scenario.name,
            plan.label,
            first.scenario.name,
            figure,
            paired(plan, other.plan(plan.label), figure, other),
        )
        for plan in first.plans
        if plan.label in labels
        for figure in compared(plan, other.plan(plan.label))
    ]


def paired(first: PlanResult, second: PlanResult, figure: str, result: Result) -> Difference:
    """Return second - first of one figure."""
    return paired_difference(first.values[figure], second.values[figure], deterministic=result.deterministic)


def flip_of(results: Sequence[Result], engine: str) -> Flip | None:
    """Return where the decision flips between two closed loads that differ in nothing else."""
    merging = [result for result in results if result.decision.decision == MERGE]
    keeping = [result for result in results if result.decision.decision == KEEP_SERIAL]
    for low in merging:
        for high in keeping:
            if differ_in_active_requests_alone(low.scenario, high.scenario):
                return find_flip(low.scenario, users(low.scenario), users(high.scenario), engine)
    return None


def users(scenario: Scenario) -> int:
    """Return the users of a closed load."""
    assert isinstance(scenario.load, ClosedLoad)
    return scenario.load.active_requests


def differ_in_active_requests_alone(one: Scenario, other: Scenario) -> bool:
    """Return whether both are closed loads that would be the same with the same number of users."""
    loads = one.load, other.load
    if not all(isinstance(load, ClosedLoad) for load in loads):
        return False
    plain, others = one.to_dict(), other.to_dict()
    for content in (plain, others):
        content.pop("name")
        content.pop("description", None)
        for key in ("active_requests", "requests"):
            content["load"].pop(key)
    return plain == others


def flip_sentence(results: Sequence[Result], flip: Flip | None) -> str:
    """Return what each scenario decides and, where it flips, between which loads and at what price."""
    decisions = {result.decision.decision for result in results}
    words = "; ".join(f"{result.scenario.name}: {scenario_words(result)}" for result in results)
    if len(results) == 1:
        return words
    if OVERLOADED in decisions and len(decisions - {OVERLOADED}) <= 1:
        return f"No verdict where it is overloaded. {words}"
    if len(decisions) == 1:
        return f"The verdict does not flip. {words}"
    where = ""
    if flip is not None:
        low, high = sorted((flip.merge_at, flip.keep_at))
        where = f" between {low:g} and {high:g} active requests"
    return f"The verdict flips{where}. {words}"


def scenario_words(result: Result) -> str:
    """Return what a scenario decides, from which latencies, and at what price."""
    measured = result.decision.measured
    if measured is None or measured.verdict is None or measured.decision == UNDECIDED:
        return result.decision.reason
    serial, chosen = (plan.estimates[MEAN_DELIVERED_LATENCY] for plan in compared_plans(result))
    words = (
        f"{measured.decision}, {compared_plans(result)[1].label} {figure_words(chosen)} ms "
        f"against serial {figure_words(serial)} ms"
    )
    half_width = measured.difference.half_width
    interval = "" if half_width is None else f" ± {half_width:.1f}"
    if measured.saved_ms <= 0:
        return f"{words}: {-measured.saved_ms:.1f}{interval} ms lost"
    price = measured.extra_cost_micros / measured.saved_ms
    return f"{words}: {measured.saved_ms:.1f}{interval} ms saved at {price:.2f} micros per ms"


def compared_plans(result: Result) -> tuple[PlanResult, PlanResult]:
    """Return serial and the plan that the decision is about."""
    serial = next(plan for plan in result.plans if plan.plan.plan == SERIAL)
    (label,) = (label for label, each in result.decision.by_plan.items() if each is result.decision.measured)
    return serial, result.plan(label)


def figure_words(figure: Estimate) -> str:
    """Return a mean, with its half-width where it has one."""
    return (
        f"{figure.mean:.1f}" if figure.half_width is None else f"{figure.mean:.1f} ± {figure.half_width:.1f}"
    )
