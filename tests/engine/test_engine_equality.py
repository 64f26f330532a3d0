"""The compiled engine against the SimPy model: the same tables, to the last nanosecond and slot index."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from sim.contract.allocation import PLAIN_ALLOCATIONS
from sim.contract.load import ClosedUsers, DrawsExhaustedError, OpenArrivals
from sim.contract.plain import PlainInput, PlainOutput, plain_view
from sim.draws.run_input import run_input_of
from sim.engine import kernels
from sim.engine.compiled import run as run_compiled
from sim.engine.compiled import run_events, serves_in_order, unsupported, with_ranks
from sim.engine.kernels import Held
from sim.engine.simpy_model import run as run_simpy
from sim.errors import EngineError
from sim.scenario import Scenario, load_scenario
from sim.units import NS_PER_MS, IntArray
from tests.engine_inputs import arriving, closed, ms
from tests.engine_inputs import engine_input as input_of
from tests.strategies import engine_inputs

Engine = Callable[[PlainInput], PlainOutput]
SCENARIOS = Path(__file__).parents[2] / "scenarios"
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def tables(engine: Engine, given_input: PlainInput) -> dict[str, object]:
    """Return everything that an engine gives but its name, as lists; the draws may run out instead."""
    try:
        out = engine(given_input)
    except DrawsExhaustedError:
        return {"draws": "exhausted"}
    columns = {field.name: getattr(out, field.name) for field in fields(out) if field.name != "engine"}
    return {
        name: (column.dtype, column.tolist()) if isinstance(column, np.ndarray) else column
        for name, column in columns.items()
    }


def assert_engines_agree(given_input: PlainInput) -> None:
    wanted = tables(run_simpy, given_input)
    assert tables(run_events, given_input) == wanted
    assert tables(run_compiled, given_input) == wanted


@given(engine_inputs())
@settings(UNHURRIED, max_examples=150)
def test_every_generated_run_is_the_same(given_input: PlainInput) -> None:
    assert_engines_agree(given_input)


@pytest.mark.slow
@given(engine_inputs())
@settings(UNHURRIED, max_examples=2_000)
def test_two_thousand_generated_runs_are_the_same(given_input: PlainInput) -> None:
    assert_engines_agree(given_input)


def random_input(allocation: str, slots: int, calls: int, requests: int, load: float) -> PlainInput:
    """Return Poisson arrivals at so much of the slots, exponential services and joins, in whole ns."""
    rng = np.random.default_rng(len(allocation) + slots + calls)
    gap_ns = calls * 100 * NS_PER_MS / (load * slots)
    arrival_ns = np.cumsum(np.rint(rng.exponential(gap_ns, requests)).astype(np.int64))
    service_ns = 1 + np.rint(rng.exponential(100 * NS_PER_MS, (requests, calls))).astype(np.int64)
    return replace(
        input_of(OpenArrivals(arrival_ns), [1.0] * calls, slots=slots, allocation=allocation),
        service_ns=service_ns,
        join_ns=np.rint(rng.exponential(35 * NS_PER_MS, requests)).astype(np.int64),
    )


@pytest.mark.parametrize("allocation", PLAIN_ALLOCATIONS)
@pytest.mark.parametrize(("slots", "calls", "load"), [(1, 1, 0.9), (20, 2, 0.8), (20, 5, 1.2), (200, 3, 0.9)])
def test_long_random_runs_are_the_same(allocation: str, slots: int, calls: int, load: float) -> None:
    assert_engines_agree(random_input(allocation, slots, calls, 2_000, load))


def plain_scenarios() -> Iterator[Scenario]:
    """Yield the shipped scenarios that plain engines run."""
    for path in sorted(SCENARIOS.glob("*.yaml")):
        scenario = load_scenario(path)
        if scenario.is_plain:
            yield scenario


@pytest.mark.slow
def test_shipped_scenarios_are_the_same() -> None:
    compared = 0
    for scenario in plain_scenarios():
        for plan in scenario.plans:
            given = plain_view(run_input_of(scenario, plan, 0))
            assert given is not None
            assert_engines_agree(given)
            compared += 1
    assert compared > 20


@pytest.mark.parametrize("allocation", PLAIN_ALLOCATIONS)
def test_many_users_returning_at_once_are_the_same(allocation: str) -> None:
    adaptive = range(2, 21)
    given_input = input_of(closed(150, 2_000), slots=40, allocation=allocation, parallel=adaptive)
    assert_engines_agree(given_input)


def test_heaps_grow_and_the_clock_base_moves() -> None:
    # More joins under way than there is room for at first, and gaps that 62 bits hold only piece by piece.
    requests = 1_500
    many_joins = input_of(arriving(*range(requests)), [[1]] * requests, slots=1, join_ms=1e6)
    assert_engines_agree(many_joins)
    far_apart = input_of(arriving(*np.arange(40) * 1e11), [[5, 3]] * 40, slots=1_000)
    assert_engines_agree(far_apart)
    many_thoughts = ClosedUsers(
        tuple((step * NS_PER_MS, users) for step, users in enumerate([3, 0] * 60)), ms([1e6] * 400)
    )
    assert_engines_agree(input_of(many_thoughts, [0.1, 0.2], slots=20))


@pytest.mark.parametrize("allocation", ["fair_share", "max_min"])
@pytest.mark.parametrize(("slots", "calls", "load"), [(20, 2, 0.8), (20, 5, 1.2), (200, 3, 0.9)])
def test_trees_of_waiting_calls_move_up_and_grow(
    allocation: str, slots: int, calls: int, load: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved: list[tuple[int, int]] = []

    def seen(held: Held, state: IntArray) -> Held:
        before = int(state[kernels.RANK_BASE])
        after = with_ranks(held, state)
        moved.append((int(state[kernels.RANK_BASE]) - before, len(after.bits) - len(held.bits)))
        return after

    monkeypatch.setattr("sim.engine.compiled.RANKS", 64)
    monkeypatch.setattr("sim.engine.compiled.with_ranks", seen)
    assert_engines_agree(random_input(allocation, slots, calls, 2_000, load))
    assert any(up for up, _ in moved)
    assert any(more for _, more in moved)


@pytest.mark.parametrize("allocation", ["fair_share", "max_min"])
def test_a_burst_has_room_in_the_trees(allocation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.engine.compiled.RANKS", 64)
    bursts = [burst for burst in (0, 1, 700) for _ in range(300)]
    assert_engines_agree(input_of(arriving(*bursts), [[3, 2]] * 900, slots=5, allocation=allocation))
    assert_engines_agree(input_of(closed(300, 900), [3, 2], slots=5, allocation=allocation))


@pytest.mark.parametrize("load", [arriving(), closed(3, 0)])
def test_a_run_without_requests_ends(load: OpenArrivals | ClosedUsers) -> None:
    assert_engines_agree(input_of(load, slots=2))


def test_active_time_beyond_64_bits_is_summed_exactly() -> None:
    given_input = input_of(arriving(*[0] * 2_000), [[1e8, 1e8]] * 2_000, slots=40)
    assert run_compiled(given_input).active_integral_ns > 2**63
    assert_engines_agree(given_input)


@pytest.mark.parametrize("engine", [run_simpy, run_compiled])
def test_a_user_who_left_after_its_request_comes_again_with_the_step(engine: Engine) -> None:
    # Of two users one is wanted from 50 ms on: user 1 leaves at 100 ms, and comes with the step at 150 ms,
    # though it would have thought until 200 ms. User 0 stays, and thinks.
    load = ClosedUsers(((0, 2), (50 * NS_PER_MS, 1), (150 * NS_PER_MS, 2)), ms([100] * 4))
    out = engine(input_of(load, [100], slots=2, join_ms=0))
    assert out.user.tolist() == [0, 1, 1, 0]
    assert (out.arrival_ns // NS_PER_MS).tolist() == [0, 0, 150, 200]


@pytest.mark.parametrize(
    ("given_input", "expected"),
    [
        (input_of(arriving(0, 1), allocation="fifo"), True),
        (input_of(arriving(0, 1), [[1], [1]], allocation="max_min", parallel=False), True),
        (input_of(arriving(0, 1), allocation="fifo", max_degree=2), True),
        (input_of(arriving(0, 1), allocation="fifo", max_degree=1), False),
        (input_of(arriving(0, 1), allocation="max_min"), False),
        (input_of(arriving(0, 1), allocation="fifo", parallel=False), False),
        (input_of(arriving(0, 1), allocation="fifo", parallel=[20]), False),
        (input_of(arriving(0, 1), allocation="fifo", dependencies=[(), (0,)]), False),
        (input_of(closed(2, 4), allocation="fifo"), False),
        (input_of(arriving(0, 1e10), allocation="fifo", slots=2), True),
        (input_of(arriving(0, 9e12), allocation="fifo", slots=2), False),
    ],
)
def test_only_calls_that_start_in_order_do_without_events(given_input: PlainInput, expected: bool) -> None:
    assert serves_in_order(given_input) is expected
    assert_engines_agree(given_input)


def test_progress_is_reported_while_a_long_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.engine.compiled.AT_ONCE", 100)
    for allocation in ("fifo", "max_min"):
        seen: list[int] = []
        given_input = random_input(allocation, 20, 2, 500, 0.8)
        out = run_compiled(given_input, seen.append)
        assert len(seen) >= 5
        assert seen == sorted(seen)
        assert seen[-1] <= 500
        assert out.active_integral_ns == run_simpy(given_input).active_integral_ns


def test_what_does_not_fit_in_64_bits_is_refused() -> None:
    given_input = input_of(arriving(*[0] * 600_000), [[1]] * 600_000, slots=1_000_000)
    assert unsupported(given_input) is None
    given_input.service_ns[7] = 2**42 + 1
    with pytest.raises(EngineError) as error:
        run_compiled(given_input)
    assert str(error.value) == (
        "engine compiled cannot run a service time of 4398046511105 ns on 1000000 slots: "
        "the two do not fit in 64 bits (engine simpy can)"
    )


BOUNDS_CHECKED = """
import numba
from hypothesis import given, settings
from tests.strategies import engine_inputs
from tests.engine.test_engine_equality import assert_engines_agree, random_input
assert numba.config.BOUNDSCHECK
settings(deadline=None, max_examples=60, database=None)(given(engine_inputs())(assert_engines_agree))()
for allocation in ("fifo", "fair_share", "max_min"):
    assert_engines_agree(random_input(allocation, 20, 3, 300, 0.9))
"""


@pytest.mark.slow
def test_no_kernel_reaches_beyond_an_array(tmp_path: object) -> None:
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", BOUNDS_CHECKED], env=environment, check=True)
