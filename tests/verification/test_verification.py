"""The simulator against queueing theory, and proof that the table can fail."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import sim.verification.table as table_module
from sim.cli.app import app
from sim.draws.drawing import Draws, draw
from sim.scenario import Scenario
from sim.verification import verify_theory
from sim.verification.case import Case
from sim.verification.cases import all_cases
from sim.verification.claim import Always, Band, Mean
from sim.verification.table import QUICK_CALLS, chosen_cases, judged

FAST_ENOUGH_TO_BREAK = (
    "M/G/1 at 0.7, gamma cv 0.5, max-min",
    "fork-join of 3 on ample slots",
    "fixed times, 20 users, fair_share, parallel",
)


def case_named(name: str) -> Case:
    return next(case for case in all_cases() if case.name == name)


def slower_draw(scenario: Scenario, replication: int, requests: int | None = None) -> Draws:
    """Draw with a service mean that is 5 % too high."""
    draws = draw(scenario, replication, requests)
    return replace(draws, service_ns=np.rint(draws.service_ns * 1.05).astype(np.int64))


def test_the_quick_table_agrees_with_theory() -> None:
    table = verify_theory(quick=True, workers=2, engine="compiled")
    assert [row.to_dict() for row in table.rows if not row.passed] == []
    assert table.passed
    assert table.engine == "compiled"
    assert {row.case for row in table.rows} == {case.name for case in chosen_cases(quick=True)}


def test_the_cases_are_many_and_the_random_ones_have_enough_replications() -> None:
    cases = all_cases()
    assert len({case.name for case in cases}) == len(cases) >= 14
    assert sum("fork" in case.name for case in cases) >= 3
    for case in cases:
        fixed = all(isinstance(claim.expected, Always) for claim in case.claims)
        assert case.replications == 1 if fixed else case.replications >= 20
        warmup = case.scenario.experiment.warmup
        assert warmup is not None
        assert not isinstance(warmup, str)


def test_quick_runs_the_cases_of_few_calls() -> None:
    quick = chosen_cases(quick=True)
    assert [case for case in all_cases() if case.calls <= QUICK_CALLS] == list(quick)
    assert len(quick) >= 14
    assert any(
        isinstance(claim.expected, Mean) for case in quick if "fork" in case.name for claim in case.claims
    )
    assert any(isinstance(claim.expected, Band) for case in quick for claim in case.claims)


@pytest.mark.parametrize("name", FAST_ENOUGH_TO_BREAK)
def test_five_percent_more_service_is_found_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.draws.run_input.draw", slower_draw)
    table = verify_theory(cases=[case_named(name)], workers=1)
    assert not table.passed
    assert not table.to_dict()["passed"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [case.name for case in all_cases() if case.name not in FAST_ENOUGH_TO_BREAK])
def test_five_percent_more_service_is_found_out_in_every_case(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_named(name)
    if all(isinstance(claim.expected, Band) for claim in case.claims):
        pytest.skip("a band is wider than 5 %")
    monkeypatch.setattr("sim.draws.run_input.draw", slower_draw)
    assert not verify_theory(cases=[case], workers=1).passed


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["compiled", "simpy"])
def test_the_whole_table_agrees_with_theory(engine: str) -> None:
    table = verify_theory(workers=2, engine=engine)
    assert table.engine == engine
    assert [row.to_dict() for row in table.rows if not row.passed] == []
    assert len({row.case for row in table.rows}) == len(all_cases())


def test_the_table_does_not_depend_on_the_workers() -> None:
    case = case_named("fork-join of 3 on ample slots")
    tables = [verify_theory(cases=[case], workers=workers) for workers in (1, 2)]
    assert json.dumps(tables[0].to_dict()) == json.dumps(tables[1].to_dict())


def test_a_row_says_everything_about_a_quantity() -> None:
    (row,) = verify_theory(cases=[case_named("fixed times, 16 users, fifo, parallel")], workers=1).rows
    assert row.to_dict() == {
        "case": "fixed times, 16 users, fifo, parallel",
        "quantity": "mean latency",
        "unit": "ms",
        "source": "N work / c",
        "theory_low": 336.0,
        "theory_high": 336.0,
        "simulated": row.verdict.simulated.mean,
        "half_width": None,
        "precision": None,
        "precision_needed": None,
        "replications": 1,
        "requests": 6400,
        "warmup_requests": 640,
        "passed": True,
        "words": "every value is within 0.2 of theory",
    }


def test_precision_is_relative_to_its_own_scale() -> None:
    case = case_named("M/M/3 at 2 erlangs")
    values = [[[400.0]], [[480.0]]] * 10
    (row,) = judged(case, values)
    half_width = row.verdict.simulated.half_width
    assert half_width is not None
    assert row.precision == pytest.approx(half_width / 444.4444, rel=1e-6)
    assert row.precision_needed == 0.10
    assert row.passed


def test_an_empty_table_proves_nothing() -> None:
    assert not verify_theory(cases=[], workers=1).passed


def test_progress_counts_the_runs() -> None:
    done: list[int] = []
    names = ("fixed times, 10 users, fair_share, parallel", "fixed times, 11 users, fair_share, parallel")
    verify_theory(cases=[case_named(name) for name in names], workers=1, progress=done.append)
    assert done == [1, 2]


@pytest.fixture
def _one_case(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_named("fixed times, 10 users, fair_share, parallel")
    monkeypatch.setattr(table_module, "all_cases", lambda: (case,))


@pytest.mark.usefixtures("_one_case")
def test_the_command_prints_the_table() -> None:
    result = CliRunner().invoke(app, ["verify", "--theory", "--workers", "1"])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split("  ")[0] == "case"
    assert "fixed times, 10 users, fair_share, parallel" in lines[1]
    assert lines[1].endswith("pass")
    assert lines[-1] == "1 cases, 1 quantities: all agree with theory; simpy"


@pytest.mark.usefixtures("_one_case")
def test_the_command_ends_with_1_where_a_case_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.draws.run_input.draw", slower_draw)
    result = CliRunner().invoke(app, ["verify", "--theory", "--quick", "--workers", "1"])
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-2:] == [
        "FAIL fixed times, 10 users, fair_share, parallel: every latency: "
        "1 of 1 values differ from theory 295, first 308",
        "1 cases, 1 quantities: 1 fail; simpy",
    ]


@pytest.mark.usefixtures("_one_case")
def test_the_command_prints_json() -> None:
    result = CliRunner().invoke(app, ["verify", "--theory", "--workers", "1", "--json"])
    assert result.exit_code == 0
    table = json.loads(result.stdout)
    assert (table["passed"], table["confidence"], table["engine"]) == (True, 0.999, "simpy")
    assert [row["simulated"] for row in table["rows"]] == [295.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "SCENARIO must be given, or --theory (got None)"),
        (["scenarios/peak.yaml", "--quick"], "--quick must come with --theory (got True)"),
        (
            ["scenarios/peak.yaml", "--theory"],
            "SCENARIO must be left out beside --theory (got ['scenarios/peak.yaml'])",
        ),
        (["--theory", "--seed", "0"], "--seed must be left out beside --theory (got 0)"),
    ],
)
def test_the_command_refuses_what_would_change_nothing(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["verify", *arguments])
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [message]
