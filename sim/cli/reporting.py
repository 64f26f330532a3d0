"""`slotsim report`: a report of a scenario, or once more of a folder of results."""

from pathlib import Path
from typing import Annotated

import typer

from sim.cli.holding import hold
from sim.cli.options import (
    Output,
    Repeated,
    Where,
    command,
)
from sim.cli.simulating import end_with_slo
from sim.cli.terminal import say_json, wrote
from sim.errors import Fault, InputError


@command
def report(
    source: Annotated[
        str, typer.Argument(metavar="SCENARIO|DIR", help="Scenario file, or a folder that --out has written.")
    ],
    over: Repeated,
    where: Where,
    output: Output,
) -> None:
    """Write the report of a scenario, or of a folder of results.

    A folder holds its scenario, resolved, and is simulated again from it. Without --out the report goes to
    reports/NAME of a scenario, and back into a folder of results.
    """
    from sim.cli.experiments import Given
    from sim.cli.folder import write_again
    from sim.cli.rerun import Rerun, read_rerun
    from sim.report.words import slug
    from sim.scenario import load_scenario

    stated = over.overrides()
    if Path(source).is_dir():
        if stated:
            rule = "is a folder of results; --set and its like need a scenario"
            raise InputError(Fault(source, None, "", rule, has_value=False))
        rerun, target = read_rerun(source), output.out or source
    else:
        scenario = load_scenario(source, stated)
        rerun, target = Rerun("run", (scenario,), Given()), output.out or f"reports/{slug(scenario.name)}"
    hold(target)
    results = write_again(target, rerun, where.machine(), quiet=output.as_json)
    if output.as_json:
        say_json({"out": target, "report": str(Path(target) / "report.html")})
    else:
        wrote(target, as_json=False)
    end_with_slo(results)
