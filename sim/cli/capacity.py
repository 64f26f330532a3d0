"""`slotsim capacity`: what binds under each plan, by arithmetic; nothing simulated."""

from typing import Annotated

import typer

from sim.cli.options import AsJson, ScenarioFile, Sets, overrides
from sim.cli.terminal import say, say_json
from sim.errors import ArgumentError

AnyPlans = Annotated[
    list[str] | None,
    typer.Option("--plan", metavar="PLAN", help="Look at this plan alone; repeatable. parallel_max_2 too."),
]
TargetLoad = Annotated[
    float,
    typer.Option(metavar="SHARE", help="What to buy for: the highest load that is wanted, above 0 to 1."),
]


def capacity(
    file: ScenarioFile,
    sets: Sets = None,
    plans: AnyPlans = None,
    target_load: TargetLoad = 0.9,
    as_json: AsJson = False,
) -> None:
    """Show what binds, and what to buy, by arithmetic.

    For each plan the load on slots and on every limit, the binding constraint, and the largest sustainable
    rate, or of users the knee.
    """
    if not 0 < target_load <= 1:
        raise ArgumentError("--target-load", "must be above 0 and at most 1", target_load)
    from sim.result.capacity import capacities, capacity_summary
    from sim.scenario import load_scenario

    scenario = load_scenario(file, overrides(sets, seed=None, plans=plans))
    found = capacities(scenario)
    if as_json:
        say_json({"capacity": capacity_summary(scenario, found, target_load)})
    else:
        from sim.cli.show_capacity import capacity_parts

        say(*capacity_parts(scenario, found, target_load))
