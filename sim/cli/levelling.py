"""`slotsim flip`: where the best plan changes along a load."""

from typing import Annotated

import typer

from sim.cli.holding import hold
from sim.cli.levels import real_levels, whole_levels
from sim.cli.options import (
    Drawn,
    Output,
    ScenarioFile,
    Where,
    command,
)
from sim.contract.allocation import PLAIN_ALLOCATIONS, allocation_named
from sim.errors import Fault, InputError


@command
def flip(
    file: ScenarioFile,
    over: Drawn,
    where: Where,
    output: Output,
    active: Annotated[
        str | None,
        typer.Option(metavar="LEVELS", help="Users of a closed load: 1:40, 1:40:2 or 5,10,20."),
    ] = None,
    rate: Annotated[
        str | None, typer.Option(metavar="LEVELS", help="Poisson arrivals per second: 10:60:5.")
    ] = None,
    allocation: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"Who gets a free slot; repeatable [default: {', '.join(PLAIN_ALLOCATIONS)}]",
        ),
    ] = None,
    requests_per_user: Annotated[int, typer.Option(min=10, help="Length of the closed runs.")] = 400,
    requests: Annotated[int, typer.Option(min=10, help="Length of the open runs.")] = 20_000,
) -> None:
    """Find where the best plan changes along the load.

    Each level is simulated under each allocation. A table shows, for every plan, the mean latency, its range
    over requests, and the bound that no allocation can beat. Of more than 100 levels only those are simulated
    that it takes to find where the decision changes.
    """
    from sim.cli.experiments import Levels, flipped
    from sim.cli.show_comparison import flip_parts
    from sim.scenario import load_scenario

    if (active is None) == (rate is None):
        raise InputError(
            Fault("slotsim flip", None, "", "needs --active or --rate, one of them", has_value=False)
        )
    hold(output.out)
    machine = where.machine()
    scenario = load_scenario(file, over.overrides())
    levels = Levels(
        active=tuple(whole_levels("--active", active) if active else ()),
        rates=tuple(real_levels("--rate", rate) if rate else ()),
        allocations=known_allocations(allocation or PLAIN_ALLOCATIONS),
        requests_per_user=requests_per_user,
        requests=requests,
    )
    table = flipped(scenario, levels, machine, quiet=output.as_json)
    if output.out is not None:
        from sim.cli.folder import write_flip

        write_flip(output.out, table, levels, machine, quiet=output.as_json)
    output.show(table.summary, lambda: flip_parts(table))


def known_allocations(names: "list[str] | tuple[str, ...]") -> tuple[str, ...]:
    """Return the allocations named, each once."""
    return tuple(dict.fromkeys(allocation_named(name, "--allocation").name for name in names))
