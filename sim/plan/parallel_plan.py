"""What a request runs: its branches, and a plan to run them in parallel. Validated when made.

Every refusal is a `PlanError` that names the field, the rule and the value.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from sim.errors import PlanError
from sim.units import Number, ms_to_ns

LARGEST = 10**15
"""No duration, count or cost may exceed this, so that every exact result also fits a float."""


@dataclass(frozen=True)
class Branch:
    """One step of the workflow that needs one slot.

    Parameters
    ----------
    id : str
        Not blank, unique within its plan.
    duration_ms : number
        Service time in ms, at least 1.
    cost_micros : int
        What one call costs without the shared context, in micros.
    carries_shared_context : bool
        Whether the call sends the shared context along, and so pays for a copy of it.
    depends_on : sequence of str
        Ids of the branches that must finish first.

    Raises
    ------
    PlanError
        For the first field that breaks its rule.
    """

    id: str
    duration_ms: Number
    cost_micros: int = 0
    carries_shared_context: bool = False
    depends_on: Sequence[str] = ()

    def __post_init__(self) -> None:
        _require_text("id", self.id)
        _set(self, "duration_ms", real_number("duration_ms", self.duration_ms, at_least=1))
        _set(self, "cost_micros", whole_number("cost_micros", self.cost_micros, at_least=0))
        if not isinstance(self.carries_shared_context, bool | np.bool_):
            raise PlanError("carries_shared_context", "must be true or false", self.carries_shared_context)
        _set(self, "carries_shared_context", bool(self.carries_shared_context))
        if not isinstance(self.depends_on, list | tuple):
            raise PlanError("depends_on", "must be a list of branch ids", self.depends_on)
        seen: set[str] = set()
        for index, name in enumerate(self.depends_on):
            _require_text(f"depends_on[{index}]", name)
            if name in seen:
                raise PlanError(f"depends_on[{index}]", "must not repeat", name)
            seen.add(name)
        _set(self, "depends_on", tuple(self.depends_on))


@dataclass(frozen=True)
class ParallelPlan:
    """A request's branches, the slots it may hold at once, its join and the price of its shared context.

    Parameters
    ----------
    branches : sequence of Branch
        At least one; their order is the queue order of branches that become ready together.
    concurrency : int
        Slots the request may hold at once, at least 1.
    join_overhead_ms : number
        Merge, validate and hand over after the last branch; holds no slot.
    shared_context_tokens : int
        Tokens of the context that every carrying branch sends.
    input_micros_per_ktok : int
        Price in micros per 1,000 input tokens.
    prefix_reuse_ratio, cached_input_price_ratio : number
        Share of the context served from the prefix cache, and the price of a cached token as a share of
        the full price; both within 0 and 1. With the defaults nothing is reused and nothing is cheaper.
    baseline_ms, baseline_cost_micros : number, int, optional
        The whole request as it is today, at least 1 each.

    Raises
    ------
    PlanError
        For the first field that breaks its rule.
    """

    branches: Sequence[Branch]
    concurrency: int
    join_overhead_ms: Number = 0
    shared_context_tokens: int = 0
    input_micros_per_ktok: int = 0
    prefix_reuse_ratio: Number = 0
    cached_input_price_ratio: Number = 1
    baseline_ms: Number | None = None
    baseline_cost_micros: int | None = None

    def __post_init__(self) -> None:
        _set(self, "branches", _checked_branches(self.branches))
        _set(self, "concurrency", whole_number("concurrency", self.concurrency, at_least=1))
        _set(self, "join_overhead_ms", real_number("join_overhead_ms", self.join_overhead_ms, at_least=0))
        for name in ("shared_context_tokens", "input_micros_per_ktok"):
            _set(self, name, whole_number(name, getattr(self, name), at_least=0))
        for name in ("prefix_reuse_ratio", "cached_input_price_ratio"):
            _set(self, name, ratio(name, getattr(self, name)))
        if self.baseline_ms is not None:
            _set(self, "baseline_ms", real_number("baseline_ms", self.baseline_ms, at_least=1))
        if self.baseline_cost_micros is not None:
            baseline_cost = whole_number("baseline_cost_micros", self.baseline_cost_micros, at_least=1)
            _set(self, "baseline_cost_micros", baseline_cost)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "ParallelPlan":
        """Build a plan from plain types, as a JSON file holds them.

        A fault in a branch names its place: `branches[1].duration_ms must be >= 1 (got 0)`.
        """
        _require_keys("plan", values, cls)
        branches = values["branches"]
        if isinstance(branches, list | tuple):
            branches = [_branch_from(f"branches[{index}]", item) for index, item in enumerate(branches)]
        return cls(**{**values, "branches": branches})

    @property
    def service_ns(self) -> tuple[int, ...]:
        """Service time of each branch in ns, in input order."""
        assert isinstance(self.branches, CheckedBranches)
        return self.branches.service_ns

    @cached_property
    def join_ns(self) -> int:
        """Join overhead in ns."""
        return ms_to_ns(self.join_overhead_ms)

    @property
    def dependencies(self) -> tuple[tuple[int, ...], ...]:
        """For each branch the positions of the branches that it waits for."""
        assert isinstance(self.branches, CheckedBranches)
        return self.branches.dependencies


class CheckedBranches(tuple[Branch, ...]):
    """The branches of a plan, checked: another plan of the same ones need not check them again."""

    @cached_property
    def service_ns(self) -> tuple[int, ...]:
        """Service time of each branch in ns."""
        return tuple(ms_to_ns(branch.duration_ms) for branch in self)

    @cached_property
    def dependencies(self) -> tuple[tuple[int, ...], ...]:
        """For each branch the positions of the branches that it waits for."""
        position = {branch.id: index for index, branch in enumerate(self)}
        return tuple(tuple(position[name] for name in branch.depends_on) for branch in self)


def real_number(field: str, value: object, *, at_least: int = -LARGEST) -> Number:
    """Return `value` as a plain finite number (NumPy scalars become Python ones), or raise `PlanError`."""
    plain = _finite(value)
    if plain is None:
        raise PlanError(field, "must be a finite number", value)
    _require_range(field, value, plain, at_least)
    return plain


def whole_number(field: str, value: object, *, at_least: int) -> int:
    """Return `value` as an int (2.0 is a whole number, True and '2' are not), or raise `PlanError`."""
    plain = _finite(value)
    if plain is None or plain != int(plain):
        raise PlanError(field, "must be a whole number", value)
    _require_range(field, value, plain, at_least)
    return int(plain)


def ratio(field: str, value: object) -> Number:
    """Return `value` as a plain number from 0 to 1, or raise `PlanError`."""
    plain = _finite(value)
    if plain is None:
        raise PlanError(field, "must be a finite number", value)
    if not 0 <= plain <= 1:
        raise PlanError(field, "must be between 0 and 1", value)
    return plain


def _require_range(field: str, value: object, plain: Number, at_least: int) -> None:
    if plain < at_least:
        raise PlanError(field, f"must be >= {at_least:g}", value)
    if plain > LARGEST:
        raise PlanError(field, f"must be <= {LARGEST:g}", value)


def _finite(value: object) -> Number | None:
    """Return `value` as a plain number; None for what is no number, is not finite, or is a bool."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, np.floating) and not isinstance(value, float):
        value = float(str(value))  # the decimal that it is written as: np.float32(0.6) is 0.6
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return value if value.is_finite() else None
    return value if isinstance(value, Fraction) else None


def _set(instance: object, name: str, value: object) -> None:
    """Store the normalised value of a field while a frozen instance is being made."""
    object.__setattr__(instance, name, value)


def _require_text(field: str, value: object) -> None:
    if not isinstance(value, str):
        raise PlanError(field, "must be text", value)
    if not value.strip():
        raise PlanError(field, "must not be blank", value)


def _require_keys(field: str, values: object, made: type[Branch] | type[ParallelPlan]) -> None:
    """Raise unless `values` is a mapping with all the keys that `made` needs and no other."""
    if not isinstance(values, Mapping):
        raise PlanError(field, "must be a mapping", values)
    known = [item.name for item in fields(made)]
    for key in values:
        if key not in known:
            raise PlanError(field, f"must have no other keys than {', '.join(known)}", key)
    for item in fields(made):
        if item.default is MISSING and item.name not in values:
            raise PlanError(field, f"must have the key {item.name}", dict(values))


def _branch_from(field: str, values: object) -> Branch:
    if isinstance(values, Branch):
        return values
    _require_keys(field, values, Branch)
    assert isinstance(values, Mapping)
    try:
        return Branch(**values)
    except PlanError as error:
        raise PlanError(f"{field}.{error.field}", error.rule, error.value) from None


def _checked_branches(branches: object) -> CheckedBranches:
    """Return the branches of a plan after the checks that need all of them."""
    if isinstance(branches, CheckedBranches):
        return branches
    if not isinstance(branches, list | tuple):
        raise PlanError("branches", "must be a list of branches", branches)
    if not branches:
        raise PlanError("branches", "must have at least one branch", branches)
    ids: set[str] = set()
    for index, branch in enumerate(branches):
        if not isinstance(branch, Branch):
            raise PlanError(f"branches[{index}]", "must be a Branch", branch)
        if branch.id in ids:
            raise PlanError(f"branches[{index}].id", "must not repeat", branch.id)
        ids.add(branch.id)
    for index, branch in enumerate(branches):
        for position, name in enumerate(branch.depends_on):
            if name not in ids:
                raise PlanError(
                    f"branches[{index}].depends_on[{position}]", "must name a branch of the plan", name
                )
    checked = CheckedBranches(branches)
    _refuse_cycle(checked)
    return checked


def _refuse_cycle(branches: CheckedBranches) -> None:
    try:
        TopologicalSorter(dict(enumerate(branches.dependencies))).prepare()
    except CycleError as error:
        cycle = error.args[1][:-1]
        first = cycle.index(min(cycle))
        ordered = [*cycle[first:], *cycle[: first + 1]]
        path = " -> ".join(branches[index].id for index in ordered)
        raise PlanError(f"branches[{min(cycle)}].depends_on", "must not form a cycle", path) from None
