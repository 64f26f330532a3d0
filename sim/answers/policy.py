"""A policy held against always serial and always parallel, on the same draws, over a whole load profile."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sim.answers.candidate import Runner, runner_of
from sim.answers.policy_table import PolicyLevel, PolicyTable, policy_table
from sim.contract.figure import (
    COST_PER_REQUEST,
    LATENCIES,
    MEAN_DELIVERED_LATENCY,
    PARALLEL_SHARE,
    REQUESTS,
    SUCCEEDED_SHARE,
    shares_within,
)
from sim.contract.plan import FIXED_PLANS
from sim.draws.drawing import is_deterministic
from sim.errors import ArgumentError
from sim.result.decision import none_is_steady
from sim.result.objective import MET, SloVerdict, slo_verdict
from sim.result.plan_result import PeriodResult, PlanResult, plan_result
from sim.result.summary import difference_summary, plain, provenance, slo_summary
from sim.run.backend import Workers
from sim.scenario import Scenario
from sim.scenario.load import ClosedLoad, StepsLoad
from sim.scenario.model import PlanChoice
from sim.statistics.interval import Difference, Estimate, paired_difference

POLICY = "policy"
ROUNDS_PER_LEVEL = 40
JUDGED_FIGURES = (
    REQUESTS,
    *LATENCIES,
    MEAN_DELIVERED_LATENCY,
    COST_PER_REQUEST,
    PARALLEL_SHARE,
    SUCCEEDED_SHARE,
)
"""The figures that a policy is judged by, beside the shares of requests within a latency."""


@dataclass(frozen=True)
class PolicyPeriod:
    """One period of the load, or the whole of it: each plan's figures by label."""

    name: str
    figures: dict[str, dict[str, Estimate]]

    @property
    def better_fixed(self) -> str | None:
        """The fixed plan with the lower mean latency; None where one of them has no mean."""
        means = {label: self.figures[label][MEAN_DELIVERED_LATENCY].mean for label in FIXED_PLANS}
        return (
            None if any(map(math.isnan, means.values())) else min(FIXED_PLANS, key=lambda label: means[label])
        )

    @property
    def above_better_share(self) -> float:
        """How much longer the policy takes than the better fixed plan, as a share; negative: less long.

        NaN where there is nothing to compare.
        """
        best = self.figures[self.better_fixed][MEAN_DELIVERED_LATENCY].mean if self.better_fixed else 0.0
        return self.figures[POLICY][MEAN_DELIVERED_LATENCY].mean / best - 1 if best else math.nan

    def summary(self) -> dict[str, Any]:
        """Return the period under each plan as plain data."""
        return {
            "period": self.name,
            "better_fixed": self.better_fixed,
            "above_better_share": plain(self.above_better_share),
            "plans": {label: judged_figures(self.figures[label]) for label in (*FIXED_PLANS, POLICY)},
        }


@dataclass(frozen=True)
class PolicyResult:
    """A policy and what it came to.

    Parameters
    ----------
    plans
        serial, parallel, policy.
    whole, periods
        The figures of the whole load and of its periods.
    differences
        Policy minus each fixed plan, mean latency in ms, paired by replication.
    slo
        The scenario's rules, held against each plan.
    """

    scenario: Scenario
    table: PolicyTable
    plans: tuple[PlanResult, ...]
    whole: PolicyPeriod
    periods: tuple[PolicyPeriod, ...]
    differences: dict[str, Difference]
    slo: tuple[SloVerdict, ...]

    @property
    def meets_slo(self) -> bool:
        """Whether the policy keeps every rule."""
        return all(one.verdict == MET for one in self.slo if one.plan == POLICY)

    @property
    def beats_both(self) -> bool:
        """Whether its mean latency over the whole load is below that of either fixed plan."""
        return not self.unsteady and self.whole.above_better_share < 0

    @property
    def unsteady(self) -> str:
        """Why no plan has a steady state, so that nothing is said of its worth; empty where one has."""
        return none_is_steady(self.plans)

    @property
    def sentence(self) -> str:
        """The rule and its worth in one sentence."""
        if self.unsteady:
            return f"{rule_words(self.table)}: {self.unsteady}"
        return f"{rule_words(self.table)}: {worth_words(self.whole)}"

    def summary(self) -> dict[str, Any]:
        """Return the policy, and what it came to beside both fixed plans, as plain data."""
        return {
            **provenance(self.scenario),
            "sentence": self.sentence,
            "policy": self.table.to_dict(),
            "whole": self.whole.summary(),
            "periods": [one.summary() for one in self.periods],
            "policy_minus_fixed_ms": {
                label: difference_summary(each) for label, each in self.differences.items()
            },
            "beats_both": self.beats_both,
            "slo": [slo_summary(one) for one in self.slo],
            "meets_slo": self.meets_slo if self.slo else None,
        }

    def __repr__(self) -> str:
        return f"<PolicyResult of {self.scenario.name}: {self.sentence}>"


def policy_for(
    scenario: Scenario,
    *,
    active: Sequence[int] = (),
    slo: Sequence[str] = (),
    workers: Workers = None,
    engine: str = "auto",
    progress: Callable[[int], None] | None = None,
) -> PolicyResult:
    """Make the policy of a scenario and simulate it beside both fixed plans.

    Parameters
    ----------
    active
        Levels of active requests, each held for a while; the scenario's own load unless given.
    slo
        Rules whose attainment is shown; the scenario's unless given.
    workers, engine, progress
        As for `simulate`; progress counts runs.

    The policy decides by the four criteria at the fair share of the slots when a request arrives, as
    `adaptive` does, and besides by the prices of the hour, with no more slots for a request than earn their
    keep.

    Raises
    ------
    ArgumentError, InputError
        A scenario that no such policy fits (see `policy_table`), or a rule about nothing that it has.
    """
    asked = scenario.replace(changes(scenario, active, slo))
    table = policy_table(asked)
    choices = (*(PlanChoice(plan=label) for label in FIXED_PLANS), table.choice)
    count = 1 if is_deterministic(asked) else asked.experiment.replications
    runner = runner_of(asked, choices, len(choices) * count, workers, engine)
    plans = simulated(asked, runner, count, progress)
    rules = asked.slo.rules if asked.slo else ()
    fixed = {plan.label: plan for plan in plans}
    return PolicyResult(
        scenario=asked,
        table=table,
        plans=plans,
        whole=PolicyPeriod("whole", {plan.label: plan.estimates for plan in plans}),
        periods=tuple(period_of(plans, place) for place in range(len(plans[0].periods))),
        differences={
            label: paired_difference(
                fixed[label].values[MEAN_DELIVERED_LATENCY],
                fixed[POLICY].values[MEAN_DELIVERED_LATENCY],
                deterministic=is_deterministic(asked),
            )
            for label in FIXED_PLANS
        },
        slo=tuple(slo_verdict(rule, plan, asked) for rule in rules for plan in plans),
    )


def changes(scenario: Scenario, active: Sequence[int], slo: Sequence[str]) -> dict[str, Any]:
    """Return what to state over the scenario: plans, objectives, and levels of load where they are given."""
    stated: dict[str, Any] = {"plans": list(FIXED_PLANS)}
    rules = slo or tuple(str(rule) for rule in (scenario.slo.rules if scenario.slo else ()))
    stated["slo"] = {"rules": list(rules)} if rules else None
    if active:
        stated["load"] = levels_load(scenario, active)
    return stated


def levels_load(scenario: Scenario, active: Sequence[int]) -> dict[str, Any]:
    """Return a load that holds each level of active requests for a few dozen rounds of serial requests."""
    for level in active:
        if level < 1:
            raise ArgumentError("active", "must be >= 1", level)
    seconds = math.ceil(ROUNDS_PER_LEVEL * sum(scenario.branch_means_ms) / 1000)
    load = scenario.load
    think = load.think_time_ms if isinstance(load, ClosedLoad | StepsLoad) else None
    steps = [
        {"at_s": seconds * place, "active_requests": level, "name": f"{level} active"}
        for place, level in enumerate(active)
    ]
    thinking = {} if think is None else {"think_time_ms": scenario.to_dict()["load"].get("think_time_ms", 0)}
    return {"kind": "steps", "steps": steps, "end_s": seconds * len(active), **thinking}


def simulated(
    scenario: Scenario, runner: Runner, count: int, progress: Callable[[int], None] | None
) -> tuple[PlanResult, ...]:
    """Return the plans over all replications."""
    tasks = [(scenario, choice, number) for choice in runner.choices for number in range(count)]
    measured = []
    for one in runner.outcomes(tasks):
        measured.append(one)
        if progress is not None:
            progress(len(measured))
    return tuple(
        plan_result(scenario, choice, [(one, None) for one in measured[place * count : (place + 1) * count]])
        for place, choice in enumerate(runner.choices)
    )


def period_of(plans: Sequence[PlanResult], place: int) -> PolicyPeriod:
    """Return one period under each plan."""
    each: list[PeriodResult] = [plan.periods[place] for plan in plans]
    figures = {plan.label: period.estimates for plan, period in zip(plans, each, strict=True)}
    return PolicyPeriod(each[0].period.name, figures)


def judged_figures(figures: dict[str, Estimate]) -> dict[str, Any]:
    """Return the figures of a plan that a policy is judged by."""
    shown = {*JUDGED_FIGURES, *shares_within(figures)}
    return {name: plain(figure.mean) for name, figure in figures.items() if name in shown}


def rule_words(table: PolicyTable) -> str:
    """Return the rule as one would say it, hour by hour where it depends on the hour."""
    if len({one.levels for one in table.hours}) == 1:
        return levels_words(table.hours[0].levels)
    return "; ".join(
        f"from {one.from_hour:g} to {one.to_hour:g}: {levels_words(one.levels)}" for one in table.hours
    )


def levels_words(levels: Sequence[PolicyLevel]) -> str:
    """Return levels as one would say them: `parallel up to 10 active requests, serial from 11`."""
    words = []
    for plan, each in groupby(levels, key=lambda level: level.plan):
        same = list(each)
        first, last = same[0].active_from, same[-1].active_to
        if first == 1:
            words.append(f"always {plan}" if last is None else f"{plan} up to {last:,} active requests")
        else:
            words.append(f"{plan} from {first:,}" if last is None else f"{plan} from {first:,} to {last:,}")
    return ", ".join(words)


def worth_words(whole: PolicyPeriod) -> str:
    """Return the mean latencies over the whole load, or why there are none."""
    missing = whole.figures[POLICY][MEAN_DELIVERED_LATENCY]
    if math.isnan(missing.mean):
        return f"mean latency {missing.reason}"
    policy, *fixed = (whole.figures[label][MEAN_DELIVERED_LATENCY].mean for label in (POLICY, *FIXED_PLANS))
    return f"mean latency {policy:.1f} ms, always serial {fixed[0]:.1f}, always parallel {fixed[1]:.1f}"
