"""Plans, limits and outcomes stand in one table each, and what is in none is refused."""

from dataclasses import replace

import numpy as np
import pytest

from sim.check import shared_kernels as check_kernels
from sim.cli.figures import ORDER
from sim.contract import limit
from sim.contract.limit import ENFORCEMENTS, ON_LIMIT, UNIT_OF_KEY, UNITS
from sim.contract.plan import PLANS, USUAL_PLANS
from sim.contract.provider import RateLimit
from sim.draws.run_input import limits_of
from sim.engine.shared import kernels
from sim.errors import ArgumentError, InputError
from sim.scenario import load_scenario
from sim.scenario.limits import RATE_KEYS, RateLimits
from sim.scenario.model import ALL_PLANS
from tests.engine_inputs import arriving
from tests.shared_inputs import failing, workload


def test_a_unit_that_there_is_not_is_refused() -> None:
    with pytest.raises(ArgumentError) as refused:
        RateLimit(unit="token", amount=1, window_ns=1)
    assert str(refused.value) == (
        "unit must be one of calls, tokens, input_tokens, output_tokens (got 'token')"
    )


def test_kernels_count_by_the_units_of_the_table() -> None:
    codes = [limit.CALLS_UNIT, limit.TOKENS_UNIT, limit.INPUT_UNIT, limit.OUTPUT_UNIT]
    assert [UNITS[code] for code in codes] == list(UNITS)
    for each in (kernels, check_kernels):
        assert (each.CALLS_UNIT, each.INPUT_UNIT, each.OUTPUT_UNIT) == (0, 2, 3)


def test_every_limit_of_a_file_has_its_unit() -> None:
    stated = RateLimits(rpm=1, tpm=2, itpm=3, otpm=4)
    found = [(rate.unit, rate.amount) for rate in limits_of(stated).rates]
    assert found == [("calls", 1), ("tokens", 2), ("input_tokens", 3), ("output_tokens", 4)]
    assert RATE_KEYS == tuple(UNIT_OF_KEY) == ("rpm", "tpm", "itpm", "otpm")


def test_every_enforcement_is_one_of_the_table() -> None:
    found = {name: limits_of(RateLimits(rpm=120, enforcement=name)) for name in ENFORCEMENTS}
    rates = {name: (one.rates[0].amount, one.rates[0].burst) for name, one in found.items()}
    assert rates == {"token_bucket": (120, 120), "fixed_window": (120, None), "sub_window": (2, None)}
    assert [limits_of(RateLimits(rpm=1, on_limit=name)).rejects for name in ON_LIMIT] == [False, True]


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (
            "provider.limits={rpm: 1, enforcement: leaky}",
            "provider.limits.enforcement must be one of token_bucket, fixed_window, sub_window (got 'leaky')",
        ),
        (
            "provider.limits={rpm: 1, on_limit: drop}",
            "provider.limits.on_limit must be one of queue, reject (got 'drop')",
        ),
        (
            "plans=[parallell]",
            "plans[0] must be one of serial, parallel, adaptive, warm_first (got 'parallell')",
        ),
        (
            "load.kind=burst",
            "load.kind must be one of closed, open, trace, steps, profile (got 'burst')",
        ),
    ],
)
def test_a_name_that_there_is_not_is_refused(stated: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        load_scenario("scenarios/moderation.yaml", [stated])
    assert str(refused.value) == f"--set: {message}"


def test_plans_are_those_of_the_table() -> None:
    assert tuple(choice.plan for choice in ALL_PLANS) == USUAL_PLANS == tuple(PLANS)[:3]
    assert list(ORDER) == ["parallel", "serial", "adaptive", "warm_first"]
    assert [name for name, plan in PLANS.items() if plan.is_parallel] == ["parallel", "warm_first"]


def test_an_outcome_that_cannot_be_drawn_is_refused() -> None:
    faults = failing(workload(arriving(0), [10]), ["."]).faults
    assert faults is not None
    with pytest.raises(ArgumentError) as refused:
        replace(faults, outcome=np.full((1, 1, 1), 4, dtype=np.int8))
    assert str(refused.value) == (
        "outcome must be the number of one of ok, server_error, rate_limited, timed_out (got 4)"
    )
