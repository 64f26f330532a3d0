"""The answer of a sizing, and its curve, for the terminal."""

from rich.console import RenderableType
from rich.table import Table

from sim.answers.size import Sizing
from sim.answers.size_search import SizePoint
from sim.answers.words import (
    anomaly_words,
    effort_words,
    missing_words,
    next_slot_words,
    theory_words,
)
from sim.cli.figures import BLANK, estimate, number
from sim.cli.terminal import new_table
from sim.contract.figure import FIGURES


def size_parts(sizing: Sizing) -> list[RenderableType]:
    """Return the answer first, then the candidates that were simulated."""
    parts: list[RenderableType] = [*sizing.binding, f"{sizing.scenario.name}: {sizing.sentence}"]
    parts += [*missing_words(sizing), *anomaly_words(sizing)]
    if sizing.next_slot is not None:
        parts.append(next_slot_words(sizing.next_slot))
    return [*parts, theory_words(sizing), "", curve_table(sizing), "", effort_words(sizing)]


def curve_table(sizing: Sizing) -> Table:
    """Return a row for each candidate."""
    rules = [str(rule) for _, rule in sizing.asked.rules]
    columns = [column for rule in rules for column in (rule, "theory")]
    explained = any(point.reason for point in sizing.points)
    headings = ("plan", "verdict", *["why"] * explained)
    table = new_table(sizing.path, *columns, "replications", *headings, words=0, last_words=len(headings))
    for point in sizing.points:
        mark = " <-" if point.value == sizing.answer else ""
        cells = [cell for place in range(len(rules)) for cell in rule_cells(point, place)]
        plans = ", ".join(dict.fromkeys(held.plan for held in point.rules))
        last = (plans, point.verdict + mark, *[point.reason] * explained)
        table.add_row(f"{point.value:g}", *cells, f"{point.replications:,}", *last)
    return table


def rule_cells(point: SizePoint, place: int) -> tuple[str, str]:
    """Return a rule's figure with its interval, and what theory says of it."""
    held, bound = point.rules[place], point.bounds[place]
    return estimate(
        held.figure, FIGURES[held.rule.metric].kind
    ), f"{bound[0]} {number(bound[1])}" if bound else BLANK
