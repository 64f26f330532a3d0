"""Who held which slot: the calls of the first requests, plan by plan."""

from dataclasses import dataclass, fields

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
from sim.units import NS_PER_MS, IntArray

MOST_CALLS, MOST_SLOTS = 80, 40
MOST_LONGEST_CALLS = 100
"""Requests are shown that arrive within so many times the longest call."""
LABEL_FROM_SHARE = 0.035
"""A bar shorter than this share of the axis has no room for its request's number."""


def gantt(result: Result, name: str) -> Figure:
    """Draw the slots of the first replication's first requests, one panel per plan on one time axis."""
    shown = {plan.label: shown_requests(plan.first_run) for plan in result.plans}
    drawn_bars = [bars(plan.first_run).of_first(shown[plan.label]) for plan in result.plans]
    heights = [0.35 + 0.085 * one.slots for one in drawn_bars]

    def paint(canvas: Canvas) -> None:
        column = canvas.subplots(len(result.plans), sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        end_ms = float(max(one.finish_ns.max() for one in drawn_bars) / NS_PER_MS)
        for axes, plan, one in zip(column, result.plans, drawn_bars, strict=True):
            paint_plan(axes, plan, one, end_ms)
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


@dataclass(frozen=True, repr=False)
class Bars:
    """The calls of a run on their slots (int64 each, by request), those of one provider after another's."""

    request: IntArray
    call: IntArray
    slot: IntArray
    start_ns: IntArray
    finish_ns: IntArray

    def of_first(self, requests: int) -> "Bars":
        """Return those of the first requests."""
        end = int(np.searchsorted(self.request, requests))
        return Bars(*(getattr(self, column.name)[:end] for column in fields(self)))

    @property
    def slots(self) -> int:
        """How many slots they used, from slot 0 on."""
        return int(self.slot.max(initial=-1)) + 1


def bars(run: Run) -> Bars:
    """Return, for each call of a run, the attempt that counted."""
    attempts, counted = run.out.attempts, run.out.counted
    before = np.cumsum([0, *(provider.most_slots for provider in run.given.providers)])
    slot = attempts.slot + before[run.given.providers_of_attempts(run.out)]
    columns = (attempts.number, attempts.call, slot, attempts.start_ns, attempts.finish_ns)
    return Bars(*(column[counted] for column in columns))


def shown_requests(run: Run) -> int:
    """Return how many of the first requests fit into the drawing, at least one."""
    held = bars(run)
    calls = np.searchsorted(held.request, np.arange(run.out.requests), side="right")
    slots = np.append(-1, np.maximum.accumulate(held.slot))[calls] + 1
    # Far apart they would be too thin to be seen.
    longest_ns = int((held.finish_ns - held.start_ns).max(initial=0))
    near = run.out.arrival_ns - run.out.arrival_ns[:1] <= MOST_LONGEST_CALLS * longest_ns
    return max(1, int(((calls <= MOST_CALLS) & (slots <= MOST_SLOTS) & near).sum()))


def paint_plan(axes: Axes, plan: PlanResult, shown: Bars, end_ms: float) -> None:
    left_ms, right_ms = shown.start_ns / NS_PER_MS, shown.finish_ns / NS_PER_MS
    start_ms = float(left_ms.min())
    for style, (color, hatch) in enumerate(BRANCH_STYLES):
        # Of many branches several share a style, and are drawn together.
        mine = shown.call % len(BRANCH_STYLES) == style
        if not mine.any():
            continue
        axes.barh(
            shown.slot[mine],
            (right_ms - left_ms)[mine],
            left=left_ms[mine],
            height=0.86,
            color=color,
            hatch=hatch,
            edgecolor=PAPER,
            linewidth=0.6,
        )
    room_ms = LABEL_FROM_SHARE * (end_ms - start_ms)
    for bar in np.flatnonzero(right_ms - left_ms >= room_ms).tolist():
        middle_ms = (left_ms[bar] + right_ms[bar]) / 2
        place = float(middle_ms), float(shown.slot[bar])
        number = axes.text(*place, str(shown.request[bar]), ha="center", va="center", fontsize=6.5)
        # It lies within its bar; measuring each would take longer than all else.
        number.set_in_layout(False)
    axes.set_title(plan_name(plan))
    axes.set_ylabel("slot")
    axes.set_ylim(shown.slots - 0.4, -0.6)
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
