"""The compiled walk of shared providers against the one to read: the same verdict, sound runs or broken."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.check.grants import walk_provider
from sim.check.run import check_integrals, check_leaks, check_run, check_tables, table_rules
from sim.check.shared_compiled import NoVerdict, first_broken, verdict
from sim.check.timeline import timeline
from sim.contract.allocation import ALLOCATIONS
from sim.contract.load import DrawsExhaustedError
from sim.contract.output import ATTEMPT_OUTCOMES, CANCELLED, NO_SLOT, REJECTED, Attempts, RunOutput
from sim.contract.provider import Limits, ProviderInput
from sim.contract.run import RunInput
from sim.draws.run_input import run_input_of
from sim.engine.shared.compiled import run_shared as run_compiled
from sim.engine.shared.model import run_shared as run_simpy
from sim.errors import CheckError
from sim.units import NS_PER_MS
from tests.engine.test_shared_equality import UNHURRIED, shared_scenarios, varied_inputs
from tests.engine.test_shared_stress import shared_inputs, troubled
from tests.engine_inputs import arriving, closed
from tests.shared_inputs import cache, given_of, limits, provider, rate, speaking, workload

Rng = np.random.Generator


def walks(run: RunInput, out: RunOutput) -> bool:
    """Return whether the walk to read accepts a run."""
    line = timeline(run, out)
    try:
        for index in range(len(run.providers)):
            walk_provider(run, out, line, index)
    except CheckError:
        return False
    return True


def walks_compiled(run: RunInput, out: RunOutput) -> bool:
    return first_broken(run, out) is None


def reaches_the_walk(run: RunInput, out: RunOutput) -> bool:
    """Return whether a run passes the checks that come before the walk."""
    try:
        check_leaks(out)
    except CheckError:
        return False
    return not any(broken.any() for _, broken in table_rules(run, out))


def exact(run: RunInput, out: RunOutput) -> int | None:
    """Return how many requests the checks to read know exactly, None for a run that breaks a rule."""
    try:
        return check_tables(run, out)
    except CheckError:
        return None


def exact_compiled(run: RunInput, out: RunOutput) -> int | None:
    found = verdict(run, out)
    if not isinstance(found, int):
        return None
    try:
        check_integrals(run, out)
    except CheckError:
        return None
    return found


def assert_same_verdict(run: RunInput, out: RunOutput) -> None:
    in_order = (np.diff(out.arrival_ns) >= 0).all()
    if in_order and reaches_the_walk(run, out):
        assert walks_compiled(run, out) == walks(run, out)
    if in_order:
        assert exact_compiled(run, out) == exact(run, out)


# What can be altered. Each returns attempts, which may be as before.

Change = Callable[[Rng, dict[str, Any], int], None]


def move(rng: Rng, table: dict[str, Any], row: int) -> None:
    """Start and end at another time."""
    by_ns = rng.choice([-NS_PER_MS, -1, 1, NS_PER_MS])
    table["start_ns"][row] += by_ns
    table["finish_ns"][row] += by_ns


def change_places(rng: Rng, table: dict[str, Any], row: int) -> None:
    """Start when another attempt did, which starts when this one did; perhaps on its slot."""
    other = rng.integers(len(table["start_ns"]))
    took_ns = table["finish_ns"] - table["start_ns"]
    names = ("start_ns", "slot") if rng.integers(2) else ("start_ns",)
    for name in names:
        table[name][[row, other]] = table[name][[other, row]]
    table["finish_ns"] = table["start_ns"] + took_ns


def take_another_slot(rng: Rng, table: dict[str, Any], row: int) -> None:
    table["slot"][row] = rng.integers(NO_SLOT, table["slot"].max() + 2)


def join_the_queue_at_another_time(rng: Rng, table: dict[str, Any], row: int) -> None:
    table["ready_ns"][row] += rng.choice([-NS_PER_MS, -1, 1, NS_PER_MS])


def flip_the_cache_record(rng: Rng, table: dict[str, Any], row: int) -> None:
    table["hit"][row] = rng.integers(-1, 2)


def end_otherwise(rng: Rng, table: dict[str, Any], row: int) -> None:
    table["outcome"][row] = rng.integers(len(ATTEMPT_OUTCOMES))


def be_turned_away(rng: Rng, table: dict[str, Any], row: int) -> None:
    table["outcome"][row] = rng.choice([CANCELLED, REJECTED])
    table["slot"][row], table["finish_ns"][row] = NO_SLOT, table["start_ns"][row]


def end_at_once(rng: Rng, table: dict[str, Any], row: int) -> None:
    longest_ns = table["finish_ns"][row] - table["start_ns"][row] + 1
    table["outcome"][row] = CANCELLED
    table["finish_ns"][row] = table["start_ns"][row] + rng.choice([0, rng.integers(longest_ns)])


def be_lost(_rng: Rng, table: dict[str, Any], row: int) -> None:
    for name, column in table.items():
        table[name] = np.delete(column, row)


def be_listed_elsewhere(rng: Rng, table: dict[str, Any], row: int) -> None:
    other = rng.integers(len(table["start_ns"]))
    for column in table.values():
        column[[row, other]] = column[[other, row]]


CHANGES: tuple[Change, ...] = (
    move,
    change_places,
    take_another_slot,
    join_the_queue_at_another_time,
    flip_the_cache_record,
    end_otherwise,
    be_turned_away,
    end_at_once,
    be_lost,
    be_listed_elsewhere,
)


def altered(out: RunOutput, rng: Rng, change: Change) -> RunOutput:
    """Return a run of which one attempt is altered."""
    table = {field.name: getattr(out.attempts, field.name).copy() for field in fields(Attempts)}
    change(rng, table, int(rng.integers(len(out.attempts.number))))
    return replace(out, attempts=Attempts(**table))


def other_rules(rng: Rng, one: ProviderInput) -> ProviderInput:
    """Return a provider with one of its rules changed."""
    rates = tuple(replace(rate, amount=rate.amount + int(rng.integers(0, 2))) for rate in one.limits.rates)
    others = [
        replace(one, allocation=ALLOCATIONS[str(rng.choice(list(ALLOCATIONS)))]),
        replace(one, reserved=()),
        replace(one, lends=not one.lends),
        replace(one, slots=one.slots[:1]),
        replace(one, slots=tuple((at_ns, slots + 1) for at_ns, slots in one.slots)),
        replace(one, slots=tuple((at_ns + (at_ns > 0), slots) for at_ns, slots in one.slots)),
        replace(one, limits=Limits()),
        replace(one, limits=replace(one.limits, rates=rates)),
        replace(one, limits=replace(one.limits, rejections_count=not one.limits.rejections_count)),
        replace(one, limits=replace(one.limits, cached_tokens_count=not one.limits.cached_tokens_count)),
        replace(one, cache=None),
        replace(one, cache=cache(int(rng.integers(1, 10)), int(rng.integers(1, 3)))),
    ]
    return others[rng.integers(len(others))]


def assert_same_verdicts(run: RunInput, seed: int) -> None:
    """Compare verdicts on a run, on the run altered, and on the run under other rules."""
    try:
        out, rng = run_compiled(run), np.random.default_rng(seed)
    except DrawsExhaustedError:
        return
    if len(out.attempts.number) == 0:
        return
    assert reaches_the_walk(run, out)
    assert walks(run, out)
    assert walks_compiled(run, out)
    for change in CHANGES:
        assert_same_verdict(run, altered(out, rng, change))
    shifted = replace(out, arrival_ns=out.arrival_ns - rng.integers(0, 2, len(out.arrival_ns)))
    assert_same_verdict(run, shifted)
    for index, one in enumerate(run.providers):
        providers = [*run.providers[:index], other_rules(rng, one), *run.providers[index + 1 :]]
        assert_same_verdict(replace(run, providers=tuple(providers)), out)


@given(varied_inputs(), st.integers(0, 2**32))
@settings(UNHURRIED, max_examples=60)
def test_altered_runs_have_the_same_verdict(run: RunInput, seed: int) -> None:
    assert_same_verdicts(run, seed)


@pytest.mark.slow
@given(varied_inputs() | shared_inputs(), st.integers(0, 2**32))
@settings(UNHURRIED, max_examples=2_000)
def test_two_thousand_altered_runs_have_the_same_verdict(run: RunInput, seed: int) -> None:
    assert_same_verdicts(run, seed)


@pytest.mark.parametrize("allocation", ALLOCATIONS)
@pytest.mark.parametrize("requests", [300, pytest.param(3_000, marks=pytest.mark.slow)])
def test_altered_long_runs_have_the_same_verdict(allocation: str, requests: int) -> None:
    run = troubled(requests)
    many = replace(workload(closed(30, requests, 1), [3, 4, 5]), weight=2)
    rule = ALLOCATIONS[allocation]
    shared = replace(run.providers[0], slots=((0, 20), (NS_PER_MS * 40, 12)), allocation=rule)
    assert_same_verdicts(RunInput((*run.workloads, many), (shared,)), 1)


@pytest.mark.parametrize("rejects", [False, True])
def test_altered_runs_with_limits_a_cache_and_reservations_have_the_same_verdict(rejects: bool) -> None:
    loads = (troubled(300).workloads[0], workload(closed(30, 300, 1), [3, 4, 5]))
    tokens = {"inputs": 5, "outputs": 7, "reserved_outputs": 4, "prefix": 2, "first_token_ms": 2}
    rates = (rate(6, 1, burst=40), rate(60, 1, burst=200, unit="tokens"), rate(70, 10))
    bound = limits(*rates, rejects=rejects, rejections_count=True, cached_tokens_count=False)
    kept = provider(20, reserved=(4, 3), lends=False, limits=bound, cache=cache(3, None if rejects else 1))
    run = RunInput(tuple(speaking(one, **tokens) for one in loads), (kept,))
    for seed in range(3):
        assert_same_verdicts(run, seed)


@pytest.mark.slow
def test_shipped_scenarios_are_accepted_by_both_walks() -> None:
    for scenario in shared_scenarios():
        for plan in scenario.plans:
            run = run_input_of(scenario, plan, 0)
            out = run_compiled(run)
            assert walks(run, out)
            assert walks_compiled(run, out)


def test_large_runs_are_walked_by_the_kernel_and_faults_told_by_the_walk_to_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = troubled(100)
    out = run_simpy(run)
    expected = check_run(run, out, run_simpy)
    late = replace(out, attempts=replace(out.attempts, start_ns=out.attempts.start_ns + 1))
    late = replace(late, attempts=replace(late.attempts, finish_ns=out.attempts.finish_ns + 1))
    monkeypatch.setattr("sim.check.report.MANY_CALLS", 1)
    expected = replace(expected, run_by=("compiled",))
    assert check_run(run, out, run_simpy) == expected
    with pytest.raises(CheckError, match=r": attempt 0 at call 0 of request 0 waited beside"):
        check_run(run, late, run_simpy)
    monkeypatch.setattr("sim.check.run.check_tables", lambda *_: 0)
    assert check_run(run, out, run_simpy) == expected
    with pytest.raises(CheckError, match="request 0 breaks a rule of its own"):
        check_run(run, late, run_simpy)


def test_a_fault_that_the_checks_to_read_do_not_find_is_told_by_its_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = given_of(workload(arriving(0), [10]), provider(2))
    out = run_simpy(run)
    other = replace(out, attempts=replace(out.attempts, slot=out.attempts.slot + 1))
    monkeypatch.setattr("sim.check.report.MANY_CALLS", 1)
    monkeypatch.setattr("sim.check.run.check_tables", lambda *_: None)
    with pytest.raises(CheckError, match="request 0 has an attempt that did not get the slot free longest"):
        check_run(run, other, run_simpy)


def test_what_does_not_fit_in_64_bits_is_left_to_the_walk_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def limited(burst: int, output: int) -> RunInput:
        slow = limits(rate(7, 60_000, burst=burst, unit="output_tokens"))
        one = speaking(workload(arriving(0, 0, 0)), outputs=output, reserved_outputs=1)
        return RunInput((one,), (provider(limits=slow),))

    monkeypatch.setattr("sim.check.report.MANY_CALLS", 1)
    # The first bucket is too large; the second goes too far into debt.
    for burst, output in ((10**9, 1), (10, 15 * 10**6)):
        run = limited(burst, output)
        out = run_simpy(run)
        assert check_run(run, out, run_simpy).calls_conserved == 3
        with pytest.raises(NoVerdict):
            walks_compiled(run, out)
    run = limited(10, 10)
    assert walks_compiled(run, run_simpy(run))


@pytest.mark.parametrize(
    ("name", "value"), [("call", 2), ("call", -1), ("attempt", 3), ("slot", 10), ("slot", -2), ("attempt", 1)]
)
def test_attempts_that_cannot_be_are_found_before_the_walk(name: str, value: int) -> None:
    run = troubled(20)
    out = run_simpy(run)
    column = getattr(out.attempts, name).copy()
    twice = np.flatnonzero((out.attempts.attempt == 1) & (out.attempts.call == 0))[0]
    row = np.flatnonzero((out.attempts.number == out.attempts.number[twice]) & (out.attempts.call == 0))[0]
    column[row] = value
    changed: dict[str, Any] = {name: column}
    wrong = replace(out, attempts=replace(out.attempts, **changed))
    with pytest.raises(
        CheckError, match=f"request {out.attempts.number[row]} made an attempt that it cannot"
    ):
        check_run(run, wrong, run_simpy)


def test_attempts_that_are_not_in_their_order_are_found_before_the_walk() -> None:
    run = troubled(20)
    out = run_simpy(run)
    rows = np.arange(len(out.attempts.number))
    rows[[0, 1]] = rows[[1, 0]]
    listed = Attempts(**{name: column[rows] for name, column in vars(out.attempts).items()})
    with pytest.raises(CheckError, match="request 0 made an attempt that it cannot"):
        check_run(run, replace(out, attempts=listed), run_simpy)


def test_tables_that_do_not_fit_together_are_found_first() -> None:
    run = troubled(20)
    out = run_simpy(run)
    strange = replace(out, workload=out.workload + 1)
    with pytest.raises(CheckError, match=r"^conservation: a request is of no workload$"):
        check_run(run, strange, run_simpy)
    strange = replace(out, attempts=replace(out.attempts, number=out.attempts.number - 1))
    with pytest.raises(CheckError, match=r"^conservation: an attempt is of no request$"):
        check_run(run, strange, run_simpy)


BOUNDS_CHECKED = """
import numba
from hypothesis import given, settings, strategies
from tests.check.test_shared_check_compiled import assert_same_verdicts, troubled, varied_inputs
assert numba.config.BOUNDSCHECK
test = given(varied_inputs(), strategies.integers(0, 2**32))(assert_same_verdicts)
settings(deadline=None, max_examples=150, database=None)(test)()
assert_same_verdicts(troubled(300), 1)
"""


@pytest.mark.slow
def test_no_kernel_reaches_beyond_an_array(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", BOUNDS_CHECKED], env=environment, check=True)
