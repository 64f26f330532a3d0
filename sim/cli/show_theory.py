"""The simulator held against queueing theory: simulated, as a table, and as plain data."""

from rich.console import RenderableType

from sim.cli.figures import BLANK, number
from sim.cli.options import Machine
from sim.cli.terminal import new_table, progress
from sim.statistics.digits import fixed
from sim.verification.table import TheoryRow, TheoryTable, chosen_cases, verify_theory

COLUMNS = ("theory", "simulated", "99.9 % interval", "half-width, %", "must be under, %", "requests")


def theory_table(quick: bool, machine: Machine, *, quiet: bool) -> TheoryTable:
    """Simulate the cases; `quiet` shows no progress."""
    runs = sum(case.replications for case in chosen_cases(quick))
    with progress(runs, "runs", quiet=quiet) as report:
        return verify_theory(quick, machine.workers, report, machine.engine)


def theory_parts(table: TheoryTable) -> list[RenderableType]:
    """Return one row for each quantity, what is wrong with those that fail, and the outcome in words."""
    shown = new_table("case", "quantity", *COLUMNS, "by", "verdict", words=2, last_words=2)
    for row in table.rows:
        shown.add_row(row.case, f"{row.claim.quantity}, {row.claim.unit}", *row_numbers(row), *row_words(row))
    failed = [row for row in table.rows if not row.passed]
    faults = [f"FAIL {row.case}: {row.claim.quantity}: {row.verdict.words}" for row in failed]
    cases = len({row.case for row in table.rows})
    outcome = f"{len(failed):,} fail" if failed else "all agree with theory"
    return [shown, "", *faults, f"{cases:,} cases, {len(table.rows):,} quantities: {outcome}; {table.engine}"]


def row_numbers(row: TheoryRow) -> list[str]:
    """Return a row's numbers as text."""
    verdict, simulated = row.verdict, row.verdict.simulated
    theory = number(verdict.low) if verdict.low == verdict.high else interval(verdict.low, verdict.high)
    low, high = simulated.low, simulated.high
    return [
        theory,
        number(simulated.mean),
        "exact" if low is None or high is None else interval(low, high),
        BLANK if row.precision is None else fixed(100 * row.precision, 2),
        BLANK if row.precision_needed is None else f"{100 * row.precision_needed:g}",
        f"{row.replications:,} x {row.requests:,}",
    ]


def row_words(row: TheoryRow) -> tuple[str, str]:
    """Return who says so, and whether it holds."""
    return row.claim.source, "pass" if row.passed else "FAIL"


def interval(low: float, high: float) -> str:
    """Return both ends."""
    return f"{number(low)} to {number(high)}"
