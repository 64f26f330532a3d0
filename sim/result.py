"""What an experiment shows: estimates, decision, verdicts and tables, each plan beside the others."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.check import CheckReport
from sim.cost import extra_cost_micros
from sim.decide import MERGE, Evaluation, fair_concurrency
from sim.engine_input import evaluate
from sim.expected import Expected, expected
from sim.interval import Estimate, estimate
from sim.measure import PERCENTILES, Figure, Measured, MeasuredPeriod
from sim.percentile import Missing, percentiles_ns
from sim.scenario import Scenario
from sim.scenario.load import ClosedLoad, StepsLoad
from sim.scenario.model import PlanChoice
from sim.scenario.profile import Period
from sim.scenario.slo import SloRule
from sim.simulation import Run
from sim.stability import Stability
from sim.steadiness import label_period, label_run
from sim.tables import calls_table, requests_table
from sim.units import NS_PER_MS, IntArray, ns_to_ms
from sim.verdict import UNDECIDED, MeasuredDecision, measured_decision
from sim.workload import is_deterministic

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class PeriodResult:
    """One period of a load that changes: the requests that arrived in it, over all replications."""

    period: Period
    values: dict[str, tuple[Figure, ...]]
    estimates: dict[str, Estimate]
    stability: Stability


@dataclass(frozen=True)
class PlanResult:
    """One plan over all replications.

    Parameters
    ----------
    values, estimates
        Each figure per replication, and its mean with interval.
    expected
        Bounds and theory for the same figures.
    pooled_ms
        Percentiles of all replications' latencies put together; not the mean of their percentiles.
    latency_ns
        Latencies after warm-up, one int64 array per replication.
    runs
        The runs whose tables were kept, the first replication's at least.
    """

    plan: PlanChoice
    values: dict[str, tuple[Figure, ...]]
    estimates: dict[str, Estimate]
    pooled_ms: dict[str, Figure]
    latency_ns: tuple[IntArray, ...]
    dropped: tuple[int, ...]
    stability: Stability
    expected: tuple[Expected, ...]
    periods: tuple[PeriodResult, ...]
    checks: CheckReport
    runs: tuple[Run, ...]
    notes: tuple[str, ...]

    @property
    def label(self) -> str:
        return self.plan.label


@dataclass(frozen=True, slots=True)
class SloVerdict:
    """One rule of the SLO, held against one plan: `met`, `missed` or `undecided` (which counts as missed)."""

    rule: SloRule
    plan: str
    value: Estimate
    verdict: str
    reason: str


@dataclass(frozen=True)
class ArithmeticDecision:
    """What the plan arithmetic says at one number of active requests, each holding to its fair share."""

    active_requests: int
    evaluation: Evaluation


@dataclass(frozen=True)
class Decision:
    """Merge or keep serial.

    `basis` is `measured` where both plans were simulated, else `arithmetic`; the other stands beside it.
    """

    decision: str
    reason: str
    basis: str
    arithmetic: tuple[ArithmeticDecision, ...]
    measured: MeasuredDecision | None
    by_period: dict[str, MeasuredDecision]


@dataclass(frozen=True)
class Result:
    """A simulated scenario."""

    scenario: Scenario
    plans: tuple[PlanResult, ...]
    replications: int
    deterministic: bool
    decision: Decision
    slo: tuple[SloVerdict, ...]
    notes: tuple[str, ...]

    @property
    def engine(self) -> str:
        """The engine that ran."""
        return self.plans[0].runs[0].out.engine

    @property
    def checks(self) -> CheckReport:
        """The checks of all plans together."""
        return reduce(add, (plan.checks for plan in self.plans))

    @property
    def meets_slo(self) -> bool:
        """Whether every rule is met; an undecided one is not."""
        return all(verdict.verdict == MET for verdict in self.slo)

    def plan(self, label: str) -> PlanResult:
        """Return the plan with a label; `KeyError` where it was not simulated."""
        return {plan.label: plan for plan in self.plans}[label]

    def noted(self, note: str) -> "Result":
        """Return the result with one more note."""
        return replace(self, notes=(*self.notes, note))

    @cached_property
    def requests(self) -> "pd.DataFrame":
        """One row per request of every kept run; see `sim.tables.REQUEST_COLUMNS`."""
        return joined([requests_table(run) for plan in self.plans for run in plan.runs])

    @cached_property
    def calls(self) -> "pd.DataFrame":
        """One row per call of every kept run; see `sim.tables.CALL_COLUMNS`."""
        ids = tuple(branch.id for branch in self.scenario.workflow.branches)
        return joined([calls_table(run, ids) for plan in self.plans for run in plan.runs])

    def summary(self) -> dict[str, Any]:
        """Return everything but the tables as plain data; the content of `summary.json`."""
        from sim.summary import result_summary  # noqa: PLC0415  a result is the stage before its summary

        return result_summary(self)

    def __repr__(self) -> str:
        figures = ", ".join(
            f"{plan.label} {plan.estimates['latency_ms_mean'].mean:.1f} ms" for plan in self.plans
        )
        return f"<Result of {self.scenario.name}: mean latency {figures}; {self.decision.reason}>"


MET, MISSED = "met", "missed"


def collect(
    scenario: Scenario, outcomes: Sequence[Sequence[tuple[Measured, Run | None]]], notes: Sequence[str]
) -> Result:
    """Return what the outcomes of each plan (outer) and replication (inner) show together."""
    plans = tuple(
        plan_result(scenario, plan, list(runs)) for plan, runs in zip(scenario.plans, outcomes, strict=True)
    )
    decision = decide(scenario, plans)
    plan_notes = [f"{plan.label}: {note}" for plan in plans for note in plan.notes]
    return Result(
        scenario=scenario,
        plans=plans,
        replications=len(outcomes[0]),
        deterministic=is_deterministic(scenario),
        decision=decision,
        slo=slo_verdicts(scenario, plans, decision),
        notes=(*scenario.notes, *notes, *plan_notes),
    )


def plan_result(
    scenario: Scenario, plan: PlanChoice, outcomes: list[tuple[Measured, Run | None]]
) -> PlanResult:
    """Return one plan's figures over its replications."""
    measured = [one for one, _ in outcomes]
    deterministic = is_deterministic(scenario)
    values = by_name([one.figures for one in measured])
    latencies_ns = tuple(one.latency_ns for one in measured)
    pooled = percentiles_ns(np.concatenate(latencies_ns), tuple(PERCENTILES.values()))
    periods = period_results(scenario, [one.periods for one in measured], deterministic)
    return PlanResult(
        plan=plan,
        values=values,
        estimates={name: estimate(each, deterministic=deterministic) for name, each in values.items()},
        pooled_ms={
            f"latency_ms_{level}": value if isinstance(value, Missing) else ns_to_ms(value)
            for level, value in zip(PERCENTILES, pooled, strict=True)
        },
        latency_ns=latencies_ns,
        dropped=tuple(one.dropped for one in measured),
        stability=label_run(scenario, measured),
        expected=expected(scenario, plan, *active_and_work(measured)),
        periods=periods,
        checks=reduce(add, (one.checks for one in measured)),
        runs=tuple(run for _, run in outcomes if run is not None),
        notes=tuple(dict.fromkeys(one.note for one in measured if one.note)),
    )


def active_and_work(measured: Sequence[Measured]) -> tuple[float, float]:
    """Return the time-average of active requests and the mean slot-time of a request (ms), as simulated."""
    active = float(np.mean([float(one.figures["active_requests_mean"]) for one in measured]))
    requests = sum(len(one.latency_ns) + one.dropped for one in measured)
    return active, sum(one.work_ns for one in measured) / max(1, requests) / NS_PER_MS


def by_name(rows: Sequence[dict[str, Figure]]) -> dict[str, tuple[Figure, ...]]:
    """Return each figure's values over the rows."""
    return {name: tuple(row[name] for row in rows) for name in rows[0]}


def period_results(
    scenario: Scenario, replications: Sequence[tuple[MeasuredPeriod, ...]], deterministic: bool
) -> tuple[PeriodResult, ...]:
    """Return each period's figures over the replications."""
    results = []
    for parts in zip(*replications, strict=True):
        values = by_name([part.figures for part in parts])
        results.append(
            PeriodResult(
                parts[0].period,
                values,
                {name: estimate(each, deterministic=deterministic) for name, each in values.items()},
                label_period(scenario, parts),
            )
        )
    return tuple(results)


def decide(scenario: Scenario, plans: Sequence[PlanResult]) -> Decision:
    """Return the decision: on measured savings where both plans were simulated, else by arithmetic."""
    arithmetic = arithmetic_decisions(scenario, plans)
    by_kind = {plan.plan.plan: plan for plan in reversed(plans)}
    if not {"serial", "parallel"} <= set(by_kind):
        at = arithmetic[-1]
        reason = f"{at.evaluation.reason} (arithmetic at {at.active_requests} active requests)"
        return Decision(at.evaluation.decision, reason, "arithmetic", arithmetic, None, {})
    serial, parallel = by_kind["serial"], by_kind["parallel"]
    measured = compare_plans(scenario, serial.values, parallel.values)
    by_period = {
        period.period.name: compare_plans(scenario, period.values, other.values)
        for period, other in zip(serial.periods, parallel.periods, strict=True)
    }
    return Decision(measured.decision, measured.reason, "measured", arithmetic, measured, by_period)


def compare_plans(
    scenario: Scenario, serial: dict[str, tuple[Figure, ...]], parallel: dict[str, tuple[Figure, ...]]
) -> MeasuredDecision:
    """Return the four criteria on what serial and parallel measured, paired by replication."""
    return measured_decision(
        scenario,
        serial["latency_ms_mean"],
        parallel["latency_ms_mean"],
        extra_cost_micros(scenario.parallel_plan(1)),
        is_deterministic(scenario),
    )


def arithmetic_decisions(scenario: Scenario, plans: Sequence[PlanResult]) -> tuple[ArithmeticDecision, ...]:
    """Return the plan arithmetic at each number of active requests: the load's, else the mean."""
    load = scenario.load
    if isinstance(load, ClosedLoad):
        levels = [load.active_requests]
    elif isinstance(load, StepsLoad) and load.is_closed:
        levels = sorted({step.active_requests for step in load.steps if step.active_requests})
    else:
        levels = [max(1, round(plans[0].estimates["active_requests_mean"].mean))]
    slots = scenario.provider.concurrency
    return tuple(
        ArithmeticDecision(active, evaluate(scenario, fair_concurrency(slots, active))) for active in levels
    )


def slo_verdicts(
    scenario: Scenario, plans: Sequence[PlanResult], decision: Decision
) -> tuple[SloVerdict, ...]:
    """Hold the SLO against the plan it names, else against the recommended one."""
    if scenario.slo is None:
        return ()
    recommended = "parallel" if decision.decision == MERGE else "serial"
    label = scenario.slo.plan or next(
        (plan.label for plan in plans if plan.plan.plan == recommended), plans[0].label
    )
    plan = next(plan for plan in plans if plan.label == label)
    return tuple(slo_verdict(rule, plan) for rule in scenario.slo.rules)


def slo_verdict(rule: SloRule, plan: PlanResult) -> SloVerdict:
    """Return whether a plan keeps a rule with its whole interval, breaks it, or cannot tell."""
    figure = plan.estimates[rule.metric]
    ends = [figure.mean] if figure.low is None or figure.high is None else [figure.low, figure.high]
    kept = [rule.holds(end) for end in ends]
    if math.isnan(figure.mean):
        return SloVerdict(rule, plan.label, figure, UNDECIDED, figure.reason or "the figure is missing")
    if plan.stability.label == "overloaded":
        return SloVerdict(rule, plan.label, figure, MISSED, f"overloaded: {plan.stability.reason}")
    if all(kept):
        return SloVerdict(rule, plan.label, figure, MET, "")
    if any(kept):
        return SloVerdict(rule, plan.label, figure, UNDECIDED, "the bound lies within the interval")
    return SloVerdict(rule, plan.label, figure, MISSED, "")


def joined(frames: "Sequence[pd.DataFrame]") -> "pd.DataFrame":
    """Return the frames below each other."""
    import pandas as pd  # noqa: PLC0415  slow to import, and not every command needs it

    return pd.concat(frames, ignore_index=True)
