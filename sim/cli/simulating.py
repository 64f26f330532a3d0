"""`slotsim run`, `slotsim compare` and `slotsim verify`: scenarios simulated."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

import sim
from sim.cli.holding import hold
from sim.cli.options import (
    AnyScenarioFiles,
    AsJson,
    Curve,
    Dask,
    EngineName,
    KeepTables,
    Machine,
    MaxReplications,
    Out,
    Plans,
    PrecisionFigure,
    PrecisionText,
    Quick,
    Replications,
    ScenarioFile,
    ScenarioFiles,
    Seed,
    Sets,
    Theory,
    Warmup,
    Workers,
    machine_of,
    overrides,
    precision_of,
)
from sim.cli.reading import read_all, read_different
from sim.cli.terminal import complain, say, say_json, wrote
from sim.errors import ArgumentError, CheckError

if TYPE_CHECKING:
    from sim.result import Result

SLO_MISSED = 1
THEORY_CONTRADICTED = 1


def run(
    file: ScenarioFile,
    out: Out = None,
    seed: Seed = None,
    sets: Sets = None,
    plans: Plans = None,
    replications: Replications = None,
    precision: PrecisionText = None,
    precision_figure: PrecisionFigure = None,
    max_replications: MaxReplications = None,
    warmup: Warmup = None,
    keep_tables: KeepTables = False,
    curve: Curve = True,
    workers: Workers = None,
    dask: Dask = None,
    engine: EngineName = "auto",
    as_json: AsJson = False,
) -> None:
    """Simulate one scenario with all its plans."""
    from sim.cli.experiments import Given, simulated
    from sim.cli.show import run_parts

    hold(out)
    machine = machine_of(workers, dask, engine)
    given = Given(precision_of(precision, precision_figure, max_replications), keep_tables, curve)
    scenario = sim.load_scenario(file, overrides(sets, seed, replications, warmup, plans))
    result = simulated(scenario, given, machine, quiet=as_json)
    if out is not None:
        from sim.cli.folder import write_run

        write_run(out, result, given, machine, quiet=as_json)
    if as_json:
        say_json(result.summary())
    else:
        say(*run_parts(result))
    if out is not None:
        wrote(out, as_json=as_json)
    end_with_slo([result])


def compare(
    files: ScenarioFiles,
    out: Out = None,
    seed: Seed = None,
    sets: Sets = None,
    plans: Plans = None,
    replications: Replications = None,
    precision: PrecisionText = None,
    precision_figure: PrecisionFigure = None,
    max_replications: MaxReplications = None,
    warmup: Warmup = None,
    keep_tables: KeepTables = False,
    curve: Curve = True,
    workers: Workers = None,
    dask: Dask = None,
    engine: EngineName = "auto",
    as_json: AsJson = False,
) -> None:
    """Simulate scenarios on the same draws and find the flip."""
    from sim.cli.experiments import Given, compared
    from sim.cli.show_comparison import comparison_parts

    hold(out)
    machine = machine_of(workers, dask, engine)
    given = Given(precision_of(precision, precision_figure, max_replications), keep_tables, curve)
    scenarios = read_different(files, overrides(sets, seed, replications, warmup, plans))
    comparison = compared(scenarios, given, machine, quiet=as_json)
    if out is not None:
        from sim.cli.folder import write_comparison

        write_comparison(out, comparison, given, machine, quiet=as_json)
    if as_json:
        say_json(comparison.summary())
    else:
        say(*comparison_parts(comparison))
    if out is not None:
        wrote(out, as_json=as_json)
    end_with_slo(comparison.results)


def verify(
    files: AnyScenarioFiles = None,
    theory: Theory = False,
    quick: Quick = False,
    seed: Seed = None,
    sets: Sets = None,
    plans: Plans = None,
    replications: Replications = None,
    workers: Workers = None,
    dask: Dask = None,
    engine: EngineName = "auto",
    as_json: AsJson = False,
) -> None:
    """Simulate scenarios and show what the checks found.

    With --theory the simulator is held against queueing theory instead.
    """
    if theory:
        refuse_beside_theory(
            files, {"--seed": seed, "--set": sets, "--plan": plans, "--replications": replications}
        )
        verify_theory(quick, machine_of(workers, dask, engine), as_json=as_json)
        return
    if quick:
        raise ArgumentError("--quick", "must come with --theory", quick)
    if not files:
        raise ArgumentError("SCENARIO", "must be given, or --theory", None)
    from sim.cli.show_checks import checks_parts, checks_summary, verified

    scenarios = read_all(files, overrides(sets, seed, replications, plans=plans))
    outcomes = verified(scenarios, machine_of(workers, dask, engine), quiet=as_json)
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
