"""What would have to change for the verdict to change: break-even values of every input, one at a time.

Where the plan arithmetic decides they are exact. What it does not know, such as failures, is simulated.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from sim.answers.break_even import Turn, turns
from sim.answers.sensitivity_inputs import ACTIVE, Input, Setting, arithmetic_inputs, setting_of
from sim.answers.simulated_inputs import Judged, Simulated, judged_scenario, simulated_inputs
from sim.errors import ArgumentError
from sim.plan.criteria import MERGE
from sim.result.summary import plain, provenance
from sim.run.backend import Workers
from sim.scenario import Scenario
from sim.scenario.load import ClosedLoad, StepsLoad

CHANGE = Fraction(1, 10)
ARITHMETIC, SIMULATED = "arithmetic", "simulated"

Outcomes = tuple[bool, bool]
"""Whether all four criteria hold, and whether parallel is faster."""
Which = Callable[[Outcomes], bool]


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Where a verdict changes.

    Parameters
    ----------
    value
        The break-even value; of a number of things, the first with the other verdict.
    holds_at, fails_at
        Neighbouring values with parallel on its good side and on its bad side.
    confirmed
        Whether the scenario itself, with either value stated over it, has those two verdicts.
    """

    value: float
    holds_at: float
    fails_at: float
    confirmed: bool


@dataclass(frozen=True, slots=True)
class Shift:
    """What an input does at another value; `micros_per_saved_ms` is None where no time is saved."""

    value: float
    saved_ms: float
    micros_per_saved_ms: float | None
    decision: str


@dataclass(frozen=True)
class InputSensitivity:
    """One input: what it is, where the verdict flips, and what a change of 10 % does.

    `latency_flips` is where parallel stops being faster, whatever it costs.
    """

    name: str
    path: str
    unit: str
    basis: str
    value: float
    flips: tuple[BreakEven, ...]
    latency_flips: tuple[BreakEven, ...]
    less: Shift
    more: Shift

    @property
    def swing_ms(self) -> float:
        """How far the saving moves between 10 % less and 10 % more; 0 where either could not be measured."""
        swing = abs(self.more.saved_ms - self.less.saved_ms)
        return 0.0 if math.isnan(swing) else swing

    @property
    def swing_micros_per_saved_ms(self) -> float:
        """How far the price of a saved ms moves; 0 where it has none at either end."""
        less, more = self.less.micros_per_saved_ms, self.more.micros_per_saved_ms
        return 0.0 if less is None or more is None else abs(more - less)

    def summary(self) -> dict[str, Any]:
        """Return the input as plain data."""
        return {
            **{name: getattr(self, name) for name in ("name", "path", "unit", "basis", "value")},
            "flips": [asdict(flip) for flip in self.flips],
            "latency_flips": [asdict(flip) for flip in self.latency_flips],
            "less": {name: plain(value) for name, value in asdict(self.less).items()},
            "more": {name: plain(value) for name, value in asdict(self.more).items()},
        }


@dataclass(frozen=True)
class Sensitivity:
    """Every input of one workload, at a number of active requests."""

    scenario: Scenario
    active_requests: int
    base: Shift
    simulated: Shift | None
    inputs: tuple[InputSensitivity, ...]

    @property
    def by_swing(self) -> tuple[InputSensitivity, ...]:
        """The inputs in the order of a tornado: what moves the saving most comes first."""
        moving = (one for one in self.inputs if one.swing_ms or one.swing_micros_per_saved_ms)
        return tuple(sorted(moving, key=lambda one: (-one.swing_ms, -one.swing_micros_per_saved_ms)))

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the arithmetic and the simulation are not of one mind."""
        if self.simulated is None or self.simulated.decision == self.base.decision:
            return ()
        return (
            f"simulated the decision is {self.simulated.decision}, by arithmetic at "
            f"{self.active_requests} active requests {self.base.decision}",
        )

    def of(self, name: str) -> InputSensitivity:
        """Return an input by its key path or its words; `KeyError` where there is none."""
        return {key: one for one in self.inputs for key in (one.path, one.name)}[name]

    def summary(self) -> dict[str, Any]:
        """Return every input as plain data, those that move the saving most first."""
        order = {id(one): place for place, one in enumerate(self.by_swing)}
        inputs = sorted(self.inputs, key=lambda one: order.get(id(one), len(order)))
        return {
            **provenance(self.scenario),
            "workload": self.scenario.part_name,
            "active_requests": self.active_requests,
            "decision": self.base.decision,
            "saved_ms": self.base.saved_ms,
            "micros_per_saved_ms": self.base.micros_per_saved_ms,
            "simulated_decision": self.simulated.decision if self.simulated else None,
            "notes": list(self.notes),
            "inputs": [one.summary() for one in inputs],
        }

    def __repr__(self) -> str:
        return f"<Sensitivity of {self.scenario.name}: {self.base.decision}, {len(self.inputs)} inputs>"


def sensitivities(
    scenario: Scenario,
    *,
    active: int | None = None,
    simulate: bool = True,
    workers: Workers = None,
    engine: str = "auto",
    progress: Callable[[int], None] | None = None,
) -> Sensitivity:
    """Find for every input the values at which the decision flips, all others as they are.

    Parameters
    ----------
    active
        Active requests, which give the fair share; those of a closed load, else their simulated mean.
    simulate
        Whether to simulate for the inputs that the arithmetic does not know: failures, an arrival rate.
    workers, engine, progress
        As for `simulate`; progress counts simulated values.

    Raises
    ------
    ArgumentError
        The load does not say how many requests are active, and nothing is to be simulated.
    """
    given = judged_scenario(workers, engine, progress)
    unknown = simulated_inputs(scenario) if simulate else []
    measured = given(scenario) if unknown else None
    level = active or stated_active(scenario) or (measured.active if measured else None)
    if level is None:
        raise ArgumentError(
            "active", "must be given: the load does not say how many requests are active", None
        )
    inputs = [by_arithmetic(scenario, one, level) for one in arithmetic_inputs(scenario, level)]
    if measured is not None:
        inputs += [by_simulation(one, measured, given) for one in unknown]
    base = shift(setting_of(scenario, level), Fraction(level))
    simulated = None if measured is None else shown(measured, level)
    return Sensitivity(scenario, level, base, simulated, tuple(inputs))


def stated_active(scenario: Scenario) -> int | None:
    """Return the users of a closed load, the most that there are at any time."""
    load = scenario.load
    if isinstance(load, ClosedLoad):
        return load.active_requests
    if isinstance(load, StepsLoad) and load.is_closed:
        return max(step.active_requests or 0 for step in load.steps)
    return None


def by_arithmetic(scenario: Scenario, one: Input, active: int) -> InputSensitivity:
    """Return an input that the plan arithmetic knows."""

    @cache
    def outcomes(value: Fraction) -> Outcomes:
        return outcomes_of(one.changed(value))

    def flips(which: Which) -> tuple[BreakEven, ...]:
        found = turns(lambda value: which(outcomes(value)), one.value, one.low, one.high, one.step)
        return tuple(break_even(scenario, one, active, each, which) for each in found)

    return InputSensitivity(
        name=one.name,
        path=one.path,
        unit=one.unit,
        basis=ARITHMETIC,
        value=float(one.value),
        flips=flips(merges),
        latency_flips=flips(saves_time),
        less=at(one, one.value * (1 - CHANGE)),
        more=at(one, one.value * (1 + CHANGE)),
    )


def outcomes_of(setting: Setting) -> Outcomes:
    """Return whether all four criteria hold, and whether parallel is faster, whatever it costs."""
    evaluation = setting.evaluation()
    return evaluation.decision == MERGE, evaluation.criteria[0].passed


def merges(outcomes: Outcomes) -> bool:
    """Return whether all four criteria hold."""
    return outcomes[0]


def saves_time(outcomes: Outcomes) -> bool:
    """Return whether parallel is faster than serial."""
    return outcomes[1]


def break_even(scenario: Scenario, one: Input, active: int, found: Turn, which: Which) -> BreakEven:
    """Return a turn as a value, with the values on both sides confirmed on the scenario itself."""
    inside_holds = which(outcomes_of(one.changed(found.inside)))
    good, bad = (found.inside, found.outside) if inside_holds else (found.outside, found.inside)
    value = found.outside if one.is_whole else found.between
    stated = [outcomes_of(stated_setting(scenario, one, active, each)) for each in (good, bad)]
    confirmed = which(stated[0]) and not which(stated[1])
    return BreakEven(float(value), number(one, good), number(one, bad), confirmed)


def stated_setting(scenario: Scenario, one: Input, active: int, value: Fraction) -> Setting:
    """Return the setting of the scenario with a value stated over it, as a file would state it."""
    if one.path == ACTIVE:
        return setting_of(scenario, int(value))
    if one.path.endswith("load.active_requests"):
        return setting_of(scenario.replace({one.path: int(value)}), int(value))
    return setting_of(scenario.replace({one.path: number(one, value)}), active)


def number(one: Input, value: Fraction) -> int | float:
    """Return a value as a file states it."""
    return int(value) if one.is_whole else float(value)


def at(one: Input, value: Fraction) -> Shift:
    """Return what an input does at another value."""
    clipped = one.clipped(value)
    return shift(one.changed(clipped), clipped)


def shift(setting: Setting, value: Fraction) -> Shift:
    """Return saving, price and decision of a setting."""
    evaluation = setting.evaluation()
    price = evaluation.criteria[1].value
    return Shift(float(value), evaluation.saved_ms, price, evaluation.decision)


def by_simulation(one: Simulated, here: Judged, judge: Callable[[Scenario], Judged]) -> InputSensitivity:
    """Return an input that only simulation knows."""
    found = one.flips(here, judge)
    change = float(CHANGE)
    shifts = []
    for factor in (1 - change, 1 + change):
        value = max(one.low, min(one.high, one.value * factor))
        shifts.append(shown(judge(one.at(value)), value))
    return InputSensitivity(
        name=one.name,
        path=one.path,
        unit=one.unit,
        basis=SIMULATED,
        value=one.value,
        flips=tuple(BreakEven((good + bad) / 2, good, bad, confirmed=True) for good, bad in found),
        latency_flips=(),
        less=shifts[0],
        more=shifts[1],
    )


def shown(judged: Judged, value: float) -> Shift:
    """Return what was measured at a value."""
    return Shift(value, judged.saved_ms, judged.micros_per_saved_ms, judged.decision)
