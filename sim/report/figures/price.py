"""The price of a saved millisecond against the share of the context that the provider's cache serves."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from sim.plan.cost import extra_cost_micros
from sim.plan.criteria import Evaluation
from sim.plan.parallel_plan import ParallelPlan
from sim.report.content import Figure
from sim.report.figures.drawing import drawn
from sim.report.figures.style import (
    INK,
    MUTED,
    ORANGE,
    PINK,
    SKY,
    VERMILLION,
    Look,
    entry,
    legend_above,
    thousands,
)
from sim.statistics.digits import fixed, trimmed

POINTS = 200
LOOKS: tuple[Look, ...] = (
    {"color": VERMILLION, "linestyle": "-", "marker": "s"},
    {"color": SKY, "linestyle": (0, (5, 1.6)), "marker": "o"},
    {"color": PINK, "linestyle": (0, (1.2, 1.4)), "marker": "^"},
    {"color": ORANGE, "linestyle": (0, (6, 1.5, 1.2, 1.5)), "marker": "D"},
)


@dataclass(frozen=True, slots=True)
class Priced:
    """A saving that has a price: whose it is, the plan that pays it, and what the arithmetic says."""

    label: str
    plan: ParallelPlan
    evaluation: Evaluation


def price_figure(priced: Sequence[Priced], limit: float) -> Figure:
    """Draw micros per saved ms over the prefix reuse ratio, the limit, and where each scenario stands."""

    def paint(canvas: Canvas) -> None:
        axes = canvas.subplots()
        axes.axhline(limit, color=INK, linewidth=1.2, label=f"most allowed, {trimmed(limit)}")
        for place, one in enumerate(priced):
            paint_price(axes, one, LOOKS[place % len(LOOKS)])
        axes.set_xlabel("prefix reuse ratio")
        axes.set_ylabel("micros per saved ms")
        axes.set_xlim(0, 1)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
        thousands(axes.yaxis)
        legend_above(axes, columns=2)

    caption = (
        "From the plan arithmetic. Marker: the scenario's own reuse ratio. "
        "Dotted: the break-even ratio, from which on the extra cost is worth its time."
    )
    description = f"Falling lines of micros per saved ms. {'; '.join(map(in_words, priced))}."
    return drawn("price-of-a-saved-ms", ("Price of a saved millisecond", caption, description), 3.4, paint)


def price_at(one: Priced, reuse: float) -> float:
    """Return the micros per saved ms at a prefix reuse ratio."""
    extra = extra_cost_micros(replace(one.plan, prefix_reuse_ratio=reuse))
    return extra / one.evaluation.saved_ms


def paint_price(axes: Axes, one: Priced, look: Look) -> None:
    ratios = [place / POINTS for place in range(POINTS + 1)]
    line = {key: value for key, value in look.items() if key != "marker"}
    axes.plot(ratios, [price_at(one, ratio) for ratio in ratios], label=entry(one.label), **line)
    here = float(one.plan.prefix_reuse_ratio)
    price = price_at(one, here)
    axes.plot(here, price, color=look["color"], marker=look["marker"], markersize=8, linestyle="none")
    axes.annotate(fixed(price, 2), (here, price), xytext=(7, 6), textcoords="offset points", weight="bold")
    break_even = one.evaluation.break_even_reuse_ratio
    if break_even is not None:
        axes.axvline(break_even, color=MUTED, linewidth=1.2, linestyle=":")
        axes.annotate(
            f"{fixed(100 * break_even, 2)} %",
            (break_even, 0),
            xytext=(4, 5),
            textcoords="offset points",
            color=MUTED,
        )


def in_words(one: Priced) -> str:
    """Return where a scenario stands."""
    here = float(one.plan.prefix_reuse_ratio)
    price, reuse = fixed(price_at(one, here), 2), trimmed(100 * here)
    even = one.evaluation.break_even_reuse_ratio
    ending = "no ratio breaks even" if even is None else f"break-even at {fixed(100 * even, 2)} %"
    return f"{one.label}: {price} at {reuse} %, {ending}"
