"""A scenario as one file of its own: parents merged, overrides applied, defaults filled in.

Its tables stay where they are; the file names them relative to its own folder.
"""

import os
import re
from collections.abc import Sequence
from typing import Any

import yaml

from sim.scenario.base import Path
from sim.scenario.loading import load_scenario
from sim.scenario.scenario import Scenario
from sim.scenario.source import beside

PLAIN_WORD = re.compile(r"[A-Za-z_]\w*")


class _Dumper(yaml.SafeDumper):
    """Writes text so that YAML 1.1 and 1.2 both read it back as text."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if PLAIN_WORD.fullmatch(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def resolved_text(scenario: Scenario, folder: str) -> str:
    """Return the scenario as a YAML file that stands in `folder`."""
    content = scenario.to_dict()
    _relocate(scenario, content, (), folder)
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def load_resolved(file: str, path: str, overrides: Sequence[str]) -> Scenario:
    """Return the scenario of such a file as if it came from `path` and its overrides, as it did at first.

    Raises
    ------
    InputError
        As `load_scenario`.
    """
    scenario = load_scenario(file)
    for part in scenario.parts:
        part._path, part._overrides = path, tuple(overrides)
    return scenario


def _relocate(scenario: Scenario, content: Any, path: Path, folder: str) -> None:
    """Name every table in `content` relative to `folder`."""
    steps = enumerate(content) if isinstance(content, list) else content.items()
    for step, value in steps:
        if step == "file":
            named = scenario._tree.at((*path, step))
            file = named.value if named.line is None else beside(named.file, named.value)
            content[step] = os.path.relpath(file, folder)
        elif isinstance(value, dict | list):
            _relocate(scenario, value, (*path, step), folder)
