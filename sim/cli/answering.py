"""What the commands that ask about capacity share: what is varied, and the folder that they write."""

import csv
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.errors import ArgumentError

if TYPE_CHECKING:
    from sim.report.content import ReportContent
    from sim.scenario import Scenario


def varied(option: str, text: str) -> tuple[str, list[int | float]]:
    """Return `key.path=1:200` as its path and its values.

    Raises
    ------
    ArgumentError
        It is no such text, names several keys, or has values that are no numbers.
    """
    from sim.sweeps.grid import Axis

    axis = Axis.parsed(text, option)
    if len(axis.keys) > 1:
        raise ArgumentError(option, "must name one key", text)
    numbers = [
        value for (value,) in axis.values if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    if len(numbers) < len(axis):
        raise ArgumentError(option, "must have values that are numbers", text)
    return axis.keys[0], numbers


def command_line(command: str, scenario: "Scenario", options: dict[str, Any]) -> str:
    """Return what gives the same answer when it is typed; workers and places of output change nothing.

    A list is an option for each of its items, True one without a value; None and False are left out.
    """
    words = ["slotsim", command, scenario.path]
    for override in scenario.overrides:
        words += ["--set", override]
    for name, value in options.items():
        for each in value if isinstance(value, list | tuple) else [value]:
            if each is not None and each is not False:
                words += [name] if each is True else [name, str(each)]
    return shlex.join(words)


def write_answer(
    out: str,
    scenario: "Scenario",
    content: "ReportContent",
    summary: dict[str, Any],
    files: dict[str, str] | None = None,
    tables: dict[str, Sequence[dict[str, Any]]] | None = None,
) -> None:
    """Write the summary, the resolved scenario, further files and tables, and the report, all or nothing."""
    from sim.report.answers import add_answer
    from sim.report.output_folder import OutputFolder
    from sim.scenario.resolved import resolved_text

    with OutputFolder(out) as folder:
        folder.write_summary(summary)
        folder.write_text("scenario.yaml", resolved_text(scenario, str(folder.target)))
        for name, text in (files or {}).items():
            folder.write_text(name, text)
        for name, rows in (tables or {}).items():
            write_rows(folder.path(name), rows)
        add_answer(folder, content)


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows under the names of their keys."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
