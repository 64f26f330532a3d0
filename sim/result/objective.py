"""The SLO held against what was measured: each rule met, missed, or undecided, which counts as missed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sim.contract.figure import MAXIMA
from sim.contract.plan import PARALLEL, SERIAL
from sim.plan.criteria import MERGE
from sim.result.decision import Decision
from sim.result.measured_decision import UNDECIDED
from sim.result.plan_result import PeriodResult, PlanResult, WorkloadResult
from sim.scenario import Scenario
from sim.scenario.slo import SloRule
from sim.statistics.figures import Value
from sim.statistics.interval import Estimate
from sim.statistics.stability import Stability

MET, MISSED = "met", "missed"
NO_FIGURE = Estimate(math.nan, None, 0, "there is no such figure")
ONE_RUN = "one random replication proves nothing"

Subject = PlanResult | WorkloadResult | PeriodResult
"""Whose figures a rule may be about."""


@dataclass(frozen=True, slots=True)
class SloVerdict:
    """One rule of the SLO, held against one plan: `met`, `missed` or `undecided` (which counts as missed)."""

    rule: SloRule
    plan: str
    workload: str
    value: Estimate
    verdict: str
    reason: str


def slo_verdicts(
    scenario: Scenario, plans: Sequence[PlanResult], decision: Decision
) -> tuple[SloVerdict, ...]:
    """Hold each workload's SLO against the plan it names, else against the recommended one."""
    return tuple(
        slo_verdict(rule, plan_to_hold(part, plans, decision), part)
        for part in scenario.parts
        if part.slo is not None
        for rule in part.slo.rules
    )


def plan_to_hold(part: Scenario, plans: Sequence[PlanResult], decision: Decision) -> PlanResult:
    """Return the plan that has to keep a workload's SLO."""
    recommended = PARALLEL if decision.decision == MERGE else SERIAL
    named = part.slo.plan if part.slo else None
    fitting = (plan for plan in plans if (plan.label == named if named else plan.plan.plan == recommended))
    return next(fitting, plans[0])


def slo_verdict(rule: SloRule, plan: PlanResult, part: Scenario) -> SloVerdict:
    """Return whether a plan keeps a rule with its whole interval, breaks it, or cannot tell."""
    figure, verdict, reason = held_on(rule, plan, part.part_name)
    return SloVerdict(rule, plan.label, part.part_name, figure, verdict, reason)


def held_on(
    rule: SloRule, plan: PlanResult, workload: str, confidence: float = 0.95
) -> tuple[Estimate, str, str]:
    """Return the figure that a rule of a workload is about, at a confidence, the verdict and its reason."""
    subject = subject_of(rule, plan, workload)
    if subject is None:
        return NO_FIGURE, UNDECIDED, NO_FIGURE.reason or ""
    figure = subject.observed.estimate(rule.metric, confidence)
    return figure, *held(rule, figure, subject.values[rule.metric], stability_of(subject, plan))


def subject_of(rule: SloRule, plan: PlanResult, workload: str) -> Subject | None:
    """Return whose figure a rule of a workload is about; None where there is no such figure.

    Without a scope that is the workload, and the whole run where a workload has no such figure of its own.
    """
    named = rule.scope or workload
    subjects: list[Subject] = [one for one in plan.workloads if one.name == named]
    if named == workload:
        subjects.append(plan)
    else:
        subjects += [one for one in plan.periods if one.period.name == named]
    return next((one for one in subjects if rule.metric in one.estimates), None)


def stability_of(subject: Subject, plan: PlanResult) -> Stability:
    """Return how steady a figure is: as its period, else as the whole run."""
    return subject.stability if isinstance(subject, PeriodResult) else plan.stability


def held(rule: SloRule, figure: Estimate, values: Sequence[Value], stability: Stability) -> tuple[str, str]:
    """Return the verdict on a figure, with its value in each replication, and its reason."""
    if figure.undelivered:
        return MISSED, figure.reason or ""
    if math.isnan(figure.mean):
        return UNDECIDED, figure.reason or "the figure is missing"
    if stability.is_overloaded:
        return MISSED, f"overloaded: {stability.reason}"
    if rule.metric in MAXIMA:
        return held_by_all(figure, [rule.holds(float(value)) for value in values])
    if figure.proves_nothing:
        return UNDECIDED, ONE_RUN
    return held_by_interval(rule, figure)


def held_by_all(figure: Estimate, kept: Sequence[bool]) -> tuple[str, str]:
    """Return the verdict on a maximum, which is about every run: whether each replication keeps the rule."""
    if not all(kept):
        return MISSED, "" if len(kept) == 1 else f"{kept.count(False)} of {len(kept)} replications break it"
    return (UNDECIDED, ONE_RUN) if figure.proves_nothing else (MET, "")


def held_by_interval(rule: SloRule, figure: Estimate) -> tuple[str, str]:
    """Return the verdict on a mean: whether its whole interval keeps the rule."""
    ends = [figure.mean] if figure.low is None or figure.high is None else [figure.low, figure.high]
    kept = [rule.holds(end) for end in ends]
    if all(kept):
        return MET, ""
    return (UNDECIDED, "the bound lies within the interval") if any(kept) else (MISSED, "")
