"""Numbers as text: how many decimals, and an interval beside its mean."""

import math

from sim.units import round_half_away

MINUS, BLANK = "\N{MINUS SIGN}", "\N{EN DASH}"
MOST_DECIMALS = 6


def fixed(value: float, decimals: int) -> str:
    """Return a number with so many decimals, halves away from zero; a blank where there is none."""
    if math.isnan(value):
        return BLANK
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = f"{round_half_away(abs(value), decimals):,.{decimals}f}"
    return f"{MINUS}{text}" if value < 0 and text.strip("0.,") else text


def trimmed(value: float, decimals: int = 2) -> str:
    """Return a number with at most so many decimals."""
    text = fixed(value, decimals)
    return text.rstrip("0").rstrip(".") if "." in text else text


def decimals_of(value: float) -> int:
    """Return how many decimals a number is shown with: more where it is small."""
    size = abs(value)
    return 1 if size >= 10 or size == 0 else 2 if size >= 1 else 3


def plus_minus(mean: float, half_width: float | None, decimals: int) -> str:
    """Return `mean ± half-width`, more decimals where that would read as 0; the mean alone where it is 0."""
    if not half_width:
        return fixed(mean, decimals)
    while 0 < half_width < 0.5 * 10**-decimals and decimals < MOST_DECIMALS:
        decimals += 1
    return f"{fixed(mean, decimals)} ± {fixed(half_width, decimals)}"


def typed(text: str) -> str:
    """Return such a text as the terminal has it: with the minus of a keyboard."""
    return text.replace(MINUS, "-").replace(BLANK, "-")
