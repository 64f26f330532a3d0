"""Figures as text."""

import math

import pytest

from sim.report.content import Cell
from sim.report.shown import estimate_cell, missing, ms
from sim.statistics.digits import fixed, trimmed
from sim.statistics.interval import Estimate


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (0.5, 0, "1"),
        (2.5, 0, "3"),
        (-35, 1, "−35.0"),  # noqa: RUF001  the minus sign is what is shown
        (-0.04, 1, "0.0"),
        (1234567.891, 2, "1,234,567.89"),
        (math.inf, 1, "∞"),
    ],
)
def test_fixed(value: float, decimals: int, text: str) -> None:
    assert fixed(value, decimals) == text


def test_trimmed_drops_zeros_behind_the_point_alone() -> None:
    assert [trimmed(value) for value in (100, 0.5, 1.25, 2.001)] == ["100", "0.5", "1.25", "2"]


def test_short_times_have_more_decimals() -> None:
    assert [ms(value) for value in (0, 295, 9.876, 0.0784)] == ["0.0", "295.0", "9.88", "0.078"]


def test_a_half_width_never_reads_as_none() -> None:
    assert estimate_cell(Estimate(420.0, 0.0123, 5)).text == "420.00 ± 0.01"
    assert estimate_cell(Estimate(420.0, 5.9, 5)).text == "420.0 ± 5.9"
    assert estimate_cell(Estimate(0.812, 0.004, 5), "share").text == "81.2 ± 0.4 %"


def test_a_figure_without_interval_stands_alone() -> None:
    assert estimate_cell(Estimate(295.0, None, 1, "deterministic", deterministic=True)).text == "295.0"
    assert estimate_cell(Estimate(736.0, None, 1), "count").text == "736"
    assert estimate_cell(Estimate(122.36, 1.5, 3), "count").text == "122.4 ± 1.5"


def test_a_missing_figure_is_a_dash_with_its_reason() -> None:
    reason = "missing in 1 of 1 replications: needs 1,000 observations, has 200"
    assert estimate_cell(Estimate(math.nan, None, 1, reason)) == missing("needs 1,000 observations, has 200")
    assert missing(None) == Cell("\N{EN DASH}", note="there is no such figure")
