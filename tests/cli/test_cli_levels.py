"""Levels of load as they are written on the command line."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.cli.levels import real_levels, whole_levels
from sim.errors import ArgumentError


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("7", [7]),
        ("1:5", [1, 2, 3, 4, 5]),
        ("1:10:4", [1, 5, 9]),
        ("20, 5,10", [5, 10, 20]),
        ("1:3,3,2:4", [1, 2, 3, 4]),
        ("3:3", [3]),
    ],
)
def test_whole_levels(text: str, levels: list[int]) -> None:
    assert whole_levels("--active", text) == levels


def test_real_levels_are_decimals() -> None:
    assert real_levels("--rate", "0.1:0.5:0.1,12.5") == [0.1, 0.2, 0.3, 0.4, 0.5, 12.5]


@given(st.integers(1, 500), st.integers(0, 100), st.integers(1, 50))
def test_a_range_ends_at_or_before_its_last(first: int, more: int, step: int) -> None:
    levels = real_levels("--rate", f"{first / 100}:{(first + more) / 100}:{step / 100}")
    exact = [Fraction(repr(level)) for level in levels]
    assert exact == [Fraction(value, 100) for value in range(first, first + more + 1, step)]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "must be FROM:TO, FROM:TO:STEP or a list such as 5,10,20"),
        ("1,", "must be FROM:TO, FROM:TO:STEP or a list such as 5,10,20"),
        ("1:", "must be FROM:TO, FROM:TO:STEP or a list such as 5,10,20"),
        ("-3", "must be FROM:TO, FROM:TO:STEP or a list such as 5,10,20"),
        ("1:2:3:4", "must be FROM:TO, FROM:TO:STEP or a list such as 5,10,20"),
        ("nan", "must be FROM:TO, FROM:TO:STEP or a list such as 5,10,20"),
        ("5:1", "must have FROM <= TO"),
        ("1:5:0", "must have a STEP > 0"),
        ("0:5", "must be > 0"),
        ("1:2:0.5", "must be whole numbers"),
        ("1:99999999", "must give no more than 10,000 levels"),
    ],
)
def test_what_is_refused(text: str, rule: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        whole_levels("--active", text)
    assert str(caught.value) == f"--active {rule} (got {text!r})"
