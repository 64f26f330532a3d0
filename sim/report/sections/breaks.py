"""Break-even values of every input, in tables, and the tornado beside them."""

from sim.report.content import Bullets, Cell, Section, Table
from sim.report.figures.tornado import tornado
from sim.report.shown import BLANK, trimmed
from sim.report.words import decision_cell
from sim.sensitivity import BreakEven, InputSensitivity, Sensitivity, Shift

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
    table = Table(
        f"Break-even values at {sensitivity.active_requests:,} active requests, all else as it is",
        "lrrrll",
        tuple(Cell(text) for text in HEADINGS),
        tuple(row(one) for one in sensitivity.inputs),
    )
    words = (headline(sensitivity), *sensitivity.notes)
    return Section("break-even", "Break-even values", (Bullets(tuple(f"{line}." for line in words)), table))


def headline(sensitivity: Sensitivity) -> str:
    """Return the decision as it is, in a few words."""
    base = sensitivity.base
    price = base.micros_per_saved_ms
    costs = "" if price is None else f" at {trimmed(price, 3)} micros per ms"
    return f"now {base.decision}: {trimmed(base.saved_ms)} ms saved{costs}"


def row(one: InputSensitivity) -> tuple[Cell, ...]:
    """Return one input."""
    return (
        Cell(one.name),
        Cell(shown(one.value, one.unit)),
        Cell(flips_words(one.flips, one)),
        Cell(flips_words(one.latency_flips, one)),
        Cell(one.basis),
        Cell(one.path),
    )


def flips_words(flips: tuple[BreakEven, ...], one: InputSensitivity) -> str:
    """Return the break-even values, those found by simulation as the values around them."""
    if not flips:
        return BLANK
    return ", ".join(
        shown(flip.value, one.unit)
        if one.basis == "arithmetic"
        else " to ".join(shown(value, one.unit) for value in sorted((flip.holds_at, flip.fails_at)))
        for flip in flips
    )


def shown(value: float, unit: str) -> str:
    """Return a value with its unit, as many decimals as it needs up to a few."""
    if unit == "%":
        return f"{trimmed(100 * value, 2)} %"
    return f"{trimmed(value, 3)} {unit}".rstrip()


def changes(sensitivity: Sensitivity) -> Section:
    """Return what a change of 10 % does."""
    rows = tuple(
        (Cell(one.name), *shift_cells(one.less, one), *shift_cells(one.more, one))
        for one in sensitivity.by_swing
    )
    table = Table(
        "Ten per cent less, ten per cent more",
        "lrrrlrrrl",
        tuple(Cell(text) for text in TORNADO_HEADINGS),
        rows,
    )
    return Section("tornado", "A change of 10 %", (tornado(sensitivity), table))


def shift_cells(shift: Shift, one: InputSensitivity) -> tuple[Cell, ...]:
    """Return what an input does at another value."""
    price = shift.micros_per_saved_ms
    return (
        Cell(shown(shift.value, one.unit)),
        Cell(trimmed(shift.saved_ms)),
        Cell(BLANK if price is None else trimmed(price, 3)),
        decision_cell(shift.decision),
    )
