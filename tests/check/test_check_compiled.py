"""The compiled check against the checks to read: the same verdict and counts, on sound and on broken runs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sim.check import CheckReport
from sim.check.compiled import RULES, tree_heights, verdict
from sim.contract.load import ClosedUsers, DrawsExhaustedError
from sim.contract.plain import NO_CALL, PlainInput, PlainOutput
from sim.engine.compiled import run as run_compiled
from sim.engine.simpy_model import run as run_simpy
from sim.errors import CheckError
from sim.units import NS_PER_MS
from tests.engine.test_engine_equality import UNHURRIED, random_input
from tests.engine_inputs import arriving, closed, engine_input, ms
from tests.engines import check_plain, readable
from tests.strategies import engine_inputs

CALL_COLUMNS = ("ready_ns", "start_ns", "finish_ns", "slot")
REQUEST_COLUMNS = ("user", "ran_parallel", "arrival_ns", "completion_ns")


def outcome(given_input: PlainInput) -> PlainOutput:
    """Return a run of at least one request."""
    try:
        out = run_compiled(given_input)
    except DrawsExhaustedError:
        assume(False)
    assume(out.requests)
    return out


def exact_by_tables(given_input: PlainInput, out: PlainOutput) -> int | None:
    """Return what the checks to read count, None where they stop the run."""
    try:
        return readable(given_input, out)
    except CheckError:
        return None


def exact_by_kernels(given_input: PlainInput, out: PlainOutput) -> int | None:
    # What is said of calls that were not made is not in the table of attempts.
    times: dict[str, Any] = {name: np.where(out.called, getattr(out, name), NO_CALL) for name in CALL_COLUMNS}
    found = verdict(given_input, replace(out, **times))
    assert (found.broken is None) or (found.broken in RULES) or found.broken.startswith("the latencies")
    return found.exact if found.broken is None else None


@st.composite
def alterations(draw: st.DrawFn, out: PlainOutput) -> PlainOutput:
    """Return a run with one value of one table altered, or two swapped."""
    name = draw(st.sampled_from(CALL_COLUMNS + REQUEST_COLUMNS))
    column = np.array(getattr(out, name))
    one, other = draw(st.integers(0, column.size - 1)), draw(st.integers(0, column.size - 1))
    if column.dtype == np.bool_:
        column.flat[one] ^= True
    elif draw(st.booleans()):
        column.flat[one] += draw(st.sampled_from([-2, -1, 1, 2]))
    else:
        column.flat[one], column.flat[other] = column.flat[other], column.flat[one]
    changed: dict[str, Any] = {name: column}
    return replace(out, **changed)


@given(engine_inputs())
@settings(UNHURRIED, max_examples=100)
def test_sound_runs_have_the_same_counts(given_input: PlainInput) -> None:
    out = outcome(given_input)
    assert exact_by_kernels(given_input, out) == exact_by_tables(given_input, out)


@given(st.data())
@settings(UNHURRIED, max_examples=150)
def test_altered_runs_have_the_same_verdict(data: st.DataObject) -> None:
    given_input = data.draw(engine_inputs())
    altered = data.draw(alterations(outcome(given_input)))
    assert exact_by_kernels(given_input, altered) == exact_by_tables(given_input, altered)


@pytest.mark.parametrize("allocation", ["fair_share", "fifo", "max_min"])
@pytest.mark.parametrize("parallel", [True, False, range(2, 21)])
def test_long_runs_have_the_same_counts(allocation: str, parallel: Any) -> None:
    given_input = engine_input(closed(15, 1_500), allocation=allocation, parallel=parallel, max_degree=2)
    out = run_simpy(given_input)
    assert exact_by_kernels(given_input, out) == exact_by_tables(given_input, out)
    open_input = random_input(allocation, 20, 3, 1_000, 0.8)
    out = run_simpy(open_input)
    assert exact_by_kernels(open_input, out) == exact_by_tables(open_input, out)


def altered(out: PlainOutput, name: str, request: int, by: int) -> PlainOutput:
    column = np.array(getattr(out, name))
    column[request] += by
    changed: dict[str, Any] = {name: column}
    return replace(out, **changed)


STEPS = ClosedUsers(((0, 2), (150 * NS_PER_MS, 3)), ms([40] * 9))


@pytest.mark.parametrize(
    ("name", "by", "rule"),
    [
        ("slot", -100, "a call did not get the slot free longest"),
        ("finish_ns", 1, "a service time is not the one drawn"),
        ("ready_ns", 1, "a call started before it was ready"),
        ("ready_ns", -1, "a call was not ready when its dependencies finished"),
        ("completion_ns", 1, "it did not complete after its join"),
        ("user", 7, "it did not arrive when due"),
        ("arrival_ns", 1, "it did not arrive when due"),
    ],
)
def test_each_fault_is_named(name: str, by: int, rule: str) -> None:
    given_input = engine_input(STEPS, [30, 20], slots=4)
    assert verdict(given_input, altered(run_simpy(given_input), name, 8, by)) == (0, rule, 8)


def test_faults_of_the_whole_run_are_named() -> None:
    given_input = engine_input(closed(3, 9), [30, 20], slots=4, parallel=range(2, 5))
    out = run_simpy(given_input)
    assert verdict(given_input, replace(out, active_integral_ns=0)).broken == (
        "the latencies do not sum to active x time"
    )
    other_plan = replace(out, ran_parallel=~out.ran_parallel)
    assert verdict(given_input, other_plan).broken == "it did not run the plan of its fair share"
    late = replace(out, start_ns=out.start_ns + 1, finish_ns=out.finish_ns + 1)
    assert verdict(given_input, late).broken is not None


def test_large_runs_are_checked_by_the_kernels_and_faults_told_by_the_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given_input = engine_input(closed(5, 40, think_ms=3), [30, 20], slots=4)
    out = run_simpy(given_input)
    expected = check_plain(given_input, out)
    monkeypatch.setattr("sim.check.report.MANY_CALLS", 1)
    counts = (40, expected.requests_exact, expected.requests_bounded, 80, 2, int(out.latency_ns.sum()), 0)
    assert expected == CheckReport(*counts, run_by=("readable",))
    assert check_plain(given_input, out) == CheckReport(*counts, run_by=("compiled",))
    with pytest.raises(CheckError) as caught:
        check_plain(given_input, altered(out, "finish_ns", 7, 1))
    assert "request 7 has an attempt whose time is not the one drawn" in str(caught.value)


def test_a_fault_that_only_the_kernels_find_still_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    given_input = engine_input(arriving(0, 1), [30, 20], slots=4)
    out = run_simpy(given_input)
    monkeypatch.setattr("sim.check.report.MANY_CALLS", 1)
    monkeypatch.setattr("sim.check.run.check_issue", lambda *_: None)
    monkeypatch.setattr("sim.check.run.check_tables", lambda *_: 0)
    with pytest.raises(CheckError) as caught:
        check_plain(given_input, altered(out, "completion_ns", 1, 1))
    assert str(caught.value).startswith(
        "check violated (simpy engine): request 1: it did not complete after its join\n"
    )


@pytest.mark.parametrize(
    ("ranks", "heights"),
    [(0, [0, 1]), (1, [0, 1]), (2, [0, 1]), (64, [0, 1]), (65, [0, 2, 3]), (64**2 + 1, [0, 65, 67, 68])],
)
def test_trees_of_words_end_in_one_word(ranks: int, heights: list[int]) -> None:
    assert tree_heights(ranks).tolist() == heights
