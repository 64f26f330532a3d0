"""Break-even values of every input, in tables, and the tornado beside them."""

from sim.answers.sensitivity import InputSensitivity, Sensitivity, Shift
from sim.answers.words import flips_words, in_unit, verdict_now
from sim.report.content import Bullets, Cell, Section, table_of
from sim.report.figures.tornado import tornado
from sim.report.words import decision_cell
from sim.statistics.digits import BLANK, trimmed

HEADINGS = ("Input", "Now", "Verdict flips at", "As fast as serial at", "Basis", "Key")
TORNADO_HEADINGS = (
    "Input",
    "Value, less",
    "Saved, ms",
    "Micros per saved ms",
    "Decision",
    "Value, more",
    "Saved, ms",
    "Micros per saved ms",
    "Decision",
)


def break_evens(sensitivity: Sensitivity) -> Section:
    """Return where the verdict flips, input by input."""
    table = table_of(
        f"Break-even values at {sensitivity.active_requests:,} active requests, all else as it is",
        "lrrrll",
        HEADINGS,
        (row(one) for one in sensitivity.inputs),
    )
    words = (verdict_now(sensitivity), *sensitivity.notes)
    return Section("break-even", "Break-even values", (Bullets(tuple(f"{line}." for line in words)), table))


def row(one: InputSensitivity) -> tuple[Cell, ...]:
    """Return one input."""
    return (
        Cell(one.name),
        Cell(in_unit(one.value, one.unit)),
        Cell(flips_words(one.flips, one)),
        Cell(flips_words(one.latency_flips, one)),
        Cell(one.basis),
        Cell(one.path),
    )


def changes(sensitivity: Sensitivity) -> Section:
    """Return what a change of 10 % does."""
    rows = tuple(
        (Cell(one.name), *shift_cells(one.less, one), *shift_cells(one.more, one))
        for one in sensitivity.by_swing
    )
    table = table_of("Ten per cent less, ten per cent more", "lrrrlrrrl", TORNADO_HEADINGS, rows)
    return Section("tornado", "A change of 10 %", (tornado(sensitivity), table))


def shift_cells(shift: Shift, one: InputSensitivity) -> tuple[Cell, ...]:
    """Return what an input does at another value."""
    price = shift.micros_per_saved_ms
    return (
        Cell(in_unit(shift.value, one.unit)),
        Cell(trimmed(shift.saved_ms)),
        Cell(BLANK if price is None else trimmed(price, 3)),
        decision_cell(shift.decision),
    )
