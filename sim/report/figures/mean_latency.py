"""Mean latency of every plan in every scenario: the flip at a glance."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from sim.contract.figure import MEAN_DELIVERED_LATENCY
from sim.report.content import Figure
from sim.report.figures.drawing import drawn
from sim.report.figures.style import INK, PAPER, clipped, plan_styles, thousands
from sim.report.shown import estimate_cell, ms
from sim.report.words import plan_name
from sim.result.plan_result import PlanResult
from sim.result.result import Result
from sim.statistics.stability import OVERLOADED


def mean_latency(results: Sequence[Result]) -> Figure:
    """Draw bars with 95 % intervals, and a tick at the bound that no allocation beats."""
    readings = [
        f"{result.scenario.name}, {plan_name(plan)}: "
        f"{estimate_cell(plan.estimates[MEAN_DELIVERED_LATENCY]).text} ms"
        for result in results
        for plan in result.plans
    ]

    def paint(canvas: Canvas) -> None:
        rows = canvas.subplots(
            len(results),
            sharex=True,
            squeeze=False,
            height_ratios=[len(result.plans) + 0.6 for result in results],
        )
        for axes, result in zip(rows[:, 0], results, strict=True):
            paint_scenario(axes, result)
        rows[-1, 0].set_xlim(0, 1.2 * longest(results))
        rows[-1, 0].set_xlabel("mean latency, ms")

    caption = (
        "Bars: mean latency. Black tick: the highest bound from below that theory gives for the plan. "
        "Whisker: 95 % interval, where there is one. Hatched: overloaded."
    )
    height = 0.75 + sum(0.3 * len(result.plans) + 0.4 for result in results)
    description = f"Horizontal bars of mean latency. {'; '.join(readings)}."
    return drawn("mean-latency", ("Mean latency", caption, description), height, paint)


def paint_scenario(axes: Axes, result: Result) -> None:
    styles = plan_styles([plan.label for plan in result.plans])
    names = [plan_name(plan) for plan in result.plans]
    for place, plan in enumerate(result.plans):
        paint_bar(axes, place, plan, styles[plan.label]["color"])
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_title(clipped(result.scenario.name))
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)
    thousands(axes.xaxis)


def longest(results: Sequence[Result]) -> float:
    """Return the end of the longest bar, interval included, ms."""
    figures = [plan.estimates[MEAN_DELIVERED_LATENCY] for result in results for plan in result.plans]
    return max((one.high or one.mean for one in figures if not math.isnan(one.mean)), default=1.0) or 1.0


def paint_bar(axes: Axes, place: int, plan: PlanResult, color: str) -> None:
    figure = plan.estimates[MEAN_DELIVERED_LATENCY]
    if math.isnan(figure.mean):
        return
    hatch = "////" if plan.stability.label == OVERLOADED else ""
    axes.barh(place, figure.mean, height=0.62, color=color, hatch=hatch, edgecolor=PAPER, linewidth=0)
    if figure.half_width:
        axes.errorbar(figure.mean, place, xerr=figure.half_width, color=INK, capsize=3, linewidth=1.2)
    bound = max((item.value for item in plan.expected if item.kind == "at least"), default=0)
    if bound > 0:
        axes.plot([bound, bound], [place - 0.36, place + 0.36], color=INK, linewidth=1.6)
    end = figure.mean + (figure.half_width or 0)
    axes.annotate(
        ms(figure.mean), (end, place), xytext=(5, 0), textcoords="offset points", va="center", weight="bold"
    )
