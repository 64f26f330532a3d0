"""Merge or keep serial: by what was measured where it was, else by the plan arithmetic."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sim.contract.figure import COST_PER_SUCCESS, MEAN_DELIVERED_LATENCY, PREFIX_REUSE
from sim.contract.plan import PARALLEL, SERIAL
from sim.draws.drawing import is_deterministic
from sim.draws.run_input import evaluate
from sim.plan.criteria import Evaluation
from sim.plan.share import usable_slots
from sim.result.measured_decision import MeasuredDecision, measured_decision
from sim.result.observed import Values
from sim.result.plan_result import PlanResult
from sim.scenario import Scenario
from sim.scenario.load import ClosedLoad, StepsLoad
from sim.statistics.figures import Value


@dataclass(frozen=True)
class ArithmeticDecision:
    """What the plan arithmetic says at one number of active requests, each holding to its fair share."""

    active_requests: int
    evaluation: Evaluation


@dataclass(frozen=True)
class Decision:
    """Merge or keep serial.

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
    serial = next((plan for plan in plans if plan.plan.plan == SERIAL), None)
    others = [plan for plan in plans if plan.plan.plan != SERIAL]
    if serial is None or not others:
        at = arithmetic[-1]
        reason = f"{at.evaluation.reason} (arithmetic at {at.active_requests} active requests)"
        return Decision(at.evaluation.decision, reason, "arithmetic", arithmetic, None, {}, {}, {})
    chosen = next((plan for plan in others if plan.plan.plan == PARALLEL), others[0])
    by_plan = {plan.label: judged(scenario, serial.values, plan.values) for plan in others}
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
            one.name: judged(part, one.values, other.values)
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
