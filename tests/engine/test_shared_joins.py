"""Joins that begin, end or are called otherwise than the attempts say: each is found."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sim.check.joins import join_rules
from sim.check.run import check_run
from sim.contract.output import CANCELLED, DEADLINE_MISSED, DEGRADED, FAILED, SUCCEEDED, RunOutput
from sim.contract.run import RunInput, WorkloadInput
from sim.engine.shared.model import run_shared
from sim.errors import CheckError
from sim.units import NS_PER_MS
from tests.engine_inputs import arriving
from tests.shared_inputs import failing, given_of, workload

BEGAN = "began its join at another time than it had what that waits for"
LACKS = "began its join without a branch that it needs"
GAVE_UP = "was given up although its join could begin or was complete"
MISTAKEN = "is called whole or degraded and is not"
JOINED = "has a join that began or ended at another time than it should"
MISSED = "was given up at another time than its deadline, or not then"


def broken(run: RunInput, out: RunOutput) -> list[str]:
    """Return the rules that a run breaks."""
    return [rule for rule, requests in join_rules(run, out) if requests.any()]


def two(words: list[str], **options: Any) -> WorkloadInput:
    """Return a request of two branches of 10 and 20 ms, with a join of 5 ms."""
    return failing(workload(arriving(0), [10, 20], join_ms=5), words, **options)


WHOLE = two([".", "."], deadline_ms=99)
ONE_OF_TWO = two([".", "."], needs=1)


@pytest.mark.parametrize(
    ("one", "changes", "rules"),
    [
        # With all its branches, and with the first of them.
        (WHOLE, {"join_start_ns": 19}, [BEGAN, LACKS, MISTAKEN]),
        (WHOLE, {"join_start_ns": 21}, [BEGAN]),
        (ONE_OF_TWO, {"join_start_ns": 11}, [BEGAN]),
        (WHOLE, {"outcome": DEGRADED}, [MISTAKEN]),
        (ONE_OF_TWO, {"outcome": SUCCEEDED}, [MISTAKEN]),
        (WHOLE, {"outcome": FAILED}, [GAVE_UP]),
        (WHOLE, {"outcome": FAILED, "join_start_ns": -1}, [GAVE_UP]),
        (ONE_OF_TWO, {"outcome": FAILED, "join_start_ns": -1}, [GAVE_UP]),
        # Given up too soon, and only after its deadline.
        (WHOLE, {"outcome": DEADLINE_MISSED, "completion_ns": 24}, [MISSED]),
        (WHOLE, {"outcome": DEADLINE_MISSED, "completion_ns": 99}, [GAVE_UP]),
        (WHOLE, {"completion_ns": 100}, [MISSED]),
        (ONE_OF_TWO, {"outcome": DEADLINE_MISSED, "completion_ns": 14}, [MISSED]),
    ],
)
def test_a_request_that_ends_otherwise_than_its_attempts_is_found(
    one: WorkloadInput, changes: dict[str, int], rules: list[str]
) -> None:
    run = given_of(one)
    out = run_shared(run)
    assert broken(run, out) == []
    units = {name: NS_PER_MS if name.endswith("_ns") else 1 for name in changes}
    changed: dict[str, Any] = {name: np.array([value * units[name]]) for name, value in changes.items()}
    assert broken(run, replace(out, **changed)) == rules


def test_an_optional_branch_is_waited_for_and_may_be_lost_and_no_other() -> None:
    lost = two([".", "x"], optional=[1])
    out = run_shared(given_of(lost))
    assert broken(given_of(lost), out) == []
    assert broken(given_of(two([".", "x"], optional=[0])), out) == [LACKS]
    hasty = replace(out, join_start_ns=np.array([10 * NS_PER_MS]))
    assert broken(given_of(lost), hasty) == [BEGAN]


def test_a_join_that_holds_a_slot_is_ready_at_its_beginning_and_ends_at_the_answer() -> None:
    run = given_of(workload(arriving(0), [10, 20], join_slot_ms=5))
    out = run_shared(run)
    assert broken(run, out) == []
    assert broken(run, replace(out, completion_ns=out.completion_ns + 1)) == [JOINED]
    table = out.attempts
    late = replace(table, ready_ns=table.ready_ns + (table.call == 2))
    assert broken(run, replace(out, attempts=late)) == [JOINED]


@pytest.mark.parametrize(
    ("outcome", "what"),
    [
        (CANCELLED, "has an attempt whose time is not the one drawn"),
        (FAILED, "has an attempt that did not end as drawn"),
    ],
)
def test_an_attempt_cancelled_or_changed_at_the_instant_of_its_end_is_found(outcome: int, what: str) -> None:
    run = given_of(failing(workload(arriving(0), [100, 100]), [".", "."], needs=1))
    out = run_shared(run)
    table = replace(out.attempts, outcome=np.array([0, outcome]))
    degraded = replace(out, attempts=table, outcome=np.array([DEGRADED]))
    with pytest.raises(CheckError) as error:
        check_run(run, degraded, run_shared)
    assert str(error.value) == "\n".join(
        [
            f"check violated (simpy engine): request 0 {what}",
            "  parallel, arrived at 0 ns, answered at 100000000 ns",
            "  attempt 0 at call 0: ready 0, started 0, ended 100000000 ns on slot 0",
            "  attempt 0 at call 1: ready 0, started 0, ended 100000000 ns on slot 1",
        ]
    )
