"""An engine that overlooks what its input says of calls and further attempts is stopped."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sim.check.made import made_rules
from sim.check.run import check_run
from sim.contract.output import Attempts, RunOutput
from sim.contract.run import Faults, RunInput, WorkloadInput
from sim.draws.run_input import run_input_of
from sim.engine.choice import Run as EngineRun
from sim.engine.shared.compiled import run_shared as run_compiled
from sim.engine.shared.fork_join import ForkJoin
from sim.engine.shared.model import run_shared
from sim.errors import CheckError
from sim.scenario import load_scenario
from sim.scenario.model import PlanChoice
from tests.engine_inputs import arriving
from tests.shared_inputs import cache, failing, given_of, limits, provider, rate, speaking, workload

ENGINES = pytest.mark.parametrize("engine", [run_shared, run_compiled], ids=["simpy", "compiled"])
SCENARIOS = Path(__file__).parents[2] / "scenarios"

CALL_TIME = "made a call at another time than it was due"
OTHER_TIME = "made another attempt at another time than its pause ended or its hedge was due"
NOT_MADE = "did not make a call that was due"
NOT_AGAIN = "did not try a failed call again"
NOT_HEDGED = "did not hedge a slow call"
BUDGET = "made another attempt that the retry budget does not allow"
UNRESOLVED = "began its join before a branch was done or lost"
FAILED_EARLY = "failed at another time than it became hopeless"
HOPELESS = "went on although it was hopeless"
MISSING = "has a call of which an attempt is missing"
NOT_NEEDED = "made an attempt at a call that it no longer needed"


def broken(given: RunInput, out: RunOutput) -> list[str]:
    return [rule for rule, requests in made_rules(given, out) if requests.any()]


def assert_stopped(given: RunInput, overlooked: RunInput, engine: EngineRun, rule: str) -> None:
    """Run an engine on what it takes its input for, and hold the run against what it was given."""
    check_run(given, engine(given), engine)
    with pytest.raises(CheckError, match=rf"^check violated \(\w+ engine\): request \d+ {rule}\n"):
        check_run(given, engine(overlooked), engine)


def alone(one: WorkloadInput, **options: Any) -> RunInput:
    return given_of(one, provider(4, **options))


def with_faults(one: WorkloadInput, **changes: Any) -> WorkloadInput:
    assert one.faults is not None
    return replace(one, faults=replace(one.faults, **changes))


def once(faults: Faults) -> Faults:
    """Return the faults with one attempt for each call."""
    return replace(
        faults,
        outcome=faults.outcome[:, :, :1],
        service_ns=faults.service_ns[:, :, :1],
        jitter_ppm=faults.jitter_ppm[:, :, :1],
        backoff_ns=faults.backoff_ns[:1],
    )


TWO = workload(arriving(0, 100), [10, 50])
PAUSING = failing(TWO, ["xx.", "..."], backoff_ms=[5, 20, 80], jitter=0.5)
BUDGETED = failing(TWO, ["x..", "x.."], backoff_ms=5, budget=0.25)
HEDGED = failing(workload(arriving(0), [30, 50]), ["..", ".."], hedge_after_ms=20)
LEADING = speaking(workload(arriving(0), [10, 10, 10], warm_first=True), prefix=100, first_token_ms=4)
DOUBTFUL = failing(workload(arriving(0), [10, 100]), ["x.", ".."], backoff_ms=30, optional=[0])
HASTY = failing(workload(arriving(0), [10, 20]), ["x.", ".."], backoff_ms=30, optional=[0])
LATE = failing(workload(arriving(0), [10, 90]), ["x", "."], deadline_ms=60)
ONE_OF_THREE = failing(workload(arriving(0), [30, 10, 5]), [".", ".", "."], needs=1)
CHAIN = workload(arriving(0), [10, 20, 30], dependencies=[(), (0,), (0, 1)])


@ENGINES
@pytest.mark.parametrize(
    ("given", "overlooked", "rule"),
    [
        (PAUSING, with_faults(PAUSING, backoff_ns=(0, 0, 0)), OTHER_TIME),
        (PAUSING, with_faults(PAUSING, jitter_ppm=PAUSING.faults.jitter_ppm // 2), OTHER_TIME),  # type: ignore[union-attr]
        (PAUSING, replace(PAUSING, faults=once(PAUSING.faults)), FAILED_EARLY),  # type: ignore[arg-type]
        (BUDGETED, with_faults(BUDGETED, retry_budget_ppm=None), BUDGET),
        (HEDGED, with_faults(HEDGED, hedge_after_ns=(None, None)), NOT_HEDGED),
        (HEDGED, with_faults(HEDGED, hedge_after_ns=(25_000_000,) * 2), OTHER_TIME),
        (LEADING, replace(LEADING, warm_first=False), CALL_TIME),
        (DOUBTFUL, replace(DOUBTFUL, faults=once(DOUBTFUL.faults)), NOT_AGAIN),  # type: ignore[arg-type]
        (HASTY, replace(HASTY, faults=once(HASTY.faults)), UNRESOLVED),  # type: ignore[arg-type]
        (LATE, with_faults(LATE, optional=(True, True)), HOPELESS),
        (ONE_OF_THREE, replace(ONE_OF_THREE, dependencies=((), (), (1,))), NOT_MADE),
        (replace(CHAIN, dependencies=((), (0,), (0,))), CHAIN, CALL_TIME),
    ],
)  # fmt: skip
def test_an_engine_that_overlooks_a_rule_of_calls_is_stopped(
    given: WorkloadInput, overlooked: WorkloadInput, rule: str, engine: EngineRun
) -> None:
    assert_stopped(alone(given), alone(overlooked), engine, rule)


def shipped(name: str, plan: PlanChoice, **changes: Any) -> RunInput:
    scenario = load_scenario(SCENARIOS / f"{name}.yaml").replace(changes)
    return run_input_of(scenario, plan, 0)


def overlooking(given: RunInput, change: Callable[[WorkloadInput], WorkloadInput]) -> RunInput:
    return replace(given, workloads=tuple(map(change, given.workloads)))


@ENGINES
@pytest.mark.parametrize(
    ("given", "overlook", "rule"),
    [
        (
            shipped("faulty", PlanChoice(plan="parallel"), **{"load.requests": 100}),
            {"backoff_ns": (0, 0, 0)},
            OTHER_TIME,
        ),
        (
            shipped("faulty", PlanChoice(plan="serial"), **{"load.requests": 100}),
            {"backoff_ns": (0, 0, 0)},
            OTHER_TIME,
        ),
        (
            shipped("retry-budget", PlanChoice(plan="parallel"), **{"load.duration_s": 60}),
            {"retry_budget_ppm": None},
            BUDGET,
        ),
    ],
    ids=["pauses, parallel", "pauses, serial", "budget"],
)
def test_faults_on_shipped_scenarios_are_stopped(
    given: RunInput, overlook: dict[str, Any], rule: str, engine: EngineRun
) -> None:
    overlooked = overlooking(given, lambda one: with_faults(one, **overlook))
    assert_stopped(given, overlooked, engine, rule)


@ENGINES
def test_a_leader_that_is_not_waited_for_is_found_on_a_shipped_scenario(engine: EngineRun) -> None:
    given = shipped("cache-off-peak", PlanChoice(plan="warm_first"), **{"load.requests": 20})
    assert_stopped(given, overlooking(given, lambda one: replace(one, warm_first=False)), engine, CALL_TIME)


def test_attempts_at_calls_that_are_no_longer_needed_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    given = alone(failing(workload(arriving(0), [10, 20]), ["..", "x."], needs=1, cancels=False))
    assert broken(given, run_shared(given)) == []
    monkeypatch.setattr(ForkJoin, "is_needed", lambda *_: True)
    assert broken(given, run_shared(given)) == [NOT_NEEDED]


def test_attempts_that_are_left_out_are_found() -> None:
    given = alone(PAUSING)
    out = run_shared(given)
    table = out.attempts
    rest = (table.number != 0) | (table.call != 0) | (table.attempt != 1)
    fewer = Attempts(**{name: getattr(table, name)[rest] for name in Attempts.__annotations__})
    assert MISSING in broken(given, replace(out, attempts=fewer))


def test_one_that_was_turned_away_comes_again_after_its_own_pause_at_least() -> None:
    one = failing(workload(arriving(0, 0, 0), [10]), ["..."], backoff_ms=5)
    given = alone(one, limits=limits(rate(1, 20), rejects=True))
    out = run_shared(given)
    assert broken(given, out) == []
    early = out.attempts.ready_ns - 18_000_000 * (out.attempts.attempt > 0)
    assert broken(given, replace(out, attempts=replace(out.attempts, ready_ns=early))) == [OTHER_TIME]


def test_a_run_without_attempts_breaks_no_rule() -> None:
    given = alone(workload(arriving(), [10]))
    assert broken(given, run_shared(given)) == []


def test_prefixes_that_are_led_by_failing_calls_break_no_rule() -> None:
    leading = failing(workload(arriving(0, 1), [10, 10], warm_first=True), ["x.", ".."], backoff_ms=3)
    given = alone(speaking(leading, prefix=100, first_token_ms=4), cache=cache(1_000))
    assert broken(given, run_shared(given)) == []
