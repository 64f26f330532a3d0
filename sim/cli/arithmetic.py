"""`slotsim decide` and `slotsim gains`: the plan arithmetic, nothing simulated."""

from typing import Annotated

import typer

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

    parts = [part for scenario in read_all(files, sets or []) for part in scenario.parts]
    decisions = [(part, shares(part, active, slots)) for part in parts]
    if as_json:
        say_json({"decisions": [share.summary(scenario) for scenario, each in decisions for share in each]})
    else:
        say(*(part for scenario, each in decisions for part in decide_parts(scenario, each)))


def gains(file: ScenarioFile, sets: Sets = None, as_json: AsJson = False) -> None:
    """Show the makespan and the gain slot by slot."""
    from sim.answers.flip import gains as gains_of
    from sim.cli.show_plan import gains_parts
    from sim.scenario import load_scenario

    parts = load_scenario(file, sets or ()).parts
    found = {part.part_name: gains_of(part) for part in parts}
    if as_json:
        say_json({"workloads": {name: each.summary() for name, each in found.items()}})
    else:
        say(*(part for each in found.values() for part in gains_parts(each)))
