"""From a file to its scenario: read, overridden, validated; all faults at once."""

from collections.abc import Sequence
from os import PathLike, fspath

from sim.errors import InputError
from sim.scenario.scenario import Scenario, validated
from sim.scenario.source import overridden, parsed_override, read_tree


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
