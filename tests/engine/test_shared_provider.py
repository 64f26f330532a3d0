"""Who gets a free slot of a shared provider: priorities, weights, reservations, capacity steps, by hand."""

from dataclasses import replace

import pytest

from sim.contract.load import ClosedUsers
from sim.contract.output import RunOutput
from sim.units import NS_PER_MS
from tests.engine_inputs import arriving, closed, ms
from tests.shared_inputs import answers, failing, provider, simulate, starts_ms, trace, workload


def test_a_later_call_of_higher_priority_overtakes_but_never_pre_empts() -> None:
    low = workload(arriving(0, 0, 0), [10])
    high = workload(arriving(5), [10], priority=1)
    assert trace(simulate([low, high], provider(1, "priority"))) == [
        "0.0.0 0 0-10 slot 0 ok",
        "3.0.0 5 10-20 slot 0 ok",
        "1.0.0 0 20-30 slot 0 ok",
        "2.0.0 0 30-40 slot 0 ok",
    ]
    assert answers(simulate([low, high], provider(1, "fifo")))[3] == "succeeded at 40"


def test_equal_priorities_are_served_in_order_of_the_queue() -> None:
    one, other = (workload(arriving(*times), [10], priority=2) for times in ((0, 3), (1, 2)))
    out = simulate([one, other], provider(1, "priority"))
    # Requests by arrival: 0 (one), 1 and 2 (other), 3 (one).
    assert out.workload.tolist() == [0, 1, 1, 0]
    assert answers(out) == [f"succeeded at {end}" for end in (10, 20, 30, 40)]


def test_a_starved_workload_is_served_last_and_its_wait_is_in_the_table() -> None:
    # High priority keeps the slot busy until 100; the low request waits as long.
    high = workload(closed(2, 10), [10], priority=1)
    low = workload(arriving(0), [10])
    out = simulate([high, low], provider(1, "priority"))
    mine = out.attempts.number == out.workload.tolist().index(1)
    assert ((out.attempts.start_ns - out.attempts.ready_ns)[mine] // NS_PER_MS).tolist() == [100]
    assert simulate([high, low], provider(1)).latency_ns[out.workload == 1] == 30 * NS_PER_MS


def most_in_flight(out: RunOutput, workload: int, now_ms: float) -> int:
    """Return how many slots a workload's attempts hold just after an instant."""
    table, now = out.attempts, now_ms * NS_PER_MS
    mine = out.workload[table.number] == workload
    return int((mine & (table.slot >= 0) & (table.start_ns <= now) & (table.finish_ns > now)).sum())


@pytest.mark.parametrize(
    ("weights", "slots", "held"),
    [
        ((1, 1), 8, (4, 4)),
        ((3, 1), 8, (6, 2)),
        # 7 x 2 // 3 = 4 and 7 x 1 // 3 = 2: one slot stays free.
        ((2, 1), 7, (4, 2)),
        # 4 x 1 // 100 = 0, and everybody may hold one.
        ((99, 1), 4, (3, 1)),
    ],
)
def test_a_request_may_hold_the_share_of_its_weight(
    weights: tuple[int, int], slots: int, held: tuple[int, int]
) -> None:
    one, other = (workload(arriving(0), [10] * 9, weight=weight) for weight in weights)
    out = simulate([one, other], provider(slots, "weighted"))
    assert (most_in_flight(out, 0, 0), most_in_flight(out, 1, 0)) == held


def test_the_weights_of_all_active_requests_count() -> None:
    # One request of weight 2 and two of weight 1 on eight slots: 4, 2 and 2.
    one, other = workload(arriving(0), [10] * 9, weight=2), workload(arriving(0, 0), [10] * 9)
    out = simulate([one, other], provider(8, "weighted"))
    assert (most_in_flight(out, 0, 0), most_in_flight(out, 1, 0)) == (4, 4)
    # When the light ones have ended the heavy one may hold all eight.
    light = workload(arriving(0, 0), [5])
    assert starts_ms(simulate([one, light], provider(8, "weighted"))) == [0] * 6 + [5] * 4 + [10]


def test_reserved_slots_that_are_not_lent_stay_free() -> None:
    greedy, kept = workload(arriving(0, 0, 0, 0), [10]), workload(arriving(5), [10])
    out = simulate([greedy, kept], provider(3, reserved=(0, 1), lends=False))
    assert answers(out) == [f"succeeded at {end}" for end in (10, 10, 20, 20, 15)]


def test_reserved_slots_that_are_lent_serve_those_first_whom_they_are_kept_for() -> None:
    greedy, kept = workload(arriving(*[0] * 7), [10]), workload(arriving(5, 5), [10])
    out = simulate([greedy, kept], provider(3, reserved=(0, 1), lends=True))
    # All three slots are lent at 0; at 10 and at 20 one of the kept workload goes first, never two.
    assert answers(out) == [f"succeeded at {end}" for end in (10, 10, 10, 20, 20, 30, 30, 20, 30)]
    assert answers(simulate([greedy, kept], provider(3)))[7:] == ["succeeded at 30", "succeeded at 30"]


def test_a_workload_may_take_more_than_is_reserved_for_it() -> None:
    kept = workload(arriving(0, 0, 0), [10])
    other = workload(arriving(5), [10])
    out = simulate([kept, other], provider(3, reserved=(1, 1), lends=False))
    assert answers(out) == [f"succeeded at {end}" for end in (10, 10, 20, 15)]


def test_reservations_beyond_the_slots_that_are_left_do_not_block_those_they_are_for() -> None:
    one, other = workload(arriving(0, 0, 0), [10]), workload(arriving(0, 0), [10])
    given = provider([(0, 4), (5, 2)], reserved=(2, 2), lends=False)
    assert answers(simulate([one, other], given)) == [f"succeeded at {end}" for end in (10, 10, 20, 10, 10)]


def test_more_slots_are_dispatched_in_the_instant_they_come() -> None:
    out = simulate(workload(arriving(0, 0, 0, 0), [10]), provider([(0, 1), (4, 3)]))
    assert trace(out) == [
        "0.0.0 0 0-10 slot 0 ok",
        "1.0.0 0 4-14 slot 1 ok",
        "2.0.0 0 4-14 slot 2 ok",
        "3.0.0 0 10-20 slot 0 ok",
    ]


def test_fewer_slots_revoke_nothing_and_those_beyond_go_when_their_call_ends() -> None:
    load = workload(arriving(0, 0, 0, 0, 0, 0), [[10], [20], [30], [5], [5], [5]])
    out = simulate(load, provider([(0, 3), (5, 1), (40, 2)]))
    # At 10 slot 0 is free, but two calls are in flight; at 30 the last of them ends.
    assert trace(out) == [
        "0.0.0 0 0-10 slot 0 ok",
        "1.0.0 0 0-20 slot 1 ok",
        "2.0.0 0 0-30 slot 2 ok",
        "3.0.0 0 30-35 slot 0 ok",
        "4.0.0 0 35-40 slot 0 ok",
        "5.0.0 0 40-45 slot 0 ok",
    ]


def test_a_slot_that_is_taken_away_and_given_back_under_a_call_is_granted_once() -> None:
    load = workload(arriving(0, 0, 0, 0), [[5], [30], [5], [5]])
    out = simulate(load, provider([(0, 2), (2, 1), (20, 2)]))
    assert trace(out) == [
        "0.0.0 0 0-5 slot 0 ok",
        "2.0.0 0 20-25 slot 0 ok",
        "1.0.0 0 0-30 slot 1 ok",
        "3.0.0 0 25-30 slot 0 ok",
    ]


def test_a_fair_share_follows_the_slots() -> None:
    one = workload(arriving(0, 0), [10, 10, 10])
    out = simulate(one, provider([(0, 2), (4, 4)], "fair_share"))
    # One slot each until 4, then two each.
    assert starts_ms(out) == [0, 0, 4, 4, 10, 10]


def test_a_fair_share_rises_in_the_instant_in_which_a_join_ends() -> None:
    # At 15 the first request is answered, and the second may hold both slots.
    one = workload(arriving(0, 0), [[5, 5], [99, 20]], join_ms=5)
    assert trace(simulate(one, provider(2, "fair_share"))) == [
        "0.0.0 0 0-5 slot 0 ok",
        "0.1.0 0 5-10 slot 0 ok",
        "1.1.0 0 15-35 slot 0 ok",
        "1.0.0 0 0-99 slot 1 ok",
    ]


def test_a_step_at_the_instant_of_an_arrival_comes_before_it() -> None:
    adaptive = workload(arriving(5), [10, 10])
    shares = adaptive.runs_parallel_at.copy()
    shares[:4] = False
    out = simulate(replace(adaptive, runs_parallel_at=shares), provider([(0, 2), (5, 4)]))
    assert out.ran_parallel.tolist() == [True]


def test_branches_run_on_providers_of_their_own() -> None:
    # Two branches at provider 0, one at provider 1, which is also what the second workload calls.
    one = workload(arriving(0, 0), [10, 10, 10], provider=(0, 0, 1))
    other = workload(arriving(0), [10], provider=(1,))
    out = simulate([one, other], [provider(2), provider(1)])
    assert trace(out) == [
        "0.0.0 0 0-10 slot 0 ok",
        "0.1.0 0 0-10 slot 1 ok",
        "0.2.0 0 0-10 slot 0 ok",
        "1.0.0 0 10-20 slot 0 ok",
        "1.1.0 0 10-20 slot 1 ok",
        "1.2.0 0 10-20 slot 0 ok",
        "2.0.0 0 20-30 slot 0 ok",
    ]


def test_a_fair_share_counts_the_requests_that_call_the_provider() -> None:
    # Provider 0 is shared by one request of each workload, provider 1 belongs to the first alone.
    one = workload(arriving(0), [10] * 8, provider=(0, 0, 0, 0, 1, 1, 1, 1))
    other = workload(arriving(0), [10] * 4)
    out = simulate([one, other], [provider(4, "fair_share"), provider(4, "fair_share")])
    assert (most_in_flight(out, 0, 0), most_in_flight(out, 1, 0)) == (2 + 4, 2)


def test_a_degree_is_per_provider() -> None:
    one = workload(arriving(0), [10] * 6, provider=(0, 0, 0, 1, 1, 1), max_degree=2)
    out = simulate(one, [provider(4), provider(4)])
    assert starts_ms(out) == [0, 0, 0, 0, 10, 10]


def test_a_loss_at_one_provider_frees_the_slots_at_another() -> None:
    one = workload(arriving(0), [10, 30], provider=(0, 1))
    other = workload(arriving(0), [10], provider=(1,))
    out = simulate([failing(one, ["x", "."]), other], [provider(1), provider(1)])
    assert trace(out) == [
        "0.0.0 0 0-10 slot 0 server_error",
        "0.1.0 0 0-10 slot 0 cancelled",
        "1.0.0 0 10-20 slot 0 ok",
    ]


def test_providers_dispatch_in_their_order_and_what_they_start_ends_in_that_order() -> None:
    # The first branch calls the second provider: it ends after the second branch, which takes the one retry.
    one = workload(arriving(0), [10, 10], provider=(1, 0))
    lost = failing(one, ["x.", "x."], budget=0.5, optional=[0, 1])
    assert trace(simulate(lost, [provider(), provider()])) == [
        "0.0.0 0 0-10 slot 0 server_error",
        "0.1.0 0 0-10 slot 0 server_error",
        "0.1.1 10 10-20 slot 1 ok",
    ]


def test_each_workload_has_its_own_load_and_plan() -> None:
    # Users at their own pace beside arrivals; Little's law holds for each (see `checked`).
    serial = workload(closed(3, 30, think_ms=7), [10, 5], parallel=False)
    parallel = workload(arriving(*range(0, 200, 10)), [8, 8, 8], join_ms=3, dependencies=[[], [], [0]])
    stepped = workload(
        ClosedUsers(((0, 1), (50 * NS_PER_MS, 3)), ms([2] * 25)), [6], join_slot_ms=2, max_degree=1
    )
    out = simulate([serial, parallel, stepped], provider(4, "max_min", reserved=(1, 0, 1)))
    assert [int((out.workload == index).sum()) for index in range(3)] == [30, 20, 25]
    assert [bool(out.ran_parallel[out.workload == index].all()) for index in range(3)] == [False, True, True]
    assert {answer.split()[0] for answer in answers(out)} == {"succeeded"}
