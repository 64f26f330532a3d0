"""`slotsim run`, `slotsim compare` and `slotsim verify`: scenarios simulated."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from sim.cli.holding import hold
from sim.cli.options import (
    AnyScenarioFiles,
    AsJson,
    Curve,
    KeepTables,
    Machine,
    MaxReplications,
    Output,
    Planned,
    Plans,
    PrecisionFigure,
    PrecisionText,
    Quick,
    Repeated,
    ScenarioFile,
    ScenarioFiles,
    Theory,
    Where,
    command,
    precision_of,
)
from sim.cli.reading import read_all, read_different
from sim.cli.terminal import complain, say, say_json
from sim.errors import ArgumentError, CheckError

if TYPE_CHECKING:
    from sim.cli.experiments import Given
    from sim.result.result import Result

SLO_MISSED = 1
THEORY_CONTRADICTED = 1


@dataclass(frozen=True, slots=True)
class Kept:
    """Options: how precise a result has to be, and how much of it is kept."""

    precision: PrecisionText = None
    precision_figure: PrecisionFigure = None
    max_replications: MaxReplications = None
    keep_tables: KeepTables = False
    curve: Curve = True

    def given(self) -> "Given":
        """Return what a simulation is given beside its scenario."""
        from sim.cli.experiments import Given

        precision = precision_of(self.precision, self.precision_figure, self.max_replications)
        return Given(precision, self.keep_tables, self.curve)


@command
def run(file: ScenarioFile, over: Planned, kept: Kept, where: Where, output: Output) -> None:
    """Simulate one scenario with all its plans."""
    from sim.cli.experiments import simulated
    from sim.cli.show import run_parts
    from sim.scenario import load_scenario

    hold(output.out)
    machine, given = where.machine(), kept.given()
    scenario = load_scenario(file, over.overrides())
    result = simulated(scenario, given, machine, quiet=output.as_json)
    if output.out is not None:
        from sim.cli.folder import write_run

        write_run(output.out, result, given, machine, quiet=output.as_json)
    output.show(result.summary, lambda: run_parts(result))
    end_with_slo([result])


@command
def compare(files: ScenarioFiles, over: Planned, kept: Kept, where: Where, output: Output) -> None:
    """Simulate scenarios on the same draws and find the flip."""
    from sim.cli.experiments import compared
    from sim.cli.show_comparison import comparison_parts

    hold(output.out)
    machine, given = where.machine(), kept.given()
    scenarios = read_different(files, over.overrides())
    comparison = compared(scenarios, given, machine, quiet=output.as_json)
    if output.out is not None:
        from sim.cli.folder import write_comparison

        write_comparison(output.out, comparison, given, machine, quiet=output.as_json)
    output.show(comparison.summary, lambda: comparison_parts(comparison))
    end_with_slo(comparison.results)


@command
def verify(
    over: Repeated,
    where: Where,
    files: AnyScenarioFiles = None,
    theory: Theory = False,
    quick: Quick = False,
    plans: Plans = None,
    as_json: AsJson = False,
) -> None:
    """Simulate scenarios and show what the checks found.

    With --theory the simulator is held against queueing theory instead.
    """
    if theory:
        stated = {"--seed": over.seed, "--set": over.sets, "--replications": over.replications}
        refuse_beside_theory(files, {**stated, "--plan": plans})
        verify_theory(quick, where.machine(), as_json=as_json)
        return
    if quick:
        raise ArgumentError("--quick", "must come with --theory", quick)
    if not files:
        raise ArgumentError("SCENARIO", "must be given, or --theory", None)
    from sim.cli.show_checks import checks_parts, checks_summary, verified

    scenarios = read_all(files, over.overrides(plans))
    outcomes = verified(scenarios, where.machine(), quiet=as_json)
    if as_json:
        say_json(checks_summary(outcomes))
    else:
        say(*checks_parts(outcomes))
    stories = [f"{scenario.path}: {end}" for scenario, end in outcomes if isinstance(end, CheckError)]
    if stories:
        complain("\n".join(stories))
        raise typer.Exit(CheckError.exit_code)


def refuse_beside_theory(files: Sequence[str] | None, options: dict[str, object]) -> None:
    """Refuse what would change nothing: the cases have their own scenarios, seeds and replications."""
    for name, value in {"SCENARIO": files, **options}.items():
        if value not in (None, []):
            raise ArgumentError(name, "must be left out beside --theory", value)


def verify_theory(quick: bool, machine: Machine, *, as_json: bool) -> None:
    """Show the table of theory against simulation; end with 1 where a row fails."""
    from sim.cli.show_theory import theory_parts, theory_table

    table = theory_table(quick, machine, quiet=as_json)
    if as_json:
        say_json(table.to_dict())
    else:
        say(*theory_parts(table))
    if not table.passed:
        raise typer.Exit(THEORY_CONTRADICTED)


def end_with_slo(results: "Sequence[Result]") -> None:
    """End with 1 where a scenario misses its SLO."""
    if not all(result.meets_slo for result in results):
        raise typer.Exit(SLO_MISSED)
