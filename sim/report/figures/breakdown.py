"""Where the time of every plan's requests went: the parts of the mean latency end to end."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch

from sim.report.content import Figure
from sim.report.figures.drawing import drawn
from sim.report.figures.style import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PAPER,
    PINK,
    SKY,
    VERMILLION,
    YELLOW,
    clipped,
    thousands,
)
from sim.report.shown import ms
from sim.report.words import PART_WORDS, plan_name
from sim.result.result import Result
from sim.run.breakdown import PARTS

LOOKS = {
    "service": (BLUE, ""),
    "slots_busy": (VERMILLION, "////"),
    "own_cap": (ORANGE, "...."),
    "limits": (PINK, "xxxx"),
    "lost_attempts": (YELLOW, "\\\\\\\\"),
    "pauses": (SKY, "----"),
    "join": (GREEN, ""),
}
"""Colour and hatching of each part."""
LABEL_FROM_SHARE = 0.09
"""A part narrower than this share of the axis has no room for its number."""


def breakdown(results: Sequence[Result]) -> Figure:
    """Draw one bar per plan and scenario, a stretch for each part; as long as the mean latency together."""
    shown = shown_parts(results)

    def paint(canvas: Canvas) -> None:
        rows = canvas.subplots(
            len(results),
            sharex=True,
            squeeze=False,
            height_ratios=[len(result.plans) + 0.6 for result in results],
        )
        longest_ms = max((sum(parts.values()) for parts in means(results)), default=1) or 1
        for axes, result in zip(rows[:, 0], results, strict=True):
            paint_scenario(axes, result, 1.18 * longest_ms)
        rows[-1, 0].set_xlim(0, 1.18 * longest_ms)
        rows[-1, 0].set_xlabel("mean latency, ms")
        canvas.legend(handles=patches(shown), loc="outside upper left", ncols=3, handleheight=1.1)

    height = 0.85 + 0.22 * -(-len(shown) // 3) + sum(0.32 * len(result.plans) + 0.4 for result in results)
    caption = (
        "First replication, delivered requests after warm-up. The parts of each latency follow the calls "
        "that the request waited for last, from its answer back to its arrival, and add up to it exactly."
    )
    description = f"Stacked horizontal bars. {'; '.join(readings(results))}."
    return drawn("where-the-time-went", ("Parts of the mean latency", caption, description), height, paint)


def means(results: Sequence[Result]) -> list[dict[str, float]]:
    """Return the mean parts of every plan (ms)."""
    return [one.covered.mean_ms for result in results for one in result.time_spent.values()]


def shown_parts(results: Sequence[Result]) -> list[str]:
    """Return the parts that took any time in some plan."""
    return [name for name in PARTS if any(parts.get(name) for parts in means(results))]


def paint_scenario(axes: Axes, result: Result, end_ms: float) -> None:
    for place, plan in enumerate(result.plans):
        paint_bar(axes, place, result.time_spent[plan.label].covered.mean_ms, end_ms)
    axes.set_yticks(range(len(result.plans)), [plan_name(plan) for plan in result.plans])
    axes.set_ylim(len(result.plans) - 0.4, -0.6)
    axes.set_title(clipped(result.scenario.name))
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)
    thousands(axes.xaxis)


def paint_bar(axes: Axes, place: int, parts: dict[str, float], end_ms: float) -> None:
    start_ms = 0.0
    for name, length_ms in parts.items():
        color, hatch = LOOKS[name]
        axes.barh(
            place,
            length_ms,
            left=start_ms,
            height=0.62,
            color=color,
            hatch=hatch,
            edgecolor=PAPER,
            linewidth=0,
        )
        if length_ms >= LABEL_FROM_SHARE * end_ms:
            middle_ms = start_ms + length_ms / 2
            box = {"facecolor": PAPER, "edgecolor": "none", "boxstyle": "round,pad=0.15", "alpha": 0.85}
            axes.text(middle_ms, place, ms(length_ms), ha="center", va="center", fontsize=8.5, bbox=box)
        start_ms += length_ms
    label = ms(start_ms) if parts else "no request was delivered"
    axes.annotate(
        label,
        (start_ms, place),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        weight="bold",
        color=INK,
    )


def patches(shown: Sequence[str]) -> list[Patch]:
    """Return the legend of the parts."""
    return [
        Patch(facecolor=color, hatch=hatch, edgecolor=PAPER, linewidth=0, label=PART_WORDS[name])
        for name in shown
        for color, hatch in [LOOKS[name]]
    ]


def readings(results: Sequence[Result]) -> list[str]:
    """Return each plan's parts in words."""
    return [
        f"{result.scenario.name}, {plan_name(plan)}: "
        + (
            ", ".join(f"{PART_WORDS[name]} {ms(part)} ms" for name, part in parts.items() if part)
            or "nothing"
        )
        for result in results
        for plan in result.plans
        for parts in [result.time_spent[plan.label].covered.mean_ms]
    ]
