"""The parts of a result as plain data: stable keys, numbers unrounded; for `--json` and `summary.json`.

A figure that cannot be shown is null, and `missing` says why. Nothing here depends on when, where, by how
many workers or into which folder a run was written: the same command gives the same bytes.
"""

import math
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from sim.contract.figure import PREFIX_REUSE
from sim.plan.criteria import Criterion, Verdict
from sim.result.decision import Decision
from sim.result.measured_decision import MeasuredDecision
from sim.result.objective import SloVerdict
from sim.result.plan_result import PeriodResult, PlanResult
from sim.run.breakdown import PARTS, TimeSpent
from sim.run.measure import WarmupRule
from sim.scenario import Scenario
from sim.statistics.interval import Difference, Estimate
from sim.statistics.percentile import Missing
from sim.units import NS_PER_MS


def provenance(scenario: Scenario, **settled: object) -> dict[str, Any]:
    """Return what it takes to ask this again; `settled` is what else had an influence, by name."""
    return {
        "scenario": scenario.name,
        "scenario_file": scenario.path,
        "scenario_sha256": scenario.digest,
        "overrides": list(scenario.overrides),
        "seed": scenario.experiment.seed,
        **settled,
        "slotsim_version": version("slotsim"),
    }


def warmup_summary(rule: WarmupRule) -> Any:
    """Return a warm-up rule as it is written in a scenario."""
    return rule if isinstance(rule, str) else rule.model_dump(exclude_none=True)


def plan_summary(plan: PlanResult) -> dict[str, Any]:
    """Return one plan: its figures by name, then what stands behind them."""
    return {
        **figures_summary(plan.estimates),
        "pooled": {name: plain(value) for name, value in plan.pooled_ms.items()},
        "stability": asdict(plan.stability),
        "expected": [{**asdict(item), "value": plain(item.value)} for item in plan.expected],
        "warmup_requests_dropped": list(plan.dropped),
        "periods": [period_summary(period) for period in plan.periods],
        "workloads": {one.name: figures_summary(one.estimates) for one in plan.workloads},
        "checks": plan.checks.summary(),
    }


def time_summary(spent: TimeSpent) -> dict[str, Any]:
    """Return where the time of the first replication's requests went; the parts add up to the latencies."""
    return {
        "breakdown_ms": spent.covered.mean_ms,
        "breakdown_requests": len(spent.covered.request),
        "breakdown_requests_of": spent.requests,
        "slowest_requests": [
            {
                "request": request,
                "latency_ms": sum(parts_ns) / NS_PER_MS,
                "breakdown_ms": {name: part / NS_PER_MS for name, part in zip(PARTS, parts_ns, strict=True)},
            }
            for request, parts_ns in zip(
                spent.slowest.request.tolist(), spent.slowest.parts_ns.tolist(), strict=True
            )
        ],
    }


def period_summary(period: PeriodResult) -> dict[str, Any]:
    """Return one period of a load that changes."""
    return {
        **asdict(period.period),
        **figures_summary(period.estimates),
        "stability": asdict(period.stability),
    }


def figures_summary(estimates: dict[str, Estimate]) -> dict[str, Any]:
    """Return means by name, then the half-widths of their 95 % intervals, then why any is missing."""
    return {
        **{name: plain(figure.mean) for name, figure in estimates.items()},
        "half_width_95": {name: plain(figure.half_width) for name, figure in estimates.items()},
        "missing": {name: figure.reason for name, figure in estimates.items() if math.isnan(figure.mean)},
    }


def decision_summary(decision: Decision) -> dict[str, Any]:
    """Return the decision, measured and by arithmetic."""
    return {
        "decision": decision.decision,
        "reason": decision.reason,
        "basis": decision.basis,
        "measured": measured_summary(decision.measured),
        "arithmetic": [
            {"active_requests": at.active_requests, **at.evaluation.to_dict()} for at in decision.arithmetic
        ],
        "by_plan": {name: measured_summary(each) for name, each in decision.by_plan.items()},
        "by_period": {name: measured_summary(each) for name, each in decision.by_period.items()},
        "by_workload": {name: measured_summary(each) for name, each in decision.by_workload.items()},
    }


def measured_summary(measured: MeasuredDecision | None) -> dict[str, Any] | None:
    """Return a decision on measured savings."""
    if measured is None:
        return None
    return {
        "decision": measured.decision,
        "reason": measured.reason,
        "saved_ms": plain(measured.saved_ms),
        "saved_half_width_ms": plain(measured.difference.half_width),
        "parallel_minus_serial_ms": difference_summary(measured.difference),
        "extra_cost_micros": plain(measured.extra_cost_micros),
        "criteria": criteria_summary(measured.verdict),
        **reuse_summary(measured.verdict),
        "flips_at_saved_ms": measured.flips_at_saved_ms,
        "more_replications": measured.more_replications,
    }


def criteria_summary(verdict: Verdict | None) -> list[dict[str, Any]]:
    """Return the four criteria."""
    criteria: tuple[Criterion, ...] = verdict.criteria if verdict else ()
    return [asdict(criterion) for criterion in criteria]


def reuse_summary(verdict: Verdict | None) -> dict[str, Any]:
    """Return the prefix reuse ratio that was judged, and the one that breaks even."""
    found = [one for one in verdict.criteria if one.name == PREFIX_REUSE] if verdict else []
    return {
        PREFIX_REUSE: found[0].value if found else None,
        "break_even_reuse_ratio": found[0].bound if found else None,
    }


def difference_summary(difference: Difference) -> dict[str, Any]:
    """Return a paired difference."""
    return {name: plain(value) for name, value in asdict(difference).items()}


def slo_summary(verdict: SloVerdict) -> dict[str, Any]:
    """Return one rule of the SLO."""
    return {
        "rule": str(verdict.rule),
        "plan": verdict.plan,
        "workload": verdict.workload,
        "value": plain(verdict.value.mean),
        "half_width_95": plain(verdict.value.half_width),
        "verdict": verdict.verdict,
        "reason": verdict.reason,
    }


def plain(value: object) -> Any:
    """Return a figure as JSON knows it: no NaN, no infinity, null where there is none."""
    if isinstance(value, Missing) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value
