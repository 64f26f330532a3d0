"""The compiled engine for shared providers against its SimPy model: the same, to the last nanosecond."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim.contract.load import DrawsExhaustedError
from sim.contract.run import DAY_NS, DailyPlans, RunInput
from sim.draws.run_input import run_input_of
from sim.engine.choice import Run as EngineRun
from sim.engine.shared.compiled import run_shared as run_compiled
from sim.engine.shared.compiled import unsupported
from sim.engine.shared.model import run_shared as run_simpy
from sim.errors import EngineError
from sim.scenario import Scenario, load_scenario
from sim.units import NS_PER_MS
from tests.engine.test_shared_stress import shared_inputs, troubled
from tests.engine_inputs import arriving, closed
from tests.engines import every_column
from tests.shared_inputs import limits, provider, rate, workload
from tests.strategies import closed_users

SCENARIOS = Path(__file__).parents[2] / "scenarios"
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def tables(engine: EngineRun, run: RunInput) -> dict[str, object]:
    """Return everything that an engine gives but its name; the draws may run out instead."""
    try:
        out = engine(run)
    except DrawsExhaustedError:
        return {"draws": "exhausted"}
    return every_column(out)


def assert_engines_agree(run: RunInput) -> None:
    assert tables(run_compiled, run) == tables(run_simpy, run)


@st.composite
def varied_inputs(draw: st.DrawFn) -> RunInput:
    """Return runs as the stress test has them, of which users come and go, and plans change with the hour."""
    run = draw(shared_inputs())
    workloads = []
    for one in run.workloads:
        if draw(st.booleans()):
            load = draw(closed_users(len(one.join_ns), NS_PER_MS))
            one = replace(one, load=load)  # noqa: PLW2901
        if draw(st.booleans()):
            other = (draw(st.integers(1, 20)) * NS_PER_MS, ~one.runs_parallel_at)
            start_ns = draw(st.sampled_from([0, DAY_NS - 5 * NS_PER_MS]))
            one = replace(one, daily_plans=DailyPlans(start_ns, ((0, one.runs_parallel_at), other)))  # noqa: PLW2901
        workloads.append(one)
    return replace(run, workloads=tuple(workloads))


@given(varied_inputs())
@settings(UNHURRIED, max_examples=150)
def test_every_generated_run_is_the_same(run: RunInput) -> None:
    assert_engines_agree(run)


@pytest.mark.slow
@given(varied_inputs())
@settings(UNHURRIED, max_examples=2_000)
def test_two_thousand_generated_runs_are_the_same(run: RunInput) -> None:
    assert_engines_agree(run)


def test_a_large_troubled_run_is_the_same() -> None:
    assert_engines_agree(troubled(3_000))


def shared_scenarios() -> Iterator[Scenario]:
    """Yield the shipped scenarios that are not plain."""
    for path in sorted(SCENARIOS.glob("*.yaml")):
        scenario = load_scenario(path)
        if not scenario.is_plain:
            yield scenario


@pytest.mark.slow
def test_shipped_scenarios_are_the_same() -> None:
    compared = 0
    for scenario in shared_scenarios():
        for plan in scenario.plans:
            assert_engines_agree(run_input_of(scenario, plan, 0))
            compared += 1
    assert compared > 20


def test_the_heap_of_events_grows_where_thousands_of_users_think() -> None:
    assert_engines_agree(RunInput((workload(closed(3_000, 9_000, 2), [1]),), (provider(20),)))


def test_progress_is_reported_while_a_long_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.engine.shared.compiled.AT_ONCE", 500)
    seen: list[int] = []
    run_compiled(RunInput((workload(closed(4, 2_500), [1]),), (provider(),)), seen.append)
    assert len(seen) >= 5
    assert seen == sorted(seen)


def test_a_bucket_that_does_not_fit_in_64_bits_is_refused() -> None:
    def run(burst: int) -> RunInput:
        slow = limits(rate(7, 60_000, burst=burst, unit="tokens"))
        return RunInput((workload(arriving(0, 1)),), (provider(limits=slow),))

    assert unsupported(run(10**6)) is None
    assert_engines_agree(run(10**6))
    with pytest.raises(EngineError) as error:
        run_compiled(run(10**9))
    assert str(error.value) == (
        "engine compiled cannot run a bucket of 1000000000 tokens that refills 7 per 60000000000 ns: "
        "its level does not fit in 64 bits (engine simpy can)"
    )


BOUNDS_CHECKED = """
import numba
from hypothesis import given, settings
from tests.engine.test_shared_equality import assert_engines_agree, troubled, varied_inputs
assert numba.config.BOUNDSCHECK
settings(deadline=None, max_examples=150, database=None)(given(varied_inputs())(assert_engines_agree))()
assert_engines_agree(troubled(300))
"""


@pytest.mark.slow
def test_no_kernel_reaches_beyond_an_array(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", BOUNDS_CHECKED], env=environment, check=True)
