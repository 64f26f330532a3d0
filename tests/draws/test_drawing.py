"""Draws: prefix-stable, independent by name, rounded once, and what counts as random."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.draws.drawing import draw, draw_arrivals, draw_values, expected_requests, is_closed, is_deterministic
from sim.draws.streams import Streams
from sim.errors import ArgumentError
from sim.scenario import Scenario, load_scenario
from sim.scenario.distribution import Constant
from sim.units import ms_array_to_ns
from tests.small_scenarios import (
    POLICY,
    ROOT,
    WORDS,
    closed_load,
    exponential,
    from_file,
    lognormal,
    one_call,
    open_load,
    sample,
)

TOKENS = {
    "distribution": "tokens",
    "overhead_ms": 100,
    "input_tokens": {"distribution": "lognormal", "p50_tokens": 500, "p95_tokens": 2_000},
    "prefill_ms_per_token": 0.2,
    "output_tokens": {"distribution": "gamma", "mean_tokens": 100, "cv": 0.8},
    "decode_ms_per_token": 15,
}
EVERY_DURATION: list[Any] = [
    260,
    exponential(50),
    lognormal(260),
    {"distribution": "lognormal", "p50_ms": 100, "p95_ms": 400},
    {"distribution": "gamma", "mean_ms": 80, "cv": 1.7},
    {"distribution": "uniform", "low_ms": 10, "high_ms": 20},
    {"distribution": "triangular", "low_ms": 10, "mode_ms": 12, "high_ms": 20},
    {"distribution": "empirical", "values_ms": [5, 6, 7, 9]},
    TOKENS,
]


def random_sample(
    load: dict[str, Any], branches: list[dict[str, Any]] | None = None, **more: Any
) -> Scenario:
    varied = [{**POLICY, "duration_ms": lognormal(260)}, {**WORDS, "duration_ms": lognormal(160)}]
    return sample(load, branches=branches or varied, **more)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(EVERY_DURATION), st.integers(1, 40), st.integers(1, 2_000))
def test_every_duration_is_prefix_stable(duration: Any, few: int, more: int) -> None:
    short, long = (
        draw(one_call(closed_load(requests=count, think_time_ms=exponential(7)), duration), 3)
        for count in (few, few + more)
    )
    assert short.service_ns.tolist() == long.service_ns[:few].tolist()
    assert short.join_ns.tolist() == long.join_ns[:few].tolist()
    assert short.think_ns.tolist() == long.think_ns[:few].tolist()


def test_adding_a_branch_changes_no_other_branch() -> None:
    load = open_load()
    two = random_sample(load)
    third = {"id": "third", "duration_ms": exponential(90)}
    three = random_sample(load, [third, *(each.model_dump(by_alias=True) for each in two.workflow.branches)])
    before, after = draw(two, 0), draw(three, 0)
    assert before.service_ns.tolist() == after.service_ns[:, 1:].tolist()
    assert before.arrival_ns is not None
    assert after.arrival_ns is not None
    assert before.arrival_ns.tolist() == after.arrival_ns.tolist()
    assert before.join_ns.tolist() == after.join_ns.tolist()


def test_scenarios_of_the_same_workflow_meet_the_same_requests() -> None:
    few = random_sample(closed_load(10, 200), slots=20, allocation="fair_share")
    many = random_sample(closed_load(30, 300), slots=7, allocation="fifo", plans=["adaptive"])
    assert draw(few, 4).service_ns.tolist() == draw(many, 4).service_ns[:200].tolist()


def test_another_workflow_name_has_other_draws() -> None:
    one = random_sample(closed_load())
    other = random_sample(closed_load(), workflow={"name": "other"})
    assert draw(one, 0).service_ns.tolist() != draw(other, 0).service_ns.tolist()


def test_branches_and_replications_and_seeds_have_draws_of_their_own() -> None:
    twins = [{"id": name, "duration_ms": exponential(100)} for name in ("a", "b")]
    draws = [
        draw(
            sample(closed_load(), branches=twins, experiment={"seed": seed}), replication
        ).service_ns.T.tolist()
        for seed, replication in ((1, 0), (1, 1), (2, 0))
    ]
    columns = [tuple(column) for both in draws for column in both]
    assert len(set(columns)) == 6


def test_the_seed_of_the_command_line_beats_the_files(tmp_path: Path) -> None:
    from_file(tmp_path, closed_load())
    file = tmp_path / "scenario.yaml"
    stated = load_scenario(file, ["experiment.seed=2"])
    assert stated.experiment.seed == 2
    by_default = load_scenario(file)
    assert by_default.experiment.seed == 1
    assert draw(stated, 0).service_ns.tolist() != draw(by_default, 0).service_ns.tolist()


def test_service_times_are_rounded_half_to_even_once() -> None:
    half_ns = {"distribution": "empirical", "values_ms": [0.0000025]}
    assert draw(one_call(closed_load(), half_ns), 0).service_ns.tolist() == [[2]] * 100
    odd_half_ns = {"distribution": "empirical", "values_ms": [0.0000035]}
    assert draw(one_call(closed_load(), odd_half_ns), 0).service_ns.tolist() == [[4]] * 100


def test_a_service_time_is_at_least_a_nanosecond_and_a_join_may_be_nothing() -> None:
    tiny = {"distribution": "uniform", "low_ms": 0, "high_ms": 0.0000004}
    draws = draw(one_call(closed_load(), tiny), 0)
    assert draws.service_ns.tolist() == [[1]] * 100
    assert draws.join_ns.tolist() == [0] * 100


def test_the_join_grows_with_its_branches() -> None:
    branches = [{"id": name, "duration_ms": 10} for name in "abcd"]
    workflow = {"join_overhead_ms": 35, "join_growth_ms_per_branch": 2.5}
    assert draw(sample(branches=branches, workflow=workflow), 0).join_ns.tolist() == [40_000_000] * 100


def test_lognormal_mean_and_cv_are_those_of_the_time_itself() -> None:
    service_ms = draw(one_call(closed_load(requests=200_000), lognormal(160, 0.5)), 0).service_ns / 1e6
    assert service_ms.mean() == pytest.approx(160, rel=5 * 0.5 / np.sqrt(200_000))
    assert service_ms.std() / service_ms.mean() == pytest.approx(0.5, rel=0.02)


def test_tokens_become_time() -> None:
    fixed = TOKENS | {"input_tokens": 1_000, "output_tokens": 20}
    assert draw(one_call(closed_load(), fixed), 0).service_ns[0].tolist() == [600_000_000]


def test_a_trace_gives_arrivals_and_times_row_by_row() -> None:
    scenario = load_scenario(ROOT / "scenarios" / "trace.yaml")
    draws = draw(scenario, 5)
    assert draws.arrival_ns is not None
    assert draws.arrival_ns.tolist() == scenario.trace.arrival_ns.tolist()
    tokens = scenario.trace.columns
    assert draws.service_ns[:, 0].tolist() == ms_array_to_ns(150 + tokens["input_tokens"] * 0.2).tolist()
    reply_ms = 120 + tokens["input_tokens"] * 0.05 + tokens["output_tokens"] * 15
    assert draws.service_ns[:, 1].tolist() == ms_array_to_ns(reply_ms).tolist()
    assert draw(scenario, 0).service_ns.tolist() == draws.service_ns.tolist()


def test_duration_columns_keep_the_branches_of_a_request_together(tmp_path: Path) -> None:
    rows = "at,a,b\n0,10,1\n500,20,2\n1000,30,3\n"
    (tmp_path / "rows.csv").write_text(rows)
    (tmp_path / "s.yaml").write_text(
        """
schema_version: 1
name: columns
provider: {concurrency: 2}
workflow:
  name: w
  branches:
    - {id: x, duration_ms: {distribution: trace, column: a}}
    - {id: y, duration_ms: {distribution: trace, column: b}}
load: {kind: trace, file: rows.csv, format: csv, columns: {timestamp: at}, time_unit: ms}
"""
    )
    draws = draw(load_scenario(tmp_path / "s.yaml"), 0)
    assert draws.service_ns.tolist() == [
        [10_000_000, 1_000_000],
        [20_000_000, 2_000_000],
        [30_000_000, 3_000_000],
    ]
    assert draws.arrival_ns is not None
    assert draws.arrival_ns.tolist() == [0, 500_000_000, 1_000_000_000]


def test_users_have_no_arrivals_and_arrivals_have_no_think_time() -> None:
    closed = draw(sample(closed_load(think_time_ms=12.5)), 0)
    assert closed.arrival_ns is None
    assert closed.think_ns.tolist() == [12_500_000] * 100
    assert draw(sample(open_load()), 0).think_ns.tolist() == [0] * 200


STEPS = {"kind": "steps", "end_s": 20}


@pytest.mark.parametrize(
    ("load", "deterministic", "closed", "expected"),
    [
        (closed_load(), True, True, 100),
        (closed_load(think_time_ms=exponential(5)), False, True, 100),
        (open_load(arrivals="fixed"), True, False, 200),
        (open_load(), False, False, 200),
        (open_load(arrivals="gamma", cv=0.5), False, False, 200),
        ({"kind": "open", "rate_per_s": 2.5, "duration_s": 9}, False, False, 23),
    ],
)
def test_what_a_load_is(load: dict[str, Any], deterministic: bool, closed: bool, expected: int) -> None:
    scenario = sample(load)
    assert (is_deterministic(scenario), is_closed(scenario)) == (deterministic, closed)
    assert expected_requests(scenario) == expected


@pytest.mark.parametrize("duration", EVERY_DURATION[1:])
def test_a_duration_that_varies_is_not_deterministic(duration: Any) -> None:
    assert not is_deterministic(one_call(closed_load(), duration))


@pytest.mark.parametrize(
    "duration",
    [
        260,
        {"distribution": "empirical", "values_ms": [5, 5]},
        TOKENS | {"input_tokens": 10, "output_tokens": {"distribution": "empirical", "values_tokens": [3]}},
    ],
)
def test_a_duration_that_does_not_vary_is(duration: Any) -> None:
    assert is_deterministic(one_call(closed_load(), duration))


def test_a_random_join_is_random() -> None:
    assert not is_deterministic(sample(workflow={"join_overhead_ms": exponential(35)}))


@pytest.mark.parametrize(
    ("name", "deterministic", "closed"),
    [("day", True, True), ("profile", False, False), ("trace", True, False), ("open-light", False, False)],
)
def test_what_the_shipped_loads_are(name: str, deterministic: bool, closed: bool) -> None:
    scenario = load_scenario(ROOT / "scenarios" / f"{name}.yaml")
    assert (is_deterministic(scenario), is_closed(scenario)) == (deterministic, closed)


def test_steps_of_a_rate_are_a_poisson_process(tmp_path: Path) -> None:
    load = {**STEPS, "steps": [{"at_s": 0, "rate_per_s": 10}, {"at_s": 10, "rate_per_s": 0}]}
    scenario = from_file(tmp_path, load)
    arrivals = draw_arrivals(scenario, Streams(1, 0, "one"))
    assert arrivals is not None
    assert 50 < len(arrivals) < 160
    assert arrivals.max() < 10 * 10**9
    assert expected_requests(scenario) == 100


def test_steps_of_users_expect_more_than_enough(tmp_path: Path) -> None:
    load = {**STEPS, "steps": [{"at_s": 0, "active_requests": 2}, {"at_s": 10, "active_requests": 4}]}
    # 60 user-seconds in turns of 100 ms, a quarter more, and one for each user.
    assert expected_requests(from_file(tmp_path, load)) == 4 + 750


def test_a_draw_may_be_taken_from_elsewhere() -> None:
    scenario = sample()
    values = draw_values(scenario, Constant(3.0), Streams(1, 0, "w"), 2, "join")
    assert values.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    "load", [closed_load(), open_load(), {"kind": "open", "rate_per_s": 9, "duration_s": 9}]
)
def test_no_number_of_requests_is_imposed_on_a_load_that_has_its_own(load: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError) as error:
        draw(sample(load), 0, 7)
    assert str(error.value) == f"requests must be left out for the load {load['kind']} (got 7)"


def test_users_that_come_and_go_issue_as_many_as_they_are_drawn_for() -> None:
    load = {**STEPS, "steps": [{"at_s": 0, "active_requests": 2}]}
    few, many = (draw(random_sample(load), 0, count) for count in (7, 9))
    assert few.service_ns.tolist() == many.service_ns[:7].tolist()
    assert (few.think_ns.tolist(), many.think_ns.tolist()) == ([0] * 7, [0] * 9)
