"""What each further slot is worth to one request alone."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from sim.answers.flip import Gains
from sim.report.content import Figure
from sim.report.figures.drawing import drawn
from sim.report.figures.style import BLUE, INK, SKY, VERMILLION, legend_above, thousands
from sim.statistics.digits import trimmed

MOST_LABELS = 12
MOST_BARS = 100
"""Of more slots the gains are an area and the makespans have no markers: nobody could tell them apart."""


def gains_figure(gains: Gains, name: str) -> Figure:
    """Draw the makespan with 1, 2, ... slots and the gain of each, the recommended degree marked."""

    def paint(canvas: Canvas) -> None:
        above, below = canvas.subplots(2, sharex=True, height_ratios=[3, 2])
        paint_makespans(above, gains)
        paint_gains(below, gains)

    title = f"Makespan and gain per slot: {gains.scenario.workflow.name}"
    caption = (
        "One request alone, at its mean times, join included. "
        f"Recommended degree: {gains.recommended_degree:,}."
    )
    readings = (
        f"{gain.concurrency} slots {trimmed(gain.make_span_ms)} ms" for gain in gains.gains[:MOST_LABELS]
    )
    description = f"Makespan by slots: {', '.join(readings)}; serial {trimmed(gains.serial_ms)} ms."
    return drawn(name, (title, caption, description), 3.9, paint)


def paint_makespans(axes: Axes, gains: Gains) -> None:
    slots = [gain.concurrency for gain in gains.gains]
    spans_ms = [gain.make_span_ms for gain in gains.gains]
    marker = "s" if len(slots) <= MOST_BARS else ""
    axes.plot(slots, spans_ms, color=VERMILLION, marker=marker, markersize=5, label="parallel, with its join")
    axes.axhline(gains.serial_ms, color=BLUE, linewidth=1.2, linestyle=(0, (5, 2)), label="serial")
    degree = gains.recommended_degree
    axes.plot(
        degree,
        spans_ms[degree - 1],
        linestyle="none",
        marker="o",
        markersize=12,
        markerfacecolor="none",
        markeredgecolor=INK,
        label="recommended",
    )
    if len(slots) <= MOST_LABELS:
        for slot, span_ms in zip(slots, spans_ms, strict=True):
            # On the side of its point where the serial line is not.
            place = (0, 9) if span_ms >= gains.serial_ms else (0, -18)
            text = trimmed(span_ms, 1)
            axes.annotate(text, (slot, span_ms), xytext=place, textcoords="offset points", ha="center")
    axes.set_ylabel("makespan, ms")
    axes.set_ylim(0, 1.25 * max(*spans_ms, gains.serial_ms))
    thousands(axes.yaxis)
    legend_above(axes)


def paint_gains(axes: Axes, gains: Gains) -> None:
    slots = [gain.concurrency for gain in gains.gains]
    saved_ms = [gain.saved_vs_previous_ms for gain in gains.gains]
    if len(slots) > MOST_BARS:
        axes.fill_between(slots[1:], saved_ms[1:], step="mid", color=SKY, linewidth=0)
    else:
        bars = axes.bar(slots[1:], saved_ms[1:], width=0.55, color=SKY)
    if len(slots) <= MOST_LABELS:
        axes.bar_label(bars, labels=[trimmed(value, 1) for value in saved_ms[1:]], padding=2)
    axes.set_ylabel("gain, ms")
    axes.set_xlabel("slots for one request")
    axes.set_xlim(0.5, max(slots) + 0.5)
    axes.margins(y=0.28)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    thousands(axes.yaxis)
