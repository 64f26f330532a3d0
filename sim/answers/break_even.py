"""Where a verdict changes along a number: exact, and without trust that it changes only once.

Numbers stand on a grid of whole multiples of a small step (a nanosecond, a millionth of a millionth, one).
From where an input is now, the verdict is asked at points further and further away in either direction;
between the first two that differ, bisection ends at two neighbours of the grid.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

NEAR = 40
"""So many neighbours are asked one by one where there are few in all; then the steps grow."""
FEW = 10**7
GROWTH = Fraction(13, 10)
PARTS = 48
"""A way down to an end is divided into so many parts at least."""

Predicate = Callable[[Fraction], bool]


@dataclass(frozen=True, slots=True)
class Turn:
    """Two neighbours of the grid with different verdicts: `inside` has that of the starting point."""

    inside: Fraction
    outside: Fraction

    @property
    def between(self) -> Fraction:
        """The simplest number from one to the other, both included: where the verdict turns."""
        return simplest(min(self.inside, self.outside), max(self.inside, self.outside))


def turns(holds: Predicate, start: Fraction, low: Fraction, high: Fraction, step: Fraction) -> list[Turn]:
    """Return the nearest turn below the start and the nearest above it, where there are any.

    Parameters
    ----------
    holds
        The verdict at a number from `low` to `high`.
    start
        Where the input is now; rounded to the grid.
    step
        The distance between neighbours of the grid.
    """
    place = round(start / step)
    ends = (-(-low // step), high // step)
    found = [turn(holds, place, end, step) for end in ends]
    return [one for one in found if one is not None]


def turn(holds: Predicate, place: int, end: int, step: Fraction) -> Turn | None:
    """Return the first turn on the way from one place of the grid to another."""
    here, before = holds(place * step), place
    for after in way(place, end):
        if holds(after * step) != here:
            inside, outside = bisected(lambda at: holds(at * step) == here, before, after)
            return Turn(inside * step, outside * step)
        before = after
    return None


def way(place: int, end: int) -> Iterator[int]:
    """Yield places on the way: the nearest one by one, then at growing distances, the end last."""
    direction, total = (1, end - place) if end > place else (-1, place - end)
    # Downwards all is within reach and nothing may be stepped over; upwards there is no end to speak of.
    widest = max(1, total // PARTS) if direction < 0 else total
    one_by_one = NEAR if total <= FEW else 0
    pace = Fraction(1 if one_by_one else min(widest, max(place // PARTS, total // FEW, 1)))
    gone = 0
    while gone < total:
        gone = min(total, gone + int(pace))
        yield place + direction * gone
        if gone >= one_by_one:
            pace = min(Fraction(widest), pace * GROWTH)


def bisected(same: Callable[[int], bool], inside: int, outside: int) -> tuple[int, int]:
    """Return neighbours: the last that is the same as the start, the first that is not."""
    while abs(outside - inside) > 1:
        middle = (inside + outside) // 2
        inside, outside = (middle, outside) if same(middle) else (inside, middle)
    return inside, outside


def simplest(low: Fraction, high: Fraction) -> Fraction:
    """Return the fraction with the smallest denominator in [low, high], 0 <= low.

    Source: the Stern-Brocot tree; Graham, Knuth and Patashnik, "Concrete Mathematics", section 4.5.
    """
    whole = -(-low.numerator // low.denominator)
    if whole <= high:
        return Fraction(whole)
    floor = whole - 1
    return floor + 1 / simplest(1 / (high - floor), 1 / (low - floor))
