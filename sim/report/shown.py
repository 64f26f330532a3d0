"""Figures as text: units, digits, intervals, and what stands where there is no figure."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from sim.contract.figure import FIGURES, Kind, figure_of
from sim.report.content import Cell
from sim.statistics.digits import BLANK, decimals_of, fixed, plus_minus, trimmed
from sim.statistics.interval import Difference, Estimate

Show = Callable[[float], str]


def ms(value: float) -> str:
    """Return a time in ms, without its unit."""
    return fixed(value, decimals_of(value))


def percent(share: float) -> str:
    """Return a share (0..1) as a percentage."""
    return f"{fixed(100 * share, 1)} %"


def count(value: float) -> str:
    """Return a number of things, or the mean of such numbers."""
    return trimmed(value, 1)


TENTHS = partial(fixed, decimals=1)
VALUES: dict[Kind, Show] = {"time": ms, "share": percent, "mean": TENTHS, "count": TENTHS}


def estimate_cell(figure: Estimate | Difference, kind: Kind = "time") -> Cell:
    """Return a mean as its kind is shown, with its half-width; blank with the reason where it is missing."""
    if math.isnan(figure.mean):
        return missing(figure.reason)
    if kind == "share":
        return Cell(f"{plus_minus(100 * figure.mean, 100 * (figure.half_width or 0), 1)} %")
    is_whole = figure.mean == int(figure.mean) and not figure.half_width
    decimals = decimals_of(figure.mean) if kind == "time" else 0 if is_whole else 1
    return Cell(plus_minus(figure.mean, figure.half_width, decimals))


def figure_cells(figures: Mapping[str, Estimate], names: Iterable[str]) -> Iterator[Cell]:
    """Yield some of the figures, each as its kind is shown."""
    return (estimate_cell(figures[name], figure_of(name).kind) for name in names)


def columns(names: Iterable[str]) -> Iterator[str]:
    """Yield the headings of some figures in a wide table."""
    return (FIGURES[name].column_title for name in names)


def missing(reason: str | None) -> Cell:
    """Return a blank with its reason as a footnote."""
    words = (reason or "there is no such figure").removeprefix("missing in 1 of 1 replications: ")
    return Cell(BLANK, note=words)
