"""Scenario files from the command line: all faults of all files at once."""

import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sim.errors import Fault, InputError

if TYPE_CHECKING:
    from sim.scenario import Scenario


def read_all(files: Sequence[str], overrides: Sequence[str] = ()) -> "list[Scenario]":
    """Return the scenarios of several files.

    Raises
    ------
    InputError
        Every fault of every file; a fault of an override is told once.
    """
    from sim.scenario import load_scenario

    scenarios: list[Scenario] = []
    faults: dict[str, Fault] = {}
    for file in files:
        try:
            scenarios.append(load_scenario(file, overrides))
        except InputError as error:
            faults |= {str(fault): fault for fault in error.faults}
    if faults:
        raise InputError(*faults.values())
    return scenarios


def read_different(files: Sequence[str], overrides: Sequence[str] = ()) -> "list[Scenario]":
    """Return scenarios that can be told apart: those with the same name have their file behind it.

    Raises
    ------
    InputError
        As `read_all`, and where a file is given twice.
    """
    seen = Counter(os.path.realpath(file) for file in files)
    twice = [file for file in dict.fromkeys(files) if seen[os.path.realpath(file)] > 1]
    if twice:
        raise InputError(*(Fault(file, None, "", "must be given once", has_value=False) for file in twice))
    scenarios = read_all(files, overrides)
    names = Counter(scenario.name for scenario in scenarios)
    return [
        scenario
        if names[scenario.name] == 1
        else scenario.replace({"name": f"{scenario.name} ({scenario.path})"})
        for scenario in scenarios
    ]
