"""Answers about capacity as plain data: stable keys, numbers unrounded, null where there is no figure."""

from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from sim.answers.candidate import HeldRule
from sim.answers.policy import FIXED, POLICY, PolicyPeriod, PolicyResult
from sim.answers.sensitivity import InputSensitivity, Sensitivity
from sim.answers.size import CONFIDENCE, Sizing
from sim.answers.size_search import NextSlot, SizePoint
from sim.contract import figure as named
from sim.contract.figure import shares_within
from sim.result.summary import difference_summary, plain, slo_summary
from sim.scenario import Scenario
from sim.statistics.interval import Estimate


def asked_of(scenario: Scenario) -> dict[str, Any]:
    """Return which scenario an answer is about."""
    return {
        "scenario": scenario.name,
        "scenario_file": scenario.path,
        "scenario_sha256": scenario.digest,
        "overrides": list(scenario.overrides),
        "seed": scenario.experiment.seed,
        "slotsim_version": version("slotsim"),
    }


def sizing_summary(sizing: Sizing) -> dict[str, Any]:
    """Return the answer, the curve, and what they took."""
    return {
        **asked_of(sizing.scenario),
        "vary": sizing.path,
        "from": min(sizing.values),
        "to": max(sizing.values),
        "candidates": len(sizing.values),
        "wanted": "largest" if sizing.largest else "smallest",
        "rules": [str(rule) for _, rule in sizing.asked.rules],
        "plan": sizing.asked.plan,
        "status": sizing.status,
        "answer": sizing.answer,
        "safe_from": sizing.safe_from,
        "sentence": sizing.sentence,
        "by_theory": sizing.by_theory,
        "in_doubt": list(sizing.in_doubt),
        "anomalies": [
            {
                "rule": str(one.rule),
                "value": one.value,
                "figure": one.figure,
                "worse_value": one.worse_value,
                "worse_figure": one.worse_figure,
            }
            for one in sizing.anomalies
        ],
        "next_slot": next_slot_summary(sizing.next_slot),
        "curve": [point_summary(one) for one in sizing.points],
        "confidence": CONFIDENCE,
        "confidence_of_one_look": sizing.asked.confidence,
        "most_replications": sizing.most_replications,
        "runs": sizing.runs,
    }


def point_summary(point: SizePoint) -> dict[str, Any]:
    """Return one candidate."""
    bounds = (bound or (None, None) for bound in point.bounds)
    return {
        "value": point.value,
        "verdict": point.verdict,
        "replications": point.replications,
        "stability": point.stability,
        named.MEAN_LATENCY: plain(point.latency_ms_mean.mean),
        "rules": [
            {**held_summary(held), "theory": kind, "theory_value": plain(value)}
            for held, (kind, value) in zip(point.rules, bounds, strict=True)
        ],
    }


def held_summary(held: HeldRule) -> dict[str, Any]:
    """Return one rule at one candidate."""
    return {
        "rule": str(held.rule),
        "workload": held.workload,
        "plan": held.plan,
        **interval_summary(held.figure),
        "verdict": held.verdict,
        "reason": held.reason,
    }


def interval_summary(figure: Estimate) -> dict[str, Any]:
    """Return a figure with both ends of its interval."""
    return {"figure": plain(figure.mean), "low": plain(figure.low), "high": plain(figure.high)}


def next_slot_summary(next_slot: NextSlot | None) -> dict[str, Any] | None:
    """Return what one more slot is worth."""
    if next_slot is None:
        return None
    return {
        "slots": next_slot.slots,
        "saved_ms": plain(next_slot.saved_ms),
        "difference_ms": difference_summary(next_slot.difference),
        "worth_micros_per_hour": plain(next_slot.worth_micros_per_hour),
        "price_micros_per_hour": next_slot.price_micros_per_hour,
        "pays": next_slot.pays,
    }


def sensitivity_summary(sensitivity: Sensitivity) -> dict[str, Any]:
    """Return every input, those that move the saving most first."""
    order = {id(one): place for place, one in enumerate(sensitivity.by_swing)}
    inputs = sorted(sensitivity.inputs, key=lambda one: order.get(id(one), len(order)))
    return {
        **asked_of(sensitivity.scenario),
        "workload": sensitivity.scenario.part_name,
        "active_requests": sensitivity.active_requests,
        "decision": sensitivity.base.decision,
        "saved_ms": sensitivity.base.saved_ms,
        "micros_per_saved_ms": sensitivity.base.micros_per_saved_ms,
        "simulated_decision": sensitivity.simulated.decision if sensitivity.simulated else None,
        "notes": list(sensitivity.notes),
        "inputs": [input_summary(one) for one in inputs],
    }


def input_summary(one: InputSensitivity) -> dict[str, Any]:
    """Return one input."""
    return {
        **{name: getattr(one, name) for name in ("name", "path", "unit", "basis", "value")},
        "flips": [asdict(flip) for flip in one.flips],
        "latency_flips": [asdict(flip) for flip in one.latency_flips],
        "less": {name: plain(value) for name, value in asdict(one.less).items()},
        "more": {name: plain(value) for name, value in asdict(one.more).items()},
    }


def policy_summary(result: PolicyResult) -> dict[str, Any]:
    """Return the policy, and what it came to beside both fixed plans."""
    return {
        **asked_of(result.scenario),
        "sentence": result.sentence,
        "policy": result.table.to_dict(),
        "whole": policy_period_summary(result.whole),
        "periods": [policy_period_summary(one) for one in result.periods],
        "policy_minus_fixed_ms": {
            label: difference_summary(each) for label, each in result.differences.items()
        },
        "beats_both": result.beats_both,
        "slo": [slo_summary(one) for one in result.slo],
        "meets_slo": result.meets_slo if result.slo else None,
    }


def policy_period_summary(period: PolicyPeriod) -> dict[str, Any]:
    """Return one period under each plan."""
    return {
        "period": period.name,
        "better_fixed": period.better_fixed,
        "above_better_share": plain(period.above_better_share),
        "plans": {label: policy_figures(period, label) for label in (*FIXED, POLICY)},
    }


def policy_figures(period: PolicyPeriod, label: str) -> dict[str, Any]:
    """Return the figures of a plan that a policy is judged by."""
    figures = period.figures[label]
    shown = {*POLICY_FIGURES, *shares_within(figures)}
    return {name: plain(figure.mean) for name, figure in figures.items() if name in shown}


POLICY_FIGURES = (
    named.REQUESTS,
    *named.LATENCIES,
    named.COST_PER_REQUEST,
    named.PARALLEL_SHARE,
    named.SUCCEEDED_SHARE,
)
