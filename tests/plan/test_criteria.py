import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.errors import PlanError
from sim.plan.cost import extra_cost_micros
from sim.plan.criteria import (
    Criterion,
    MarginalGain,
    evaluate_parallel,
    fair_concurrency,
    judge,
    marginal_gains,
    recommend_degree,
)
from sim.plan.parallel_plan import Branch, ParallelPlan
from sim.plan.schedule import schedule_plan
from sim.units import Number
from tests.strategies import parallel_plans

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "plan_vectors.json").read_text())["cases"]


def moderation(**changes: Any) -> ParallelPlan:
    """Return chain A, `moderation.classify`, with some values changed."""
    branches = [
        Branch("policy", 260, carries_shared_context=True),
        Branch("sensitive_words", 160, carries_shared_context=True),
    ]
    return replace(ParallelPlan(branches, 2, 35, 3200, 250, 0.6, 0.1, 1269, 3786), **changes)


def plain_plan(*durations_ms: int, concurrency: int | None = None, join_ms: float = 0) -> ParallelPlan:
    branches = [Branch(f"b{index}", duration) for index, duration in enumerate(durations_ms)]
    return ParallelPlan(branches, concurrency or len(branches), join_ms)


@pytest.mark.parametrize("case", VECTORS, ids=[str(index) for index in range(len(VECTORS))])
def test_a_reference_plan_matches_in_every_figure(case: dict[str, Any]) -> None:
    evaluation = evaluate_parallel(ParallelPlan.from_dict(case["plan"]), case["max_micros_per_saved_ms"])
    figures, expected = evaluation.to_dict(), case["expect"]
    saves_at_the_price = all(criterion["passed"] for criterion in figures["criteria"][:2])
    # The reference's decision knows the first two criteria only.
    figures["decision"] = "merge" if saves_at_the_price else "keep-serial"
    assert {name: figures["schedule"][name] for name in expected["schedule"]} == expected["schedule"]
    assert {name: figures[name] for name in expected["evaluation"]} == expected["evaluation"]
    for name in ("shared_context_tokens", "shared_context_cost_micros", "marginal_gains"):
        assert figures[name] == expected[name]


def test_there_are_120_reference_plans() -> None:
    assert len(VECTORS) == 120


@pytest.mark.parametrize("slots", [1, 2, 3])
@pytest.mark.parametrize(
    ("reuse", "one_copy", "pct_of_baseline", "price"),
    [
        (0.6, 368, 9.72, 2.94),
        (0.3, 584, 15.43, 4.67),
        (0, 800, 21.13, 6.4),
    ],
)
def test_the_sample_for_three_slot_counts_and_three_reuse_ratios(
    slots: int, reuse: float, one_copy: int, pct_of_baseline: float, price: float
) -> None:
    evaluation = evaluate_parallel(moderation(concurrency=slots, prefix_reuse_ratio=reuse))
    assert (evaluation.serial_ms, evaluation.extra_cost_micros) == (420, one_copy)
    assert evaluation.extra_cost_pct_of_baseline == pct_of_baseline
    if slots == 1:
        assert (evaluation.parallel_ms, evaluation.saved_ms, evaluation.queue_delay_ms) == (455, -35, 160)
        assert (evaluation.micros_per_saved_ms, evaluation.decision) == (None, "keep-serial")
    else:
        assert (evaluation.parallel_ms, evaluation.saved_ms, evaluation.queue_delay_ms) == (295, 125, 0)
        assert evaluation.micros_per_saved_ms == price
        assert evaluation.decision == ("merge" if reuse == 0.6 else "keep-serial")


def test_chain_a_merges_with_every_figure() -> None:
    evaluation = evaluate_parallel(moderation())
    assert evaluation.criteria == (
        Criterion("saved_ms", 125, 0, True, "saves 125 ms"),
        Criterion(
            "micros_per_saved_ms", 2.944, 4, True, "costs 368 micros extra (2.94 <= 4 micros per saved ms)"
        ),
        Criterion(
            "prefix_reuse_ratio", 0.6, 5 / 12, True, "prefix reuse 60 % reaches the break-even 41.67 %"
        ),
        Criterion("recommended_degree", 2, 2, True, "2 slots earn their keep"),
    )
    assert evaluation.reason == (
        "merge: saves 125 ms; costs 368 micros extra (2.94 <= 4 micros per saved ms); "
        "prefix reuse 60 % reaches the break-even 41.67 %; 2 slots earn their keep"
    )
    assert (evaluation.end_to_end_ms, evaluation.break_even_reuse_ratio) == (1144, 0.4167)
    assert (round(evaluation.speedup, 2), round(evaluation.speedup_limit, 2)) == (1.42, 1.62)
    assert (evaluation.serial_cost_micros, evaluation.parallel_cost_micros) == (368, 736)
    assert evaluation.schedule == schedule_plan(moderation())


def test_chain_b_costs_too_much_for_what_it_saves() -> None:
    branches = [
        Branch("reply_draft", 260, carries_shared_context=True),
        Branch("order_snapshot", 125, carries_shared_context=True),
    ]
    evaluation = evaluate_parallel(moderation(branches=branches))
    assert (evaluation.saved_ms, evaluation.extra_cost_micros, evaluation.micros_per_saved_ms) == (
        90,
        368,
        4.09,
    )
    assert evaluation.reason == (
        "keep-serial: costs 368 micros extra (4.09 > 4 micros per saved ms); "
        "prefix reuse 60 % is below the break-even 61.11 %"
    )
    assert [criterion.passed for criterion in evaluation.criteria] == [True, False, False, True]


@pytest.mark.parametrize("join_ms", [0, 35])
def test_chain_c_has_nothing_to_overlap(join_ms: int) -> None:
    branches = [Branch("search.rerank", 180), Branch("chat.reply", 640, depends_on=["search.rerank"])]
    evaluation = evaluate_parallel(moderation(branches=branches, join_overhead_ms=join_ms))
    assert (evaluation.saved_ms, evaluation.decision) == (-join_ms, "keep-serial")
    assert evaluation.reason == "keep-serial: no independent branches"
    assert evaluate_parallel(plain_plan(400)).reason == "keep-serial: no independent branches"


def test_splitting_the_short_branch_saves_nothing_and_costs_a_copy() -> None:
    durations = {"policy": 260, "sensitive_words": 150, "names": 10}
    split = [Branch(name, duration, carries_shared_context=True) for name, duration in durations.items()]
    for slots in (2, 3):
        evaluation = evaluate_parallel(moderation(branches=split, concurrency=slots))
        assert (evaluation.parallel_ms, evaluation.saved_ms) == (295, 125)
        assert (evaluation.extra_cost_micros, evaluation.micros_per_saved_ms) == (736, 5.89)
        assert evaluation.decision == "keep-serial"


def test_three_added_copies_as_a_share_of_the_baseline() -> None:
    branches = [Branch(f"b{index}", 200, carries_shared_context=True) for index in range(4)]
    evaluation = evaluate_parallel(moderation(branches=branches))
    assert (evaluation.extra_cost_micros, evaluation.extra_cost_pct_of_baseline) == (1104, 29.16)
    without = evaluate_parallel(moderation(branches=branches, baseline_ms=None, baseline_cost_micros=None))
    assert (without.extra_cost_pct_of_baseline, without.end_to_end_ms) == (None, None)
    assert evaluation.extra_cost_pct == without.extra_cost_pct == 300


def test_the_join_decides_to_the_nanosecond() -> None:
    assert evaluate_parallel(moderation()).break_even_join_overhead_ms == 160
    branches = [Branch("policy", 260), Branch("sensitive_words", 160)]
    for join_ms, saved_ms, decision in [(159.999999, 1e-6, "merge"), (160, 0, "keep-serial")]:
        evaluation = evaluate_parallel(moderation(branches=branches, join_overhead_ms=join_ms))
        assert (evaluation.saved_ms, evaluation.decision) == (saved_ms, decision)
    assert evaluation.reason == "keep-serial: saves no time"


def test_a_price_and_a_ratio_exactly_at_their_bounds_pass() -> None:
    # A join of 68 leaves 92 ms: 368 / 92 is 4, and the break-even is (1 - 368 / 800) / 0.9 = 0.6.
    at_the_bound = evaluate_parallel(moderation(join_overhead_ms=68))
    assert (at_the_bound.decision, at_the_bound.micros_per_saved_ms) == ("merge", 4)
    assert (
        "(4.00 <= 4 micros per saved ms); prefix reuse 60 % reaches the break-even 60.00 %"
        in at_the_bound.reason
    )
    beyond = evaluate_parallel(moderation(join_overhead_ms=68.000001))
    assert (beyond.decision, beyond.micros_per_saved_ms) == ("keep-serial", 4)
    assert beyond.reason == (
        "keep-serial: costs 368 micros extra (4.00000004 > 4 micros per saved ms); "
        "prefix reuse 60 % is below the break-even 60.000001 %"
    )


def test_a_rounded_up_copy_can_fail_on_price_alone() -> None:
    # One token at 0.25 micros is billed as a whole micro: 1 > 0.5 x 1 ms, though 0.25 is within it.
    plan = plain_plan(1, 1)
    branches = [replace(branch, carries_shared_context=True) for branch in plan.branches]
    evaluation = evaluate_parallel(
        replace(plan, branches=branches, shared_context_tokens=1, input_micros_per_ktok=250), 0.5
    )
    assert [criterion.passed for criterion in evaluation.criteria] == [True, False, True, True]
    assert evaluation.reason == "keep-serial: costs 1 micros extra (1.00 > 0.5 micros per saved ms)"


def test_four_branches_gain_slot_by_slot() -> None:
    plan = plain_plan(300, 260, 180, 120)
    assert marginal_gains(plan) == (
        MarginalGain(1, 860, 0),
        MarginalGain(2, 440, 420),
        MarginalGain(3, 300, 140),
        MarginalGain(4, 300, 0),
    )
    assert recommend_degree(plan) == evaluate_parallel(plan).recommended_degree == 3
    assert [recommend_degree(replace(plan, concurrency=slots)) for slots in (1, 2, 3, 20)] == [1, 2, 3, 3]
    assert marginal_gains(replace(plan, concurrency=1)) == marginal_gains(plan)


@pytest.mark.parametrize(
    ("plan", "degree"),
    [
        (plain_plan(100, 100, 100, 100), 4),
        (plain_plan(100, 100, 100, 100, concurrency=3), 2),
        (plain_plan(100, 100, 100, 100, join_ms=49.9), 4),
        (plain_plan(100, 100, 100, 100, join_ms=50), 2),
        (plain_plan(260, 160, join_ms=159.999999), 2),
        (plain_plan(260, 160, join_ms=160), 1),
        (plain_plan(95, 5), 2),
        (plain_plan(96, 4), 1),
        (plain_plan(95, 5, join_ms=0.01), 1),
        (plain_plan(100, concurrency=8), 1),
        (plain_plan(100, 100, 100, 100, 100, 100), 6),
    ],
)
def test_the_recommended_degree(plan: ParallelPlan, degree: int) -> None:
    assert recommend_degree(plan) == degree


def test_a_gain_is_held_against_the_makespan_before_its_step() -> None:
    # 860, 440, 300: the steps gain 420 / 860 = 48.8 % and 140 / 440 = 31.8 %.
    plan = plain_plan(300, 260, 180, 120)
    ratios: list[Number] = [Fraction(420, 860), Fraction(4884, 10_000), Fraction(140, 440), 0.3182, 1]
    assert [recommend_degree(plan, least) for least in ratios] == [2, 1, 3, 2, 1]


@given(parallel_plans(), st.decimals(0, 1, places=2))
def test_every_step_of_the_degree_is_worth_it(plan: ParallelPlan, least: Decimal) -> None:
    spans = [Fraction(str(gain.make_span_ms)) for gain in marginal_gains(plan)]
    join, degree = Fraction(str(plan.join_overhead_ms)), recommend_degree(plan, least)
    most = min(plan.concurrency, len(spans))
    gains = {k: (spans[degree - 1] - spans[k - 1]) / (k - degree) for k in range(degree + 1, most + 1)}
    best = max(gains.values(), default=Fraction(0))
    assert degree <= most
    assert not gains or best <= join or best < Fraction(least) * spans[degree - 1]
    if degree > 1:
        assert spans[0] - spans[degree - 1] > (degree - 1) * join


@given(parallel_plans(), st.decimals(0, 9, places=1))
def test_an_evaluation_agrees_with_itself(plan: ParallelPlan, limit: Decimal) -> None:
    evaluation = evaluate_parallel(plan, limit)
    assert evaluation.parallel_ms == schedule_plan(plan).make_span_ms
    assert evaluation.ideal_ms + evaluation.queue_delay_ms == evaluation.parallel_ms
    assert evaluation.serial_ms - evaluation.parallel_ms == evaluation.saved_ms
    assert evaluation.speedup <= evaluation.speedup_limit
    assert (evaluation.decision == "merge") == all(criterion.passed for criterion in evaluation.criteria)
    assert evaluation.reason.startswith(f"{evaluation.decision}: ")
    assert json.loads(json.dumps(evaluation.to_dict(), allow_nan=False)) == evaluation.to_dict()


@given(parallel_plans(), st.fractions(-500, 500), st.integers(1, 3))
def test_one_carrier_or_none_is_judged_by_time_and_degree_alone(
    plan: ParallelPlan, saved: Fraction, degree: int
) -> None:
    lone = replace(plan, branches=[replace(branch, carries_shared_context=False) for branch in plan.branches])
    verdict = judge(lone, saved_ms=saved, extra_cost_micros=0, recommended_degree=degree)
    assert (verdict.decision == "merge") == (saved > 0 and degree >= 2)


def test_measured_savings_are_judged_by_the_same_criteria() -> None:
    plan = moderation()
    verdict = judge(plan, saved_ms=91.999, extra_cost_micros=368.5, recommended_degree=2)
    assert verdict.decision == "keep-serial"
    assert verdict.reason == (
        "keep-serial: costs 368.5 micros extra (4.01 > 4 micros per saved ms); "
        "prefix reuse 60 % is below the break-even 60.001 %"
    )
    computed = evaluate_parallel(plan)
    measured = judge(
        plan,
        saved_ms=np.float64(125),
        extra_cost_micros=extra_cost_micros(plan),
        recommended_degree=recommend_degree(plan),
    )
    assert (measured.criteria, measured.reason) == (computed.criteria, computed.reason)


@pytest.mark.parametrize(
    ("saved_ms", "passed", "words"),
    [
        (-35, (False, False, False), ["loses 35 ms", "costs 368 micros extra and saves no time"]),
        (0, (False, False, False), ["saves no time", "costs 368 micros extra and saves no time"]),
        (
            1e-6,
            (True, False, False),
            ["saves 0.000001 ms", "costs 368 micros extra (368000000.00 > 4 micros"],
        ),
    ],
)
def test_copies_without_time_saved_fail_on_every_count(
    saved_ms: float, passed: tuple[bool, ...], words: list[str]
) -> None:
    verdict = judge(moderation(), saved_ms=saved_ms, extra_cost_micros=368, recommended_degree=2)
    assert tuple(criterion.passed for criterion in verdict.criteria[:3]) == passed
    assert verdict.criteria[0].words == words[0]
    assert verdict.criteria[1].words.startswith(words[1])
    assert verdict.criteria[2].words == "no prefix reuse ratio breaks even"
    assert verdict.criteria[2].bound is None


def test_where_no_time_is_saved_the_reason_says_that_alone() -> None:
    assert evaluate_parallel(moderation(concurrency=1)).reason == "keep-serial: loses 35 ms"
    verdict = judge(plain_plan(200, 100), saved_ms=100, extra_cost_micros=0, recommended_degree=1)
    assert verdict.reason == "keep-serial: no added slot earns its keep"


@pytest.mark.parametrize(
    ("slots", "active", "share"), [(20, 1, 20), (20, 10, 2), (20, 11, 1), (20, 20, 1), (20, 30, 1), (7, 2, 3)]
)
def test_the_fair_share(slots: int, active: int, share: int) -> None:
    assert fair_concurrency(slots, active) == share


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fair_concurrency(0, 1), "provider_concurrency must be >= 1 (got 0)"),
        (lambda: fair_concurrency(20, 0), "active_requests must be >= 1 (got 0)"),
        (lambda: fair_concurrency(20, 1.5), "active_requests must be a whole number (got 1.5)"),  # type: ignore[arg-type]
        (lambda: fair_concurrency(True, 1), "provider_concurrency must be a whole number (got True)"),
        (
            lambda: evaluate_parallel(moderation(), -1),
            "max_micros_per_saved_ms must be >= 0 (got -1)",
        ),
        (
            lambda: evaluate_parallel(moderation(), float("nan")),
            "max_micros_per_saved_ms must be a finite number (got nan)",
        ),
        (
            lambda: evaluate_parallel(moderation(), "4"),  # type: ignore[arg-type]
            "max_micros_per_saved_ms must be a finite number (got '4')",
        ),
        (
            lambda: evaluate_parallel(moderation(), 4, 1.5),
            "min_marginal_gain_ratio must be between 0 and 1 (got 1.5)",
        ),
        (
            lambda: judge(moderation(), saved_ms=float("inf"), extra_cost_micros=0, recommended_degree=1),
            "saved_ms must be a finite number (got inf)",
        ),
        (
            lambda: judge(moderation(), saved_ms=1, extra_cost_micros=-1, recommended_degree=1),
            "extra_cost_micros must be >= 0 (got -1)",
        ),
        (
            lambda: judge(moderation(), saved_ms=1, extra_cost_micros=0, recommended_degree=0),
            "recommended_degree must be >= 1 (got 0)",
        ),
    ],
)
def test_what_cannot_be_decided_is_refused(call: Any, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize("four", [np.int64(4), np.float32(4), Decimal(4), Fraction(4), 4.0])
def test_every_kind_of_number_is_a_threshold(four: Any) -> None:
    assert evaluate_parallel(moderation(), four) == evaluate_parallel(moderation())


def test_an_evaluation_reads_well() -> None:
    evaluation = evaluate_parallel(moderation(concurrency=1))
    assert repr(evaluation) == (
        "<Evaluation on 1 slot: serial 420 ms, parallel 455 ms; keep-serial: loses 35 ms>"
    )
    assert evaluation.summary().splitlines() == [
        "keep-serial: loses 35 ms",
        "  serial 420 ms, parallel 455 ms on 1 slot (queue delay 160 ms), speed-up 0.92 of at most 1.62",
        "  serial 368 micros, parallel 736 micros (+100.00 %)",
        "  FAIL  loses 35 ms",
        "  FAIL  costs 368 micros extra and saves no time",
        "  FAIL  no prefix reuse ratio breaks even",
        "  FAIL  no added slot earns its keep",
    ]
