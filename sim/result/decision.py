"""Merge or keep serial: by what was measured where it was, else by the plan arithmetic."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sim.contract.figure import COST_PER_SUCCESS, MEAN_DELIVERED_LATENCY, PREFIX_REUSE
from sim.contract.plan import PARALLEL, SERIAL
from sim.draws.drawing import is_deterministic
from sim.draws.run_input import evaluate
from sim.plan.criteria import KEEP_SERIAL, MERGE, Evaluation
from sim.plan.share import usable_slots
from sim.result.measured_decision import MeasuredDecision, measured_decision
from sim.result.observed import Values
from sim.result.plan_result import PlanResult
from sim.scenario import Scenario
from sim.scenario.load import ClosedLoad, StepsLoad
from sim.statistics.figures import Value
from sim.statistics.stability import OVERLOADED


@dataclass(frozen=True)
class ArithmeticDecision:
    """What the plan arithmetic says at one number of active requests, each holding to its fair share."""

    active_requests: int
    evaluation: Evaluation


@dataclass(frozen=True)
class Decision:
    """Merge or keep serial; or `overloaded`, where no plan has a steady state that it could be about.

    `basis` is `measured` where serial and another plan were simulated, else `arithmetic`; the other stands
    beside it. `measured` is about `parallel` where that was simulated, else about the first plan that is not
    serial; `by_plan` is about each; by period and by workload it is about the same plan as `measured`.
    """

    decision: str
    reason: str
    basis: str
    arithmetic: tuple[ArithmeticDecision, ...]
    measured: MeasuredDecision | None
    by_plan: dict[str, MeasuredDecision]
    by_period: dict[str, MeasuredDecision]
    by_workload: dict[str, MeasuredDecision]


def decide(scenario: Scenario, plans: Sequence[PlanResult]) -> Decision:
    """Return the decision: on measured savings where both plans were simulated, else by arithmetic."""
    arithmetic = arithmetic_decisions(scenario, plans)
    unsteady = none_is_steady(plans)
    serial = next((plan for plan in plans if plan.plan.plan == SERIAL), None)
    others = [plan for plan in plans if plan.plan.plan != SERIAL]
    if serial is None or not others:
        at = arithmetic[-1]
        if unsteady:
            return Decision(OVERLOADED, unsteady, "arithmetic", arithmetic, None, {}, {}, {})
        reason = f"{at.evaluation.reason} (arithmetic at {at.active_requests} active requests)"
        return Decision(at.evaluation.decision, reason, "arithmetic", arithmetic, None, {}, {}, {})
    chosen = next((plan for plan in others if plan.plan.plan == PARALLEL), others[0])
    by_plan = {
        plan.label: steady(judged(scenario, serial.values, plan.values), serial, plan) for plan in others
    }
    measured = by_plan[chosen.label]
    return Decision(
        decision=measured.decision,
        reason=measured.reason,
        basis="measured",
        arithmetic=arithmetic,
        measured=measured,
        by_plan=by_plan,
        by_period={
            period.period.name: judged(scenario, period.values, other.values)
            for period, other in zip(serial.periods, chosen.periods, strict=True)
        },
        by_workload={
            one.name: steady(judged(part, one.values, other.values), serial, chosen)
            for part, one, other in zip(
                scenario.parts if serial.workloads else (), serial.workloads, chosen.workloads, strict=True
            )
        },
    )


def judged(scenario: Scenario, serial: Values, other: Values) -> MeasuredDecision:
    """Return the four criteria on what two plans measured, paired by replication.

    Prices are those of a delivered request, so that what failed requests cost is paid by those that did not.
    """
    extra_micros = mean(other[COST_PER_SUCCESS]) - mean(serial[COST_PER_SUCCESS])
    reuse = other.get(PREFIX_REUSE)
    return measured_decision(
        scenario,
        serial[MEAN_DELIVERED_LATENCY],
        other[MEAN_DELIVERED_LATENCY],
        float(np.maximum(0.0, extra_micros)),  # not a number where it is unknown
        is_deterministic(scenario),
        prefix_reuse_ratio=mean(reuse) if reuse else None,
    )


def steady(found: MeasuredDecision, serial: PlanResult, other: PlanResult) -> MeasuredDecision:
    """Return a decision that does not rest on figures of a run without a steady state.

    Where neither plan has one it is `overloaded`, where one has, that one.
    """
    decision, reason = OVERLOADED, none_is_steady([serial, other])
    if not reason:
        if serial.stability.has_no_steady_state:
            decision, without = MERGE, serial
        elif other.stability.has_no_steady_state:
            decision, without = KEEP_SERIAL, other
        else:
            return found
        reason = f"{decision}: {without.label} has no steady state: {without.stability.label}, {why(without)}"
    return replace(
        found, decision=decision, verdict=None, flips_at_saved_ms=None, more_replications=None, reason=reason
    )


def none_is_steady(plans: Sequence[PlanResult]) -> str:
    """Return why no plan has a steady state; empty where one has."""
    if not all(plan.stability.has_no_steady_state for plan in plans):
        return ""
    best = max(plans, key=sustainable_share)
    return f"{OVERLOADED}: no steady state, so no verdict: {why(best)}"


def why(plan: PlanResult) -> str:
    """Return why a plan has no steady state, and how many requests it can sustain at most."""
    return f"{plan.stability.reason}{sustainable_words(plan)}"


def sustainable_share(plan: PlanResult) -> float:
    """Return which part of its arrivals a plan can sustain, by arithmetic; above 1 where that is all."""
    load = plan.capacity.worst.load
    return 1 / load if load else math.inf


def sustainable_words(plan: PlanResult) -> str:
    """Return how many requests per second a plan can sustain; empty where arithmetic sees no end."""
    stretch = plan.capacity.worst
    arriving = [one for one in stretch.workloads if one.users is None]
    words = [
        f"{f'{one.name} ' if len(arriving) > 1 else ''}{most:,.4g} requests/s"
        for one in arriving
        if (most := stretch.largest_rate_per_s(one)) is not None and most <= one.rate_per_s
    ]
    return f"; at most {', '.join(words)} can be sustained" if words else ""


def mean(values: Sequence[Value]) -> float:
    """Return the mean over replications; NaN where one is missing."""
    return float(np.mean([float(value) for value in values]))


def arithmetic_decisions(scenario: Scenario, plans: Sequence[PlanResult]) -> tuple[ArithmeticDecision, ...]:
    """Return the plan arithmetic at each number of active requests: the load's, else the mean."""
    load = scenario.load
    if isinstance(load, ClosedLoad):
        levels = [load.active_requests]
    elif isinstance(load, StepsLoad) and load.is_closed:
        levels = sorted({step.active_requests for step in load.steps if step.active_requests})
    else:
        levels = [plans[0].active_requests]
    called = scenario.called_providers
    return tuple(
        ArithmeticDecision(active, evaluate(scenario, usable_slots(called, active))) for active in levels
    )
