"""Levels of load as they are written on the command line: `1:40`, `10:60:5`, `5,10,20`."""

import re
from collections.abc import Iterator
from decimal import Decimal

from sim.errors import ArgumentError

MOST_LEVELS = 10_000
NUMBER = r"(\d+\.?\d*|\.\d+)"
RANGE = re.compile(rf"{NUMBER}:{NUMBER}(?::{NUMBER})?")
RULE = "must be FROM:TO, FROM:TO:STEP or a list such as 5,10,20"


def whole_levels(option: str, text: str) -> list[int]:
    """Return whole numbers from 1 on, ascending, each once."""
    levels = decimal_levels(option, text)
    if any(level != int(level) for level in levels):
        raise ArgumentError(option, "must be whole numbers", text)
    return [int(level) for level in levels]


def real_levels(option: str, text: str) -> list[float]:
    """Return numbers above 0, ascending, each once; steps are added as decimals."""
    return [float(level) for level in decimal_levels(option, text)]


def decimal_levels(option: str, text: str) -> list[Decimal]:
    """Return the levels that a text names.

    Raises
    ------
    ArgumentError
        The text has no such form, a level is not above 0, or there are too many.
    """
    levels: set[Decimal] = set()
    for part in text.replace(" ", "").split(","):
        for level in _part(option, text, part):
            levels.add(level)
            if len(levels) > MOST_LEVELS:
                raise ArgumentError(option, f"must give no more than {MOST_LEVELS:,} levels", text)
    if min(levels) <= 0:
        raise ArgumentError(option, "must be > 0", text)
    return sorted(levels)


def _part(option: str, text: str, part: str) -> Iterator[Decimal]:
    match = RANGE.fullmatch(part)
    if match is None:
        if not re.fullmatch(NUMBER, part):
            raise ArgumentError(option, RULE, text)
        yield Decimal(part)
        return
    low, high, step = Decimal(match[1]), Decimal(match[2]), Decimal(match[3] or 1)
    if high < low:
        raise ArgumentError(option, "must have FROM <= TO", text)
    if step == 0:
        raise ArgumentError(option, "must have a STEP > 0", text)
    while low <= high:
        yield low
        low += step
