import math

import pytest

from sim.plan.constraint import (
    CapacityStep,
    Constraint,
    averaged,
    binding,
    knee,
    largest_rate,
    mean_capacity,
)


def of(name: str, offered: float, capacity: float, **more: object) -> Constraint:
    return Constraint(name, "provider", "slots", offered, capacity, **more)  # type: ignore[arg-type]


def test_the_binding_constraint_has_the_highest_load_and_the_first_of_several() -> None:
    slots, rpm, tpm = of("slots", 5, 10), of("rpm", 660, 600), of("tpm", 1.1, 1)
    assert [one.load for one in (slots, rpm, tpm)] == [0.5, 1.1, 1.1]
    assert binding([slots, rpm, tpm]) is rpm
    assert binding([of("slots", 0, 10)]) is None
    assert binding([]) is None


def test_the_largest_rate_is_the_rate_over_the_highest_load() -> None:
    assert largest_rate(11, [of("slots", 11, 200), of("rpm", 660, 600)]) == 10
    assert largest_rate(11, [of("slots", 0, 200)]) == math.inf


def test_users_make_way_for_arrivals_and_share_what_they_leave() -> None:
    shared = [of("slots", 18, 20, from_users=10.0), of("rpm", 60, 600, from_users=60.0)]
    assert largest_rate(4, shared) == 10  # 8 of 20 slots for 4 per second
    assert knee(5, shared) == 6  # 12 slots are left, and 5 users ask for 10
    assert knee(5, [of("slots", 30, 20, from_users=5.0)]) == 0
    assert knee(5, [of("slots", 30, 20)]) == math.inf


@pytest.mark.parametrize(
    ("offered", "target", "needed"),
    [(18, 0.9, 20), (18.001, 0.9, 21), (0, 0.9, 1), (6.5, 1.0, 7), (1e6, 0.8, 1_250_000)],
)
def test_what_is_needed_is_the_smallest_number_that_is_enough(
    offered: float, target: float, needed: int
) -> None:
    assert of("slots", offered, 5).needed(target) == needed


def test_what_is_needed_goes_by_what_a_number_gives() -> None:
    in_tens = of("rpm", 95, 50, capacity_of=lambda stated: stated // 10 * 10)
    assert in_tens.needed(1.0) == 100
    assert of("rpm", 95, 50, capacity_of=lambda _: 50.0).needed(1.0) is None


@pytest.mark.parametrize(
    ("offered", "is_reached"), [(0, False), (19.9, False), (20, True), (20 - 1e-12, True), (21, True)]
)
def test_a_share_is_reached_up_to_the_last_bits(offered: float, is_reached: bool) -> None:
    assert of("slots", offered, 20).is_reached() is is_reached


def test_nothing_of_what_is_asked_for_is_an_endless_load() -> None:
    assert of("slots", 1, 0).load == math.inf
    assert of("slots", 0, 0).load == 0


def test_capacities_are_averaged_by_how_long_they_last() -> None:
    steps = averaged([(0, 40), (60, 16)], 0, 100)
    assert steps == (CapacityStep(0, 60, 40), CapacityStep(60, 100, 16))
    assert mean_capacity(steps) == 0.6 * 40 + 0.4 * 16
    assert of("slots", 20, 30.4, steps=steps).load_on(steps[-1]) == 1.25


@pytest.mark.parametrize(
    ("from_s", "to_s", "capacities"),
    [
        (0, 60, [40]),
        (60, 100, [16]),
        (50, 70, [40, 16]),
        (0, 0, [40]),
        (80, 80, [16]),
        (0, math.inf, [40, 16]),
    ],
)
def test_only_the_capacities_of_a_span_count(from_s: float, to_s: float, capacities: list[int]) -> None:
    assert [step.capacity for step in averaged([(0, 40), (60, 16)], from_s, to_s)] == capacities
