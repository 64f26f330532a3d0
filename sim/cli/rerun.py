"""What a folder of results was made from, so that it can be made again.

`summary.json` states it under `rerun`; the scenarios stand beside it, resolved.
"""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.cli.experiments import Given, Levels
from sim.errors import Fault, InputError
from sim.report.file_list import SUMMARY, mixture
from sim.scenario import Scenario
from sim.scenario.resolved import load_resolved

ANOTHER_COMMAND = (
    "must be of run, compare or flip; the report of this folder is made again by the command line in it, "
    "a sweep or a map without simulating its points again"
)


@dataclass(frozen=True)
class Rerun:
    """A command, its scenarios, and what it was given beside them."""

    command: str
    scenarios: tuple[Scenario, ...]
    given: Given | Levels

    def summary(self) -> dict[str, Any]:
        """Return it as plain data; the scenarios are files of the folder."""
        scenarios = [
            {
                "file": name,
                "stated_file": scenario.path,
                "overrides": list(scenario.overrides),
                "sha256": scenario.digest,
            }
            for name, scenario in zip(self.files, self.scenarios, strict=True)
        ]
        return {"command": self.command, "scenarios": scenarios, "given": self.given.summary()}

    @property
    def files(self) -> list[str]:
        """The names of the resolved scenarios."""
        if len(self.scenarios) == 1:
            return ["scenario.yaml"]
        return [f"scenario-{number}.yaml" for number in range(1, len(self.scenarios) + 1)]

    @property
    def command_line(self) -> str:
        """What gives the same results when it is typed; workers and places of output change nothing."""
        words = ["slotsim", self.command, *(scenario.path for scenario in self.scenarios)]
        first, *others = (scenario.overrides for scenario in self.scenarios)
        for override in first:
            if all(override in stated for stated in others):
                words += ["--set", override]
        return shlex.join([*words, *self.given.options()])


def read_rerun(folder: str) -> Rerun:
    """Return what a folder of results was made from.

    Raises
    ------
    InputError
        It is no such folder, its scenario or a table of it is not what it was, or it has files of another
        run.
    """
    file = str(Path(folder) / SUMMARY)
    try:
        summary = json.loads(Path(file).read_bytes())
        if "rerun" not in summary and "slotsim_version" in summary:
            raise InputError(_fault(file, ANOTHER_COMMAND))
        stated = summary["rerun"]
        command = stated["command"]
        given = (Levels if command == "flip" else Given).from_summary(stated["given"])
        scenarios = tuple(_same(folder, **one) for one in stated["scenarios"])
        faults = mixture(Path(folder))
    except OSError as error:
        raise InputError(_fault(file, f"cannot be read: {error.strerror}")) from None
    except (ValueError, TypeError, KeyError):
        raise InputError(_fault(file, "must be the summary of a folder that slotsim wrote")) from None
    if faults:
        raise InputError(*faults)
    return Rerun(command, scenarios, given)


def _same(folder: str, file: str, stated_file: str, overrides: list[str], sha256: str) -> Scenario:
    path = str(Path(folder) / file)
    scenario = load_resolved(path, stated_file, overrides)
    if scenario.digest != sha256:
        raise InputError(_fault(path, "must be as it was simulated; it or a table of it has changed"))
    return scenario


def _fault(file: str, rule: str) -> Fault:
    return Fault(file, None, "", rule, has_value=False)
