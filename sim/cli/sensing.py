"""`slotsim sensitivity`: what would have to change for the verdict to change."""

from typing import TYPE_CHECKING, Annotated

import typer

import sim
from sim.cli.answering import command_line, write_answer
from sim.cli.holding import hold
from sim.cli.options import (
    AsJson,
    Dask,
    EngineName,
    Out,
    Replications,
    ScenarioFile,
    Seed,
    Sets,
    Workers,
    machine_of,
    overrides,
)
from sim.cli.terminal import progress, say, say_json, wrote

if TYPE_CHECKING:
    from sim.sensitivity import Sensitivity

SIMULATED_VALUES = 20


def sensitivity(
    file: ScenarioFile,
    active: Annotated[
        int | None, typer.Option(min=1, help="Active requests [default: the load's, else simulated]")
    ] = None,
    simulation: Annotated[
        bool, typer.Option("--simulation/--no-simulation", help="Failures and rates too, by simulation.")
    ] = True,
    seed: Seed = None,
    sets: Sets = None,
    replications: Replications = None,
    workers: Workers = None,
    dask: Dask = None,
    engine: EngineName = "auto",
    as_json: AsJson = False,
    out: Out = None,
) -> None:
    """Find the value of each input at which the verdict flips.

    Beside it stands what 10 % less and 10 % more of the input do.

    Break-even values of the plan arithmetic are exact: for one request at its mean times and its fair share
    of the slots. Failures and arrival rates are not part of it and are simulated.
    """
    from sim.cli.show_sensitivity import sensitivity_parts
    from sim.sensitivity import sensitivities

    hold(out)
    machine = machine_of(workers, dask, engine)
    scenario = sim.load_scenario(file, overrides(sets, seed, replications))
    with progress(SIMULATED_VALUES, "values", quiet=as_json) as report:
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
    if out is not None:
        options = {"--active": active, "--no-simulation": not simulation}
        write_sensitivity(out, found[0], command_line("sensitivity", scenario, options))
    if as_json:
        say_json({"workloads": [one.summary() for one in found]})
    else:
        say(*(line for one in found for line in sensitivity_parts(one)))
    if out is not None:
        wrote(out, as_json=as_json)


def write_sensitivity(out: str, found: "Sensitivity", command: str) -> None:
    """Write everything about a scenario's inputs."""
    from sim.report.answers import sensitivity_report

    write_answer(out, found.scenario, sensitivity_report(found, command), found.summary())
