"""`slotsim policy`: the rule to put into production, held against both fixed plans."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sim.cli.answering import command_line, write_answer
from sim.cli.holding import hold
from sim.cli.levels import whole_levels
from sim.cli.options import (
    Output,
    ScenarioFile,
    Study,
    Where,
    command,
)
from sim.cli.terminal import progress
from sim.report.file_list import json_text

if TYPE_CHECKING:
    from sim.answers.policy import PolicyResult

POLICY_FILE = "policy.json"
SLO_MISSED = 1


@command
def policy(
    file: ScenarioFile,
    over: Study,
    where: Where,
    output: Output,
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
) -> None:
    """Make the rule by load and hour, and simulate it.

    Always serial and always parallel are simulated beside it, on the same draws.

    The table is read by sim.choose_plan, which needs nothing but Python. Ends with 1 where the policy misses
    an objective.
    """
    from sim.answers.policy import policy_for
    from sim.cli.show_policy import policy_parts
    from sim.scenario import load_scenario

    hold(output.out)
    machine = where.machine()
    scenario = load_scenario(file, over.overrides())
    levels = whole_levels("--active", active) if active else ()
    with progress(3 * scenario.experiment.replications, "runs", quiet=output.as_json) as report:
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
    if output.out is not None:
        line = command_line("policy", scenario, {"--active": active, "--slo": slo})
        write_policy(output.out, result, table, line)
    written = [] if write_to is None else [f"wrote {write_to}"]
    output.show(result.summary, lambda: [*policy_parts(result), *written])
    if not result.meets_slo:
        raise typer.Exit(SLO_MISSED)


def write_table(path: str, table: str) -> None:
    """Write the table alone, all or nothing."""
    from sim.report.output_folder import OutputFolder

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
