"""Comparisons and levels of load as tables and sentences for the terminal."""

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table

from sim.answers.comparison import COMPARED, Comparison, PlanDifference
from sim.answers.flip import FlipTable, Level, PlanFigure
from sim.cli.figures import BLANK, ORDER, estimate, in_order, number
from sim.cli.show import checks_words, load_words, slo_lines, top_lines
from sim.cli.terminal import new_table
from sim.contract.figure import FIGURES, MEAN_LATENCY, of_delivered
from sim.result.observed import tellable
from sim.result.plan_result import PlanResult
from sim.result.result import Result
from sim.statistics.interval import Difference
from sim.statistics.stability import OVERLOADED

LEVELS = {"active_requests": "active requests", "rate_per_s": "requests/s"}


def comparison_parts(comparison: Comparison) -> list[RenderableType]:
    """Return scenarios beside each other, the paired differences, and where the verdict flips."""
    tops = [f"{one.scenario.name}: {line}" for one in comparison.results for line in top_lines(one)]
    parts: list[RenderableType] = [*tops, "", overview_table(comparison.results), "", comparison.sentence, ""]
    for words, pairs in (
        ("plans on the same draws", comparison.between_plans),
        ("scenarios on the same draws", comparison.between_scenarios),
    ):
        if pairs:
            parts += [differences_table(words, pairs), ""]
    for result in comparison.results:
        name = result.scenario.name
        parts.append(f"checks: {name}: {checks_words(result.checks)}")
        parts += [f"{name}: {line}" for line in slo_lines(result)]
        parts += [f"note: {name}: {note}" for note in result.notes]
    return parts


def overview_table(results: Sequence[Result]) -> Table:
    """Return the mean latency of each scenario (rows) and plan (columns), and the decision."""
    plans = in_order(plan for result in results for plan in result.plans)
    labels = list(dict.fromkeys(plan.label for plan in plans))
    table = new_table(FIGURES[MEAN_LATENCY].words, "load", *labels, "decision", words=2, last_words=1)
    for result in results:
        shown = {plan.label: mean_cell(plan) for plan in result.plans}
        cells = (shown.get(label, BLANK) for label in labels)
        table.add_row(result.scenario.name, load_words(result.scenario), *cells, result.decision.decision)
    return table


DELIVERED = " (delivered)"
"""Beside a latency of delivered requests alone, where others were not delivered."""


def mean_cell(plan: PlanResult) -> str:
    """Return a plan's mean latency, marked where it is no steady state."""
    name = tellable(MEAN_LATENCY, plan)
    text = estimate(plan.estimates[name]) + DELIVERED * (name != MEAN_LATENCY)
    return f"{text} ({OVERLOADED})" if plan.stability.label == OVERLOADED else text


def differences_table(words: str, pairs: Sequence[PlanDifference]) -> Table:
    """Return paired differences: what was compared in rows, figures in columns."""
    rows: dict[tuple[str, str, str], dict[str, Difference]] = {}
    for pair in pairs:
        rows.setdefault((pair.scenario, pair.plan, pair.against), {})[pair.figure] = pair.difference
    figures_words = (FIGURES[name].words for name in COMPARED)
    table = new_table(words, "plan", "against", *figures_words, "the mean is", words=3, last_words=1)
    for key, figures in rows.items():
        cells = [
            signed(figures[name]) if name in figures else signed(figures[of_delivered(name)]) + DELIVERED
            for name in COMPARED
        ]
        words_of_mean = (figures.get(COMPARED[0]) or figures[of_delivered(COMPARED[0])]).words
        table.add_row(*key, *cells, words_of_mean)
    return table


def signed(difference: Difference) -> str:
    """Return a difference with its sign and half-width."""
    text = estimate(difference)
    return f"+{text}" if difference.mean > 0 else text


def flip_parts(table: FlipTable) -> list[RenderableType]:
    """Return the levels under each allocation, and the sentences where the decision changes."""
    parts: list[RenderableType] = [*table.binding, ""]
    for allocation in table.allocations:
        parts += [f"{table.scenario.name}, {allocation}: {MEANING}", levels_table(table, allocation), ""]
    return [*parts, *table.sentences()]


MEANING = f"{FIGURES[MEAN_LATENCY].words} [least..greatest of a request] >= the bound no allocation can beat"


def levels_table(table: FlipTable, allocation: str) -> Table:
    """Return the levels under one allocation, a row each."""
    levels = table.of(allocation)
    labels = sorted(levels[0].plans, key=lambda label: ORDER[label])
    shown = new_table(LEVELS[table.level], *labels, "best", "decision", words=0, last_words=2)
    changed = {id(high) for _, high in table.changes(allocation)}
    for level in levels:
        cells = (level_cell(level.plans[label]) for label in labels)
        shown.add_row(level_value(level), *cells, level.best, level.decision + " <-" * (id(level) in changed))
    return shown


def level_value(level: Level) -> str:
    """Return the level of load."""
    return f"{level.value:g}"


def level_cell(figure: PlanFigure) -> str:
    """Return a plan's mean latency at a level, its range over requests and its bound."""
    mark = f" ({OVERLOADED})" if figure.stability == OVERLOADED else ""
    least, greatest = number(figure.least_ms), number(figure.greatest_ms)
    return f"{estimate(figure.mean)} [{least}..{greatest}] >= {number(figure.bound_ms)}{mark}"
