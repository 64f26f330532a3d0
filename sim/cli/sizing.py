"""`slotsim size`: the smallest value, such as slots, or the largest, such as load, that keeps an SLO."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sim.cli.answering import command_line, varied, write_answer
from sim.cli.holding import hold
from sim.cli.options import (
    Output,
    ScenarioFile,
    Study,
    Where,
    command,
)
from sim.cli.terminal import progress

if TYPE_CHECKING:
    from sim.answers.size import Sizing

NOT_FOUND = 1
FIRST_RUNS = 130
"""A usual number of runs, for the progress bar until more are known of."""

Vary = Annotated[
    str, typer.Option(metavar="KEY.PATH=VALUES", help="What may change: provider.concurrency=1:200.")
]
Rules = Annotated[
    list[str] | None,
    typer.Option(metavar="RULE", help="'latency_ms_p95 <= 400'; repeatable [default: the scenario's]"),
]
OnePlan = Annotated[
    str | None,
    typer.Option(
        metavar="PLAN", help="The plan that has to keep them [default: the SLO's, else recommended]"
    ),
]
Largest = Annotated[bool, typer.Option("--largest", help="Find the largest value, of a load.")]
SlotPrice = Annotated[
    float | None, typer.Option(min=0, metavar="MICROS", help="What a slot costs for an hour.")
]
MostReplications = Annotated[
    int, typer.Option(min=5, help="Most replications of a value before it is left open.")
]


@command
def size(
    file: ScenarioFile,
    vary: Vary,
    over: Study,
    where: Where,
    output: Output,
    slo: Rules = None,
    plan: OnePlan = None,
    largest: Largest = False,
    slot_price: SlotPrice = None,
    max_replications: MostReplications = 160,
) -> None:
    """Find the fewest slots, or the most load, that keep an SLO.

    Any other number of the scenario may be varied too; the smallest value is found unless --largest is given.

    A rule is about the whole run, or about a workload or a period: 'peak:latency_ms_p95 <= 400'. It is met
    when the whole two-sided 95 % interval keeps it. Ends with 1 where no value was shown to meet the rules.
    """
    from sim.answers.size import size as find
    from sim.cli.show_size import size_parts
    from sim.scenario import load_scenario

    hold(output.out)
    machine = where.machine()
    path, values = varied("--vary", vary)
    scenario = load_scenario(file, over.overrides())
    with progress(FIRST_RUNS, "runs", quiet=output.as_json) as report:
        sizing = find(
            scenario,
            path,
            values,
            slo=slo or (),
            plan=plan,
            largest=largest,
            slot_price_micros=slot_price,
            most_replications=max_replications,
            workers=machine.workers,
            engine=machine.engine,
            progress=report,
        )
    if output.out is not None:
        options = {
            "--vary": vary,
            "--slo": slo,
            "--plan": plan,
            "--largest": largest,
            "--slot-price": slot_price,
            "--max-replications": max_replications,
        }
        write_size(output.out, sizing, command_line("size", scenario, options))
    output.show(sizing.summary, lambda: size_parts(sizing))
    if sizing.answer is None:
        raise typer.Exit(NOT_FOUND)


def write_size(out: str, sizing: "Sizing", command: str) -> None:
    """Write everything about a sizing."""
    from sim.report.answers import sizing_report

    summary = sizing.summary()
    rows = [row_of(point, held) for point in summary["curve"] for held in point["rules"]]
    write_answer(out, sizing.scenario, sizing_report(sizing, command), summary, tables={"curve.csv": rows})


def row_of(point: dict[str, Any], held: dict[str, Any]) -> dict[str, Any]:
    """Return one rule at one candidate as a row of a table."""
    return {
        "value": point["value"],
        "replications": point["replications"],
        "value_verdict": point["verdict"],
        **held,
    }
