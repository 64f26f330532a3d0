"""What the shipped scenarios of shared providers are there to show, and costs against their closed forms."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student_t

import sim
from sim.plan.criteria import KEEP_SERIAL, MERGE
from sim.result.result import Result
from sim.scenario import Scenario
from tests.reports import scenario
from tests.small_scenarios import Plain, closed_load, sample

FAILING = {
    "failures": {"server_error": 0.1},
    "retry": {"attempts": 3, "backoff_ms": 10, "jitter": 0},
    "siblings": "finish",
    "join_overhead_ms": 0,
}
COST_MICROS = 700


def priced(calls: int) -> Scenario:
    """Return a workflow of calls that cost the same; one attempt in ten fails, up to three are made."""
    branches = [
        {"id": f"call_{place}", "duration_ms": 10, "cost_micros": COST_MICROS} for place in range(calls)
    ]
    experiment = {"replications": 12, "warmup": "none"}
    return sample(
        closed_load(10, 600), branches=branches, plans=["parallel"], workflow=FAILING, experiment=experiment
    )


@pytest.mark.parametrize(
    ("calls", "expected"), [(1, COST_MICROS / (1 - 0.1)), (2, 2 * 1.11 * COST_MICROS / 0.999**2)]
)
def test_the_cost_of_a_delivered_request_is_the_closed_form(calls: int, expected: float) -> None:
    values = [float(one) for one in sim.simulate(priced(calls)).plans[0].values["cost_micros_per_success"]]
    half_width = student_t.ppf(0.995, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    assert abs(np.mean(values) - expected) <= half_width
    assert half_width < 0.02 * expected


def cached_prefix(**more: Any) -> Scenario:
    """Return four branches that share a prefix whose full price is 1,000 micros, and a cold cache."""
    branch: Plain = {"duration_ms": 100, "carries_shared_context": True, "first_token_ms": 20}
    context = {"tokens": 4000, "input_micros_per_ktok": 250}
    workflow = {"shared_context": {**context, "prefix_reuse_ratio": 0}}
    plain = sample(
        closed_load(1, 1),
        branches=[{**branch, "id": f"call_{place}"} for place in range(4)],
        plans=["parallel", "warm_first", "serial"],
        workflow=workflow,
    ).to_dict()
    return Scenario.model_validate({**plain, **more})


def test_four_branches_that_start_together_pay_five_prefixes_and_with_a_leader_one_and_a_half() -> None:
    rules = {"write_price_ratio": 1.25, "read_price_ratio": 0.1}
    result = sim.simulate(cached_prefix(provider={"concurrency": 20, "prefix_cache": rules}))
    costs = {plan.label: plan.estimates["cost_micros_per_request"].mean for plan in result.plans}
    assert costs == {"parallel": 5000, "warm_first": 1550, "serial": 1550}
    latencies = {plan.label: plan.estimates["latency_ms_mean"].mean for plan in result.plans}
    assert latencies == {"parallel": 135, "warm_first": 155, "serial": 400}
    reuse = {plan.label: plan.estimates["prefix_reuse_ratio"].mean for plan in result.plans}
    assert reuse == {"parallel": 0, "warm_first": 0.75, "serial": 0.75}


def test_a_call_after_one_that_was_turned_away_pays_for_writing_the_prefix() -> None:
    provider = {"concurrency": 20, "prefix_cache": {"write_price_ratio": 1.25, "read_price_ratio": 0.1}}
    branch: Plain = {"duration_ms": 100, "carries_shared_context": True, "first_token_ms": 20}
    turned_away = {"failures": {"rate_limited": 1, "rejection_ms": 50}, "optional": True}
    plain = cached_prefix(provider=provider).to_dict()
    branches = [{**branch, **turned_away, "id": "a"}, {**branch, "id": "b"}]
    workflow = {**plain["workflow"], "branches": branches}
    result = sim.simulate(Scenario.model_validate({**plain, "workflow": workflow, "plans": ["serial"]}))
    estimates = result.plans[0].estimates
    assert (estimates["latency_ms_mean"].mean, estimates["cost_micros_per_request"].mean) == (150, 1250)


def test_prices_twice_as_high_flip_a_verdict_that_latency_alone_would_not() -> None:
    night, day = (
        sim.simulate(scenario(name, "load.requests=100", "plans=[serial, parallel]"))
        for name in ("night-prices", "day-prices")
    )
    assert (night.decision.decision, day.decision.decision) == (MERGE, KEEP_SERIAL)
    for plan in ("serial", "parallel"):
        assert night.plan(plan).values["latency_ms_mean"] == day.plan(plan).values["latency_ms_mean"]
        costs = [one.plan(plan).estimates["cost_micros_per_request"].mean for one in (night, day)]
        assert costs[1] == 2 * costs[0]
    assert "costs 368 micros extra (2.94 <= 4 micros per saved ms)" in night.decision.reason
    assert "costs 736 micros extra (5.89 > 4 micros per saved ms)" in day.decision.reason


def test_reuse_that_is_a_result_flips_the_verdict_of_a_given_ratio() -> None:
    short = ("load.requests=400", "experiment.replications=2")
    emergent = sim.simulate(scenario("cache-off-peak", *short))
    given = sim.simulate(
        scenario(
            "cache-off-peak",
            *short,
            "provider.prefix_cache=null",
            "workflow.shared_context.prefix_reuse_ratio=0.6",
            "plans=[serial, parallel]",
        )
    )
    assert (emergent.decision.decision, given.decision.decision) == (KEEP_SERIAL, MERGE)
    assert emergent.decision.by_plan["warm_first"].decision == MERGE
    reuse = {plan.label: plan.estimates["prefix_reuse_ratio"].mean for plan in emergent.plans}
    assert reuse["parallel"] < 0.4167 < reuse["warm_first"]


def test_at_peak_the_cache_stays_warm_and_the_verdict_is_to_merge() -> None:
    peak = sim.simulate(scenario("cache-peak", "load.requests=600", "experiment.replications=2"))
    assert peak.plan("parallel").estimates["prefix_reuse_ratio"].mean > 0.99
    assert peak.decision.decision == MERGE
    assert [one.evaluation.decision for one in peak.decision.arithmetic] == [KEEP_SERIAL]


def test_review_leaves_the_latency_untouched_and_its_backlog_grows() -> None:
    short = ("load.duration_s=10000", "experiment.replications=1", "plans=[parallel]")
    reviewed = sim.simulate(scenario("review", *short)).plans[0]
    alone = sim.simulate(scenario("review", *short, "workflow.follow_up=null")).plans[0]
    assert np.array_equal(reviewed.latency_ns[0], alone.latency_ns[0])
    half, end = (reviewed.estimates[f"follow_up_backlog_at_{when}"].mean for when in ("half", "end"))
    assert 5 < half < end
    assert reviewed.estimates["follow_up_reviewers_needed"].mean > 5
    assert not any(name.startswith("follow_up") for name in alone.estimates)


FIVE, PARALLEL = "experiment.replications=5", "plans=[parallel]"


@cache
def mixed(name: str) -> Result:
    durations = [f"workloads[{place}].load.duration_s=60" for place in range(3)]
    return sim.simulate(scenario(name, *durations, "plans=[parallel]"))


def of_workloads(name: str, figure: str) -> dict[str, float]:
    return {one.name: one.estimates[figure].mean for one in mixed(name).plans[0].workloads}


MIXES = ("mix-off-peak", "mix-peak", "mix-peak-priority", "mix-peak-weighted")


@pytest.mark.parametrize("name", MIXES)
def test_littles_law_holds_for_each_of_several_workloads(name: str) -> None:
    run = mixed(name).plans[0].first_run
    for index, active_integral_ns in enumerate(run.out.active_integral_ns):
        mine = run.out.workload == index
        assert active_integral_ns == sum(run.out.latency_ns[mine].tolist())


@pytest.mark.parametrize("name", MIXES)
def test_the_shares_of_workloads_make_up_the_whole(name: str) -> None:
    assert sum(of_workloads(name, "slot_share").values()) == pytest.approx(1)
    latencies = sum(len(one.latency_ns[0]) for one in mixed(name).plans[0].workloads)
    assert latencies == len(mixed(name).plans[0].latency_ns[0])


def test_who_goes_first_at_peak_is_paid_for_by_who_goes_last() -> None:
    fifo, priority, weighted = (
        of_workloads(name, "waiting_ms_max")
        for name in ("mix-peak", "mix-peak-priority", "mix-peak-weighted")
    )
    assert priority["chain-a"] < fifo["chain-a"]
    assert priority["chain-c"] > 2 * fifo["chain-c"]
    assert weighted["chain-c"] < priority["chain-c"]
    latency_ms = {name: of_workloads(name, "latency_ms_mean")["chain-a"] for name in MIXES}
    assert latency_ms["mix-off-peak"] < latency_ms["mix-peak-priority"] < latency_ms["mix-peak"]


def test_objectives_are_held_by_workload() -> None:
    # One random replication would prove nothing.
    short = [f"workloads[{place}].load.duration_s=60" for place in range(3)]
    verdicts = {
        name: {one.workload: one.verdict for one in sim.simulate(scenario(name, *short, FIVE, PARALLEL)).slo}
        for name in ("mix-off-peak", "mix-peak", "mix-peak-priority")
    }
    assert verdicts["mix-off-peak"] == {"chain-a": "met", "chain-b": "met"}
    assert verdicts["mix-peak"]["chain-a"] == "missed"
    assert verdicts["mix-peak-priority"]["chain-a"] == "met"


def test_a_budget_keeps_retries_from_turning_an_overload_into_a_collapse() -> None:
    short = ("load.duration_s=100", "experiment.replications=1", "plans=[parallel]")
    storm, budget = (sim.simulate(scenario(name, *short)) for name in ("retry-storm", "retry-budget"))
    below = sim.simulate(scenario("retry-storm", *short, "load.rate_per_s=8"))
    shares = [one.plans[0].estimates["succeeded_share"].mean for one in (storm, budget, below)]
    assert shares[0] < 0.5 < shares[1] < shares[2]
    assert shares[2] > 0.99
