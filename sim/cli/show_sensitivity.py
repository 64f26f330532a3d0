"""Break-even values and what a change of 10 % does, for the terminal."""

from rich.console import RenderableType
from rich.table import Table

from sim.answers.sensitivity import InputSensitivity, Sensitivity, Shift
from sim.answers.words import flips_words, in_unit, verdict_now
from sim.cli.figures import BLANK, number
from sim.cli.terminal import new_table


def sensitivity_parts(sensitivity: Sensitivity) -> list[RenderableType]:
    """Return the decision as it is, the break-even values, and the tornado as a table."""
    name, active = sensitivity.scenario.name, sensitivity.active_requests
    return [
        f"{name}, {active:,} active requests: {verdict_now(sensitivity)}",
        *(f"note: {note}" for note in sensitivity.notes),
        "",
        break_even_table(sensitivity),
        "",
        "what 10 % less and 10 % more do, the widest first: saved, ms (micros per saved ms)",
        change_table(sensitivity),
    ]


def break_even_table(sensitivity: Sensitivity) -> Table:
    """Return a row for each input."""
    table = new_table(
        "input", "now", "verdict flips at", "as fast as serial at", "by", "key path", words=1, last_words=2
    )
    for one in sensitivity.inputs:
        flips, latency = (flips_words(each, one) for each in (one.flips, one.latency_flips))
        table.add_row(one.name, in_unit(one.value, one.unit), flips, latency, one.basis, one.path)
    return table


def change_table(sensitivity: Sensitivity) -> Table:
    """Return a row for each input that moves the saving or its price."""
    table = new_table("input", "10 % less", "does", "decision", "10 % more", "does", "decision")
    for one in sensitivity.by_swing:
        table.add_row(one.name, *shift_cells(one.less, one), *shift_cells(one.more, one))
    return table


def shift_cells(shift: Shift, one: InputSensitivity) -> tuple[str, str, str]:
    """Return an input at another value, and what that does."""
    price = shift.micros_per_saved_ms
    does = f"{number(shift.saved_ms)} ({BLANK if price is None else number(price)})"
    return in_unit(shift.value, one.unit), does, shift.decision
