"""`slotsim sweep` and `slotsim map`: a scenario at every point of a grid."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.answering import command_line
from sim.cli.holding import hold_points
from sim.cli.options import (
    AsJson,
    Machine,
    Output,
    Planned,
    ScenarioFile,
    Where,
    command,
)
from sim.cli.terminal import complain, progress
from sim.contract.plan import FIXED_PLANS

if TYPE_CHECKING:
    from sim.scenario import Scenario
    from sim.sweeps.grid import Grid
    from sim.sweeps.sweep import Sweep

MOST_SCANNED = 2_500
TABLE, CSV = "sweep.parquet", "sweep.csv"


@dataclass(frozen=True, slots=True)
class Stored:
    """Options: where points are kept, and what is written beside them."""

    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Where points, table and report go [default: sweeps/NAME]"),
    ] = None
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget the points that the folder has already.")] = (
        False
    )
    csv: Annotated[bool, typer.Option("--csv", help="Write the table as CSV too.")] = False
    as_json: AsJson = False

    def folder(self, scenario: "Scenario", parent: str) -> str:
        """Return the folder that a scenario's points go to."""
        from sim.report.words import slug

        return self.out or f"{parent}/{slug(scenario.name)}"


@command
def sweep(
    file: ScenarioFile,
    over: Planned,
    where: Where,
    stored: Stored,
    vary: Annotated[
        list[str],
        typer.Option(
            metavar="KEY.PATH=VALUES",
            help="What is varied, repeatable: 1:40, 0:1:0.1, 1,2,5, log:1:1000:10, null, fifo; "
            "two keys together: 'a,b=1:2,3:4'.",
        ),
    ],
) -> None:
    """Simulate every combination of values into one table.

    Points are kept in the folder as they are done: the same command goes on where it was stopped.
    """
    from sim.scenario import load_scenario
    from sim.sweeps.grid import Grid

    grid = Grid.parsed(vary)
    machine = where.machine()
    scenario = load_scenario(file, over.overrides())
    target = stored.folder(scenario, "sweeps")
    done = swept(scenario, grid, target, machine, stored, search=False)
    end(done, target, command_line("sweep", scenario, {"--vary": vary, "--csv": stored.csv}), stored)


@command
def map_verdicts(
    file: ScenarioFile,
    over: Planned,
    where: Where,
    stored: Stored,
    x: Annotated[str, typer.Option("--x", metavar="KEY.PATH=VALUES", help="What runs across.")],
    y: Annotated[str, typer.Option("--y", metavar="KEY.PATH=VALUES", help="What runs upwards.")],
    search: Annotated[
        bool | None,
        typer.Option(
            "--search/--scan",
            help="Follow the borders between verdicts, or simulate every point "
            f"[default: search above {MOST_SCANNED:,} points]",
        ),
    ] = None,
) -> None:
    """Draw the map of where to merge and where to keep serial.

    Serial and parallel are simulated, or the plans named. Points are kept as they are done, as by sweep.
    """
    from sim.scenario import load_scenario
    from sim.sweeps.grid import Axis, Grid

    grid = Grid.of((Axis.parsed(x, "--x"), Axis.parsed(y, "--y")), "--y")
    machine = where.machine()
    scenario = load_scenario(file, over.overrides(list(FIXED_PLANS)))
    target = stored.folder(scenario, "maps")
    by_search = len(grid) > MOST_SCANNED if search is None else search
    done = swept(scenario, grid, target, machine, stored, search=by_search)
    how = {"--search": by_search, "--scan": not by_search}
    end(done, target, command_line("map", scenario, {"--x": x, "--y": y, **how, "--csv": stored.csv}), stored)


def swept(
    scenario: "Scenario", grid: "Grid", out: str, machine: Machine, stored: Stored, *, search: bool
) -> "Sweep":
    """Simulate the points that the folder lacks, with their progress shown."""
    from sim.sweeps.sweep import sweep as simulate_points

    hold_points(out)
    with progress(len(grid), "points", quiet=stored.as_json) as report:
        return simulate_points(
            scenario,
            grid,
            out=out,
            fresh=stored.fresh,
            search=search,
            workers=machine.workers,
            engine=machine.engine,
            progress=report,
        )


def end(done: "Sweep", out: str, line: str, stored: Stored) -> None:
    """Write the table and the report beside the points, and print what came out."""
    from sim.cli.show_sweep import sweep_parts

    if done.reused:
        complain(f"{done.reused:,} points were there already: {Path(out) / 'points.jsonl'}")
    write_sweep(out, done, line, csv=stored.csv)
    Output(stored.as_json, out).show(done.summary, lambda: sweep_parts(done))


def write_sweep(out: str, done: "Sweep", line: str, *, csv: bool) -> None:
    """Write everything about a sweep but its points, which are there."""
    from sim.report.answers import add_answer
    from sim.report.output_folder import OutputFolder
    from sim.report.swept import sweep_report
    from sim.scenario.resolved import resolved_text
    from sim.sweeps.table import write_csv, write_parquet

    content = sweep_report(done, line)
    with OutputFolder(out) as folder:
        folder.write_summary(done.summary())
        folder.write_text("scenario.yaml", resolved_text(done.scenario, str(folder.target)))
        write_parquet(done.rows, folder.path(TABLE))
        if csv:
            write_csv(done.rows, folder.path(CSV))
        add_answer(folder, content)
