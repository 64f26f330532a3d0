import pickle
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sim.errors import PlanError
from sim.plan.parallel_plan import Branch, ParallelPlan

NAN, INFINITY = float("nan"), float("inf")


def plan_values(**changes: Any) -> dict[str, Any]:
    """Return the sample as plain types, as a JSON file would hold it, with some values changed."""
    values = {
        "branches": [
            {"id": "policy", "duration_ms": 260, "carries_shared_context": True},
            {"id": "sensitive_words", "duration_ms": 160, "carries_shared_context": True},
        ],
        "concurrency": 2,
        "join_overhead_ms": 35,
        "shared_context_tokens": 3200,
        "input_micros_per_ktok": 250,
        "prefix_reuse_ratio": 0.6,
        "cached_input_price_ratio": 0.1,
        "baseline_ms": 1269,
        "baseline_cost_micros": 3786,
    }
    return {**values, **changes}


def refusal(**changes: Any) -> str:
    with pytest.raises(PlanError) as caught:
        ParallelPlan.from_dict(plan_values(**changes))
    return str(caught.value)


def branch_refusal(**changes: Any) -> str:
    branches = plan_values()["branches"]
    branches[1] |= changes
    return refusal(branches=branches)


def test_a_plan_from_plain_types_equals_one_from_branches() -> None:
    branches = [
        Branch("policy", 260, carries_shared_context=True),
        Branch("sensitive_words", 160, carries_shared_context=True),
    ]
    plan = ParallelPlan(branches, 2, 35, 3200, 250, 0.6, 0.1, 1269, 3786)
    assert ParallelPlan.from_dict(plan_values()) == plan
    assert ParallelPlan.from_dict(plan_values(branches=branches)) == plan
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert hash(plan) == hash(replace(plan))


def test_what_has_a_default_may_be_left_out() -> None:
    plan = ParallelPlan([Branch("only", 1)], 1)
    assert plan.branches == (Branch("only", 1, 0, False, ()),)
    assert (plan.join_overhead_ms, plan.shared_context_tokens, plan.input_micros_per_ktok) == (0, 0, 0)
    assert (plan.prefix_reuse_ratio, plan.cached_input_price_ratio) == (0, 1)
    assert plan.baseline_ms is None
    assert plan.baseline_cost_micros is None


def test_times_and_dependencies_are_kept_as_integers() -> None:
    plan = ParallelPlan(
        [Branch("a", 1.0000005, depends_on=["c"]), Branch("b", 2), Branch("c", 0.1 + 0.9)], 2, 0.5
    )
    assert plan.service_ns == (1_000_000, 2_000_000, 1_000_000)
    assert plan.dependencies == ((2,), (), ())
    assert plan.join_ns == 500_000


@pytest.mark.parametrize(
    "two", [2.0, np.int64(2), np.uint8(2), np.float64(2), np.float32(2), Fraction(2), Decimal(2)]
)
def test_every_kind_of_number_counts_as_one(two: Any) -> None:
    plan = ParallelPlan([Branch("a", two, cost_micros=two)], two, two, two, two, baseline_cost_micros=two)
    assert plan == ParallelPlan([Branch("a", 2, cost_micros=2)], 2, 2, 2, 2, baseline_cost_micros=2)
    assert type(plan.concurrency) is type(plan.branches[0].cost_micros) is int


def test_a_short_float_is_the_decimal_it_is_written_as() -> None:
    plan = ParallelPlan([Branch("a", 1)], 1, prefix_reuse_ratio=np.float32(0.6))  # type: ignore[arg-type]
    assert plan.prefix_reuse_ratio == 0.6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": ""}, "branches[1].id must not be blank (got '')"),
        ({"id": " \t"}, "branches[1].id must not be blank (got ' \\t')"),
        ({"id": 7}, "branches[1].id must be text (got 7)"),
        ({"id": "policy"}, "branches[1].id must not repeat (got 'policy')"),
        ({"duration_ms": 0}, "branches[1].duration_ms must be >= 1 (got 0)"),
        ({"duration_ms": 0.999}, "branches[1].duration_ms must be >= 1 (got 0.999)"),
        ({"duration_ms": -5}, "branches[1].duration_ms must be >= 1 (got -5)"),
        ({"duration_ms": NAN}, "branches[1].duration_ms must be a finite number (got nan)"),
        ({"duration_ms": INFINITY}, "branches[1].duration_ms must be a finite number (got inf)"),
        (
            {"duration_ms": Decimal("sNaN")},
            "branches[1].duration_ms must be a finite number (got Decimal('sNaN'))",
        ),
        ({"duration_ms": True}, "branches[1].duration_ms must be a finite number (got True)"),
        ({"duration_ms": np.True_}, "branches[1].duration_ms must be a finite number (got np.True_)"),
        ({"duration_ms": "160"}, "branches[1].duration_ms must be a finite number (got '160')"),
        ({"duration_ms": None}, "branches[1].duration_ms must be a finite number (got None)"),
        ({"duration_ms": 160j}, "branches[1].duration_ms must be a finite number (got 160j)"),
        ({"duration_ms": 1e300}, "branches[1].duration_ms must be <= 1e+15 (got 1e+300)"),
        ({"cost_micros": -1}, "branches[1].cost_micros must be >= 0 (got -1)"),
        ({"cost_micros": 0.5}, "branches[1].cost_micros must be a whole number (got 0.5)"),
        ({"cost_micros": NAN}, "branches[1].cost_micros must be a whole number (got nan)"),
        ({"cost_micros": False}, "branches[1].cost_micros must be a whole number (got False)"),
        ({"carries_shared_context": 1}, "branches[1].carries_shared_context must be true or false (got 1)"),
        ({"depends_on": "policy"}, "branches[1].depends_on must be a list of branch ids (got 'policy')"),
        ({"depends_on": [3]}, "branches[1].depends_on[0] must be text (got 3)"),
        ({"depends_on": ["policy"] * 2}, "branches[1].depends_on[1] must not repeat (got 'policy')"),
        (
            {"depends_on": ["policy", "rules"]},
            "branches[1].depends_on[1] must name a branch of the plan (got 'rules')",
        ),
        (
            {"depends_on": ["sensitive_words"]},
            "branches[1].depends_on must not form a cycle (got 'sensitive_words -> sensitive_words')",
        ),
        (
            {"duration": 5},
            "branches[1] must have no other keys than id, duration_ms, cost_micros, carries_shared_context, "
            "depends_on (got 'duration')",
        ),
    ],
)
def test_a_branch_is_refused_with_its_place(changes: dict[str, Any], message: str) -> None:
    assert branch_refusal(**changes) == message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"branches": []}, "branches must have at least one branch (got [])"),
        ({"branches": 3}, "branches must be a list of branches (got 3)"),
        ({"branches": [3]}, "branches[0] must be a mapping (got 3)"),
        ({"branches": [{"id": "a"}]}, "branches[0] must have the key duration_ms (got {'id': 'a'})"),
        ({"concurrency": 0}, "concurrency must be >= 1 (got 0)"),
        ({"concurrency": 1.5}, "concurrency must be a whole number (got 1.5)"),
        ({"concurrency": True}, "concurrency must be a whole number (got True)"),
        ({"concurrency": "2"}, "concurrency must be a whole number (got '2')"),
        ({"concurrency": INFINITY}, "concurrency must be a whole number (got inf)"),
        ({"join_overhead_ms": -1}, "join_overhead_ms must be >= 0 (got -1)"),
        ({"join_overhead_ms": NAN}, "join_overhead_ms must be a finite number (got nan)"),
        ({"shared_context_tokens": -1}, "shared_context_tokens must be >= 0 (got -1)"),
        ({"shared_context_tokens": 0.5}, "shared_context_tokens must be a whole number (got 0.5)"),
        ({"shared_context_tokens": 10**16}, f"shared_context_tokens must be <= 1e+15 (got {10**16})"),
        ({"input_micros_per_ktok": -250}, "input_micros_per_ktok must be >= 0 (got -250)"),
        ({"input_micros_per_ktok": 2.5}, "input_micros_per_ktok must be a whole number (got 2.5)"),
        ({"prefix_reuse_ratio": 1.01}, "prefix_reuse_ratio must be between 0 and 1 (got 1.01)"),
        ({"prefix_reuse_ratio": NAN}, "prefix_reuse_ratio must be a finite number (got nan)"),
        ({"prefix_reuse_ratio": True}, "prefix_reuse_ratio must be a finite number (got True)"),
        ({"cached_input_price_ratio": -0.1}, "cached_input_price_ratio must be between 0 and 1 (got -0.1)"),
        ({"baseline_ms": 0}, "baseline_ms must be >= 1 (got 0)"),
        ({"baseline_ms": -INFINITY}, "baseline_ms must be a finite number (got -inf)"),
        ({"baseline_cost_micros": 0}, "baseline_cost_micros must be >= 1 (got 0)"),
        ({"baseline_cost_micros": 1.5}, "baseline_cost_micros must be a whole number (got 1.5)"),
        (
            {"slots": 2},
            "plan must have no other keys than branches, concurrency, join_overhead_ms, "
            "shared_context_tokens, input_micros_per_ktok, prefix_reuse_ratio, cached_input_price_ratio, "
            "baseline_ms, baseline_cost_micros (got 'slots')",
        ),
    ],
)
def test_a_plan_is_refused_with_field_rule_and_value(changes: dict[str, Any], message: str) -> None:
    assert refusal(**changes) == message


def test_a_cycle_is_told_from_its_first_branch_on_in_running_order() -> None:
    branches = [
        Branch("after", 1, depends_on=["y"]),
        Branch("x", 1, depends_on=["z"]),
        Branch("y", 1, depends_on=["x"]),
        Branch("z", 1, depends_on=["y"]),
    ]
    with pytest.raises(PlanError) as caught:
        ParallelPlan(branches, 2)
    assert str(caught.value) == "branches[1].depends_on must not form a cycle (got 'x -> y -> z -> x')"


def test_a_lone_branch_names_its_own_field() -> None:
    with pytest.raises(PlanError) as caught:
        Branch("slow", 0)
    assert (caught.value.field, caught.value.rule, caught.value.value) == ("duration_ms", "must be >= 1", 0)


def test_what_is_no_branch_is_refused() -> None:
    with pytest.raises(PlanError, match=r"^branches\[0\] must be a Branch \(got 'policy'\)$"):
        ParallelPlan(["policy"], 1)  # type: ignore[list-item]
