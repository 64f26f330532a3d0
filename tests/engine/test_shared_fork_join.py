"""What the loss of a branch, a deadline and the join mean for a request, by hand."""

import pytest

from sim.contract.run import RunInput
from sim.engine.shared.calls import Call
from sim.engine.shared.model import SharedModel
from tests.engine_inputs import arriving, closed
from tests.shared_inputs import answers, failing, provider, run_everywhere, simulate, trace, workload


def test_the_first_lost_branch_fails_the_request_and_frees_its_slots_at_once() -> None:
    # Request 1 gets the slots of both branches of request 0 at 10, the instant at which the first is lost.
    one = failing(workload(arriving(0, 1), [[10, 20], [5, 5]]), [["x", "x"], [".", "."]])
    out = simulate(one, provider(2))
    assert trace(out) == [
        "0.0.0 0 0-10 slot 0 server_error",
        "0.1.0 0 0-10 slot 1 cancelled",
        "1.0.0 1 10-15 slot 0 ok",
        "1.1.0 1 10-15 slot 1 ok",
    ]
    assert answers(out) == ["failed at 10", "succeeded at 15"]
    assert out.join_start_ns.tolist() == [-1, 15_000_000]


def test_a_second_branch_that_fails_after_the_join_has_failed_gives_its_slot_back() -> None:
    one = failing(workload(arriving(0, 1), [[10, 20], [5, 5]]), [["xx", "xx"], ["..", ".."]], cancels=False)
    out = simulate(one, provider(2))
    # The first is tried again at 10 behind request 1, the second likewise; both fail for good.
    assert trace(out) == [
        "0.0.0 0 0-10 slot 0 server_error",
        "1.0.0 1 10-15 slot 0 ok",
        "0.1.0 0 0-20 slot 1 server_error",
        "1.1.0 1 15-20 slot 0 ok",
        "0.0.1 10 20-30 slot 0 server_error",
        "0.1.1 20 20-40 slot 1 server_error",
    ]
    assert answers(out) == ["failed at 30", "succeeded at 20"]


def test_a_sibling_that_runs_on_is_not_tried_again_after_the_answer() -> None:
    one = failing(workload(arriving(0), [10, 20]), ["x.", "x."], backoff_ms=[100, 0], cancels=False, budget=0)
    out = simulate(one)
    assert trace(out) == ["0.0.0 0 0-10 slot 0 server_error", "0.1.0 0 0-20 slot 1 server_error"]
    assert answers(out) == ["failed at 10"]


def test_branches_that_fail_at_one_instant_end_in_the_order_of_their_grants() -> None:
    # The first one's failure fails the request; the second has failed at that very instant by itself.
    out = run_everywhere(failing(workload(arriving(0), [10, 10]), ["x", "x"]))
    assert trace(out) == ["0.0.0 0 0-10 slot 0 server_error", "0.1.0 0 0-10 slot 1 server_error"]
    assert answers(out) == ["failed at 10"]


@pytest.mark.parametrize("cancels", [True, False])
def test_all_that_finish_at_the_instant_of_the_join_are_in_it(cancels: bool) -> None:
    one = workload(arriving(0), [100, 100, 100], join_ms=7)
    for needs in (1, 2, 3):
        out = run_everywhere(failing(one, ["."] * 3, needs=needs, cancels=cancels))
        assert trace(out) == [f"0.{call}.0 0 0-100 slot {call} ok" for call in range(3)]
        assert answers(out) == ["succeeded at 107"]


@pytest.mark.parametrize("lost", [0, 1])
def test_a_failure_at_the_instant_of_the_join_has_failed_and_is_not_tried_again(lost: int) -> None:
    # One in four may be tried again: request 1 may, as request 0 did not ask for it at 10.
    one = workload(arriving(0, 1), [[10, 10], [10, 20]])
    outcomes = [[["x.", ".."], ["..", "x."]][lost], ["x.", "x."]]
    out = run_everywhere(failing(one, outcomes, needs=1, budget=0.25))
    ends = ["server_error", "ok"] if lost == 0 else ["ok", "server_error"]
    assert trace(out) == [
        f"0.0.0 0 0-10 slot 0 {ends[0]}",
        f"0.1.0 0 0-10 slot 1 {ends[1]}",
        "1.0.0 1 1-11 slot 2 server_error",
        "1.1.0 1 1-21 slot 3 server_error",
        "1.0.1 11 11-21 slot 0 ok",
    ]
    assert answers(out) == ["degraded at 10", "degraded at 21"]


@pytest.mark.parametrize("lost", [0, 1])
def test_a_branch_that_is_lost_at_the_instant_at_which_another_is_done_makes_no_dependents(lost: int) -> None:
    one = workload(arriving(0), [10, 10, 5], dependencies=[[], [], [1 - lost]])
    words = ["x", ".", "."] if lost == 0 else [".", "x", "."]
    out = run_everywhere(failing(one, words))
    ends = ["server_error", "ok"] if lost == 0 else ["ok", "server_error"]
    assert trace(out) == [f"0.{call}.0 0 0-10 slot {call} {ends[call]}" for call in range(2)]
    assert answers(out) == ["failed at 10"]


def test_a_join_that_has_enough_makes_no_dependents_of_what_ends_at_its_instant() -> None:
    one = workload(arriving(0), [10, 10, 5], dependencies=[[], [], [0]], join_ms=1)
    out = run_everywhere(failing(one, [".", ".", "."], needs=2))
    assert trace(out) == ["0.0.0 0 0-10 slot 0 ok", "0.1.0 0 0-10 slot 1 ok"]
    assert answers(out) == ["degraded at 11"]


def test_what_ends_at_the_deadline_has_ended_and_what_has_not_is_cancelled() -> None:
    one = workload(arriving(0), [10, 10, 11], join_ms=5)
    out = run_everywhere(failing(one, [".", "x", "."], optional=[1], deadline_ms=10))
    assert trace(out) == [
        "0.0.0 0 0-10 slot 0 ok",
        "0.1.0 0 0-10 slot 1 server_error",
        "0.2.0 0 0-10 slot 2 cancelled",
    ]
    assert answers(out) == ["timed_out at 10"]
    enough = failing(workload(arriving(0), [10, 10]), [".", "."], needs=1, deadline_ms=10)
    assert answers(run_everywhere(enough)) == ["succeeded at 10"]


@pytest.mark.parametrize(("cancels", "third"), [(True, "0-10 slot 2 cancelled"), (False, "0-30 slot 2 ok")])
def test_a_join_that_holds_a_slot_goes_ahead_without_a_straggler(cancels: bool, third: str) -> None:
    one = workload(arriving(0), [10, 10, 30], join_slot_ms=25)
    out = run_everywhere(failing(one, ["..", "..", ".."], needs=1, cancels=cancels))
    assert trace(out) == [
        "0.0.0 0 0-10 slot 0 ok",
        "0.1.0 0 0-10 slot 1 ok",
        f"0.2.0 0 {third}",
        "0.3.0 10 10-35 slot 3 ok",
    ]
    assert answers(out) == ["degraded at 35"]


def test_a_sibling_in_the_queue_is_cancelled_there() -> None:
    out = simulate(failing(workload(arriving(0), [10, 20]), ["x", "."]), provider(1))
    assert trace(out) == ["0.0.0 0 0-10 slot 0 server_error", "0.1.0 0 never at 10 cancelled"]


def test_a_pause_that_ends_after_the_answer_makes_no_attempt() -> None:
    one = failing(workload(arriving(0), [10, 20]), ["x.", ".."], backoff_ms=50, deadline_ms=25)
    out = simulate(one)
    assert trace(out) == ["0.0.0 0 0-10 slot 0 server_error", "0.1.0 0 0-20 slot 1 ok"]
    assert answers(out) == ["timed_out at 25"]


def test_a_pause_that_ends_at_the_deadline_makes_no_attempt() -> None:
    out = simulate(failing(workload(arriving(0), [10]), ["x."], backoff_ms=5, deadline_ms=15))
    assert (trace(out), answers(out)) == (["0.0.0 0 0-10 slot 0 server_error"], ["timed_out at 15"])


THREE = [10, 20, 30]


def test_two_of_three_are_enough_and_the_third_is_cancelled() -> None:
    out = simulate(failing(workload(arriving(0), THREE, join_ms=5), [".", ".", "."], needs=2))
    assert trace(out)[-1] == "0.2.0 0 0-20 slot 2 cancelled"
    assert answers(out) == ["degraded at 25"]
    assert out.join_start_ns.tolist() == [20_000_000]


def test_a_third_that_runs_on_holds_its_slot_and_changes_nothing() -> None:
    # It succeeds during the join, which has begun without it.
    one = failing(workload(arriving(0, 1), THREE, join_ms=15), [".", ".", "."], needs=2, cancels=False)
    out = simulate(one, provider(3))
    assert answers(out) == ["degraded at 35", "degraded at 55"]
    assert trace(out) == [
        "0.0.0 0 0-10 slot 0 ok",
        "0.1.0 0 0-20 slot 1 ok",
        "1.0.0 1 10-20 slot 0 ok",
        "0.2.0 0 0-30 slot 2 ok",
        "1.1.0 1 20-40 slot 0 ok",
        "1.2.0 1 20-50 slot 1 ok",
    ]


def test_two_of_three_fail_when_two_are_lost() -> None:
    one = workload(arriving(0), THREE, join_ms=5)
    assert answers(simulate(failing(one, ["x", ".", "."], needs=2))) == ["degraded at 35"]
    assert answers(simulate(failing(one, ["x", "x", "."], needs=2))) == ["failed at 20"]
    assert answers(simulate(failing(one, [".", ".", "."], needs=3))) == ["succeeded at 35"]


def test_an_optional_branch_may_be_lost_but_is_waited_for() -> None:
    one = workload(arriving(0), THREE, join_ms=5)
    assert answers(simulate(failing(one, [".", "x", "."], optional=[1]))) == ["degraded at 35"]
    assert answers(simulate(failing(one, [".", ".", "x"], optional=[2]))) == ["degraded at 35"]
    assert answers(simulate(failing(one, [".", ".", "."], optional=[2]))) == ["succeeded at 35"]
    assert answers(simulate(failing(one, [".", "x", "."], optional=[2]))) == ["failed at 20"]


CHAIN = [[], [0], [1], []]


def test_what_depends_on_a_lost_branch_is_lost_with_it() -> None:
    # 1 after 0, 2 after 1, 3 alone: losing 0 leaves 3.
    one = workload(arriving(0), [10, 10, 10, 40], dependencies=CHAIN)
    out = simulate(failing(one, ["x", ".", ".", "."], optional=[0, 1, 2]))
    assert trace(out) == ["0.0.0 0 0-10 slot 0 server_error", "0.3.0 0 0-40 slot 1 ok"]
    assert answers(out) == ["degraded at 40"]
    assert answers(simulate(failing(one, ["x", ".", ".", "."], optional=[0, 1]))) == ["failed at 10"]
    assert answers(simulate(failing(one, ["x", ".", ".", "."], needs=2))) == ["failed at 10"]


def test_a_branch_with_one_lost_dependency_does_not_wait_for_the_other() -> None:
    one = workload(arriving(0), [10, 50, 10], dependencies=[[], [], [0, 1]])
    out = simulate(failing(one, ["x", ".", "."], optional=[0]))
    assert answers(out) == ["failed at 10"]
    assert trace(out) == ["0.0.0 0 0-10 slot 0 server_error", "0.1.0 0 0-10 slot 1 cancelled"]


def test_a_serial_request_goes_on_after_an_optional_branch_and_passes_over_what_is_lost() -> None:
    one = workload(arriving(0), [10, 10, 10, 10], dependencies=CHAIN, parallel=False)
    out = simulate(failing(one, ["x", ".", ".", "."], optional=[0, 1, 2]))
    assert trace(out) == ["0.0.0 0 0-10 slot 0 server_error", "0.3.0 10 10-20 slot 1 ok"]
    assert answers(out) == ["degraded at 20"]
    assert answers(simulate(failing(one, ["x", ".", ".", "."], optional=[0]))) == ["failed at 10"]


def test_a_serial_request_stops_at_the_first_loss_and_once_it_has_enough() -> None:
    one = workload(arriving(0), THREE, join_ms=99, parallel=False)
    lost = simulate(failing(one, [".", "x", "."]))
    assert (len(lost.attempts.number), answers(lost)) == (2, ["failed at 30"])
    enough = simulate(failing(one, ["x", ".", "."], needs=1))
    assert (len(enough.attempts.number), answers(enough)) == (2, ["degraded at 30"])


def test_a_serial_retry_delays_what_follows() -> None:
    one = workload(arriving(0), [10, 20], parallel=False)
    assert trace(simulate(failing(one, ["x.", ".."], backoff_ms=4))) == [
        "0.0.0 0 0-10 slot 0 server_error",
        "0.0.1 14 14-24 slot 1 ok",
        "0.1.0 24 24-44 slot 2 ok",
    ]


@pytest.mark.parametrize(("deadline_ms", "answer"), [(30, "succeeded at 30"), (29.999999, "timed_out at 30")])
def test_a_join_that_ends_at_the_deadline_has_ended(deadline_ms: float, answer: str) -> None:
    one = workload(arriving(0), [20], join_ms=10)
    assert answers(simulate(failing(one, ["."], deadline_ms=deadline_ms))) == [answer]
    holding = workload(arriving(0), [20], join_slot_ms=10)
    assert answers(simulate(failing(holding, ["."], deadline_ms=deadline_ms))) == [answer]


def test_a_call_that_ends_at_the_deadline_has_ended() -> None:
    out = simulate(failing(workload(arriving(0), [20]), ["."], deadline_ms=20))
    assert (trace(out), answers(out)) == (["0.0.0 0 0-20 slot 0 ok"], ["succeeded at 20"])


def test_deadlines_strike_in_the_queue_in_service_and_in_a_pause_and_free_the_slots() -> None:
    # 0 holds the only slot till its deadline; 1 never gets it; 2 gets it then; 3 pauses at its deadline.
    one = workload(arriving(0, 0, 10, 20), [[99], [99], [5], [10]])
    out = simulate(failing(one, [["xx"], ["xx"], [".."], ["x."]], deadline_ms=15, backoff_ms=7), provider(1))
    assert trace(out) == [
        "0.0.0 0 0-15 slot 0 cancelled",
        "1.0.0 0 never at 15 cancelled",
        "2.0.0 10 15-20 slot 0 ok",
        "3.0.0 20 20-30 slot 0 server_error",
    ]
    assert answers(out) == ["timed_out at 15", "timed_out at 15", "succeeded at 20", "timed_out at 35"]


def test_after_a_deadline_without_cancelling_all_runs_on_and_is_recorded() -> None:
    one = failing(workload(arriving(0, 1), [[20, 20], [3, 3]]), [["xx", ".."], ["..", ".."]], deadline_ms=9,
                  cancels=False)  # fmt: skip
    out = simulate(one, provider(1))
    assert answers(out) == ["timed_out at 9", "timed_out at 10"]
    assert trace(out) == [
        "0.0.0 0 0-20 slot 0 server_error",
        "0.1.0 0 20-40 slot 0 ok",
        "1.0.0 1 40-43 slot 0 ok",
        "1.1.0 1 43-46 slot 0 ok",
    ]


def test_an_answer_at_the_deadline_lets_the_user_ask_again_in_that_instant() -> None:
    out = simulate(failing(workload(closed(1, 2), [20]), ["."], deadline_ms=5), provider(1))
    assert trace(out) == ["0.0.0 0 0-5 slot 0 cancelled", "1.0.0 5 5-10 slot 0 cancelled"]


def test_a_join_that_holds_a_slot_queues_after_the_branches_of_its_instant() -> None:
    one = failing(workload(arriving(0, 10), [10], join_slot_ms=4), ["."], deadline_ms=30)
    assert trace(simulate(one, provider(1))) == [
        "0.0.0 0 0-10 slot 0 ok",
        "0.1.0 10 10-14 slot 0 ok",
        "1.0.0 10 14-24 slot 0 ok",
        "1.1.0 24 24-28 slot 0 ok",
    ]


def test_a_deadline_strikes_a_join_in_the_queue_and_on_its_slot() -> None:
    one = failing(workload(arriving(0, 1, 20), [[10], [30], [10]], join_slot_ms=9), ["."], deadline_ms=15)
    out = simulate(one, provider(1))
    assert trace(out) == [
        "0.0.0 0 0-10 slot 0 ok",
        "0.1.0 10 never at 15 cancelled",
        "1.0.0 1 10-16 slot 0 cancelled",
        "2.0.0 20 20-30 slot 0 ok",
        "2.1.0 30 30-35 slot 0 cancelled",
    ]
    assert answers(out) == ["timed_out at 15", "timed_out at 16", "timed_out at 35"]


def test_a_slot_given_back_twice_is_an_error() -> None:
    model = SharedModel(RunInput((workload(arriving(0), [10]),), (provider(),)))
    ended: list[Call] = []
    model.fork_join.record = lambda call, _outcome, _now_ns: ended.append(call)
    model.run()
    with pytest.raises(KeyError):
        model.providers[0]._give_back(ended[0])
