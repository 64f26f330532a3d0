"""A whole scenario: the file's content, validated, with the tables that it names."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike, fspath
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, PrivateAttr, Strict, ValidationError

from sim.errors import Fault, InputError
from sim.plan import Branch, ParallelPlan
from sim.scenario.base import Broken, Model, Name, Path
from sim.scenario.distribution import Distribution, Empirical, TokenDuration
from sim.scenario.faults import faults_of
from sim.scenario.load import TOKEN_ROLES, ClosedLoad, Load, OpenLoad, ProfileLoad, StepsLoad, TraceLoad
from sim.scenario.model import ALL_PLANS, Criteria, Experiment, PlanEntry, Provider, WarmupCut, Workflow
from sim.scenario.profile import Period, RateTable, periods_of
from sim.scenario.slo import Slo
from sim.scenario.source import Node, overridden, parsed_override, read_tree
from sim.scenario.tables import Cache, Tables, read_tables
from sim.scenario.trace import Trace


class Scenario(Model):
    """Everything a run needs to know. Attributes are the keys of the file."""

    schema_version: Literal[1] = Field(description="Version of the format: 1.")
    name: Name = Field(description="Name of the scenario.")
    description: str | None = Field(None, description="What it shows.")
    provider: Provider = Field(description="The API whose slots all requests borrow.")
    workflow: Workflow = Field(description="What a request runs.")
    load: Load = Field(description="How requests arrive.")
    plans: Annotated[tuple[PlanEntry, ...], Strict(False)] = Field(
        ALL_PLANS, min_length=1, description="Plans to compare."
    )
    criteria: Criteria = Field(Criteria(), description="Thresholds of the decision.")
    experiment: Experiment = Field(Experiment(), description="Seed, replications and warm-up.")
    slo: Slo | None = Field(None, description="Objectives that decide the exit code.")

    _tree: Node = PrivateAttr()
    _tables: Tables = PrivateAttr(default_factory=Tables)
    _path: str = PrivateAttr("")
    _overrides: tuple[str, ...] = PrivateAttr(())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        branches, plans = len(self.workflow.branches), ", ".join(choice.label for choice in self.plans)
        provider = f"{self.provider.concurrency} slots {self.provider.allocation}"
        return f"Scenario({self.name!r}: {provider}, {branches} branches, {self.load.kind} load, {plans})"

    __str__ = __repr__

    @property
    def path(self) -> str:
        """The file it came from, as it was named."""
        return self._path

    @property
    def overrides(self) -> tuple[str, ...]:
        """What was stated over the file, as `key.path=value`."""
        return self._overrides

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the tables on the way in, in words."""
        return self._tables.notes

    @property
    def trace(self) -> Trace:
        """The replayed trace, of a trace load."""
        if self._tables.trace is None:
            raise LookupError(f"a {self.load.kind} load has no trace")
        return self._tables.trace

    @property
    def rates(self) -> RateTable | None:
        """The rate over time, of a profile load and of steps of a rate; None for other loads."""
        return self._tables.rates

    @property
    def periods(self) -> tuple[Period, ...]:
        """The parts of the run that reports tell apart, on the run's clock; empty for a load without."""
        return periods_of(self.load) if isinstance(self.load, StepsLoad | ProfileLoad) else ()

    @property
    def branch_means_ms(self) -> tuple[float, ...]:
        """Mean service time of each branch, ms; of a trace, at the column means of the slice."""
        return self.workflow.branch_means_ms(self._tables.column_means)

    @property
    def join_mean_ms(self) -> float:
        """Mean of the join, ms, growth with the number of branches included."""
        base_ms = self.workflow.join_overhead_ms.mean_given(self._tables.column_means)
        return base_ms + self.workflow.join_growth_ms

    def parallel_plan(self, concurrency: int) -> ParallelPlan:
        """Return the plan arithmetic's view of the workflow: means for distributions, and so many slots."""
        workflow, context = self.workflow, self.workflow.shared_context
        return ParallelPlan(
            branches=tuple(
                Branch(
                    branch.id, mean_ms, branch.cost_micros, branch.carries_shared_context, branch.depends_on
                )
                for branch, mean_ms in zip(workflow.branches, self.branch_means_ms, strict=True)
            ),
            concurrency=concurrency,
            join_overhead_ms=self.join_mean_ms,
            shared_context_tokens=context.tokens,
            input_micros_per_ktok=context.input_micros_per_ktok,
            prefix_reuse_ratio=context.prefix_reuse_ratio,
            cached_input_price_ratio=context.cached_input_price_ratio,
            baseline_ms=workflow.baseline.latency_ms,
            baseline_cost_micros=workflow.baseline.cost_micros,
        )

    def distributions(self) -> Iterator[tuple[Path, Distribution]]:
        """Yield every duration and token count with its key path, parts of a duration after it."""
        yield from self._durations()
        for path, duration in self._durations():
            if isinstance(duration, TokenDuration):
                yield from (((*path, role), getattr(duration, role)) for role in TOKEN_ROLES)

    @property
    def trace_columns(self) -> tuple[str, ...]:
        """The columns to read from a trace: the token columns that it states, the durations in use."""
        stated = self.load.token_roles if isinstance(self.load, TraceLoad) else ()
        used = (name for _, duration in self._durations() for name in duration.trace_columns)
        return tuple(dict.fromkeys((*stated, *used)))

    def replace(self, changes: Mapping[str, Any]) -> "Scenario":
        """Return the scenario with other values at key paths such as `load.active_requests`.

        Raises
        ------
        InputError
            The result breaks a rule; messages show `replace` as the file.
        """
        plain = [(path, _plain(value)) for path, value in changes.items()]
        tree = overridden(self._tree, plain, "replace")
        stated = tuple(f"{path}={json.dumps(value)}" for path, value in plain)
        return _validated(tree, [], self._path, (*self._overrides, *stated), self._tables.cache)

    def to_dict(self) -> dict[str, Any]:
        """Return the scenario as plain data, defaults filled in and `extends` resolved."""
        plain: dict[str, Any] = json.loads(self.model_dump_json(by_alias=True, exclude_none=True))
        return plain

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the resolved content and of what was read from its tables.

        Formatting, comments and the places of files do not count.
        """
        content = self.to_dict()
        _forget_files(content)
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
        for values in self._table_arrays():
            digest.update(np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()

    def broken_rules(self) -> Iterator[Broken]:
        labels = [choice.label for choice in self.plans]
        for index, label in enumerate(labels):
            if label in labels[:index]:
                yield Broken(("plans", index), "must not repeat", label)
        if self.slo and self.slo.plan is not None and self.slo.plan not in labels:
            yield Broken(("slo", "plan"), f"must be one of the plans: {', '.join(labels)}", self.slo.plan)
        for path, duration in self._durations():
            for name in duration.trace_columns:
                yield from self._lacking(path, duration, name)
        warmup, load = self.experiment.warmup, self.load
        requests = load.requests if isinstance(load, ClosedLoad | OpenLoad) else None
        if isinstance(warmup, WarmupCut) and warmup.count and requests and warmup.count >= requests:
            rule = f"must be < load.requests ({requests})"
            yield Broken(("experiment", "warmup", "count"), rule, warmup.count)

    def _lacking(self, path: Path, duration: Distribution, name: str) -> Iterator[Broken]:
        """Yield what a duration that takes its values from a trace column does not find."""
        at = (*path, name) if isinstance(duration, TokenDuration) else (*path, "distribution")
        if not isinstance(self.load, TraceLoad):
            yield Broken(at, "must not be trace without a trace load", self.load.kind)
        elif isinstance(duration, TokenDuration) and name not in self.load.token_roles:
            yield Broken(at, f"must not be trace without load.columns.{name}")
        elif not isinstance(duration, TokenDuration) and name in TOKEN_ROLES:
            yield Broken((*path, "column"), "must not have the name of a token column", name)

    def _durations(self) -> Iterator[tuple[Path, Distribution]]:
        for index, branch in enumerate(self.workflow.branches):
            yield ("workflow", "branches", index, "duration_ms"), branch.duration_ms
        yield ("workflow", "join_overhead_ms"), self.workflow.join_overhead_ms
        if isinstance(self.load, ClosedLoad | StepsLoad):
            yield ("load", "think_time_ms"), self.load.think_time_ms

    def _table_arrays(self) -> Iterator[Any]:
        for _, distribution in self.distributions():
            if isinstance(distribution, Empirical):
                yield distribution.sample
        if self._tables.trace is not None:
            yield self.trace.arrival_ns
            yield from (self.trace.columns[name] for name in sorted(self.trace.columns))
        if self.rates is not None:
            yield from (self.rates.edge_s, self.rates.start_rate_per_s, self.rates.end_rate_per_s)


def load_scenario(path: str | PathLike[str], overrides: Sequence[str] = ()) -> Scenario:
    """Return the scenario of a YAML file, with its parents and its tables.

    Parameters
    ----------
    path : the file.
    overrides : `key.path=value` each, stated over the file; the value is read as YAML.

    Raises
    ------
    InputError
        Every fault found, each with its file and line.
    """
    file = fspath(path)
    tree, faults = read_tree(file)
    changes = []
    for text in overrides:
        try:
            changes.append(parsed_override(text))
        except InputError as error:
            faults += error.faults
    try:
        tree = overridden(tree, changes, "--set")
    except InputError as error:
        faults += error.faults
    return _validated(tree, faults, file, tuple(overrides), {})


def _validated(
    tree: Node, faults: list[Fault], path: str, overrides: tuple[str, ...], cache: Cache
) -> Scenario:
    data = tree.plain()
    known: dict[int, tuple[str, ...]] = {}
    try:
        scenario = Scenario.model_validate(data, context=known)
    except ValidationError as error:
        raise InputError(*faults, *faults_of(error, tree, data, known)) from None
    if faults:
        raise InputError(*faults)
    scenario._tree, scenario._path, scenario._overrides = tree, path, overrides
    scenario._tables = read_tables(scenario, tree, cache)
    return scenario


def _plain(value: Any) -> Any:
    """Return `value` without NumPy's types."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def _forget_files(content: Any) -> None:
    """Drop the names of files: what was read from them counts instead."""
    if isinstance(content, dict):
        content.pop("file", None)
    for item in (
        content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    ):
        _forget_files(item)
