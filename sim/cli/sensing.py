"""`slotsim sensitivity`: what would have to change for the verdict to change."""

from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.answering import command_line, write_answer
from sim.cli.holding import hold
from sim.cli.options import (
    Output,
    Repeated,
    ScenarioFile,
    Where,
    command,
)
from sim.cli.terminal import progress

if TYPE_CHECKING:
    from sim.answers.sensitivity import Sensitivity

SIMULATED_VALUES = 20


@command
def sensitivity(
    file: ScenarioFile,
    over: Repeated,
    where: Where,
    output: Output,
    active: Annotated[
        int | None, typer.Option(min=1, help="Active requests [default: the load's, else simulated]")
    ] = None,
    simulation: Annotated[
        bool, typer.Option("--simulation/--no-simulation", help="Failures and rates too, by simulation.")
    ] = True,
) -> None:
    """Find the value of each input at which the verdict flips.

    Beside it stands what 10 % less and 10 % more of the input do.

    Break-even values of the plan arithmetic are exact: for one request at its mean times and its fair share
    of the slots. Failures and arrival rates are not part of it and are simulated.
    """
    from sim.answers.sensitivity import sensitivities
    from sim.cli.show_sensitivity import sensitivity_parts
    from sim.scenario import load_scenario

    hold(output.out)
    machine = where.machine()
    scenario = load_scenario(file, over.overrides())
    with progress(SIMULATED_VALUES, "values", quiet=output.as_json) as report:
        found = [
            sensitivities(
                part,
                active=active,
                simulate=simulation,
                workers=machine.workers,
                engine=machine.engine,
                progress=report,
            )
            for part in scenario.parts
        ]
    if output.out is not None:
        options = {"--active": active, "--no-simulation": not simulation}
        write_sensitivity(output.out, found[0], command_line("sensitivity", scenario, options))
    output.show(
        lambda: {"workloads": [one.summary() for one in found]},
        lambda: (line for one in found for line in sensitivity_parts(one)),
    )


def write_sensitivity(out: str, found: "Sensitivity", command: str) -> None:
    """Write everything about a scenario's inputs."""
    from sim.report.answers import sensitivity_report

    write_answer(out, found.scenario, sensitivity_report(found, command), found.summary())
