"""`slotsim decide` and `slotsim gains`: the plan arithmetic, nothing simulated."""

from typing import Annotated

import typer

import sim
from sim.cli.options import AsJson, ScenarioFile, ScenarioFiles, Sets
from sim.cli.reading import read_all
from sim.cli.terminal import say, say_json


def decide(
    files: ScenarioFiles,
    active: Annotated[int | None, typer.Option(help="Decide at so many active requests.")] = None,
    slots: Annotated[int | None, typer.Option(help="Decide with so many slots for each request.")] = None,
    sets: Sets = None,
    as_json: AsJson = False,
) -> None:
    """Hold each scenario against the four criteria, by arithmetic.

    A request holds its fair share of the slots at the users of a closed load; other loads do not say how many
    requests are active, so that every share is shown, and where it holds.
    """
    from sim.cli.shares import shares
    from sim.cli.show_plan import decide_parts

    scenarios = read_all(files, sets or [])
    decisions = [(scenario, shares(scenario, active, slots)) for scenario in scenarios]
    if as_json:
        say_json({"decisions": [share.summary(scenario) for scenario, each in decisions for share in each]})
    else:
        say(*(part for scenario, each in decisions for part in decide_parts(scenario, each)))


def gains(file: ScenarioFile, sets: Sets = None, as_json: AsJson = False) -> None:
    """Show the makespan and the gain slot by slot."""
    from sim.cli.show_plan import gains_parts

    found = sim.gains(sim.load_scenario(file, sets or ()))
    if as_json:
        say_json(found.summary())
    else:
        say(*gains_parts(found))
