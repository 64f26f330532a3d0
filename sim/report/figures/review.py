"""The backlog of human reviews over time."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from sim.report.content import Figure
from sim.report.figures.drawing import drawn
from sim.report.figures.style import INK, MUTED, legend_above, line_style, plan_styles, thousands
from sim.report.shown import count
from sim.report.steps import StepFunction, step_function
from sim.report.words import plan_name
from sim.result.result import Result
from sim.run.follow_up import reviews_of
from sim.run.simulation import Run
from sim.units import NS_PER_S, IntArray

POINTS = 400
NS_PER_HOUR = 3600 * NS_PER_S


def review_backlog(result: Result, name: str) -> Figure:
    """Draw how many reviews waited or were under way, of all workloads together, in the first replication."""
    backlogs = {plan.label: backlog(result, plan.first_run) for plan in result.plans}
    ends_ns = {plan.label: int(plan.first_run.out.arrival_ns.max(initial=0)) for plan in result.plans}
    reviewers = sum(
        part.workflow.follow_up.reviewers for part in result.scenario.parts if part.workflow.follow_up
    )

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        styles = plan_styles(list(backlogs))
        for plan in result.plans:
            times_ns = points_ns(ends_ns[plan.label])
            waiting = backlogs[plan.label].at(times_ns)
            axes.plot(
                times_ns / NS_PER_HOUR, waiting, label=plan_name(plan), **line_style(styles[plan.label])
            )
        axes.axhline(reviewers, color=INK, linewidth=1, linestyle=":")
        axes.annotate(
            f"{reviewers:,} reviewers", (0, reviewers), xytext=(3, 2), textcoords="offset points", color=MUTED
        )
        finish(axes)

    last = {label: float(one.at(points_ns(ends_ns[label]))[-1]) for label, one in backlogs.items()}
    readings = [f"{plan_name(plan)} {count(last[plan.label])} at the end" for plan in result.plans]
    title = f"Reviews waiting or under way: {result.scenario.name}"
    caption = f"First replication, up to the last arrival, at {POINTS} instants."
    description = f"Curves of the backlog of reviews over time: {', '.join(readings)}."
    return drawn(f"{name}-reviews", (title, caption, description), 3.0, paint)


def backlog(result: Result, run: Run) -> StepFunction:
    """Return the reviews that wait or are under way, of all workloads."""
    found = [reviews_of(part, run, index) for index, part in enumerate(result.scenario.parts)]
    reviews = [one for one in found if one is not None]
    return step_function(
        np.concatenate([one.ready_ns for one in reviews]), np.concatenate([one.finish_ns for one in reviews])
    )


def points_ns(end_ns: int) -> IntArray:
    """Return instants from 0 to the last arrival."""
    return np.linspace(0, end_ns, POINTS).astype(np.int64)


def finish(axes: Axes) -> None:
    axes.set_xlabel("time, hours")
    axes.set_ylabel("reviews")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    thousands(axes.yaxis)
    legend_above(axes)
