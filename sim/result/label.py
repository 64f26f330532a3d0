"""Whether a plan's run has a steady state, from its load and from what was measured."""

from collections.abc import Iterable, Sequence

import numpy as np

from sim.contract.figure import PARALLEL_SHARE, UTILISATION
from sim.draws.arrivals import CountClock
from sim.draws.drawing import is_closed, is_deterministic
from sim.run.measure import Measured, MeasuredPeriod
from sim.scenario import Scenario
from sim.scenario.load import OpenLoad
from sim.statistics.figures import Figures, Value
from sim.statistics.stability import Backlog, Stability, closed_stability, open_stability

WORST_FIRST = ("overloaded", "near saturation", "stable", "deterministic")


def label_run(scenario: Scenario, measured: Sequence[Measured]) -> Stability:
    """Return the label of a plan's runs; a changing load is as steady as its worst period."""
    whole = _label(
        scenario,
        [one.figures for one in measured],
        offered_load(scenario, measured),
        [one.backlog for one in measured],
    )
    if scenario.rates is None or len(scenario.periods) == 0:
        return whole
    parts = zip(*(one.periods for one in measured), strict=True)
    labels = [(part[0].period.name, label_period(scenario, part)) for part in parts]
    name, worst = min(labels, key=lambda item: WORST_FIRST.index(item[1].label))
    return Stability(worst.label, f"{name}: {worst.reason}")


def label_period(scenario: Scenario, parts: Sequence[MeasuredPeriod]) -> Stability:
    """Return the label of one period of a changing load, over the replications."""
    period, figures = parts[0].period, [part.figures for part in parts]
    erlangs = float("nan")
    if scenario.rates is not None:
        count = np.diff(CountClock(scenario.rates).count(np.array([period.from_s, period.to_s])))[0]
        erlangs = count / (period.to_s - period.from_s) * mean_work_s(scenario, figures)
    return _label(scenario, figures, erlangs, [part.backlog for part in parts])


def offered_load(scenario: Scenario, measured: Sequence[Measured]) -> float:
    """Return arrival rate x mean work, erlangs; NaN where nothing arrives over time, or users are among it.

    Of a constant rate by the scenario's means, else the work of the requests over the time they arrive in.
    """
    if any(is_closed(part) for part in scenario.parts):
        return float("nan")
    if scenario.is_plain and isinstance(scenario.load, OpenLoad):
        return scenario.load.rate_per_s * mean_work_s(scenario, [one.figures for one in measured])
    span_ns = sum(one.arrival_span_ns for one in measured)
    return sum(one.work_ns for one in measured) / span_ns if span_ns else float("nan")


def mean_work_s(scenario: Scenario, figures: Sequence[Figures]) -> float:
    """Return the mean slot-time of a request: its branches, and its join where that holds a slot."""
    work_ms = sum(scenario.branch_means_ms)
    if scenario.workflow.join_holds_slot:
        work_ms += scenario.join_mean_ms * _mean(one[PARALLEL_SHARE] for one in figures)
    return work_ms / 1000


def _label(
    scenario: Scenario, figures: Sequence[Figures], erlangs: float, backlogs: Sequence[Backlog]
) -> Stability:
    deterministic = is_deterministic(scenario)
    if all(is_closed(part) for part in scenario.parts):
        return closed_stability(_mean(one[UTILISATION] for one in figures), deterministic)
    called = {name for part in scenario.parts for name in part.used_providers}
    slots = sum(scenario.providers[name].concurrency for name in called)
    return open_stability(erlangs, slots, backlogs, deterministic)


def _mean(values: Iterable[Value]) -> float:
    return float(np.mean([float(value) for value in values]))
