"""What an engine is given: as many elements for each workload as its own load and calls have it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sim.contract.load import ClosedUsers, DrawsExhaustedError
from sim.contract.run import DailyPlans, RunInput, WorkloadInput
from sim.errors import ArgumentError
from tests.engine_inputs import arriving, closed, engine_input, ms
from tests.shared_inputs import failing, provider, speaking, workload

SHARES = "must have an element for each share up to 4 (got 4)"


def by_load(shape: tuple[int, ...], found: tuple[int, ...]) -> str:
    return f"must have the shape {shape}, by its workload's load and calls (got {found})"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"service_ns": ms([[1, 1]] * 4)}, f"service_ns {by_load((3, 2), (4, 2))}"),
        ({"service_ns": ms([[1]] * 3)}, f"service_ns {by_load((3, 2), (3, 1))}"),
        ({"join_ns": ms([1, 1])}, f"join_ns {by_load((3,), (2,))}"),
        ({"load": arriving(0, 1)}, f"service_ns {by_load((2, 2), (3, 2))}"),
        ({"load": closed(1, 5)}, f"service_ns {by_load((5, 2), (3, 2))}"),
        ({"runs_parallel_at": np.ones(4, dtype=np.bool_)}, f"runs_parallel_at {SHARES}"),
    ],
)
def test_a_plain_run_has_draws_for_the_requests_of_its_load(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as error:
        replace(engine_input(arriving(0, 1, 2), slots=4), **change)
    assert str(error.value) == message


def second(**change: Any) -> RunInput:
    """Return a run of two workloads, the second of which is altered."""
    whole = speaking(failing(workload(arriving(0, 1, 2), [1, 1]), ["..", ".."]))
    return RunInput((workload(closed(1, 9)), replace(whole, **change)), (provider(4),))


def whole() -> WorkloadInput:
    return second().workloads[1]


@pytest.mark.parametrize("name", ["outcome", "service_ns", "jitter_ppm"])
def test_faults_are_drawn_for_the_requests_of_their_workload(name: str) -> None:
    faults: Any = whole().faults
    with pytest.raises(ArgumentError) as error:
        second(faults=replace(faults, **{name: np.zeros((9, 2, 2), dtype=np.int64)}))
    assert str(error.value) == f"workloads[1].faults.{name} {by_load((3, 2, 2), (9, 2, 2))}"


@pytest.mark.parametrize("name", ["input", "output", "first_token_ns"])
def test_tokens_are_drawn_for_the_requests_of_their_workload(name: str) -> None:
    tokens: Any = whole().tokens
    with pytest.raises(ArgumentError) as error:
        second(tokens=replace(tokens, **{name: np.zeros((2, 2), dtype=np.int64)}))
    assert str(error.value) == f"workloads[1].tokens.{name} {by_load((3, 2), (2, 2))}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"service_ns": ms([[1, 1]])}, f"service_ns {by_load((3, 2), (1, 2))}"),
        ({"join_ns": ms([1] * 9)}, f"join_ns {by_load((3,), (9,))}"),
        ({"load": ClosedUsers(((0, 1),), ms([0] * 2), 5)}, f"service_ns {by_load((2, 2), (3, 2))}"),
        ({"runs_parallel_at": np.ones(4, dtype=np.bool_)}, f"runs_parallel_at {SHARES}"),
        (
            {
                "daily_plans": DailyPlans(
                    0, ((0, np.ones(5, dtype=np.bool_)), (9, np.ones(4, dtype=np.bool_)))
                )
            },
            f"daily_plans.tables[1] {SHARES}",
        ),
    ],
)
def test_each_workload_has_draws_for_the_requests_of_its_load(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError) as error:
        second(**change)
    assert str(error.value) == f"workloads[1].{message}"


def test_the_workload_that_ran_out_is_the_first_unless_said() -> None:
    assert (DrawsExhaustedError().workload, DrawsExhaustedError(2).workload) == (0, 2)


def test_tables_reach_the_most_slots_that_branches_on_several_providers_can_use() -> None:
    one = replace(workload(arriving(0), [1, 1, 1]), provider=(0, 1, 1))
    run = RunInput((replace(one, runs_parallel_at=np.ones(4, dtype=np.bool_)),), (provider(1), provider(20)))
    assert run.most_usable_slots(run.workloads[0]) == 3
    with pytest.raises(ArgumentError) as error:
        replace(run, workloads=(replace(one, runs_parallel_at=np.ones(3, dtype=np.bool_)),))
    rule = "must have an element for each share up to 3 (got 3)"
    assert str(error.value) == f"workloads[0].runs_parallel_at {rule}"
