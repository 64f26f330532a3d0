"""Which check runs depends on the run alone, and is told."""

from dataclasses import replace

import pytest

from sim.check.report import MANY_CALLS, CheckReport, check_of


@pytest.mark.parametrize(
    ("engine", "calls", "check"),
    [
        ("simpy", MANY_CALLS - 1, "readable"),
        ("simpy", MANY_CALLS, "compiled"),
        ("compiled", 1, "compiled"),
        ("compiled", MANY_CALLS, "compiled"),
    ],
)
def test_the_check_is_chosen_by_engine_and_length_whatever_ran_before(
    engine: str, calls: int, check: str
) -> None:
    assert [check_of(engine, each) for each in (MANY_CALLS, calls, calls)][1:] == [check, check]


def test_without_numba_every_run_is_checked_by_the_readable_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.check.report.find_spec", lambda _: None)
    assert check_of("compiled", MANY_CALLS) == check_of("simpy", MANY_CALLS) == "readable"


def test_several_runs_name_each_check_once() -> None:
    readable, compiled = (CheckReport(requests=1, run_by=(name,)) for name in ("readable", "compiled"))
    assert (readable + readable).run_by_words == "readable"
    assert (compiled + readable + compiled).run_by_words == "readable and compiled"
    assert (compiled + readable).summary()["run_by"] == "readable and compiled"
    assert replace(compiled, requests_exact=1).summary()["requests_violated"] == 0
