"""Tails against closed forms, and against what is drawn."""

import math
from typing import Any

import numpy as np
import pytest

from sim.scenario.distribution import TokenDuration
from sim.scenario.tail import stated_values, tail_of
from tests.small_scenarios import exponential, lognormal, one_call, open_load

NO_COLUMNS: dict[str, Any] = {}


def duration(of: Any) -> Any:
    return one_call(open_load(), of).workflow.branches[0].duration_ms


def tokens(**of: Any) -> Any:
    return {"distribution": "tokens", **of}


@pytest.mark.parametrize(
    "of",
    [
        100,
        exponential(100),
        lognormal(100, 1.5),
        {"distribution": "lognormal", "p50_ms": 80, "p95_ms": 300},
        {"distribution": "gamma", "mean_ms": 100, "cv": 0.7},
        {"distribution": "uniform", "low_ms": 20, "high_ms": 180},
        {"distribution": "triangular", "low_ms": 20, "mode_ms": 50, "high_ms": 180},
        {"distribution": "triangular", "low_ms": 20, "mode_ms": 20, "high_ms": 180},
        {"distribution": "empirical", "values_ms": [50, 60, 60, 190]},
    ],
    ids=str,
)
def test_tails_are_those_of_the_draws(of: Any) -> None:
    tail, drawn = tail_of(duration(of), NO_COLUMNS), duration(of).draw(np.random.default_rng(1), 200_000)
    at = np.array([10.0, 49.0, 60.0, 75.0, 100.0, 150.0, 185.0, 400.0])
    seen = np.array([np.mean(drawn > one) for one in at])
    assert tail.mean == duration(of).mean
    assert tail.above(at) == pytest.approx(seen, abs=0.005)
    assert tail.mean_up_to(120.0) == pytest.approx(np.mean(np.minimum(drawn, 120)), rel=0.005)


def test_an_exponential_up_to_a_bound_is_its_closed_form() -> None:
    assert tail_of(duration(exponential(100)), NO_COLUMNS).mean_up_to(200) == pytest.approx(
        100 * (1 - math.exp(-2)), rel=1e-6
    )


def test_a_constant_jumps_where_it_is() -> None:
    tail = tail_of(duration(100), NO_COLUMNS)
    assert tail.above(np.array([99.9, 100.0])).tolist() == [1, 0]
    assert tail.mean_up_to(70) == pytest.approx(70, rel=1e-12)
    assert tail.mean_up_to(170) == pytest.approx(100, rel=1e-12)


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        (200, {"distribution": "exponential", "mean_tokens": 50}),
        (
            {"distribution": "empirical", "values_tokens": [100, 300]},
            {"distribution": "exponential", "mean_tokens": 50},
        ),
        (
            {"distribution": "lognormal", "mean_tokens": 200, "cv": 0.8},
            {"distribution": "empirical", "values_tokens": [10, 90]},
        ),
        (
            {"distribution": "lognormal", "mean_tokens": 200, "cv": 0.8},
            {"distribution": "exponential", "mean_tokens": 50},
        ),
        (200, 50),
    ],
    ids=str,
)
def test_times_made_of_tokens_add_up(sent: Any, received: Any) -> None:
    of = duration(
        tokens(
            overhead_ms=20,
            input_tokens=sent,
            prefill_ms_per_token=0.2,
            output_tokens=received,
            decode_ms_per_token=1,
        )
    )
    rng = np.random.default_rng(1)
    drawn = of.service_ms(of.input_tokens.draw(rng, 200_000), of.output_tokens.draw(rng, 200_000))
    at = np.array([30.0, 71.0, 111.0, 150.0, 300.0])
    tail = tail_of(of, NO_COLUMNS)
    assert tail.mean == pytest.approx(of.mean)
    assert tail.above(at) == pytest.approx([np.mean(drawn > one) for one in at], abs=0.005)
    assert tail.mean_up_to(100.0) == pytest.approx(np.mean(np.minimum(drawn, 100)), rel=0.005)


def test_what_a_row_states_is_one_of_the_rows() -> None:
    columns = {"input_tokens": np.array([100.0, 300.0]), "output_tokens": np.array([10.0, 90.0])}
    of = tokens(
        overhead_ms=20,
        input_tokens="trace",
        prefill_ms_per_token=0.2,
        output_tokens="trace",
        decode_ms_per_token=1,
    )
    both = traced(of)
    assert stated_values(both, columns).tolist() == [50, 170]  # type: ignore[union-attr]
    assert tail_of(both, columns).above(np.array([40.0, 50.0, 160.0, 170.0])).tolist() == [1, 0.5, 0.5, 0]
    with_constant = traced(of | {"output_tokens": 30})
    assert stated_values(with_constant, columns).tolist() == [70, 110]  # type: ignore[union-attr]
    assert (
        stated_values(
            traced(of | {"output_tokens": {"distribution": "exponential", "mean_tokens": 30}}), columns
        )
        is None
    )
    assert stated_values(duration(100), columns) is None


def traced(of: Any) -> Any:
    """Return a duration that only a trace load may state, without the rules of a whole scenario."""
    return TokenDuration.model_validate(of)
