"""The running mean of latency, and where the warm-up was cut off."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from sim.report.content import Figure
from sim.report.figures.drawing import drawn
from sim.report.figures.style import Look, legend_above, line_style, plan_styles, thousands
from sim.report.shown import ms
from sim.report.words import plan_name
from sim.result.plan_result import PlanResult
from sim.result.result import Result
from sim.statistics.warmup import running_mean
from sim.units import NS_PER_MS, FloatArray, IntArray

MOST_POINTS = 400


def warm_up(result: Result, name: str) -> Figure:
    """Draw the running mean of the first replication's latencies, from its first request on."""

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        styles = plan_styles([plan.label for plan in result.plans])
        for plan in result.plans:
            paint_plan(axes, plan, styles[plan.label])
        axes.set_xlabel("requests, in order of arrival")
        axes.set_ylabel("running mean of latency, ms")
        thousands(axes.xaxis)
        thousands(axes.yaxis)
        legend_above(axes, columns=2 if any("(" in plan_name(plan) for plan in result.plans) else 3)

    title = f"Running mean and warm-up: {result.scenario.name}"
    return drawn(f"{name}-warm-up", (title, caption(result), description(result)), 3.0, paint)


def paint_plan(axes: Axes, plan: PlanResult, style: Look) -> None:
    index, mean_ms = running_points(plan.first_run.out.latency_ns)
    axes.plot(index + 1, mean_ms, label=plan_name(plan), **line_style(style))
    dropped = plan.dropped[0]
    if dropped:
        axes.axvline(dropped, color=style["color"], linewidth=1, linestyle=":")
        here = int(np.searchsorted(index, dropped - 1))
        axes.plot(
            index[here] + 1, mean_ms[here], linestyle="none", marker=style["marker"], color=style["color"]
        )


def running_points(latency_ns: IntArray) -> tuple[IntArray, FloatArray]:
    """Return positions (0-based) and the exact running mean (ms) there, evenly spaced in a long run."""
    mean_ms = running_mean(latency_ns / NS_PER_MS)
    points = np.unique(np.linspace(0, len(mean_ms) - 1, MOST_POINTS).astype(np.int64))
    return points, mean_ms[points]


def cut_words(plan: PlanResult) -> str:
    """Return how many requests of the first replication were left out."""
    return f"{plan_name(plan)} {plan.dropped[0]:,} of {plan.first_run.out.requests:,}"


def caption(result: Result) -> str:
    """Return what the dotted lines mean."""
    cuts = ", ".join(cut_words(plan) for plan in result.plans)
    return (
        f"First replication. Dotted, with a marker: requests before it are left out ({cuts}). "
        f"The mean is exact at up to {MOST_POINTS} requests and straight in between."
    )


def description(result: Result) -> str:
    """Return where the curves end."""
    ends = ", ".join(
        f"{plan_name(plan)} {ms(float(plan.first_run.out.latency_ns.mean()) / NS_PER_MS)} ms"
        for plan in result.plans
    )
    return f"Lines of the running mean of latency over requests; over the whole run: {ends}."
