"""A sweep on the terminal: the points where they are few, and where the verdict changes."""

from rich.console import RenderableType
from rich.table import Table

from sim.cli.figures import BLANK, number
from sim.cli.terminal import new_table
from sim.contract.figure import FIGURES
from sim.report.figures.heat_map import one_value
from sim.report.swept import MOST_AXES_DRAWN, POINT_FIGURES, change_sentences, headline
from sim.sweeps.point_store import Row
from sim.sweeps.sweep import NOT_COMPARED, Sweep

MOST_ROWS = 100


def sweep_parts(sweep: Sweep) -> list[RenderableType]:
    """Return a row for each point and plan, or nothing of them where they are many, and the verdicts."""
    rows = sum(sweep.verdicts.values()) * len(sweep.scenario.plans)
    shown: list[RenderableType] = [points_table(sweep), ""] if rows <= MOST_ROWS else []
    told = len(sweep.grid.axes) <= MOST_AXES_DRAWN and not sweep.verdicts[NOT_COMPARED]
    changes = change_sentences(sweep) if told else ()
    return [*shown, *changes, f"{sweep.scenario.name}: {headline(sweep)}"]


def points_table(sweep: Sweep) -> Table:
    """Return one row for each point and plan."""
    keys = sweep.grid.keys
    headings = (*keys, "plan", *(FIGURES[name].words for name in POINT_FIGURES), "stability", "verdict")
    table = new_table(*headings, words=len(keys) + 1, last_words=2)
    for row in sweep.rows():
        figures = (cell(row, name) for name in POINT_FIGURES)
        table.add_row(
            *(one_value(row[key]) for key in keys), row["plan"], *figures, row["stability"], row["verdict"]
        )
    return table


def cell(row: Row, name: str) -> str:
    """Return a figure of a row."""
    value = row.get(name)
    return BLANK if value is None else number(FIGURES[name].scale * value)
