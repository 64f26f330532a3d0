"""`slotsim sweep` and `slotsim map`: a scenario at every point of a grid."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import sim
from sim.cli.answering import command_line
from sim.cli.options import (
    AsJson,
    Dask,
    EngineName,
    Machine,
    Plans,
    Replications,
    ScenarioFile,
    Seed,
    Sets,
    Warmup,
    Workers,
    machine_of,
    overrides,
    require_writable,
)
from sim.cli.terminal import complain, json_text, progress, say, say_json, wrote

if TYPE_CHECKING:
    from sim.scenario import Scenario
    from sim.sweeps.grid import Grid
    from sim.sweeps.sweep import Sweep

MAP_PLANS = ["serial", "parallel"]
MOST_SCANNED = 2_500
TABLE, CSV = "sweep.parquet", "sweep.csv"

SweepOut = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Where points, table and report go [default: sweeps/NAME]"),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Forget the points that the folder has already.")]
Csv = Annotated[bool, typer.Option("--csv", help="Write the table as CSV too.")]


def sweep(
    file: ScenarioFile,
    vary: Annotated[
        list[str],
        typer.Option(
            metavar="KEY.PATH=VALUES",
            help="What is varied, repeatable: 1:40, 0:1:0.1, 1,2,5, log:1:1000:10, null, fifo; "
            "two keys together: 'a,b=1:2,3:4'.",
        ),
    ],
    out: SweepOut = None,
    fresh: Fresh = False,
    csv: Csv = False,
    seed: Seed = None,
    sets: Sets = None,
    plans: Plans = None,
    replications: Replications = None,
    warmup: Warmup = None,
    workers: Workers = None,
    dask: Dask = None,
    engine: EngineName = "auto",
    as_json: AsJson = False,
) -> None:
    """Simulate every combination of values into one table.

    Points are kept in the folder as they are done: the same command goes on where it was stopped.
    """
    from sim.sweeps.grid import Grid

    grid = Grid.parsed(vary)
    machine = machine_of(workers, dask, engine)
    scenario = sim.load_scenario(file, overrides(sets, seed, replications, warmup, plans))
    target = out or folder_of(scenario, "sweeps")
    require_writable(target)
    done = swept(scenario, grid, target, machine, fresh=fresh, search=False, quiet=as_json)
    command = command_line("sweep", scenario, {"--vary": vary, "--csv": csv})
    end(done, target, command, csv=csv, as_json=as_json)


def map_verdicts(
    file: ScenarioFile,
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
    out: SweepOut = None,
    fresh: Fresh = False,
    csv: Csv = False,
    seed: Seed = None,
    sets: Sets = None,
    plans: Plans = None,
    replications: Replications = None,
    warmup: Warmup = None,
    workers: Workers = None,
    dask: Dask = None,
    engine: EngineName = "auto",
    as_json: AsJson = False,
) -> None:
    """Draw the map of where to merge and where to keep serial.

    Serial and parallel are simulated, or the plans named. Points are kept as they are done, as by sweep.
    """
    from sim.sweeps.grid import Axis, Grid

    grid = Grid.of((Axis.parsed(x, "--x"), Axis.parsed(y, "--y")), "--y")
    machine = machine_of(workers, dask, engine)
    stated = overrides(sets, seed, replications, warmup, plans or MAP_PLANS)
    scenario = sim.load_scenario(file, stated)
    target = out or folder_of(scenario, "maps")
    require_writable(target)
    by_search = len(grid) > MOST_SCANNED if search is None else search
    done = swept(scenario, grid, target, machine, fresh=fresh, search=by_search, quiet=as_json)
    how = {"--search": by_search, "--scan": not by_search}
    command = command_line("map", scenario, {"--x": x, "--y": y, **how, "--csv": csv})
    end(done, target, command, csv=csv, as_json=as_json)


def folder_of(scenario: "Scenario", parent: str) -> str:
    """Return the folder that a scenario's points go to by default."""
    from sim.report.words import slug

    return f"{parent}/{slug(scenario.name)}"


def swept(
    scenario: "Scenario",
    grid: "Grid",
    out: str,
    machine: Machine,
    *,
    fresh: bool,
    search: bool,
    quiet: bool,
) -> "Sweep":
    """Simulate the points that the folder lacks, with their progress shown."""
    from sim.sweeps.sweep import sweep as simulate_points

    with progress(len(grid), "points", quiet=quiet) as report:
        return simulate_points(
            scenario,
            grid,
            out=out,
            fresh=fresh,
            search=search,
            workers=machine.workers,
            engine=machine.engine,
            progress=report,
        )


def end(done: "Sweep", out: str, command: str, *, csv: bool, as_json: bool) -> None:
    """Write the table and the report beside the points, and print what came out."""
    from sim.cli.show_sweep import sweep_parts

    if done.reused:
        complain(f"{done.reused:,} points were there already: {Path(out) / 'points.jsonl'}")
    write_sweep(out, done, command, csv=csv)
    if as_json:
        say_json(done.summary())
    else:
        say(*sweep_parts(done))
    wrote(out, as_json=as_json)


def write_sweep(out: str, done: "Sweep", command: str, *, csv: bool) -> None:
    """Write everything about a sweep but its points, which are there."""
    from sim.report.answers import add_answer
    from sim.report.output_folder import OutputFolder
    from sim.report.swept import sweep_report
    from sim.scenario.resolved import resolved_text
    from sim.sweeps.table import write_csv, write_parquet

    content = sweep_report(done, command)
    with OutputFolder(out) as folder:
        folder.write_text("summary.json", json_text(done.summary()))
        folder.write_text("scenario.yaml", resolved_text(done.scenario, str(folder.target)))
        write_parquet(done.rows, folder.path(TABLE))
        if csv:
            write_csv(done.rows, folder.path(CSV))
        add_answer(folder, content)
