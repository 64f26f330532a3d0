"""Simulations with their progress shown, and what they were given beside their scenarios."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from sim.answers.comparison import Comparison, compare
from sim.answers.flip import FlipTable, flip
from sim.cli.options import Machine
from sim.cli.terminal import Report, progress
from sim.draws.drawing import expected_requests, is_deterministic
from sim.result.experiment import Options, Precision, simulate
from sim.result.result import Result
from sim.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Given:
    """What `simulate` and `compare` are given that shows in results, and whether reports have a curve."""

    precision: Precision | None = None
    keep_tables: bool = False
    curve: bool = True

    def summary(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)

    def options(self) -> list[str]:
        """Return it as options of the command line."""
        options = ["--keep-tables"] * self.keep_tables + ["--no-curve"] * (not self.curve)
        if self.precision is not None:
            options += ["--precision", f"{100 * self.precision.relative:.12g}%"]
            options += ["--precision-figure", self.precision.figure]
            options += ["--max-replications", str(self.precision.most)]
        return options

    @classmethod
    def from_summary(cls, stated: dict[str, Any]) -> Self:
        """Return what a summary states."""
        precision = stated["precision"]
        return cls(precision and Precision(**precision), stated["keep_tables"], stated["curve"])


@dataclass(frozen=True, slots=True)
class Levels:
    """What `flip` is given; see there."""

    active: tuple[int, ...]
    rates: tuple[float, ...]
    allocations: tuple[str, ...]
    requests_per_user: int
    requests: int

    def summary(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)

    def options(self) -> list[str]:
        """Return it as options of the command line."""
        name, levels = ("--active", self.active) if self.active else ("--rate", self.rates)
        options = [name, ",".join(f"{level:.15g}" for level in levels)]
        for allocation in self.allocations:
            options += ["--allocation", allocation]
        length = ["--requests-per-user", str(self.requests_per_user)]
        return [*options, *(length if self.active else ["--requests", str(self.requests)])]

    @classmethod
    def from_summary(cls, stated: dict[str, Any]) -> Self:
        """Return what a summary states."""
        levels = {name: tuple(stated[name]) for name in ("active", "rates", "allocations")}
        return cls(**{**stated, **levels})


def simulated(scenario: Scenario, given: Given, machine: Machine, *, quiet: bool) -> Result:
    """Simulate one scenario; `quiet` shows no progress."""
    with progress(requests_in([scenario]), "requests", quiet=quiet) as report:
        return simulate(scenario, **options_of(given, machine, report))


def compared(scenarios: Sequence[Scenario], given: Given, machine: Machine, *, quiet: bool) -> Comparison:
    """Simulate scenarios beside each other."""
    with progress(requests_in(scenarios), "requests", quiet=quiet) as report:
        return compare(scenarios, **options_of(given, machine, report))


def options_of(given: Given, machine: Machine, report: Report | None) -> Options:
    """Return what `simulate` is asked for."""
    return {
        "precision": given.precision,
        "keep_tables": given.keep_tables,
        "workers": machine.workers,
        "engine": machine.engine,
        "progress": report,
    }


def flipped(scenario: Scenario, levels: Levels, machine: Machine, *, quiet: bool) -> FlipTable:
    """Simulate every level of load under every allocation."""
    runs = len(levels.active or levels.rates) * len(levels.allocations)
    with progress(runs, "levels", quiet=quiet) as report:
        return flip(
            scenario,
            **levels.summary(),
            workers=machine.workers,
            engine=machine.engine,
            progress=report,
        )


def requests_in(scenarios: Sequence[Scenario]) -> int:
    """Return how many requests are expected of all plans and replications."""
    return sum(
        sum(expected_requests(part) for part in scenario.parts)
        * len(scenario.plans)
        * (1 if is_deterministic(scenario) else scenario.experiment.replications)
        for scenario in scenarios
    )
