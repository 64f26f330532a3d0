"""A sweep: a scenario simulated at every point of a grid, each stored as soon as it is done."""

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.backend import Backend, Workers, backend_for
from sim.engine import Progress
from sim.errors import Fault, InputError
from sim.experiment import simulate
from sim.grid import Grid, Point
from sim.plan_result import PlanResult
from sim.point_store import PointStore, Row
from sim.result import Result
from sim.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd

OVERLOADED = "overloaded"
HALF_WIDTH = "_half_width_95"
"""What the column with the half-width of a figure's 95 % interval ends with."""
SECONDS_PER_TASK = 1.0
"""What tasks on other processes should take: long beside their way there and back, short beside the sweep."""
MOST_POINTS_PER_TASK = 500


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

    def rows(self) -> Iterator[Row]:
        """Yield the rows of all points in order, the values of what was varied before the figures."""
        for point in self.grid.points():
            yield from (point | row for row in self.store.rows(point))

    @cached_property
    def frame(self) -> "pd.DataFrame":
        """All rows as a table; what is varied has columns named by key path."""
        from sim.sweep_table import table_of  # noqa: PLC0415  a sweep is the stage before its table

        frame: pd.DataFrame = table_of(self).to_pandas()
        return frame

    @cached_property
    def verdicts(self) -> Counter[str]:
        """How many points have each verdict."""
        return Counter(self.store.rows(point)[0]["verdict"] for point in self.grid.points())

    def summary(self) -> dict[str, Any]:
        """Return all but the rows as plain data."""
        return {
            "scenario": self.scenario.name,
            "scenario_file": self.scenario.path,
            **header_of(self.scenario),
            "overrides": list(self.scenario.overrides),
            "vary": [{"keys": list(axis.keys), "values": list(axis.values)} for axis in self.grid.axes],
            "points": len(self.grid),
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
    workers: Workers = None,
    progress: Progress | None = None,
) -> Sweep:
    """Simulate a scenario at every point of a grid.

    Parameters
    ----------
    vary
        Values by key path, such as `{"load.active_requests": range(1, 41)}`; a tuple of paths with tuples of
        values changes them together.
    out
        A folder that keeps each point as soon as it is done. What it has already is not simulated again.
    fresh
        Forget what the folder has.
    workers, progress
        As for `simulate`; progress counts points.

    Raises
    ------
    ArgumentError, InputError
        What is varied is not in the scenario, or a value breaks a rule; the folder has points of another
        scenario or version.
    """
    grid = vary if isinstance(vary, Grid) else Grid.from_values(vary)
    refuse_bad_values(scenario, grid)
    store = PointStore() if out is None else PointStore.at(out, header_of(scenario), fresh=fresh)
    missing = [point for point in grid.points() if point not in store]
    reused = len(grid) - len(missing)
    for done in simulate_into(store, scenario, missing, backend_for(workers, len(missing))):
        if progress is not None:
            progress(reused + done)
    return Sweep(scenario, grid, store, reused)


def header_of(scenario: Scenario) -> dict[str, Any]:
    """Return what the points of a scenario belong to."""
    return {"scenario_sha256": scenario.digest, "slotsim_version": version("slotsim")}


def refuse_bad_values(scenario: Scenario, grid: Grid) -> None:
    """Raise `InputError` with every fault of a value, before anything is simulated."""
    faults: dict[str, Fault] = {}
    for point in grid.probes():
        try:
            at_point(scenario, point)
        except InputError as error:
            faults |= {str(fault): fault for fault in error.faults}
    if faults:
        raise InputError(*faults.values())


def at_point(scenario: Scenario, point: Point) -> Scenario:
    """Return the scenario with the values of a point."""
    try:
        return scenario.replace(point)
    except InputError as error:
        words = ", ".join(f"{key}={value}" for key, value in point.items())
        origin = f"at {words}"
        raise InputError(
            *(replace(fault, file=origin) if fault.line is None else fault for fault in error.faults)
        ) from None


class Groups:
    """Points put together into tasks, as many as take about a second by what was measured so far."""

    def __init__(self, points: Sequence[Point], backend: Backend) -> None:
        self.points = points
        # In this process a task has no way to go, and every point should be stored at once.
        self.most = 1 if backend.in_process else MOST_POINTS_PER_TASK
        self.tasks = backend.parallelism
        self.seconds_per_point = math.inf

    def __iter__(self) -> Iterator[list[Point]]:
        start = 0
        while start < len(self.points):
            size = self._size(len(self.points) - start)
            yield list(self.points[start : start + size])
            start += size

    def _size(self, left: int) -> int:
        fair = math.ceil(left / (2 * self.tasks))
        return max(1, min(self.most, fair, int(SECONDS_PER_TASK / self.seconds_per_point)))

    def measured(self, points: int, seconds: float) -> None:
        """Take note of how long a task took."""
        self.seconds_per_point = max(seconds / points, 1e-6)


def simulate_into(
    store: PointStore, scenario: Scenario, points: Sequence[Point], backend: Backend
) -> Iterator[int]:
    """Simulate points, store each, and yield how many are done, after every task."""
    groups, done = Groups(points, backend), 0
    for rows, seconds in backend.map(simulate_points, groups, (scenario,)):
        for each in rows:
            store.add(points[done], each)
            done += 1
        groups.measured(len(rows), seconds)
        yield done


def simulate_points(scenario: Scenario, points: Sequence[Point]) -> tuple[list[list[Row]], float]:
    """Return the rows of each point, and how many seconds that took."""
    start_s = time.monotonic()
    rows = [rows_of(simulate(at_point(scenario, point), workers=1)) for point in points]
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
    """Return the decision, or `overloaded` where a plan has no steady state to decide on."""
    overloaded = any(plan.stability.label == OVERLOADED for plan in result.plans)
    return OVERLOADED if overloaded else result.decision.decision


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
