"""Figures against what is varied: a line for each plan, or for each value of a second thing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from sim.contract.figure import COST_PER_SUCCESS, FIGURES, MEAN_LATENCY, P95_LATENCY, SUCCEEDED_SHARE
from sim.report.content import Figure
from sim.report.figures.drawing import drawn
from sim.report.figures.heat_map import axis_words, name_axis, value_words
from sim.report.figures.style import (
    BLUE,
    GREEN,
    ORANGE,
    PAPER,
    PINK,
    SKY,
    VERMILLION,
    Look,
    entry,
    legend_above,
    plan_styles,
    thousands,
)
from sim.statistics.stability import OVERLOADED
from sim.sweeps.grid import Axis
from sim.sweeps.point_store import HALF_WIDTH, Row
from sim.sweeps.sweep import Sweep

MOST_LINES = 6
LOG_FROM_RATIO = 50
LOOKS: tuple[Look, ...] = (
    {"color": BLUE, "linestyle": "-", "marker": "o"},
    {"color": VERMILLION, "linestyle": (0, (5, 1.6)), "marker": "s"},
    {"color": GREEN, "linestyle": (0, (1.2, 1.4)), "marker": "^"},
    {"color": PINK, "linestyle": (0, (6, 1.5, 1.2, 1.5)), "marker": "D"},
    {"color": ORANGE, "linestyle": (0, (3, 1, 1, 1, 1, 1)), "marker": "v"},
    {"color": SKY, "linestyle": (0, (8, 2)), "marker": "P"},
)
DRAWN = (SUCCEEDED_SHARE, MEAN_LATENCY, P95_LATENCY, COST_PER_SUCCESS)


@dataclass(frozen=True, slots=True)
class Line:
    """Points of one line: places across, rows with the figure, and how it looks."""

    label: str
    places: tuple[float, ...]
    rows: tuple[Row, ...]
    look: Look


def line_families(sweep: Sweep) -> list[Figure]:
    """Draw each figure that says something: against the only axis, or the first with lines for the second.

    Of a second axis with many values, some evenly spaced ones are drawn.
    """
    shown = [name for name in DRAWN if tells(sweep, name)]
    return [line_family(sweep, name) for name in shown]


def tells(sweep: Sweep, name: str) -> bool:
    """Return whether a figure is known somewhere, and not as usual everywhere."""
    values = {value for row in sweep.rows() if (value := row.get(name)) is not None}
    return bool(values - {FIGURES[name].usual})


def line_family(sweep: Sweep, name: str) -> Figure:
    """Draw one figure, a panel for each plan where there is a second axis."""
    figure = FIGURES[name]
    panels = panels_of(sweep)

    def paint(canvas: Canvas) -> None:
        column = canvas.subplots(len(panels), sharex=True, sharey=True, squeeze=False)[:, 0]
        for axes, (panel, lines) in zip(column, panels.items(), strict=True):
            for line in lines:
                paint_line(axes, line, name, figure.scale)
            axes.set_ylabel(figure.words)
            axes.set_ylim(bottom=0)
            thousands(axes.yaxis)
            if panel:
                axes.set_title(panel, loc="right")
        legend_above(column[0], columns=3)
        lay_out(column[-1], sweep.grid.axes[0])

    across = axis_words(sweep.grid.axes[0])
    caption = "Markers: means over replications, with 95 % intervals where there are any. Hollow: overloaded."
    if len(sweep.grid.axes) > 1:
        caption = f"One line for each {axis_words(sweep.grid.axes[1])}. {caption}"
    words_of_all = (
        f"{figure.heading.capitalize()} against {across}",
        caption,
        description(panels, name, figure.scale),
    )
    return drawn(f"{name.replace('_', '-')}-against-values", words_of_all, 1.0 + 2.2 * len(panels), paint)


def panels_of(sweep: Sweep) -> dict[str, list[Line]]:
    """Return the lines of each panel, by its title."""
    labels = [plan.label for plan in sweep.scenario.plans]
    rows: dict[str, list[Row]] = {label: [] for label in labels}
    for row in sweep.rows():
        rows[row["plan"]].append(row)
    first, *others = sweep.grid.axes
    if not others:
        styles = plan_styles(labels)
        return {"": [line_of(label, first, rows[label], styles[label]) for label in labels]}
    return {label: lines_of(first, others[0], rows[label]) for label in labels}


def lines_of(first: Axis, second: Axis, rows: Sequence[Row]) -> list[Line]:
    """Return a line for each value of the second axis, or for some."""
    step = -(-len(second) // MOST_LINES)
    lines = []
    for number, values in enumerate(second.values[::step]):
        fixed = dict(zip(second.keys, values, strict=True))
        mine = [row for row in rows if all(row[key] == value for key, value in fixed.items())]
        lines.append(line_of(value_words(values), first, mine, LOOKS[number]))
    return lines


def line_of(label: str, axis: Axis, rows: Sequence[Row], look: Look) -> Line:
    """Return the line through some rows, in order of the axis."""
    places = dict(zip(axis.values, places_of(axis), strict=True))
    found = sorted((places[tuple(row[key] for key in axis.keys)], number) for number, row in enumerate(rows))
    return Line(label, tuple(place for place, _ in found), tuple(rows[number] for _, number in found), look)


def is_numeric(axis: Axis) -> bool:
    """Return whether an axis has one key and nothing but numbers."""
    return all(
        len(values) == 1 and isinstance(values[0], int | float) and not isinstance(values[0], bool)
        for values in axis.values
    )


def places_of(axis: Axis) -> list[float]:
    """Return where the values of an axis stand: numbers at themselves, others beside each other."""
    if not is_numeric(axis):
        return [float(place) for place in range(len(axis))]
    return [float(value) for (value,) in axis.values if value is not None]


def lay_out(axes: Axes, axis: Axis) -> None:
    """Name the axis that runs across; logarithmic where its values span a wide range."""
    if not is_numeric(axis):
        name_axis(axes.xaxis, axis)
        return
    places = places_of(axis)
    if min(places) > 0 and max(places) >= LOG_FROM_RATIO * min(places):
        axes.set_xscale("log")
    # All of the axis, where a figure is known in part of it alone too.
    axes.plot(places, [0.0] * len(places), alpha=0)
    thousands(axes.xaxis)
    axes.set_xlabel(axis_words(axis))


def paint_line(axes: Axes, line: Line, name: str, unit: float) -> None:
    """Draw one line, with intervals, and hollow markers where it is no steady state."""
    figures = [value_of(row, name, unit) for row in line.rows]
    widths = [unit * (row.get(f"{name}{HALF_WIDTH}") or 0) for row in line.rows]
    axes.errorbar(line.places, figures, yerr=widths, label=entry(line.label), markersize=4.5, **line.look)
    hollow = [
        (place, figure)
        for place, figure, row in zip(line.places, figures, line.rows, strict=True)
        if row["stability"] == OVERLOADED
    ]
    if hollow:
        axes.plot(
            *zip(*hollow, strict=True),
            linestyle="none",
            marker=line.look["marker"],
            markerfacecolor=PAPER,
            markeredgecolor=line.look["color"],
            markersize=5.5,
            zorder=4,
        )


def value_of(row: Row, name: str, unit: float) -> float:
    """Return a figure in the unit that is drawn; NaN, a gap, where it is not known."""
    value = row.get(name)
    return math.nan if value is None else unit * float(value)


def description(panels: dict[str, list[Line]], name: str, unit: float) -> str:
    """Return where each line begins and ends."""
    words = []
    for panel, lines in panels.items():
        for line in lines:
            known = [value for row in line.rows if not math.isnan(value := value_of(row, name, unit))]
            label = f"{panel} {line.label}".strip()
            words.append(f"{label} from {known[0]:,.4g} to {known[-1]:,.4g}" if known else f"{label} unknown")
    return f"Lines: {'; '.join(words)}."
