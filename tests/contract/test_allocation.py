"""An allocation is a value of one table: a new one runs everywhere, an unknown one nowhere."""

from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim.check.compiled import Verdict, verdict
from sim.check.grants import walk_provider
from sim.check.run import check_run, check_tables
from sim.check.shared_compiled import NoVerdict, first_broken
from sim.check.timeline import timeline
from sim.cli.levelling import known_allocations
from sim.contract.allocation import (
    ALLOCATIONS,
    FAIR_SHARE,
    FIFO,
    PLAIN_ALLOCATIONS,
    PRIORITY,
    Allocation,
    allocation_named,
)
from sim.contract.output import RunOutput
from sim.contract.plain import PlainInput, PlainRunOutput, run_input
from sim.contract.provider import ProviderInput
from sim.contract.run import RunInput
from sim.engine.choice import Run as EngineRun
from sim.engine.shared.compiled import run_shared as run_compiled
from sim.engine.shared.model import run_shared
from sim.engine.simpy_model import run
from sim.errors import ArgumentError, CheckError, InputError, shown
from sim.report.words import setting_words
from sim.result.experiment import simulate
from sim.run.simulation import Run, simulate_once
from sim.scenario import Scenario, load_scenario
from sim.scenario.model import PlanChoice
from tests.check.test_check import contended_inputs
from tests.engine.test_engine_equality import assert_engines_agree
from tests.engine.test_shared_equality import assert_engines_agree as assert_shared_engines_agree
from tests.engine.test_shared_stress import shared_inputs
from tests.engine_inputs import closed, engine_input
from tests.engines import general_only

NEW = Allocation("priority_share", "fair share, by priority", by_share=True, by_priority=True)
ENGINES = (run_shared, run_compiled)
UNKNOWN = "allocation must be one of fair_share, fifo, max_min, priority, weighted (got {})"
RECOMBINED = {
    one.name: one
    for one in (
        Allocation("".join("ny"[flag] for flag in flags), "recombined", *flags)
        for flags in product([False, True], repeat=4)
    )
}


def scenario(folder: Path, allocation: str) -> Scenario:
    """Return two requests of one workload, and one of a workload of higher priority, on two slots."""
    file = folder / "scenario.yaml"
    branches = "[{id: a, duration_ms: 10}, {id: b, duration_ms: 10}]"
    flow = f"{{name: flow, join_overhead_ms: 0, branches: {branches}}}"
    file.write_text(
        f"""
schema_version: 1
name: three requests
provider: {{concurrency: 2, allocation: {allocation}}}
plans: [serial, parallel]
workloads:
  - name: low
    workflow: {flow}
    load: {{kind: closed, active_requests: 2, requests: 2}}
  - name: high
    share: {{priority: 1}}
    workflow: {flow}
    load: {{kind: closed, active_requests: 1, requests: 1}}
"""
    )
    return load_scenario(file)


def ran(one: Scenario, engine: EngineRun = run_shared) -> Run:
    return simulate_once(one, PlanChoice(plan="parallel"), 0, engine=general_only(engine))


def latencies_ms(run: Run) -> list[float]:
    return [ns / 1_000_000 for ns in run.out.latency_ns.tolist()]


def walk_both(one: RunInput, out: RunOutput) -> None:
    """Hold a run against the readable walk and, where it has a verdict, the compiled one."""
    line = timeline(one, out)
    for provider in range(len(one.providers)):
        walk_provider(one, out, line, provider)
    with suppress(NoVerdict):
        assert first_broken(one, out) is None


@pytest.mark.parametrize("engine", ENGINES, ids=["simpy", "compiled"])
def test_a_new_allocation_runs_in_both_engines(
    engine: EngineRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ALLOCATIONS, NEW.name, NEW)
    # Three requests share two slots, so each may hold one, and the high one has the first at 0 and at 10 ms;
    # from 20 ms on the second low one is alone and holds both.
    assert latencies_ms(ran(scenario(tmp_path, "priority_share"), engine)) == [20, 30, 20]
    # By share alone the high one, numbered last, comes last; by priority alone it has both slots at once.
    assert latencies_ms(ran(scenario(tmp_path, "fair_share"), engine)) == [20, 20, 30]
    assert latencies_ms(ran(scenario(tmp_path, "priority"), engine)) == [20, 30, 10]


def test_a_new_allocation_is_checked_for_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ALLOCATIONS, NEW.name, NEW)
    found = ran(scenario(tmp_path, "priority_share"))
    walk_both(found.given, found.out)
    assert_shared_engines_agree(found.given)
    for rule in (FAIR_SHARE, PRIORITY):
        provider = replace(found.given.providers[0], allocation=rule)
        other = run_shared(replace(found.given, providers=(provider,)))
        with pytest.raises(CheckError):
            check_run(found.given, other, run_shared)
        assert first_broken(found.given, other) is not None


def test_a_new_allocation_has_its_words_in_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ALLOCATIONS, NEW.name, NEW)
    one = scenario(tmp_path, "priority_share")
    assert setting_words(one).endswith("; 2 slots, fair share, by priority")
    assert known_allocations(["priority_share", "fifo"]) == ("priority_share", "fifo")
    mean = simulate(one, workers=1).plan("parallel").estimates["latency_ms_mean"].mean
    assert mean == pytest.approx(70 / 3)


@given(shared_inputs(), st.lists(st.sampled_from(list(RECOMBINED)), min_size=2, max_size=2))
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_every_combination_is_the_same_in_both_engines_and_checks(one: RunInput, names: list[str]) -> None:
    with patch.dict(ALLOCATIONS, RECOMBINED):
        providers = zip(one.providers, names, strict=False)
        rules = (replace(provider, allocation=RECOMBINED[name]) for provider, name in providers)
        other = replace(one, providers=tuple(rules))
        assert_shared_engines_agree(other)
        out = run_shared(other)
        check_run(other, out, run_shared)
        walk_both(other, out)


@given(contended_inputs(), st.sampled_from(list(RECOMBINED)))
@settings(deadline=None, max_examples=100)
def test_every_combination_is_the_same_in_both_engines_of_plain_runs(one: PlainInput, name: str) -> None:
    with patch.dict(ALLOCATIONS, RECOMBINED):
        other = replace(one, allocation=RECOMBINED[name])
        assert_engines_agree(other)
        out = run(other)
        assert verdict(other, out) == Verdict(
            check_tables(run_input(other), PlainRunOutput(other, out)), None
        )


def test_the_table_says_which_do_not_ask_for_the_workload() -> None:
    assert PLAIN_ALLOCATIONS == ("fair_share", "fifo", "max_min")
    assert [name for name, one in ALLOCATIONS.items() if one.caps] == ["fair_share", "weighted"]
    assert allocation_named("fifo") is FIFO


def test_an_unknown_allocation_is_refused_by_the_schema(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        scenario(tmp_path, "lifo")
    path = tmp_path / "scenario.yaml"
    assert str(refused.value) == f"{path}:4: provider.{UNKNOWN.format(repr('lifo'))}"
    with pytest.raises(InputError, match=r"provider\.allocation must be one of .* \(got \['fifo'\]\)"):
        scenario(tmp_path, "[fifo]")


OTHER_FIFO = replace(FIFO, by_share=True)


@pytest.mark.parametrize(
    ("unknown", "message"),
    [
        ("lifo", UNKNOWN.format("'lifo'")),
        (None, UNKNOWN.format("None")),
        (NEW, UNKNOWN.format("'priority_share'")),
        ("fifo", "allocation must be ALLOCATIONS['fifo'] (got 'fifo')"),
        (OTHER_FIFO, f"allocation must be ALLOCATIONS['fifo'] (got {shown(OTHER_FIFO)})"),
    ],
)
def test_an_unknown_allocation_is_refused_by_what_engines_and_checks_are_given(
    unknown: Any, message: str
) -> None:
    plain = engine_input(closed(2, 2))
    for make in (lambda: ProviderInput(((0, 1),), unknown), lambda: replace(plain, allocation=unknown)):
        with pytest.raises(ArgumentError) as refused:
            make()
        assert str(refused.value) == message


def test_an_unknown_allocation_is_refused_on_the_command_line() -> None:
    with pytest.raises(ArgumentError) as refused:
        known_allocations(["fifo", "lifo"])
    assert str(refused.value) == f"--{UNKNOWN.format(repr('lifo'))}"
