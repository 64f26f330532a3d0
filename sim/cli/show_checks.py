"""What the checks found: simulated, as a table, and as plain data."""

from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType

from sim.cli.experiments import Given, simulated
from sim.cli.figures import in_order
from sim.cli.options import Machine
from sim.cli.terminal import new_table
from sim.errors import CheckError
from sim.result.result import Result
from sim.scenario import Scenario

Outcomes = Sequence[tuple[Scenario, Result | CheckError]]


def verified(scenarios: Sequence[Scenario], machine: Machine, *, quiet: bool) -> Outcomes:
    """Simulate each scenario; a violation ends that scenario, not the others."""
    outcomes: list[tuple[Scenario, Result | CheckError]] = []
    for scenario in scenarios:
        try:
            outcomes.append((scenario, simulated(scenario, Given(), machine, quiet=quiet)))
        except CheckError as error:
            outcomes.append((scenario, error))
    return outcomes


def checks_parts(outcomes: Outcomes) -> list[RenderableType]:
    """Return a row for each scenario and plan, and one for each scenario that a check stopped."""
    table = new_table(
        "scenario",
        "plan",
        "requests",
        "exact",
        "bounded",
        "violated",
        "calls conserved",
        "isolated replays",
        "Little's law",
        "check",
        words=2,
        last_words=1,
    )
    for scenario, outcome in outcomes:
        if isinstance(outcome, CheckError):
            table.add_row(scenario.name, "stopped", *[""] * 3, "VIOLATED")
            continue
        for plan in in_order(outcome.plans):
            checks = plan.checks
            counts = (
                checks.requests,
                checks.requests_exact,
                checks.requests_bounded,
                checks.requests_violated,
                checks.calls_conserved,
            )
            shown = (*(f"{count:,}" for count in counts), checks.replays_words)
            table.add_row(scenario.name, plan.label, *shown, "exact", checks.run_by_words)
    return [table]


def checks_summary(outcomes: Outcomes) -> dict[str, Any]:
    """Return the same as plain data; `story` is that of a violation."""
    return {
        "scenarios": [
            {
                "scenario": scenario.name,
                "scenario_file": scenario.path,
                "ok": isinstance(outcome, Result),
                "story": str(outcome) if isinstance(outcome, CheckError) else None,
                "plans": plans_summary(outcome) if isinstance(outcome, Result) else {},
            }
            for scenario, outcome in outcomes
        ]
    }


def plans_summary(result: Result) -> dict[str, Any]:
    """Return the counts of each plan by its label."""
    return {plan.label: plan.checks.summary() for plan in result.plans}
