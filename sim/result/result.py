"""What an experiment shows: its plans beside each other, the decision, the SLO, and the tables."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import TYPE_CHECKING, Any

from sim.check import CheckReport
from sim.contract.figure import MEAN_LATENCY
from sim.draws.drawing import is_deterministic
from sim.result.capacity import capacity_summary
from sim.result.decision import Decision, decide
from sim.result.objective import MET, SloVerdict, slo_verdicts
from sim.result.plan_result import PlanResult, plan_result
from sim.result.summary import (
    decision_summary,
    plan_summary,
    provenance,
    slo_summary,
    time_summary,
    warmup_summary,
)
from sim.run.breakdown import TimeSpent
from sim.run.kept_run import KeptRun
from sim.run.measure import Measured, warmup_rule
from sim.run.tables import calls_table, requests_table
from sim.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Result:
    """A simulated scenario."""

    scenario: Scenario
    plans: tuple[PlanResult, ...]
    replications: int
    deterministic: bool
    decision: Decision
    slo: tuple[SloVerdict, ...]
    notes: tuple[str, ...]

    @property
    def engine(self) -> str:
        """The engine that ran."""
        return self.plans[0].kept[0].engine

    @property
    def provenance(self) -> dict[str, Any]:
        """What it takes to run this again."""
        rule = warmup_summary(warmup_rule(self.scenario))
        return provenance(self.scenario, warmup=rule, engine=self.engine)

    @property
    def checks(self) -> CheckReport:
        """The checks of all plans together."""
        return reduce(add, (plan.checks for plan in self.plans))

    @property
    def meets_slo(self) -> bool:
        """Whether every rule is met; an undecided one is not."""
        return all(verdict.verdict == MET for verdict in self.slo)

    def plan(self, label: str) -> PlanResult:
        """Return the plan with a label; `KeyError` where it was not simulated."""
        return {plan.label: plan for plan in self.plans}[label]

    def noted(self, note: str) -> "Result":
        """Return the result with one more note."""
        return replace(self, notes=(*self.notes, note))

    @cached_property
    def requests(self) -> "pd.DataFrame":
        """One row per request of every kept run; see `sim.run.tables.REQUEST_COLUMNS`."""
        return joined([requests_table(self.scenario, run) for plan in self.plans for run in plan.runs])

    @cached_property
    def calls(self) -> "pd.DataFrame":
        """One row per attempt at a call of every kept run; see `sim.run.tables.CALL_COLUMNS`."""
        return joined([calls_table(self.scenario, run) for plan in self.plans for run in plan.runs])

    @cached_property
    def time_spent(self) -> dict[str, TimeSpent]:
        """Where the time of each plan's requests went, by its label; of the first replication."""
        return {plan.label: plan.kept[0].time_spent for plan in self.plans}

    def summary(self) -> dict[str, Any]:
        """Return everything but the tables as plain data; the content of `summary.json`."""
        return {
            "provenance": self.provenance,
            "capacity": capacity_summary(self.scenario, [plan.capacity for plan in self.plans]),
            "replications": self.replications,
            "deterministic": self.deterministic,
            "decision": decision_summary(self.decision),
            "plans": {
                plan.label: plan_summary(plan) | time_summary(self.time_spent[plan.label])
                for plan in self.plans
            },
            "slo": [slo_summary(verdict) for verdict in self.slo],
            "meets_slo": self.meets_slo if self.slo else None,
            "checks": self.checks.summary(),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        means = [(plan.label, plan.estimates[MEAN_LATENCY].mean) for plan in self.plans]
        figures = ", ".join(
            f"{label} unknown" if math.isnan(mean) else f"{label} {mean:.1f} ms" for label, mean in means
        )
        return f"<Result of {self.scenario.name}: mean latency {figures}; {self.decision.reason}>"


def collect(
    scenario: Scenario, outcomes: Sequence[Sequence[tuple[Measured, KeptRun | None]]], notes: Sequence[str]
) -> Result:
    """Return what the outcomes of each plan (outer) and replication (inner) show together."""
    plans = tuple(
        plan_result(scenario, plan, list(runs)) for plan, runs in zip(scenario.plans, outcomes, strict=True)
    )
    decision = decide(scenario, plans)
    plan_notes = [f"{plan.label}: {note}" for plan in plans for note in plan.notes]
    return Result(
        scenario=scenario,
        plans=plans,
        replications=len(outcomes[0]),
        deterministic=is_deterministic(scenario),
        decision=decision,
        slo=slo_verdicts(scenario, plans, decision),
        notes=(*scenario.notes, *notes, *plan_notes),
    )


def joined(frames: "Sequence[pd.DataFrame]") -> "pd.DataFrame":
    """Return the frames below each other."""
    import pandas as pd  # noqa: PLC0415  slow to import, and not every command needs it

    return pd.concat(frames, ignore_index=True)
