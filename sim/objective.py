"""The SLO held against what was measured: each rule met, missed, or undecided, which counts as missed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sim.decide import MERGE
from sim.decision import Decision
from sim.interval import Estimate
from sim.plan_result import PlanResult
from sim.scenario import Scenario
from sim.scenario.slo import SloRule
from sim.verdict import UNDECIDED

MET, MISSED = "met", "missed"


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
    recommended = "parallel" if decision.decision == MERGE else "serial"
    named = part.slo.plan if part.slo else None
    fitting = (plan for plan in plans if (plan.label == named if named else plan.plan.plan == recommended))
    return next(fitting, plans[0])


def slo_verdict(rule: SloRule, plan: PlanResult, part: Scenario) -> SloVerdict:
    """Return whether a plan keeps a rule with its whole interval, breaks it, or cannot tell."""
    own = next((one for one in plan.workloads if one.name == part.part_name), None)
    estimates = plan.estimates | (own.estimates if own else {})
    figure = estimates[rule.metric]
    verdict, reason = held(rule, figure, plan)
    return SloVerdict(rule, plan.label, part.part_name, figure, verdict, reason)


def held(rule: SloRule, figure: Estimate, plan: PlanResult) -> tuple[str, str]:
    """Return the verdict on a figure and its reason."""
    ends = [figure.mean] if figure.low is None or figure.high is None else [figure.low, figure.high]
    kept = [rule.holds(end) for end in ends]
    if math.isnan(figure.mean):
        return UNDECIDED, figure.reason or "the figure is missing"
    if plan.stability.label == "overloaded":
        return MISSED, f"overloaded: {plan.stability.reason}"
    if all(kept):
        return MET, ""
    return (UNDECIDED, "the bound lies within the interval") if any(kept) else (MISSED, "")
