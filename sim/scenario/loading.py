"""From a file to its scenarios: read, overridden, validated, tables read; all faults at once."""

from collections.abc import Iterator, Sequence
from math import inf
from os import PathLike, fspath

from pydantic import ValidationError

from sim.errors import Fault, InputError
from sim.scenario.base import Broken
from sim.scenario.faults import fault_at, faults_of
from sim.scenario.rules import broken_reservations, broken_rules
from sim.scenario.scenario import Scenario
from sim.scenario.source import WORKLOAD_KEYS, Node, PartTree, overridden, parsed_override, read_tree
from sim.scenario.tables import Cache, read_tables
from sim.scenario.workloads import Workload, Workloads


def load_scenario(path: str | PathLike[str], overrides: Sequence[str] = ()) -> Scenario:
    """Return the scenario of a YAML file, with its parents and its tables; of several workloads, the first.

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
    return validated(tree, faults, file, tuple(overrides), {})[0]


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
    return sorted(once.values(), key=lambda fault: (fault.file, fault.line or inf))
