"""A sweep: a scenario simulated at every point of a grid, each stored as soon as it is done."""

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.answers.boundary import Cell, inferred
from sim.answers.boundary import search as search_borders
from sim.contract.load import Progress
from sim.draws.drawing import expected_requests
from sim.engine import select_engine
from sim.errors import ArgumentError, Fault, InputError
from sim.result.experiment import WORTH_WORKERS, simulate
from sim.result.plan_result import PlanResult
from sim.result.result import Result
from sim.run.backend import Backend, Crew, Workers, backend_for
from sim.scenario import Scenario
from sim.sweeps.folder_lock import held
from sim.sweeps.grid import Grid, Point
from sim.sweeps.point_store import HALF_WIDTH, PointStore, Row

if TYPE_CHECKING:
    import pandas as pd

NOT_COMPARED = "not compared"
"""The verdict where serial and another plan were not simulated beside each other."""
SECONDS_PER_TASK = 1.0
"""What tasks on other processes should take: long beside their way there and back, short beside the sweep."""
TASKS_PER_S = 50
"""So many tasks a scheduler hands out without becoming what everything waits for."""
MOST_POINTS_PER_TASK = 500
REQUESTS_LIKE_A_POINT = 1_000
"""What a point takes beside its requests, as a number of requests."""


@dataclass(frozen=True)
class Sweep:
    """A scenario at every point of a grid.

    Parameters
    ----------
    grid
        What was varied.
    store
        The rows of every point, one for each plan.
    reused
        How many points were there already.
    """

    scenario: Scenario
    grid: Grid
    store: PointStore
    reused: int

    def points(self) -> Iterator[Point]:
        """Yield the points in order; after a search, those that were simulated."""
        return (point for point in self.grid.points() if point in self.store)

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the points in order, the values of what was varied before the figures."""
        for point in self.points():
            yield from (point | row for row in self.store.rows(point))

    @cached_property
    def frame(self) -> "pd.DataFrame":
        """All rows as a table; what is varied has columns named by key path."""
        from sim.sweeps.table import table_of  # noqa: PLC0415  imports pyarrow

        frame: pd.DataFrame = table_of(self.rows).to_pandas()
        return frame

    @cached_property
    def verdicts(self) -> Counter[str]:
        """How many points have each verdict."""
        return Counter(verdict_at(self.store, point) for point in self.points())

    @cached_property
    def cells(self) -> dict[Cell, str]:
        """The verdict of each point as a cell: columns along the first axis, rows along the second if any."""
        rows, columns = shape(self.grid)
        cells = [(row, column) for row in range(rows) for column in range(columns)]
        points = {cell: point_at(self.grid, cell) for cell in cells}
        return {cell: verdict_at(self.store, point) for cell, point in points.items() if point in self.store}

    @cached_property
    def inferred(self) -> dict[Cell, str]:
        """The verdicts of cells that a search left out, where all that it knows around them agree."""
        return inferred(self.cells, *shape(self.grid))

    def summary(self) -> dict[str, Any]:
        """Return all but the rows as plain data."""
        return {
            "scenario": self.scenario.name,
            "scenario_file": self.scenario.path,
            **header_of(self.scenario),
            "overrides": list(self.scenario.overrides),
            "vary": [{"keys": list(axis.keys), "values": list(axis.values)} for axis in self.grid.axes],
            "points": len(self.grid),
            "points_simulated": sum(self.verdicts.values()),
            "plans": [plan.label for plan in self.scenario.plans],
            "verdicts": dict(sorted(self.verdicts.items())),
        }

    def __repr__(self) -> str:
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in self.verdicts.most_common())
        return f"<Sweep of {self.scenario.name} over {', '.join(self.grid.keys)}: {verdicts}>"


def sweep(
    scenario: Scenario,
    vary: Grid | Mapping[str | tuple[str, ...], Iterable[object]],
    *,
    out: str | Path | None = None,
    fresh: bool = False,
    search: bool = False,
    workers: Workers = None,
    engine: str = "auto",
    progress: Progress | None = None,
) -> Sweep:
    """Simulate a scenario at every point of a grid.

    Parameters
    ----------
    vary
        Values by key path, such as `{"load.active_requests": range(1, 41)}`; a tuple of paths with tuples of
        values changes them together.
    out
        A folder that keeps each point as soon as it is done. What it has already is not simulated again. It
        is held meanwhile: no other process or thread may sweep into it.
    fresh
        Forget what the folder has.
    search
        Of one or two axes: simulate only what it takes to follow the borders between verdicts.
    workers, engine, progress
        As for `simulate`; progress counts points.

    Raises
    ------
    ArgumentError, InputError
        What is varied is not in the scenario, or a value breaks a rule; the folder has points of another
        scenario or version.
    OutputError
        Another process holds the folder, or it cannot be written or locked.
    """
    grid = vary if isinstance(vary, Grid) else Grid.from_values(vary)
    refuse_bad_values(scenario, grid)
    with nullcontext() if out is None else held(Path(out)):
        store = PointStore() if out is None else PointStore.at(out, header_of(scenario), fresh=fresh)
        reused = sum(point in store for point in grid.points())
        crew = PointCrew(scenario, store, workers, engine_of_points(scenario, grid, engine), progress)
        if search:
            follow_borders(grid, crew)
        else:
            crew.simulate(list(grid.points()))
        return Sweep(scenario, grid, store, reused)


def follow_borders(grid: Grid, crew: "PointCrew") -> None:
    """Simulate what it takes to follow the borders between verdicts."""
    if len(grid.axes) > 2:
        raise ArgumentError("search", "must have one or two axes", len(grid.axes))

    def label(cells: Sequence[Cell]) -> list[str]:
        points = [point_at(grid, cell) for cell in cells]
        crew.simulate(points)
        return [verdict_at(crew.store, point) for point in points]

    search_borders(*shape(grid), label)


def shape(grid: Grid) -> tuple[int, int]:
    """Return the rows and columns of a grid of one or two axes."""
    return (len(grid.axes[1]) if len(grid.axes) > 1 else 1), len(grid.axes[0])


def point_at(grid: Grid, cell: Cell) -> Point:
    """Return the point of a cell: its column is a place on the first axis, its row one on the second."""
    row, column = cell
    return grid.point(column * shape(grid)[0] + row)


def verdict_at(store: PointStore, point: Point) -> str:
    """Return the verdict at a point."""
    verdict: str = store.rows(point)[0]["verdict"]
    return verdict


def engine_of_points(scenario: Scenario, grid: Grid, engine: str) -> str:
    """Return the name of the engine that runs the points; `auto` goes by the size of the whole grid.

    It is settled here, so that it does not depend on what a worker has installed.
    """
    return select_engine(engine, requests_of_point(scenario) * len(grid)).name


def requests_of_point(scenario: Scenario) -> int:
    """Return about how many requests a point simulates, all its plans and replications together."""
    runs = len(scenario.plans) * scenario.experiment.replications
    return runs * sum(expected_requests(part) for part in scenario.parts)


def header_of(scenario: Scenario) -> dict[str, Any]:
    """Return what the points of a scenario belong to."""
    return {"scenario_sha256": scenario.digest, "slotsim_version": version("slotsim")}


def refuse_bad_values(scenario: Scenario, grid: Grid) -> None:
    """Raise `InputError` with every fault of a value, before anything is simulated."""
    faults: dict[str, Fault] = {}
    for point in grid.probes():
        try:
            at_point(scenario, point, "varied")
        except InputError as error:
            faults |= {str(fault): fault for fault in error.faults}
    if faults:
        raise InputError(*faults.values())


def at_point(scenario: Scenario, point: Point, origin: str | None = None) -> Scenario:
    """Return the scenario with the values of a point; a fault names the point, or `origin`."""
    try:
        return scenario.replace(point)
    except InputError as error:
        file = origin or f"at {', '.join(f'{key}={value}' for key, value in point.items())}"
        faults = (replace(fault, file=file) if fault.line is None else fault for fault in error.faults)
        raise InputError(*faults) from None


class Groups:
    """Points put together into tasks, as many as take about a second by what was measured so far.

    Longer with more workers than a scheduler can give a task every second.
    """

    def __init__(self, points: Sequence[Point], backend: Backend) -> None:
        self.points = points
        # In this process a task has no way to go, and every point should be stored at once.
        self.most = 1 if backend.in_process else MOST_POINTS_PER_TASK
        self.tasks = backend.parallelism
        self.seconds = max(SECONDS_PER_TASK, self.tasks / TASKS_PER_S)
        self.seconds_per_point = math.inf

    def __iter__(self) -> Iterator[list[Point]]:
        start = 0
        while start < len(self.points):
            size = self._size(len(self.points) - start)
            yield list(self.points[start : start + size])
            start += size

    def _size(self, left: int) -> int:
        fair = math.ceil(left / (2 * self.tasks))
        return max(1, min(self.most, fair, int(self.seconds / self.seconds_per_point)))

    def measured(self, points: int, seconds: float) -> None:
        """Take note of how long a task took."""
        self.seconds_per_point = max(seconds / points, 1e-6)


class PointCrew(Crew):
    """Simulates points wherever, and stores each as soon as it is done."""

    def __init__(
        self,
        scenario: Scenario,
        store: PointStore,
        workers: Workers,
        engine: str,
        progress: Progress | None,
    ) -> None:
        super().__init__(workers, engine, progress)
        self.scenario = scenario
        self.store = store

    def simulate(self, points: Sequence[Point]) -> None:
        """Simulate those of the points that the store lacks."""
        missing = [point for point in points if point not in self.store]
        self.count(len(points) - len(missing))
        size = len(missing) * (REQUESTS_LIKE_A_POINT + requests_of_point(self.scenario))
        backend = backend_for(self.workers, len(missing), worth_processes=size >= WORTH_WORKERS)
        groups, stored = Groups(missing, backend), 0
        for rows, seconds in backend.map(simulate_points, groups, (self.scenario, self.engine)):
            for point, each in zip(missing[stored : stored + len(rows)], rows, strict=True):
                self.store.add(point, each)
            stored += len(rows)
            groups.measured(len(rows), seconds)
            self.count(len(rows))


def simulate_points(
    scenario: Scenario, engine: str, points: Sequence[Point]
) -> tuple[list[list[Row]], float]:
    """Return the rows of each point, and how many seconds that took."""
    start_s = time.monotonic()
    rows = []
    for point in points:
        here = at_point(scenario, point)
        rows.append(rows_of(simulate(here, workers=1, engine=engine)))
    return rows, time.monotonic() - start_s


def rows_of(result: Result) -> list[Row]:
    """Return one row for each plan, without what was varied."""
    decision = result.decision
    measured = decision.measured
    common = {
        "verdict": verdict_of(result),
        "decision": decision.decision,
        "basis": decision.basis,
        "saved_ms": None if measured is None else plain(measured.saved_ms),
        "saved_ms_half_width_95": None if measured is None else plain(measured.difference.half_width),
        "meets_slo": result.meets_slo if result.slo else None,
        "replications": result.replications,
        "engine": result.engine,
    }
    return [{"plan": plan.label, **common, **figures_of(plan)} for plan in result.plans]


def verdict_of(result: Result) -> str:
    """Return the measured decision; `overloaded` where no plan has a steady state to decide on."""
    return NOT_COMPARED if result.decision.measured is None else result.decision.decision


def figures_of(plan: PlanResult) -> Row:
    """Return a plan's label of stability, then the means of its figures, each before its half-width."""
    row: Row = {"stability": plan.stability.label}
    for name, figure in plan.estimates.items():
        row[name] = plain(figure.mean)
        if figure.half_width is not None:
            row[f"{name}{HALF_WIDTH}"] = plain(figure.half_width)
    return row


def plain(value: float | None) -> float | None:
    """Return a number, None where there is none."""
    return None if value is None or not math.isfinite(value) else value
