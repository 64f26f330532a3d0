"""`slotsim policy`: the rule to put into production, held against both fixed plans."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import sim
from sim.cli.answering import command_line, write_answer
from sim.cli.holding import hold
from sim.cli.levels import whole_levels
from sim.cli.options import (
    AsJson,
    Dask,
    EngineName,
    Out,
    Replications,
    ScenarioFile,
    Seed,
    Sets,
    Warmup,
    Workers,
    machine_of,
    overrides,
)
from sim.cli.terminal import progress, say, say_json, write, wrote
from sim.file_list import json_text

if TYPE_CHECKING:
    from sim.policy import PolicyResult

POLICY_FILE = "policy.json"
SLO_MISSED = 1


def policy(
    file: ScenarioFile,
    active: Annotated[
        str | None,
        typer.Option(
            metavar="LEVELS", help="Active requests, each level held for a while [default: the load]"
        ),
    ] = None,
    slo: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="'latency_ms_p95 <= 400'; repeatable.")
    ] = None,
    write_to: Annotated[
        str | None, typer.Option("--write", metavar="FILE", help="Write the table that a service loads.")
    ] = None,
    seed: Seed = None,
    sets: Sets = None,
    replications: Replications = None,
    warmup: Warmup = None,
    workers: Workers = None,
    dask: Dask = None,
    engine: EngineName = "auto",
    as_json: AsJson = False,
    out: Out = None,
) -> None:
    """Make the rule by load and hour, and simulate it.

    Always serial and always parallel are simulated beside it, on the same draws.

    The table is read by sim.choose_plan, which needs nothing but Python. Ends with 1 where the policy misses
    an objective.
    """
    from sim.cli.show_policy import policy_parts
    from sim.policy import policy_for

    hold(out)
    machine = machine_of(workers, dask, engine)
    scenario = sim.load_scenario(file, overrides(sets, seed, replications, warmup))
    levels = whole_levels("--active", active) if active else ()
    with progress(3 * scenario.experiment.replications, "runs", quiet=as_json) as report:
        result = policy_for(
            scenario,
            active=levels,
            slo=slo or (),
            workers=machine.workers,
            engine=machine.engine,
            progress=report,
        )
    table = json_text(result.table.to_dict())
    if write_to is not None:
        write_table(write_to, table)
    if out is not None:
        command = command_line("policy", scenario, {"--active": active, "--slo": slo})
        write_policy(out, result, table, command)
    if as_json:
        say_json(result.summary())
    else:
        say(*policy_parts(result))
        if write_to is not None:
            write(f"wrote {write_to}\n")
    if out is not None:
        wrote(out, as_json=as_json)
    if not result.meets_slo:
        raise typer.Exit(SLO_MISSED)


def write_table(path: str, table: str) -> None:
    """Write the table alone, all or nothing."""
    from sim.output import OutputFolder

    target = Path(path)
    with OutputFolder(target.parent) as folder:
        folder.write_text(target.name, table)


def write_policy(out: str, result: "PolicyResult", table: str, command: str) -> None:
    """Write everything about a policy."""
    from sim.report.answers import policy_report

    write_answer(
        out,
        result.scenario,
        policy_report(result, command),
        result.summary(),
        files={POLICY_FILE: table},
    )
