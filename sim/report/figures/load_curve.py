"""Mean latency against the level of load, with the bounds that no plan can beat."""

from math import isnan

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from sim.answers.flip import LEVEL_WORDS, FlipTable, Level
from sim.contract.allocation import allocation_named
from sim.report.content import Figure
from sim.report.figures.drawing import drawn
from sim.report.figures.style import GRID, INK, PAPER, Look, plan_styles, sample, thousands
from sim.statistics.stability import OVERLOADED

LOG_FROM_RATIO = 10.0
"""From this ratio of the longest to the shortest mean on an overload needs a logarithmic axis."""


def load_curve(table: FlipTable) -> Figure:
    """Draw one panel per allocation: a line per plan, its bound, and bands where the decision flips."""
    panels = len(table.allocations)

    def paint(canvas: Canvas) -> None:
        column = canvas.subplots(panels, sharex=True, sharey=True, squeeze=False)[:, 0]
        for axes, allocation in zip(column, table.allocations, strict=True):
            paint_allocation(axes, table, allocation)
        column[-1].set_xlabel(LEVEL_WORDS[table.level])
        if explodes(table):
            column[-1].set_yscale("log")
            for axes in column:
                thousands(axes.yaxis)
        canvas.legend(handles=legend_handles(table), loc="outside upper left", ncols=5, columnspacing=1.2)

    caption = (
        "Markers: mean latency, with its 95 % interval where there is one. Thin lines: the bound of the "
        "plan, the larger of critical path and join, and active requests x work / slots. "
        "Grey band: the decision flips between these levels."
    )
    if overloads(table):
        caption += " Hollow markers: overloaded, the figure of a finite run."
    if explodes(table):
        caption += " Logarithmic: in overload latencies grow as long as the run goes on."
    description = f"Lines of mean latency over {LEVEL_WORDS[table.level]}. {'; '.join(table.sentences())}."
    title = f"Latency against {LEVEL_WORDS[table.level]}"
    words = (title, caption, description)
    return drawn("latency-against-load", words, 0.75 + 2.0 * panels, paint)


def overloads(table: FlipTable) -> bool:
    """Return whether any plan is overloaded at any level."""
    return any(plan.stability == OVERLOADED for level in table.levels for plan in level.plans.values())


def explodes(table: FlipTable) -> bool:
    """Return whether the longest mean would flatten all the others on a linear axis."""
    figures = (plan.mean.mean for level in table.levels for plan in level.plans.values())
    means = [mean for mean in figures if mean > 0]
    return overloads(table) and max(means) > LOG_FROM_RATIO * min(means)


def paint_allocation(axes: Axes, table: FlipTable, allocation: str) -> None:
    levels = table.of(allocation)
    styles = plan_styles(list(levels[0].plans))
    for low, high in table.changes(allocation):
        if low.decision != high.decision:
            axes.axvspan(low.value, high.value, color=GRID, zorder=0)
    for label in reversed(styles):
        # Adaptive has parallel's bound or serial's: theirs are drawn over it.
        paint_bound(axes, levels, label, styles[label])
    for label, style in styles.items():
        paint_plan(axes, levels, label, style)
    axes.set_title(allocation_named(allocation).words)
    axes.set_ylabel("mean latency, ms (log.)" if explodes(table) else "mean latency, ms")
    thousands(axes.yaxis)
    thousands(axes.xaxis)


def paint_bound(axes: Axes, levels: tuple[Level, ...], label: str, style: Look) -> None:
    values = [level.value for level in levels]
    bounds_ms = [level.plans[label].bound_ms for level in levels]
    axes.plot(values, bounds_ms, color=style["color"], linewidth=0.9, zorder=1)


def paint_plan(axes: Axes, levels: tuple[Level, ...], label: str, style: Look) -> None:
    values = [level.value for level in levels]
    figures = [level.plans[label] for level in levels]
    axes.errorbar(
        values,
        [figure.mean.mean for figure in figures],
        yerr=[figure.mean.half_width or 0 for figure in figures],
        label=label,
        markersize=5,
        **style,
    )
    hollow = [
        (value, one.mean.mean)
        for value, one in zip(values, figures, strict=True)
        if one.stability == OVERLOADED
    ]
    if hollow:
        axes.plot(
            *zip(*hollow, strict=True),
            linestyle="none",
            marker=style["marker"],
            markerfacecolor=PAPER,
            markeredgecolor=style["color"],
            markersize=6,
            zorder=4,
        )


def legend_handles(table: FlipTable) -> list[Line2D]:
    """Return a line per plan, one for the bounds, and a marker for overload where it is met."""
    styles = plan_styles(list(table.levels[0].plans))
    handles = [sample(label, markersize=5, **style) for label, style in styles.items()]
    if any(not isnan(plan.bound_ms) for level in table.levels for plan in level.plans.values()):
        handles.append(sample("bound", color=INK, linewidth=0.9))
    if overloads(table):
        look = {"linestyle": "none", "marker": "o", "markerfacecolor": PAPER, "markeredgecolor": INK}
        handles.append(sample(OVERLOADED, **look))
    return handles
