"""Turns of a verdict along a number, and the simplest fraction between two."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from sim.answers.break_even import Turn, simplest, turns

ONE, NS = Fraction(1), Fraction(1, 1_000_000)


def test_the_turns_on_either_side_are_found_to_the_step() -> None:
    found = turns(lambda at: Fraction(127) <= at <= 3005, Fraction(260), ONE, Fraction(10**8), NS)
    assert found == [Turn(Fraction(127), 127 - NS), Turn(Fraction(3005), 3005 + NS)]
    assert [turn.between for turn in found] == [127, 3005]


def test_the_nearest_of_several_turns_is_found() -> None:
    verdicts = {10: True, 11: True, 12: False, 13: True, 14: False}
    found = turns(lambda at: verdicts.get(int(at), True), Fraction(10), ONE, Fraction(1000), ONE)
    assert found == [Turn(Fraction(11), Fraction(12))]


def test_a_verdict_that_never_turns_has_no_turn() -> None:
    assert turns(lambda _: True, Fraction(5), ONE, Fraction(10**6), ONE) == []


@given(st.fractions(0, 1, max_denominator=1000), st.fractions(0, 1, max_denominator=10**6))
def test_an_exact_ratio_is_found(edge: Fraction, start: Fraction) -> None:
    step = Fraction(1, 10**12)
    found = turns(lambda at: at >= edge, start, Fraction(0), ONE, step)
    if not found:
        assert edge == 0 or (edge == 1 and start == 1)
        return
    (turn,) = found
    assert turn.between == edge


@given(st.fractions(0, 100, max_denominator=5000), st.fractions(0, 3, max_denominator=5000))
def test_the_simplest_fraction_has_the_smallest_denominator(low: Fraction, width: Fraction) -> None:
    high = low + width
    found = simplest(low, high)
    assert low <= found <= high
    smaller = range(1, min(found.denominator, 200))
    assert not any(-(-low * size // 1) <= high * size for size in smaller)
