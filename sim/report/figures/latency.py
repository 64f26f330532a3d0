"""Latency as a distribution: the share of requests answered within a time, plan by plan."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from sim.report.content import Figure
from sim.report.figures.drawing import drawn
from sim.report.figures.style import MUTED, legend_above, line_style, plan_styles, thousands
from sim.report.shown import ms
from sim.report.words import plan_name
from sim.result.plan_result import PlanResult
from sim.result.result import Result
from sim.scenario.slo import latency_bounds
from sim.statistics.digits import trimmed
from sim.units import NS_PER_MS, FloatArray

MOST_POINTS = 400
LOG_FROM_RATIO = 20.0
"""From this ratio of the largest to the smallest latency on, a linear axis would squeeze most of them."""


def latency_distribution(result: Result, name: str) -> Figure:
    """Draw the empirical distribution of all replications' latencies after warm-up."""

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        styles = plan_styles([plan.label for plan in result.plans])
        for plan in result.plans:
            latency_ms, share = distribution_points(pooled_ms(plan), MOST_POINTS)
            axes.step(
                latency_ms, share, where="post", label=plan_name(plan), **line_style(styles[plan.label])
            )
        paint_rules(axes, result)
        finish(axes, result)

    title = f"Latency distribution: {result.scenario.name}"
    return drawn(f"{name}-latency", (title, caption(result), description(result)), 3.3, paint)


def pooled_ms(plan: PlanResult) -> FloatArray:
    """Return the latencies of all replications together, ascending, ms."""
    return np.sort(np.concatenate(plan.latency_ns)) / NS_PER_MS


def distribution_points(ordered_ms: FloatArray, most: int) -> tuple[FloatArray, FloatArray]:
    """Return latencies and the share of observations up to each: both float64, shape (k + 1,), from 0 on.

    At most `most` ranks of the n, evenly spaced with the first and the last among them. Each point lies on
    the empirical distribution, and between two of them a step is off by less than their distance in rank.
    """
    observations = len(ordered_ms)
    if observations == 0:
        return ordered_ms, ordered_ms
    ranks = np.unique(np.ceil(np.linspace(1, observations, most)).astype(np.int64))
    drawn_ms = ordered_ms[ranks - 1]
    # Of equal latencies the last one says how many requests were answered by then.
    last = np.append(np.diff(drawn_ms) > 0, True)
    latency_ms = np.concatenate((ordered_ms[:1], drawn_ms[last]))
    return latency_ms, np.concatenate(([0.0], ranks[last] / observations))


def paint_rules(axes: Axes, result: Result) -> None:
    """Draw the latencies that the SLO names."""
    # Each of several workloads has bounds of its own.
    several = len(result.scenario.parts) > 1
    for place, bound in enumerate([] if several else latency_bounds(result.scenario.slo)):
        axes.axvline(
            bound, color=MUTED, linewidth=1, linestyle=":", label="SLO bound" if place == 0 else None
        )


def finish(axes: Axes, result: Result) -> None:
    latencies = [pooled_ms(plan) for plan in result.plans]
    least = min((float(one[0]) for one in latencies if len(one)), default=0.0)
    most = max((float(one[-1]) for one in latencies if len(one)), default=0.0)
    if least > 0 and most / least > LOG_FROM_RATIO:
        axes.set_xscale("log")
        axes.set_xlabel("latency, ms (logarithmic)")
    else:
        axes.set_xlim(left=0, right=1.05 * most or 1.0)
        axes.set_xlabel("latency, ms")
    axes.set_ylabel("share of requests")
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    thousands(axes.xaxis)
    legend_above(axes, columns=2 if any("(" in plan_name(plan) for plan in result.plans) else 4)


def caption(result: Result) -> str:
    """Return what is drawn, and how many of the observations."""
    observations = max(sum(map(len, plan.latency_ns)) for plan in result.plans)
    pooled = "" if result.replications == 1 else f" of all {result.replications} replications together"
    text = f"Share of requests answered within a time{pooled}, after warm-up."
    if observations <= MOST_POINTS:
        return text
    off = f"{trimmed(100 / MOST_POINTS)} %"
    return f"{text} Drawn at {MOST_POINTS} of up to {observations:,} ranks: true to within {off}."


def description(result: Result) -> str:
    """Return the range of each plan's latencies in words."""
    ranges = []
    for plan in result.plans:
        ordered_ms = pooled_ms(plan)
        if len(ordered_ms):
            middle = ordered_ms[(len(ordered_ms) - 1) // 2]
            ranges.append(
                f"{plan_name(plan)} from {ms(ordered_ms[0])} over a median of {ms(middle)} "
                f"to {ms(ordered_ms[-1])} ms"
            )
    return f"Step curves of the share of requests answered within a time: {'; '.join(ranges)}."
