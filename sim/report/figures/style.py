"""What all drawings share: size, type, and colours that survive colour blindness and greyscale.

Colours are those of Okabe and Ito, "Color universal design", 2008; each plan also has its own dashes and
marker, each branch its own hatching.
"""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from sim.contract.plan import ADAPTIVE, PARALLEL, SERIAL

INK, MUTED, GRID, PAPER = "#20262d", "#5b6670", "#d8dde3", "#ffffff"
BLUE, VERMILLION, GREEN = "#0072b2", "#d55e00", "#009e73"
PINK, ORANGE, SKY, YELLOW = "#cc79a7", "#e69f00", "#56b4e9", "#f0e442"

Look = dict[str, Any]
"""Colour, dashes and marker, by the names that Matplotlib has for them."""

WIDTH_INCHES = 5.6
"""Narrow enough to be read on a phone, where a drawing is as wide as the screen."""

SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    # Names are text: what stands between two dollars is no formula.
    "text.parse_math": False,
    "font.size": 9.5,
    "text.color": INK,
    "axes.facecolor": "none",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
    "hatch.linewidth": 0.6,
    "hatch.color": PAPER,
    "path.simplify": False,
}

MOST_CHARACTERS = 50
MARK = "\ufffe"
"""Stands for no character, so that no name has it."""

PLAN_STYLES: dict[str, Look] = {
    SERIAL: {"color": BLUE, "linestyle": "-", "marker": "o"},
    PARALLEL: {"color": VERMILLION, "linestyle": (0, (5, 1.6)), "marker": "s"},
    ADAPTIVE: {"color": GREEN, "linestyle": (0, (1.2, 1.4)), "marker": "^"},
}
OTHER_STYLES: tuple[Look, ...] = (
    {"color": PINK, "linestyle": (0, (6, 1.5, 1.2, 1.5)), "marker": "D"},
    {"color": ORANGE, "linestyle": (0, (3, 1, 1, 1, 1, 1)), "marker": "v"},
    {"color": SKY, "linestyle": (0, (8, 2)), "marker": "P"},
)
BRANCH_STYLES = (
    (SKY, ""),
    (ORANGE, "////"),
    (GREEN, "...."),
    (PINK, "\\\\\\\\"),
    (YELLOW, "xxxx"),
    (BLUE, "----"),
)


def plan_styles(labels: Sequence[str]) -> dict[str, Look]:
    """Return colour, dashes and marker of each plan; the same plan looks the same in every drawing."""
    others = [label for label in labels if label not in PLAN_STYLES]
    return {
        label: PLAN_STYLES.get(label) or OTHER_STYLES[others.index(label) % len(OTHER_STYLES)]
        for label in labels
    }


def line_style(style: Look) -> Look:
    """Return a plan's style without its marker, for curves of many points."""
    return {key: value for key, value in style.items() if key != "marker"}


def entry(label: str) -> str:
    """Return a label that its legend shows, whatever it begins with.

    Matplotlib leaves out what begins with an underscore, so that gets a mark, which `drawn` takes out again.
    """
    text = clipped(label)
    return f"{MARK}{text}" if text.startswith("_") else text


def clipped(name: str) -> str:
    """Return a name that leaves room for the drawing beside it; tables have it as it is."""
    return name if len(name) <= MOST_CHARACTERS else f"{name[: MOST_CHARACTERS - 1]}…"


def sample(label: str, **look: Any) -> Line2D:
    """Return a line for a legend."""
    return Line2D([], [], label=entry(label), **look)


def thousands(axis: Any) -> None:
    """Write an axis' numbers with separators and no more digits than they need, at its major ticks alone."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())


def legend_above(axes: Axes, columns: int = 3, **more: Any) -> None:
    """Put the legend above the axes, where it covers nothing."""
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=columns,
        borderaxespad=0.2,
        handlelength=2.6,
        columnspacing=1.4,
        **more,
    )
