"""Figures as text, and which of them tables show."""

import math
from collections.abc import Iterable, Mapping, Sequence

from sim.contract.figure import FIGURES, Figure, Kind, figure_of, shares_within
from sim.contract.plan import PARALLEL, PLANS
from sim.result.plan_result import PlanResult
from sim.statistics.digits import decimals_of, fixed, plus_minus, typed
from sim.statistics.interval import Difference, Estimate
from sim.statistics.stability import OVERLOADED

BLANK = "-"
ORDER = {name: place for place, name in enumerate(sorted(PLANS, key=lambda name: name != PARALLEL))}
"""Plans in tables: the question, what it is held against, the mixture of both, and the lead for a cache."""


def rows_of(plans: Sequence[PlanResult]) -> list[str]:
    """Return the figures to show of plans: those that say something."""
    estimates = [plan.estimates for plan in plans]
    listed = [name for name, figure in FIGURES.items() if figure.listed and _tells(figure, estimates)]
    return [*listed, *shares_within(estimates[0])]


def _tells(figure: Figure, estimates: Sequence[dict[str, Estimate]]) -> bool:
    having, usual = [each for each in estimates if figure.name in each], figure.usual
    means = [each[figure.name].mean for each in having]
    return means != [each[usual].mean if isinstance(usual, str) else usual for each in having]


def number(value: float) -> str:
    """Return a number as text, with more decimals where it is small."""
    return BLANK if math.isnan(value) else typed(fixed(value, decimals_of(value)))


def whole(value: float) -> str:
    """Return a number with no decimals where it has none."""
    return f"{value:,.0f}" if value == int(value) else number(value)


def estimate(figure: Estimate | Difference, kind: Kind = "time") -> str:
    """Return a mean with the half-width of its interval, unless that is 0; a blank where it is missing."""
    if math.isnan(figure.mean):
        return BLANK
    scale = 100 if kind == "share" else 1
    mean, half_width = scale * figure.mean, scale * (figure.half_width or 0)
    if kind == "count" and not half_width:
        return whole(mean)
    return typed(plus_minus(mean, half_width, decimals_of(mean)))


def text_of(figures: Mapping[str, Estimate], name: str) -> str:
    """Return one of some figures, as its kind is shown."""
    return estimate(figures[name], figure_of(name).kind)


def in_order(plans: Iterable[PlanResult]) -> list[PlanResult]:
    """Return plans as tables show them."""
    return sorted(plans, key=lambda plan: ORDER[plan.plan.plan])


def heading(plan: PlanResult) -> str:
    """Return a plan's label, with a word where its figures are no steady state."""
    return f"{plan.label} ({OVERLOADED})" if plan.stability.label == OVERLOADED else plan.label
