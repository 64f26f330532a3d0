"""A folder of results: summary, scenarios, tables, the report and its figures, all or nothing."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.answers.comparison import Comparison
from sim.answers.flip import FlipTable
from sim.cli.curve import curve_levels
from sim.cli.experiments import Given, Levels, compared, flipped, simulated
from sim.cli.options import Machine
from sim.cli.rerun import Rerun
from sim.report.output_folder import OutputFolder
from sim.report.write import add_report
from sim.result.result import Result
from sim.scenario import Scenario
from sim.scenario.resolved import resolved_text

if TYPE_CHECKING:
    import pandas as pd

REQUESTS, CALLS, LEVELS = "requests.csv", "calls.csv", "levels.csv"


def write_run(out: str, result: Result, given: Given, machine: Machine, *, quiet: bool) -> None:
    """Write everything about one simulated scenario."""
    curve = curve_of([result.scenario], given, machine, quiet=quiet)
    rerun = Rerun("run", (result.scenario,), given)
    with OutputFolder(out) as folder:
        add_summary(folder, result.summary(), rerun)
        add_tables(folder, [result])
        add_report(folder, result, flip_table=curve, command=rerun.command_line)


def write_comparison(
    out: str, comparison: Comparison, given: Given, machine: Machine, *, quiet: bool
) -> None:
    """Write everything about scenarios beside each other."""
    scenarios = tuple(result.scenario for result in comparison.results)
    curve = curve_of(scenarios, given, machine, quiet=quiet)
    rerun = Rerun("compare", scenarios, given)
    with OutputFolder(out) as folder:
        add_summary(folder, comparison.summary(), rerun)
        add_tables(folder, comparison.results)
        add_report(folder, comparison, flip_table=curve, command=rerun.command_line)


def write_flip(out: str, table: FlipTable, levels: Levels, machine: Machine, *, quiet: bool) -> None:
    """Write a table of levels, and the report of its scenario with it."""
    result = simulated(table.scenario, Given(), machine, quiet=quiet)
    rerun = Rerun("flip", (table.scenario,), levels)
    with OutputFolder(out) as folder:
        add_summary(folder, table.summary(), rerun)
        add_levels(folder, table)
        add_report(folder, result, flip_table=table, command=rerun.command_line)


def write_again(out: str, rerun: Rerun, machine: Machine, *, quiet: bool) -> tuple[Result, ...]:
    """Simulate again what a folder was made from, write it, and return the results that an SLO is about."""
    first, given = rerun.scenarios[0], rerun.given
    if isinstance(given, Levels):
        write_flip(out, flipped(first, given, machine, quiet=quiet), given, machine, quiet=quiet)
        return ()
    if rerun.command == "compare":
        comparison = compared(rerun.scenarios, given, machine, quiet=quiet)
        write_comparison(out, comparison, given, machine, quiet=quiet)
        return comparison.results
    result = simulated(first, given, machine, quiet=quiet)
    write_run(out, result, given, machine, quiet=quiet)
    return (result,)


def curve_of(
    scenarios: Sequence[Scenario], given: Given, machine: Machine, *, quiet: bool
) -> FlipTable | None:
    """Simulate levels of load around those of the scenarios, where they are points on one curve."""
    levels = curve_levels(scenarios) if given.curve else None
    return None if levels is None else flipped(scenarios[0], levels, machine, quiet=quiet)


def add_summary(folder: OutputFolder, summary: dict[str, Any], rerun: Rerun) -> None:
    """Add what `--json` prints, how it came about, and the resolved scenarios."""
    folder.write_summary({**summary, "rerun": rerun.summary()})
    for name, scenario in zip(rerun.files, rerun.scenarios, strict=True):
        folder.write_text(name, resolved_text(scenario, str(folder.target)))


def add_tables(folder: OutputFolder, results: Sequence[Result]) -> None:
    """Add the tables of requests and calls, those of several scenarios below each other.

    Numbers have as few digits as tell them apart, so that they read back as they were.
    """
    for name, tables in (
        (REQUESTS, (result.requests for result in results)),
        (CALLS, (result.calls for result in results)),
    ):
        path = folder.path(name)
        for number, (result, table) in enumerate(zip(results, tables, strict=True)):
            scenario = result.scenario.name if len(results) > 1 else None
            append_csv(path, table, scenario, header=number == 0)


def append_csv(path: Path, table: "pd.DataFrame", scenario: str | None, *, header: bool) -> None:
    """Append a table to a CSV file, behind a column with the scenario's name where there is one."""
    if scenario is not None:
        table = table.copy(deep=False)
        table.insert(0, "scenario", scenario)
    table.to_csv(path, mode="a", index=False, header=header, lineterminator="\n", encoding="utf-8")


def add_levels(folder: OutputFolder, table: FlipTable) -> None:
    """Add a row for each allocation, level and plan."""
    rows = [
        {
            "allocation": level["allocation"],
            table.level: level["value"],
            "plan": label,
            **figures,
            "best": level["best"],
            "decision": level["decision"],
        }
        for level in table.summary()["levels"]
        for label, figures in level["plans"].items()
    ]
    with folder.path(LEVELS).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
