"""A tornado: what 10 % less and 10 % more of each input does to the saving and to the price of a ms."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from sim.answers.sensitivity import InputSensitivity, Sensitivity, Shift
from sim.report.content import Figure
from sim.report.figures.drawing import drawn
from sim.report.figures.style import BLUE, INK, ORANGE, clipped, legend_above, thousands
from sim.statistics.digits import trimmed

Reading = Callable[[Shift], float | None]


def tornado(sensitivity: Sensitivity) -> Figure:
    """Draw one row for each input that moves either figure, the widest on top."""
    inputs = sensitivity.by_swing

    def paint(canvas: Canvas) -> None:
        left, right = canvas.subplots(1, 2, sharey=True)
        paint_bars(left, inputs, sensitivity.base.saved_ms, lambda shift: shift.saved_ms)
        paint_bars(
            right,
            inputs,
            sensitivity.base.micros_per_saved_ms,
            lambda shift: shift.micros_per_saved_ms,
        )
        left.set_yticks(range(len(inputs)), [clipped(one.name) for one in inputs])
        left.set_ylim(len(inputs) - 0.4, -0.6)
        left.set_xlabel("saved, ms")
        right.set_xlabel("micros per saved ms")
        legend_above(left, columns=2)

    title = "What a change of 10 % does"
    caption = (
        "Each bar: one input 10 % lower and 10 % higher, all others as they are; whole numbers rounded. "
        "Line: as it is now. Where no time is saved a ms has no price, and there is no bar."
    )
    words = "; ".join(in_words(one) for one in inputs)
    return drawn("tornado", (title, caption, f"Bars by input. {words}."), 0.9 + 0.27 * len(inputs), paint)


def paint_bars(axes: Axes, inputs: Sequence[InputSensitivity], base: float | None, reading: Reading) -> None:
    """Draw the bars of one figure around what it is now."""
    if base is not None:
        axes.axvline(base, color=INK, linewidth=1.2, zorder=3)
        for place, one in enumerate(inputs):
            for shift, colour, label in ((one.less, BLUE, "10 % less"), (one.more, ORANGE, "10 % more")):
                value = reading(shift)
                if value is not None:
                    axes.barh(
                        place,
                        value - base,
                        left=base,
                        color=colour,
                        height=0.62,
                        label=label if not place else None,
                    )
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.12)
    thousands(axes.xaxis)


def in_words(one: InputSensitivity) -> str:
    """Return what an input's change does to the saving."""
    return f"{one.name}: {trimmed(one.less.saved_ms)} to {trimmed(one.more.saved_ms)} ms saved"
