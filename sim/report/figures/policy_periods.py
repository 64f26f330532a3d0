"""Mean latency of the policy and of both fixed plans, period by period."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from sim.answers.policy import POLICY, PolicyPeriod, PolicyResult
from sim.contract.figure import MEAN_DELIVERED_LATENCY
from sim.contract.plan import FIXED_PLANS
from sim.report.content import Figure
from sim.report.figures.drawing import drawn
from sim.report.figures.style import BLUE, GREEN, VERMILLION, clipped, legend_above, thousands
from sim.statistics.digits import trimmed

COLOURS = {FIXED_PLANS[0]: BLUE, FIXED_PLANS[1]: VERMILLION, POLICY: GREEN}
BAR = 0.26


def policy_periods(result: PolicyResult) -> Figure:
    """Draw three bars for each period, and for the whole load."""
    periods = (*result.periods, result.whole)

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        for offset, (label, colour) in enumerate(COLOURS.items()):
            paint_plan(axes, periods, label, colour, (offset - 1) * BAR)
        axes.set_yticks(range(len(periods)), [clipped(one.name) for one in periods])
        axes.set_ylim(len(periods) - 0.45, -0.55)
        axes.set_xlabel("mean latency, ms")
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
        thousands(axes.xaxis)
        legend_above(axes)

    readings = "; ".join(in_words(one) for one in periods)
    words = ("The policy beside both fixed plans", "Bars: mean latency; whiskers: 95 % intervals.", readings)
    return drawn("policy-periods", words, 0.9 + 0.62 * len(periods), paint)


def paint_plan(axes: Axes, periods: tuple[PolicyPeriod, ...], label: str, colour: str, offset: float) -> None:
    """Draw one plan's bars."""
    figures = [one.figures[label][MEAN_DELIVERED_LATENCY] for one in periods]
    axes.barh(
        [place + offset for place in range(len(periods))],
        [figure.mean for figure in figures],
        xerr=[figure.half_width or 0 for figure in figures],
        height=BAR,
        color=colour,
        label=label if label == POLICY else f"always {label}",
    )


def in_words(period: PolicyPeriod) -> str:
    """Return a period's means."""
    means = (
        f"{label} {trimmed(figures[MEAN_DELIVERED_LATENCY].mean, 1)} ms"
        for label, figures in period.figures.items()
    )
    return f"{period.name}: {', '.join(means)}"
