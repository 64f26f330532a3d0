"""Figures as text: units, digits, intervals, and what stands where there is no figure."""

import math
from collections.abc import Callable

from sim.interval import Difference, Estimate
from sim.report.content import Cell
from sim.units import round_half_away

BLANK = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
MOST_DECIMALS = 6

Show = Callable[[float], str]


def fixed(value: float, decimals: int) -> str:
    """Return a number with so many decimals, halves away from zero; a blank where there is none."""
    if math.isnan(value):
        return BLANK
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = f"{round_half_away(abs(value), decimals):,.{decimals}f}"
    return MINUS + text if value < 0 and text.strip("0.,") else text


def trimmed(value: float, decimals: int = 2) -> str:
    """Return a number with at most so many decimals."""
    text = fixed(value, decimals)
    return text.rstrip("0").rstrip(".") if "." in text else text


def ms_decimals(value: float) -> int:
    """Return how many decimals a time in ms is shown with."""
    size = abs(value)
    return 1 if size >= 10 or size == 0 else 2 if size >= 1 else 3


def ms(value: float) -> str:
    """Return a time in ms, without its unit."""
    return fixed(value, ms_decimals(value))


def percent(share: float) -> str:
    """Return a share (0..1) as a percentage."""
    return f"{fixed(100 * share, 1)} %"


def count(value: float) -> str:
    """Return a number of things, or the mean of such numbers."""
    return trimmed(value, 1)


def plus_minus(mean: float, half_width: float | None, decimals: int) -> str:
    """Return `mean ± half-width`, more decimals where that would read as 0; the mean alone where it is 0."""
    if not half_width:
        return fixed(mean, decimals)
    while 0 < half_width < 0.5 * 10**-decimals and decimals < MOST_DECIMALS:
        decimals += 1
    return f"{fixed(mean, decimals)} ± {fixed(half_width, decimals)}"


def ms_estimate(figure: Estimate | Difference) -> Cell:
    """Return a mean time in ms with its half-width; blank with the reason where it is missing."""
    if math.isnan(figure.mean):
        return missing(figure.reason)
    return Cell(plus_minus(figure.mean, figure.half_width, ms_decimals(figure.mean)))


def percent_estimate(figure: Estimate) -> Cell:
    """Return a mean share with its half-width, in percent."""
    if math.isnan(figure.mean):
        return missing(figure.reason)
    half_width = None if figure.half_width is None else 100 * figure.half_width
    return Cell(f"{plus_minus(100 * figure.mean, half_width, 1)} %")


def number_estimate(figure: Estimate | Difference) -> Cell:
    """Return the mean of a count or a cost with its half-width."""
    if math.isnan(figure.mean):
        return missing(figure.reason)
    decimals = 0 if figure.mean == int(figure.mean) and not figure.half_width else 1
    return Cell(plus_minus(figure.mean, figure.half_width or None, decimals))


def missing(reason: str | None) -> Cell:
    """Return a blank with its reason as a footnote."""
    words = (reason or "there is no such figure").removeprefix("missing in 1 of 1 replications: ")
    return Cell(BLANK, note=words)
