"""A whole scenario: the file's content, validated, with the tables that it names; all faults at once."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import PrivateAttr, ValidationError

from sim.errors import Fault, InputError
from sim.plan.parallel_plan import Branch, ParallelPlan
from sim.scenario.base import Broken, Model
from sim.scenario.distribution import Empirical, TraceTokens
from sim.scenario.faults import fault_at, faults_of
from sim.scenario.keys import ScenarioKeys
from sim.scenario.load import ProfileLoad, StepsLoad
from sim.scenario.profile import Period, RateTable, periods_of
from sim.scenario.rules import broken_reservations, broken_rules
from sim.scenario.source import WORKLOAD_KEYS, Node, PartTree, overridden
from sim.scenario.tables import Cache, Tables, read_tables
from sim.scenario.trace import Trace
from sim.scenario.workflow import WorkflowBranch
from sim.scenario.workloads import Workload, Workloads


class Scenario(ScenarioKeys):
    """Everything a run needs to know of one workload. Attributes are the keys of the file.

    A file with several `workloads` is a scenario for each of them, its `parts`: what they have in common, and
    the workflow, load and objectives of one.
    """

    _parts: tuple["Scenario", ...] = PrivateAttr(())
    _tree: Node = PrivateAttr()
    _tables: Tables = PrivateAttr(default_factory=Tables)
    _path: str = PrivateAttr("")
    _overrides: tuple[str, ...] = PrivateAttr(())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scenario):
            return False
        return self.digest == other.digest and self.part_index == other.part_index

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        branches, plans = len(self.workflow.branches), ", ".join(choice.label for choice in self.plans)
        name = repr(self.name) if self._workload is None else f"{self.name!r}, {self.part_name!r}"
        return f"Scenario({name}: {self.slots_words}, {branches} branches, {self.load.kind} load, {plans})"

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
    def parts(self) -> tuple["Scenario", ...]:
        """The scenarios of the file, one for each of its workloads; itself, if it has no list of them."""
        return self._parts or (self,)

    @property
    def part_index(self) -> int:
        """Its place among the parts."""
        return next(index for index, part in enumerate(self.parts) if part is self)

    def key_path(self, path: str) -> str:
        """Return where a key path stands in the file: a listed workload has keys of its own."""
        is_own = self._workload is not None and path.split(".", maxsplit=1)[0] in WORKLOAD_KEYS
        return f"workloads[{self.part_index}].{path}" if is_own else path

    def reserved_output(self, branch: WorkflowBranch) -> int:
        """Return the output tokens that admitting a call reserves: its maximum, or its mean rounded up."""
        if branch.max_output_tokens is not None:
            return branch.max_output_tokens
        output = branch.token_counts[1]
        from_trace = isinstance(output, TraceTokens)
        return math.ceil(self._tables.column_means["output_tokens"] if from_trace else output.mean)

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
        return replace(self._plan_on_one_slot, concurrency=concurrency)

    @cached_property
    def _plan_on_one_slot(self) -> ParallelPlan:
        workflow, context = self.workflow, self.workflow.shared_context
        return ParallelPlan(
            branches=tuple(
                Branch(
                    branch.id, mean_ms, branch.cost_micros, branch.carries_shared_context, branch.depends_on
                )
                for branch, mean_ms in zip(workflow.branches, self.branch_means_ms, strict=True)
            ),
            concurrency=1,
            join_overhead_ms=self.join_mean_ms,
            shared_context_tokens=context.tokens,
            input_micros_per_ktok=context.input_micros_per_ktok,
            prefix_reuse_ratio=context.prefix_reuse_ratio,
            cached_input_price_ratio=context.cached_input_price_ratio,
            baseline_ms=workflow.baseline.latency_ms,
            baseline_cost_micros=workflow.baseline.cost_micros,
        )

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
        cache = self.parts[-1]._tables.cache
        parts = validated(tree, [], self._path, (*self._overrides, *stated), cache)
        return parts[min(self.part_index, len(parts) - 1)]

    def to_dict(self) -> dict[str, Any]:
        """Return the whole file as plain data, defaults filled in and `extends` resolved."""
        plain = _written(self)
        if self._workload is None:
            return plain
        common = {key: value for key, value in plain.items() if key not in WORKLOAD_KEYS}
        return common | {"workloads": [_written(part._workload) for part in self.parts if part._workload]}

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the resolved content and of what was read from its tables.

        Formatting, comments and the places of files do not count.
        """
        content = self.to_dict()
        _forget_files(content)
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
        for part in self.parts:
            for values in part._table_arrays():
                digest.update(np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()

    def _table_arrays(self) -> Iterator[Any]:
        for _, distribution in self.distributions():
            if isinstance(distribution, Empirical):
                yield distribution.sample
        if self._tables.trace is not None:
            yield self.trace.arrival_ns
            yield from (self.trace.columns[name] for name in sorted(self.trace.columns))
        if self.rates is not None:
            yield from (self.rates.edge_s, self.rates.start_rate_per_s, self.rates.end_rate_per_s)


def validated(
    tree: Node, faults: list[Fault], path: str, overrides: tuple[str, ...], cache: Cache
) -> tuple[Scenario, ...]:
    """Return the scenarios of a file, one for each of its workloads.

    Parameters
    ----------
    tree : the file's content.
    faults : what is wrong with it already.
    path, overrides : what the scenarios say of where they come from.
    cache : what was read from their tables before.

    Raises
    ------
    InputError
        Every fault found.
    """
    if tree.child("workloads") is not None and tree.value["workloads"].value is not None:
        parts = _several(tree, faults, cache)
    else:
        parts = (_one(PartTree(tree), None, faults, cache),)
    for scenario in parts:
        scenario._tree, scenario._path, scenario._overrides = tree, path, overrides
        scenario._parts = parts
    return parts


def _one(view: PartTree, workload: Workload | None, faults: Sequence[Fault], cache: Cache) -> Scenario:
    """Return the scenario of one workload."""
    scenario = _keys(view, faults)
    scenario._workload = workload
    broken = [fault_at(view, (), rule) for rule in broken_rules(scenario)]
    if faults or broken:
        raise InputError(*faults, *_by_line(broken))
    scenario._tables = read_tables(scenario, view, cache)
    return scenario


def _keys(view: PartTree, faults: Sequence[Fault]) -> Scenario:
    data = view.plain()
    known: dict[int, tuple[str, ...]] = {}
    try:
        return Scenario.model_validate(data, context=known)
    except ValidationError as error:
        raise InputError(*faults, *faults_of(error, view, data, known)) from None


def _several(tree: Node, faults: list[Fault], cache: Cache) -> tuple[Scenario, ...]:
    """Return the scenarios of a file with a list of workloads."""
    workloads, found = _workloads(tree)
    found = [*faults, *_beside_workloads(tree), *found]
    items = tree.value["workloads"].value
    places = (
        [index for index, item in enumerate(items) if isinstance(item.value, dict)]
        if isinstance(items, list)
        else []
    )
    parts: list[Scenario] = []
    for index in places:
        view = PartTree(tree, index)
        try:
            if not workloads:
                _keys(view, ())
            else:
                parts.append(_one(view, workloads[index], (), cache))
                cache = parts[-1]._tables.cache
        except InputError as error:
            found += error.faults
    if not found:
        found += [fault_at(PartTree(tree), (), broken) for broken in broken_reservations(parts)]
    if found:
        raise InputError(*_by_line(found))
    return tuple(parts)


def _workloads(tree: Node) -> tuple[tuple[Workload, ...], list[Fault]]:
    """Return what each workload states for itself, or its faults."""
    data = {"workloads": tree.value["workloads"].plain()}
    known: dict[int, tuple[str, ...]] = {}
    try:
        return Workloads.model_validate(data, context=known).workloads, []
    except ValidationError as error:
        return (), faults_of(error, PartTree(tree), data, known)


def _beside_workloads(tree: Node) -> Iterator[Fault]:
    for key in WORKLOAD_KEYS:
        stated = tree.child(key)
        if stated is not None and stated.value is not None:
            yield fault_at(PartTree(tree), (key,), Broken((), "must not be given beside workloads"))


def _by_line(faults: Sequence[Fault]) -> list[Fault]:
    once = {str(fault): fault for fault in faults}
    return sorted(once.values(), key=lambda fault: (fault.file, fault.line or math.inf))


def _written(model: Model) -> dict[str, Any]:
    """Return a model as plain data."""
    plain: dict[str, Any] = json.loads(model.model_dump_json(by_alias=True, exclude_none=True))
    return plain


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
