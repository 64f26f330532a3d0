"""`slotsim report`: a report of a scenario, or once more of a folder of results."""

from pathlib import Path
from typing import Annotated

import typer

import sim
from sim.cli.options import AsJson, Out, Replications, Seed, Sets, Workers, overrides, require_writable
from sim.cli.terminal import say_json, write
from sim.errors import Fault, InputError


def report(
    source: Annotated[
        str, typer.Argument(metavar="SCENARIO|DIR", help="Scenario file, or a folder that --out has written.")
    ],
    out: Out = None,
    seed: Seed = None,
    sets: Sets = None,
    replications: Replications = None,
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Write the report of a scenario, or of a folder of results again.

    A folder holds its scenario, resolved, and is simulated again from it. Without --out the report goes to
    reports/NAME of a scenario, and back into a folder of results.
    """
    from sim.cli.experiments import Given
    from sim.cli.folder import write_again
    from sim.cli.rerun import Rerun, read_rerun
    from sim.report.words import slug

    stated = overrides(sets, seed, replications)
    if Path(source).is_dir():
        if stated:
            raise InputError(
                Fault(
                    source,
                    None,
                    "",
                    "is a folder of results; --set and its like need a scenario",
                    has_value=False,
                )
            )
        rerun, target = read_rerun(source), out or source
    else:
        scenario = sim.load_scenario(source, stated)
        rerun = Rerun("run", (scenario,), Given())
        target = out or f"reports/{slug(scenario.name)}"
    require_writable(target)
    write_again(target, rerun, workers, quiet=as_json)
    written = f"{target}/report.html"
    if as_json:
        say_json({"out": target, "report": written})
    else:
        write(f"{written}\n")
