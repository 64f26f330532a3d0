"""Who held which slot: the calls of the first requests, plan by plan."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from sim.report.content import Figure
from sim.report.figures.drawing import drawn
from sim.report.figures.style import BRANCH_STYLES, PAPER, entry, thousands
from sim.report.words import attempts_words, plan_name
from sim.result.plan_result import PlanResult
from sim.result.result import Result
from sim.run.simulation import Run
from sim.run.tables import JOIN
from sim.units import NS_PER_MS

MOST_CALLS, MOST_SLOTS = 80, 40
MOST_LONGEST_CALLS = 100
"""Requests are shown that arrive within so many times the longest call."""
LABEL_FROM_SHARE = 0.035
"""A bar shorter than this share of the axis has no room for its request's number."""


def gantt(result: Result, name: str) -> Figure:
    """Draw the slots of the first replication's first requests, one panel per plan on one time axis."""
    shown = {plan.label: shown_requests(plan.first_run) for plan in result.plans}
    heights = [0.35 + 0.085 * slots_shown(plan.first_run, shown[plan.label]) for plan in result.plans]

    def paint(canvas: Canvas) -> None:
        column = canvas.subplots(len(result.plans), sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        end_ms = max(last_finish_ms(plan.first_run, shown[plan.label]) for plan in result.plans)
        for axes, plan in zip(column, result.plans, strict=True):
            paint_plan(axes, plan, shown[plan.label], end_ms)
        column[-1].set_xlabel("time, ms")
        canvas.legend(handles=branch_patches(result), loc="outside upper left", ncols=3, handleheight=1.1)

    each = ", ".join(f"{plan.label} {shown[plan.label]:,}" for plan in result.plans)
    caption = (
        f"First replication, first requests ({each}); numbers are requests in order of arrival. "
        "Each bar is a call on its slot; joins that hold no slot are not drawn." + attempts_words(result)
    )
    description = f"Bars on slots over time, coloured by branch. Requests shown: {each}."
    title = f"Slots of the first requests: {result.scenario.name}"
    return drawn(
        f"{name}-slots", (title, caption, description), 0.9 + sum(heights) + 0.25 * len(heights), paint
    )


def shown_requests(run: Run) -> int:
    """Return how many of the first requests fit into the drawing, at least one."""
    calls = np.cumsum(run.out.called.sum(axis=1))
    slots = np.maximum.accumulate(run.out.slot.max(axis=1)) + 1
    # Far apart they would be too thin to be seen.
    longest_ns = int(run.out.service_ns.max(initial=0))
    near = run.out.arrival_ns - run.out.arrival_ns[:1] <= MOST_LONGEST_CALLS * longest_ns
    return max(1, int(((calls <= MOST_CALLS) & (slots <= MOST_SLOTS) & near).sum()))


def slots_shown(run: Run, requests: int) -> int:
    """Return how many slots these requests used, from slot 0 on."""
    return int(run.out.slot[:requests].max()) + 1


def last_finish_ms(run: Run, requests: int) -> float:
    """Return when the last of these requests' calls finished."""
    return float(run.out.finish_ns[:requests].max() / NS_PER_MS)


def paint_plan(axes: Axes, plan: PlanResult, requests: int, end_ms: float) -> None:
    out = plan.first_run.out
    called, slot = out.called[:requests], out.slot[:requests]
    left_ms, right_ms = out.start_ns[:requests] / NS_PER_MS, out.finish_ns[:requests] / NS_PER_MS
    start_ms = float(left_ms[called].min())
    for style, (color, hatch) in enumerate(BRANCH_STYLES[: called.shape[1]]):
        # Of many branches several share a style, and are drawn together.
        made = called & (np.arange(called.shape[1]) % len(BRANCH_STYLES) == style)
        axes.barh(
            slot[made],
            (right_ms - left_ms)[made],
            left=left_ms[made],
            height=0.86,
            color=color,
            hatch=hatch,
            edgecolor=PAPER,
            linewidth=0.6,
        )
    room_ms = LABEL_FROM_SHARE * (end_ms - start_ms)
    for request, call in zip(*np.nonzero(called & (right_ms - left_ms >= room_ms)), strict=True):
        middle_ms = (left_ms + right_ms)[request, call] / 2
        place = middle_ms, float(slot[request, call])
        number = axes.text(*place, str(request), ha="center", va="center", fontsize=6.5)
        # It lies within its bar; measuring each would take longer than all else.
        number.set_in_layout(False)
    axes.set_title(plan_name(plan))
    axes.set_ylabel("slot")
    axes.set_ylim(slots_shown(plan.first_run, requests) - 0.4, -0.6)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.grid(False, axis="y")
    axes.set_xlim(start_ms if start_ms > 0.2 * end_ms else 0, end_ms)
    thousands(axes.xaxis)


def branch_patches(result: Result) -> list[Patch]:
    """Return the legend: a patch per branch, and one for a join that holds a slot."""
    workflow = result.scenario.workflow
    ids = [branch.id for branch in workflow.branches] + [JOIN] * workflow.join_holds_slot
    if len(result.scenario.parts) > 1:
        # The calls of different workflows share the colours.
        most = max(len(part.workflow.branches) for part in result.scenario.parts)
        ids = [f"call {number}" for number in range(1, most + 1)]
    shown = ids if len(ids) <= len(BRANCH_STYLES) else ids[: len(BRANCH_STYLES)]
    return [
        Patch(facecolor=color, hatch=hatch, edgecolor=PAPER, linewidth=0, label=entry(name))
        for name, (color, hatch) in zip(shown, BRANCH_STYLES, strict=False)
    ]
