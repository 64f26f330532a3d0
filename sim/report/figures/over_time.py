"""What a run went through: active requests, queue and slots in use over time."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from sim.contract.output import RunOutput
from sim.report.content import Figure
from sim.report.figures.drawing import drawn
from sim.report.figures.style import (
    INK,
    MUTED,
    Look,
    clipped,
    legend_above,
    line_style,
    plan_styles,
    thousands,
)
from sim.report.shown import ms
from sim.report.steps import (
    StepFunction,
    active_requests,
    binned,
    queue_length,
    slots_in_use,
    slots_offered,
)
from sim.report.words import plan_name
from sim.result.result import Result
from sim.run.simulation import Run
from sim.statistics.digits import trimmed
from sim.units import NS_PER_MS, NS_PER_S, FloatArray, IntArray, s_to_ns

MOST_CALLS = 300
LEAST_BINS, MOST_BINS = 40, 160
MOST_STEPS_NAMED = 4
BIN_LATENCIES = 5
"""A bin is this many mean latencies wide, where there is time: narrower ones beat with a regular load."""


Panel = tuple[str, Callable[[Run], StepFunction]]
PANELS: tuple[Panel, ...] = (
    ("active requests", active_requests),
    ("calls queued", queue_length),
    ("slots in use", slots_in_use),
)


def over_time(result: Result, name: str) -> Figure:
    """Draw the first replication of every plan: exact steps of a short run, else means over bins of time."""
    runs = {plan.label: plan.first_run for plan in result.plans}
    exact = all(calls_made(run) <= MOST_CALLS for run in runs.values())

    def paint(canvas: Canvas) -> None:
        column = canvas.subplots(len(PANELS), sharex=True)
        styles = plan_styles(list(runs))
        for axes, (label, count) in zip(column, PANELS, strict=True):
            for plan in result.plans:
                run, draw = runs[plan.label], paint_steps if exact else paint_bins
                draw(axes, count(run), run.out, styles[plan.label], plan_name(plan))
            paint_periods(axes, result)
            axes.set_ylabel(label)
            axes.set_ylim(0, max(1.0, 1.06 * axes.get_ylim()[1]))
            thousands(axes.yaxis)
        finish(column, result)

    title = f"Over time: {result.scenario.name}"
    description = f"Step curves of {', '.join(label for label, _ in PANELS)}; {peaks(result)}."
    return drawn(f"{name}-over-time", (title, caption(result, exact), description), 5.0, paint)


def calls_made(run: Run) -> int:
    """Return how many attempts at calls a run made."""
    return len(run.out.attempts.number)


def paint_steps(axes: Axes, steps: StepFunction, out: RunOutput, style: Look, label: str) -> None:
    """Draw the number as it was: each value holds from its instant to the next."""
    edges_s = np.append(steps.time_ns, max(out.horizon_ns, int(steps.time_ns[-1]))) / NS_PER_S
    axes.stairs(steps.value, edges_s, baseline=None, label=label, **look(style))


def paint_bins(axes: Axes, steps: StepFunction, out: RunOutput, style: Look, label: str) -> None:
    """Draw the time-weighted mean of each bin over its own width, and the range within it as a band."""
    bins = binned(steps, out.horizon_ns, bins_of(out))
    edges_s = bins.edge_ns / NS_PER_S
    axes.stairs(bins.mean, edges_s, baseline=None, label=label, **look(style))
    least, greatest = held(bins.least), held(bins.greatest)
    axes.fill_between(edges_s, least, greatest, step="post", color=style["color"], alpha=0.13, linewidth=0)


def bins_of(out: RunOutput) -> int:
    """Return how many bins a run is drawn in."""
    latency_ns = max(1.0, float(out.latency_ns.mean()))
    return int(min(MOST_BINS, max(LEAST_BINS, out.horizon_ns / (BIN_LATENCIES * latency_ns))))


def held(values: IntArray) -> FloatArray:
    """Return one value more, so that the last one is drawn over the width of its bin."""
    return np.append(values, values[-1]).astype(np.float64)


def look(style: Look) -> Look:
    """Return a plan's style for stairs."""
    return {**line_style(style), "linewidth": 1.6}


def paint_periods(axes: Axes, result: Result) -> None:
    """Draw where one period of the load ends and the next begins."""
    for period in result.scenario.periods[1:]:
        axes.axvline(period.from_s, color=MUTED, linewidth=0.9, linestyle=":")


def finish(column: Sequence[Axes], result: Result) -> None:
    end_ns = max(plan.first_run.out.horizon_ns for plan in result.plans)
    paint_slots(column[-1], slots_offered(result.plans[0].first_run), end_ns, len(result.scenario.providers))
    column[-1].set_xlabel("time, s")
    thousands(column[-1].xaxis)
    column[-1].set_xlim(0, end_ns / NS_PER_S)
    handles, labels = column[0].get_legend_handles_labels()
    legend_above(column[0], columns=2 if any("(" in label for label in labels) else 3, handles=handles)
    for period in result.scenario.periods:
        middle_s = (s_to_ns(period.from_s) + s_to_ns(period.to_s)) / 2 / NS_PER_S
        column[0].annotate(
            clipped(period.name),
            (middle_s, 0),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            color=MUTED,
        )


def paint_slots(axes: Axes, offered: StepFunction, end_ns: int, providers: int) -> None:
    """Draw how many slots there were, of all providers together, and say so."""
    edges_s = np.append(offered.time_ns, max(end_ns, int(offered.time_ns[-1]))) / NS_PER_S
    axes.stairs(offered.value, edges_s, baseline=None, color=INK, linewidth=1)
    axes.set_ylim(0, 1.2 * int(offered.value.max()))
    axes.annotate(
        f"{slots_words(offered)}{f' of {providers} providers' if providers > 1 else ''}",
        (0, int(offered.value[0])),
        xytext=(3, 2),
        textcoords="offset points",
        fontsize=8.5,
        color=INK,
    )


def slots_words(offered: StepFunction) -> str:
    """Return the slots in words: one number, each step, or the range of many steps."""
    slots = offered.value.tolist()
    if len(slots) > MOST_STEPS_NAMED:
        return f"{min(slots):,} to {max(slots):,} slots"
    return f"{' → '.join(f'{each:,}' for each in slots)} slots"


def caption(result: Result, exact: bool) -> str:
    """Return how the curves were made."""
    if exact:
        return "First replication; every change is drawn at its instant."
    widths_ms = [
        plan.first_run.out.horizon_ns / bins_of(plan.first_run.out) / NS_PER_MS for plan in result.plans
    ]
    widths = " to ".join(dict.fromkeys(width_words(width) for width in (min(widths_ms), max(widths_ms))))
    return (
        f"First replication in bins of {widths}: line, time-weighted mean of a bin; "
        "band, least and greatest number within it."
    )


def width_words(width_ms: float) -> str:
    """Return the width of a bin with its unit."""
    return f"{ms(width_ms)} ms" if width_ms < 1000 else f"{trimmed(width_ms / 1000)} s"


def peaks(result: Result) -> str:
    """Return the greatest number of active requests of each plan."""
    return ", ".join(
        f"{plan_name(plan)} at most {int(active_requests(plan.first_run).value.max()):,} active"
        for plan in result.plans
    )
