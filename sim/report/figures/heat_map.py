"""The map of verdicts over two things that are varied; what is not known has no colour."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from matplotlib import rc_context
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch, Rectangle

from sim.answers.boundary import Cell
from sim.plan.criteria import KEEP_SERIAL, MERGE
from sim.report.content import Figure
from sim.report.figures.drawing import drawn
from sim.report.figures.style import BLUE, MUTED, ORANGE, PAPER, Look, clipped
from sim.report.words import DECISIONS
from sim.result.measured_decision import UNDECIDED
from sim.statistics.digits import trimmed
from sim.statistics.stability import OVERLOADED
from sim.sweeps.grid import Axis, Value
from sim.sweeps.sweep import NOT_COMPARED, Sweep

MOST_CELLS_A_SIDE = 200
MOST_TICKS = 9
FAINT = 0.4
NOT_LOOKED_AT = "not looked at"
LOOKS: dict[str, Look] = {
    MERGE: {"facecolor": BLUE, "edgecolor": "none"},
    KEEP_SERIAL: {"facecolor": ORANGE, "edgecolor": "none"},
    UNDECIDED: {"facecolor": PAPER, "edgecolor": "none", "hatch": "....", "linewidth": 0},
    OVERLOADED: {"facecolor": PAPER, "edgecolor": "none", "hatch": "////", "linewidth": 0},
}
"""Two colours that all eyes tell apart, for what is decided; a pattern on white for what is not."""

Kind = tuple[str, bool]
"""A verdict, and whether it is inferred."""
Block = tuple[int, int, int, int, Kind]
"""First row and the one after the last, first column and the one after the last, and what they have."""


def heat_map(sweep: Sweep) -> Figure:
    """Draw the verdict of every point: the first axis to the right, the second upwards."""
    across, up = sweep.grid.axes

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        for block in blocks(sweep):
            axes.add_patch(rectangle(block))
        axes.set_xlim(-0.5, len(across) - 0.5)
        axes.set_ylim(-0.5, len(up) - 0.5)
        axes.grid(visible=False)
        name_axis(axes.xaxis, across)
        name_axis(axes.yaxis, up)
        canvas.legend(handles=legend_handles(sweep), loc="outside upper left", ncols=3, columnspacing=1.2)

    caption = "Coloured where the verdict is known. A pattern without colour: undecided, or overloaded."
    if sweep.inferred:
        caption += " Faint: not simulated; all that was simulated around it agrees."
    title = f"Verdict over {axis_words(across)} and {axis_words(up)}"
    return drawn("verdicts", (title, caption, description(sweep)), 4.6, paint)


def can_be_drawn(sweep: Sweep) -> bool:
    """Return whether it has verdicts, and two axes that are neither lines nor too fine."""
    sizes = [len(axis) for axis in sweep.grid.axes]
    compared = not sweep.verdicts[NOT_COMPARED]
    return compared and len(sizes) == 2 and min(sizes) > 1 and max(sizes) <= MOST_CELLS_A_SIDE


def blocks(sweep: Sweep) -> Iterator[Block]:
    """Yield rectangles of one kind: stretches of a row, put together with those that are the same above."""
    height = len(sweep.grid.axes[1])
    open_blocks: dict[tuple[int, int, Kind], int] = {}
    for row in range(height + 1):
        here = set(stretches(sweep, row)) if row < height else set()
        for stretch in [stretch for stretch in open_blocks if stretch not in here]:
            start, end, kind = stretch
            yield open_blocks.pop(stretch), row, start, end, kind
        for stretch in sorted(here):
            open_blocks.setdefault(stretch, row)


def stretches(sweep: Sweep, row: int) -> Iterator[tuple[int, int, Kind]]:
    """Yield from where to where along a row there is one kind; nothing where nothing is known."""
    start = 0
    for kind, same in groupby(kind_at(sweep, (row, column)) for column in range(len(sweep.grid.axes[0]))):
        length = len(list(same))
        if kind[0]:
            yield start, start + length, kind
        start += length


def kind_at(sweep: Sweep, cell: Cell) -> Kind:
    """Return what is known of a cell."""
    if cell in sweep.cells:
        return sweep.cells[cell], False
    return sweep.inferred.get(cell, ""), True


def rectangle(block: Block) -> Patch:
    """Return the shape of a block."""
    low, high, start, end, (verdict, is_inferred) = block
    corner, width, height = (start - 0.5, low - 0.5), end - start, high - low
    # A pattern has the colour that is set when its shape is made.
    with rc_context({"hatch.color": MUTED}):
        return Rectangle(corner, width, height, alpha=FAINT if is_inferred else None, **LOOKS[verdict])


def legend_handles(sweep: Sweep) -> list[Patch]:
    """Return a sample for each kind of cell that there is."""
    names = DECISIONS
    met = set(sweep.inferred.values())
    with rc_context({"hatch.color": MUTED}):
        handles = [Patch(label=names[one], **LOOKS[one]) for one in LOOKS if sweep.verdicts[one]]
        handles += [
            Patch(label=f"{names[one]}, inferred", alpha=FAINT, **LOOKS[one]) for one in LOOKS if one in met
        ]
    if len(sweep.cells) + len(sweep.inferred) < len(sweep.grid):
        handles.append(Patch(label=NOT_LOOKED_AT, facecolor="none", edgecolor=MUTED))
    return handles


def name_axis(axis: object, varied: Axis) -> None:
    """Label an axis whose cells stand at 0, 1, 2, ... with some of their values."""
    step = -(-len(varied) // MOST_TICKS)
    places = range(0, len(varied), step)
    words = [clipped(value_words(varied.values[place])) for place in places]
    axis.set_ticks(list(places), words)  # type: ignore[attr-defined]
    axis.set_label_text(axis_words(varied))  # type: ignore[attr-defined]


def axis_words(varied: Axis) -> str:
    """Return what an axis varies."""
    return ", ".join(varied.keys)


def value_words(values: Sequence[Value]) -> str:
    """Return a value of an axis, or its values together."""
    return ", ".join(one_value(value) for value in values)


def one_value(value: Value) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return trimmed(value, 6) if isinstance(value, int | float) else value


def description(sweep: Sweep) -> str:
    """Return how many points have each verdict."""
    counts = ", ".join(f"{verdict} at {count:,}" for verdict, count in sorted(sweep.verdicts.items()))
    return f"A grid of {len(sweep.grid):,} cells. Simulated: {counts}."
