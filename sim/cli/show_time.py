"""Where the time of the requests went, as a table for the terminal."""

from rich.console import RenderableType

from sim.cli.figures import BLANK, in_order, number
from sim.cli.terminal import new_table
from sim.result.result import Result
from sim.run.breakdown import PARTS, TimeSpent


def time_parts(result: Result) -> list[RenderableType]:
    """Return the parts of each plan's mean latency that took any time, and how many requests it covers."""
    plans = in_order(result.plans)
    spent = [result.time_spent[plan.label] for plan in plans]
    table = new_table("where the time went, ms", *(plan.label for plan in plans))
    for name, words in PARTS.items():
        if any(one.covered.mean_ms.get(name) for one in spent):
            table.add_row(words, *(part_text(one, name) for one in spent))
    table.add_row("requests covered", *(coverage(one) for one in spent))
    return ["", table]


def part_text(spent: TimeSpent, name: str) -> str:
    """Return the mean of one part, ms."""
    parts = spent.covered.mean_ms
    return number(parts[name]) if parts else BLANK


def coverage(spent: TimeSpent) -> str:
    """Return how many requests of the first replication the parts are of, and of how many."""
    return f"{len(spent.covered.request):,} of {spent.requests:,}"
