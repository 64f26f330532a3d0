"""The figures that an SLO is about, over the candidates, with the bound of each and what theory says."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from sim.answers.size import Sizing
from sim.answers.size_search import SizePoint
from sim.report.content import Figure
from sim.report.figures.drawing import drawn
from sim.report.figures.style import BLUE, GREEN, INK, MUTED, ORANGE, PAPER, VERMILLION, sample, thousands
from sim.result.objective import MET, MISSED

VERDICT_LOOKS = {MET: (GREEN, "o"), MISSED: (VERMILLION, "s")}
UNDECIDED_LOOK = (ORANGE, "^")


def size_curve(sizing: Sizing) -> Figure:
    """Draw one panel for each rule, a point for each candidate that was simulated."""
    panels = len(sizing.asked.rules)

    def paint(canvas: Canvas) -> None:
        column = canvas.subplots(panels, sharex=True, squeeze=False)[:, 0]
        for place, axes in enumerate(column):
            paint_rule(axes, sizing, place)
        column[-1].set_xlabel(sizing.path)
        thousands(column[-1].xaxis)
        canvas.legend(handles=legend_handles(), loc="outside upper left", ncols=5, columnspacing=1.2)

    caption = (
        "Points: candidates that were simulated, with the intervals that decided. "
        "Black: the bound of the rule. Thin line: what theory gives, where it gives anything. "
        "Vertical line: the answer."
    )
    title = f"The SLO against {sizing.path}"
    return drawn("size-curve", (title, caption, f"{sizing.sentence}."), 0.9 + 2.1 * panels, paint)


def paint_rule(axes: Axes, sizing: Sizing, place: int) -> None:
    """Draw one rule's figure over the candidates."""
    rule = sizing.asked.rules[place][1]
    shown = [point for point in sizing.points if not math.isnan(point.rules[place].figure.mean)]
    axes.plot(
        [point.value for point in shown],
        [point.rules[place].figure.mean for point in shown],
        color=MUTED,
        linewidth=0.9,
        zorder=1,
    )
    for point in shown:
        paint_point(axes, point, place)
    paint_theory(axes, shown, place)
    axes.axhline(rule.bound, color=INK, linewidth=1.2)
    if sizing.answer is not None:
        axes.axvline(sizing.answer, color=MUTED, linewidth=1.2, linestyle=":")
    axes.set_title(str(rule))
    axes.set_ylabel(rule.metric)
    thousands(axes.yaxis)
    bring_the_bound_into_view(axes, rule.bound, [point.rules[place].figure.mean for point in shown])


def paint_point(axes: Axes, point: SizePoint, place: int) -> None:
    """Draw one candidate with its interval, in the colour and shape of the rule's verdict."""
    held = point.rules[place]
    colour, marker = VERDICT_LOOKS.get(held.verdict, UNDECIDED_LOOK)
    axes.errorbar(
        point.value,
        held.figure.mean,
        yerr=held.figure.half_width or 0,
        color=colour,
        marker=marker,
        markersize=5,
        markerfacecolor=colour if held.verdict in VERDICT_LOOKS else PAPER,
        zorder=3,
    )


def paint_theory(axes: Axes, points: Sequence[SizePoint], place: int) -> None:
    """Draw what theory says of the figure, where it says anything finite."""
    told = [(point.value, bound[1]) for point in points if (bound := point.bounds[place]) is not None]
    finite = [(value, bound) for value, bound in told if math.isfinite(bound)]
    if finite:
        axes.plot(*zip(*finite, strict=True), color=BLUE, linewidth=0.9, linestyle=(0, (5, 2)), zorder=2)


def bring_the_bound_into_view(axes: Axes, bound: float, means: Sequence[float]) -> None:
    """Cut off figures far above an upper bound: an overloaded candidate would flatten all the others."""
    if means and bound > 0 and max(means) > 3 * bound:
        axes.set_ylim(0, 3 * bound)


def legend_handles() -> list[object]:
    """Return one handle for each verdict, for the bound and for theory."""
    verdicts = [(*VERDICT_LOOKS[MET], MET), (*VERDICT_LOOKS[MISSED], MISSED), (*UNDECIDED_LOOK, "undecided")]
    return [
        *(
            sample(label, color=colour, marker=marker, linestyle="none", markersize=5)
            for colour, marker, label in verdicts
        ),
        sample("bound of the rule", color=INK, linewidth=1.2),
        sample("theory", color=BLUE, linewidth=0.9, linestyle=(0, (5, 2))),
    ]
