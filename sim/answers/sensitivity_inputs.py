"""The inputs of the plan arithmetic, one by one: what each is now, what it may be, and how to change it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sim.plan.cost import carriers
from sim.plan.criteria import Evaluation, evaluate_parallel
from sim.plan.parallel_plan import ParallelPlan
from sim.plan.share import CalledProvider, usable_slots
from sim.scenario import Scenario
from sim.scenario.base import MAX_COUNT, MAX_MS
from sim.scenario.load import ClosedLoad
from sim.units import NS_PER_MS, Number, exact

NANOSECOND = Fraction(1, NS_PER_MS)
"""In ms."""
FINE = Fraction(1, 10**12)
ONE = Fraction(1)
MOST_MICROS = 10**12
MOST_USERS = 10**6


@dataclass(frozen=True)
class Setting:
    """Everything that the arithmetic decides on."""

    plan: ParallelPlan
    called: tuple[CalledProvider, ...]
    active: int
    max_micros_per_saved_ms: Number
    min_marginal_gain_ratio: Number

    def evaluation(self) -> Evaluation:
        """Return every figure and the decision, at the fair share of the slots."""
        plan = replace(self.plan, concurrency=usable_slots(self.called, self.active))
        return evaluate_parallel(plan, self.max_micros_per_saved_ms, self.min_marginal_gain_ratio)


@dataclass(frozen=True)
class Input:
    """One input.

    Parameters
    ----------
    name, path, unit
        In words; the key path in the scenario file; `ms`, `%`, `micros` or empty for a number of things.
    value
        What it is now, in the unit of the file.
    low, high, step
        What it may be, and how finely.
    changed
        The setting with another value.
    """

    name: str
    path: str
    unit: str
    value: Fraction
    low: Fraction
    high: Fraction
    step: Fraction
    changed: Callable[[Fraction], Setting]

    @property
    def is_whole(self) -> bool:
        """Whether it is a number of things."""
        return self.step == ONE

    def clipped(self, value: Fraction) -> Fraction:
        """Return a value as it may be: whole where that has to be, and within its range."""
        rounded = Fraction(round(value)) if self.is_whole else value
        return min(self.high, max(self.low, rounded))


def setting_of(scenario: Scenario, active: int) -> Setting:
    """Return what the arithmetic decides on at a number of active requests."""
    return Setting(
        scenario.parallel_plan(1),
        scenario.called_providers,
        active,
        scenario.criteria.max_micros_per_saved_ms,
        scenario.criteria.min_marginal_gain_ratio,
    )


def arithmetic_inputs(scenario: Scenario, active: int) -> list[Input]:
    """Return every input that changes what the arithmetic says of one workload."""
    setting = setting_of(scenario, active)
    return [
        *join_inputs(scenario, setting),
        *branch_inputs(scenario, setting),
        *(context_inputs(scenario, setting) if carriers(setting.plan) else []),
        *criteria_inputs(setting),
        *load_inputs(scenario, setting),
    ]


def join_inputs(scenario: Scenario, setting: Setting) -> Iterator[Input]:
    """Yield the join, and its growth where there are branches enough for it to grow."""
    growth_ms, most = exact(scenario.workflow.join_growth_ms), Fraction(MAX_MS)
    base_ms = exact(setting.plan.join_overhead_ms) - growth_ms

    def with_join(value_ms: Fraction) -> Setting:
        return replace(setting, plan=replace(setting.plan, join_overhead_ms=value_ms + growth_ms))

    path = scenario.key_path("workflow.join_overhead_ms")
    yield Input("join overhead", path, "ms", base_ms, Fraction(0), most, NANOSECOND, with_join)
    further = len(setting.plan.branches) - 2
    if further < 1:
        return

    def with_growth(value_ms: Fraction) -> Setting:
        return replace(setting, plan=replace(setting.plan, join_overhead_ms=base_ms + value_ms * further))

    path = scenario.key_path("workflow.join_growth_ms_per_branch")
    now = exact(scenario.workflow.join_growth_ms_per_branch)
    yield Input(
        "growth of the join per branch",
        path,
        "ms",
        now,
        Fraction(0),
        Fraction(10**6),
        NANOSECOND,
        with_growth,
    )


def branch_inputs(scenario: Scenario, setting: Setting) -> Iterator[Input]:
    """Yield the duration of each branch, the longest first."""
    branches = setting.plan.branches
    longest_first = sorted(
        range(len(branches)), key=lambda place: (-exact(branches[place].duration_ms), place)
    )
    for rank, place in enumerate(longest_first):
        branch = branches[place]
        yield Input(
            f"{'longest branch' if rank == 0 else 'branch'} {branch.id}",
            scenario.key_path(f"workflow.branches[{place}].duration_ms"),
            "ms",
            exact(branch.duration_ms),
            ONE,
            Fraction(MAX_MS),
            NANOSECOND,
            duration_changer(setting, place),
        )


def duration_changer(setting: Setting, place: int) -> Callable[[Fraction], Setting]:
    """Return what changes the duration of one branch."""

    def changed(value_ms: Fraction) -> Setting:
        branches = list(setting.plan.branches)
        branches[place] = replace(branches[place], duration_ms=value_ms)
        return replace(setting, plan=replace(setting.plan, branches=branches))

    return changed


def context_inputs(scenario: Scenario, setting: Setting) -> Iterator[Input]:
    """Yield tokens, price, reuse and the cached price of the shared context."""
    plan = setting.plan
    for name, field, word, unit, high, step in (
        ("shared context", "shared_context_tokens", "tokens", "tokens", MAX_COUNT, ONE),
        ("input price", "input_micros_per_ktok", "input_micros_per_ktok", "micros", MOST_MICROS, ONE),
        ("prefix reuse", "prefix_reuse_ratio", "prefix_reuse_ratio", "%", 1, FINE),
        ("cached price", "cached_input_price_ratio", "cached_input_price_ratio", "%", 1, FINE),
    ):
        yield Input(
            name,
            scenario.key_path(f"workflow.shared_context.{word}"),
            unit,
            exact(getattr(plan, field)),
            Fraction(0),
            Fraction(high),
            step,
            context_changer(setting, field),
        )


def context_changer(setting: Setting, field: str) -> Callable[[Fraction], Setting]:
    """Return what changes one field of the shared context."""

    def changed(value: Fraction) -> Setting:
        stated: dict[str, Any] = {field: value}
        return replace(setting, plan=replace(setting.plan, **stated))

    return changed


def criteria_inputs(setting: Setting) -> Iterator[Input]:
    """Yield the exchange rate of money and time, and the least gain of a slot."""
    yield Input(
        "exchange rate",
        "criteria.max_micros_per_saved_ms",
        "micros",
        exact(setting.max_micros_per_saved_ms),
        Fraction(0),
        Fraction(MOST_MICROS),
        FINE,
        lambda value: replace(setting, max_micros_per_saved_ms=value),
    )
    yield Input(
        "least gain per slot",
        "criteria.min_marginal_gain_ratio",
        "%",
        exact(setting.min_marginal_gain_ratio),
        Fraction(0),
        ONE,
        FINE,
        lambda value: replace(setting, min_marginal_gain_ratio=value),
    )


def load_inputs(scenario: Scenario, setting: Setting) -> Iterator[Input]:
    """Yield active requests and slots."""
    path = scenario.key_path("load.active_requests") if isinstance(scenario.load, ClosedLoad) else ACTIVE
    active, most = Fraction(setting.active), Fraction(MOST_USERS)
    yield Input(
        "active requests", path, "", active, ONE, most, ONE, lambda value: replace(setting, active=int(value))
    )
    yield slots_input(scenario, setting)


def slots_input(scenario: Scenario, setting: Setting) -> Input:
    """Return the slots of the tightest provider that is called."""
    name = scenario.tightest_provider
    one = scenario.providers[name]
    steps = [step.concurrency for step in one.concurrency_steps]
    place = list(scenario.branch_providers).index(name)

    def with_slots(value: Fraction) -> Setting:
        called = list(setting.called)
        called[place] = replace(called[place], slots=max([int(value), *steps]))
        return replace(setting, called=tuple(called))

    path, now, most = scenario.concurrency_path(name), Fraction(one.concurrency), Fraction(MOST_USERS)
    return Input("slots", path, "", now, ONE, most, ONE, with_slots)


ACTIVE = "active_requests"
"""Stands for a key path where the load has no number of users."""
