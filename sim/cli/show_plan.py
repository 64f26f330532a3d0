"""The plan arithmetic as tables and sentences for the terminal."""

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table

from sim.answers.flip import Gains
from sim.cli.figures import number
from sim.cli.shares import Share
from sim.cli.show import criterion_line, slots_words
from sim.cli.terminal import new_table
from sim.scenario import Scenario


def decide_parts(scenario: Scenario, shares: Sequence[Share]) -> list[RenderableType]:
    """Return the four criteria of one workload at each share of the slots."""
    name = part_name(scenario)
    return [line for share in shares for line in evaluation_lines(f"{name}{where(share)}", share)]


def part_name(scenario: Scenario) -> str:
    """Return a scenario's name, with that of the workload where it has several."""
    return scenario.name if len(scenario.parts) == 1 else f"{scenario.name}, {scenario.part_name}"


def where(share: Share) -> str:
    """Return at how many active requests a share holds."""
    if share.active_from is None:
        return ""
    if share.active_to is None:
        return f", from {share.active_from:,} active requests on"
    if share.active_from == share.active_to:
        return f", {share.active_from:,} active requests"
    return f", {share.active_from:,} to {share.active_to:,} active requests"


def evaluation_lines(title: str, share: Share) -> list[str]:
    """Return a decision by arithmetic, its figures and its criteria."""
    evaluation = share.evaluation
    times = (
        f"  serial {number(evaluation.serial_ms)} ms, parallel {number(evaluation.parallel_ms)} ms"
        f" on {slots_words(evaluation.concurrency)}; serial {evaluation.serial_cost_micros:,} micros,"
        f" parallel {evaluation.parallel_cost_micros:,} micros"
    )
    return [
        f"{title}, {slots_words(evaluation.concurrency)} each: {evaluation.reason}",
        times,
        *(criterion_line(criterion) for criterion in evaluation.criteria),
    ]


def gains_parts(gains: Gains) -> list[RenderableType]:
    """Return makespan and gain slot by slot."""
    degree = slots_words(gains.recommended_degree)
    return [
        f"{part_name(gains.scenario)}: one request alone, serial {number(gains.serial_ms)} ms",
        gains_table(gains),
        f"recommended degree: {degree}",
    ]


def gains_table(gains: Gains) -> Table:
    """Return one row per number of slots."""
    table = new_table("slots", "makespan, ms", "gain of the last slot, ms", words=0)
    for gain in gains.gains:
        saved = "" if gain.concurrency == 1 else number(gain.saved_vs_previous_ms)
        table.add_row(str(gain.concurrency), number(gain.make_span_ms), saved)
    return table
