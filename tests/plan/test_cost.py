from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.plan.cost import (
    break_even_reuse_ratio,
    carriers,
    extra_cost_micros,
    full_copy_cost_micros,
    micros_per_saved_ms,
    parallel_cost_micros,
    percent,
    serial_cost_micros,
    shared_context_cost_micros,
    shared_context_tokens,
)
from sim.plan.parallel_plan import Branch, ParallelPlan
from tests.strategies import parallel_plans


def sample(carrying: int = 2, **changes: Any) -> ParallelPlan:
    """Return a plan of three branches, the first `carrying` of which carry the sample's context."""
    branches = [
        Branch(f"b{index}", 100, cost_micros=10, carries_shared_context=index < carrying)
        for index in range(3)
    ]
    plan = ParallelPlan(branches, 3, 35, 3200, 250, 0.6, 0.1)
    return replace(plan, **changes)


@pytest.mark.parametrize(
    ("reuse", "cached_price", "tokens", "micros"),
    [
        (0.6, 0.1, 1472, 368),
        (0.3, 0.1, 2336, 584),
        (0, 0.1, 3200, 800),
        (0.6, 0.25, 1760, 440),
        (1, 0, 0, 0),
        (1, 1, 3200, 800),
        (1, 0.1, 320, 80),
    ],
)
def test_one_copy_of_the_context(reuse: float, cached_price: float, tokens: int, micros: int) -> None:
    plan = sample(prefix_reuse_ratio=reuse, cached_input_price_ratio=cached_price)
    assert (shared_context_tokens(plan), shared_context_cost_micros(plan)) == (tokens, micros)


@pytest.mark.parametrize(
    ("tokens", "price", "tokens_paid", "micros"),
    [(1, 250, 1, 1), (1, 1, 1, 1), (3, 1000, 2, 2), (0, 250, 0, 0), (5, 0, 3, 0), (4000, 1, 1840, 2)],
)
def test_part_tokens_and_part_micros_round_up(tokens: int, price: int, tokens_paid: int, micros: int) -> None:
    plan = sample(shared_context_tokens=tokens, input_micros_per_ktok=price)
    assert (shared_context_tokens(plan), shared_context_cost_micros(plan)) == (tokens_paid, micros)


@pytest.mark.parametrize(
    ("carrying", "serial", "parallel"), [(0, 30, 30), (1, 398, 398), (2, 398, 766), (3, 398, 1134)]
)
def test_parallel_pays_a_copy_for_each_carrier_and_serial_one(
    carrying: int, serial: int, parallel: int
) -> None:
    plan = sample(carrying)
    assert carriers(plan) == carrying
    assert (serial_cost_micros(plan), parallel_cost_micros(plan)) == (serial, parallel)
    assert full_copy_cost_micros(plan) == 800 * max(0, carrying - 1)


@given(parallel_plans())
def test_the_extra_cost_is_the_difference(plan: ParallelPlan) -> None:
    assert extra_cost_micros(plan) == parallel_cost_micros(plan) - serial_cost_micros(plan) >= 0


def test_the_full_copy_cost_is_not_rounded() -> None:
    assert full_copy_cost_micros(sample(shared_context_tokens=1)) == Fraction(1, 4)


def test_a_saved_millisecond_has_a_price_only_where_time_is_saved() -> None:
    assert micros_per_saved_ms(Fraction(368), Fraction(125)) == Fraction(2944, 1000)
    assert micros_per_saved_ms(Fraction(0), Fraction(125)) == 0
    assert micros_per_saved_ms(Fraction(368), Fraction(0)) is None
    assert micros_per_saved_ms(Fraction(0), Fraction(-35)) is None


@pytest.mark.parametrize(
    ("carrying", "cached_price", "saved", "limit", "break_even"),
    [
        (2, 0.1, 125, 4, Fraction(5, 12)),
        (2, 0.1, 90, 4, Fraction(11, 18)),
        (2, 0.1, 200, 4, Fraction(0)),
        (2, 0.1, 20, 4, Fraction(1)),
        (2, 0.1, Fraction(1999, 100), 4, None),
        (2, 1, 199, 4, None),
        (2, 1, 200, 4, Fraction(0)),
        (2, 0, 1, 0, Fraction(1)),
        (2, 0.1, 1_000, 0, None),
        (2, 0.1, 0, 4, None),
        (2, 0.1, -35, 4, None),
        (1, 0.1, 125, 4, None),
        (0, 0.1, 125, 4, None),
        (3, 0.1, 125, 4, Fraction(55, 72)),
    ],
)
def test_the_break_even_reuse_ratio(
    carrying: int, cached_price: float, saved: int, limit: int, break_even: Fraction | None
) -> None:
    plan = sample(carrying, cached_input_price_ratio=cached_price)
    assert break_even_reuse_ratio(plan, Fraction(saved), Fraction(limit)) == break_even


@given(parallel_plans(), st.fractions(0, 500), st.fractions(0, 8))
def test_at_the_break_even_ratio_the_unrounded_copies_use_up_the_budget(
    plan: ParallelPlan, saved: Fraction, limit: Fraction
) -> None:
    break_even = break_even_reuse_ratio(plan, saved, limit)
    full_cost, discount = full_copy_cost_micros(plan), 1 - Fraction(plan.cached_input_price_ratio)
    if carriers(plan) <= 1 or saved == 0:
        assert break_even is None
    elif break_even is None:
        assert full_cost * (1 - discount) > limit * saved
    elif break_even == 0:
        assert full_cost <= limit * saved
    else:
        assert full_cost * (1 - break_even * discount) == limit * saved


def test_a_percentage_of_nothing_is_zero() -> None:
    assert percent(368, 3786) == Fraction(36800, 3786)
    assert percent(0, 0) == 0
