"""One plan over all replications: figures with their intervals, periods, workloads, theory and checks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from sim.check import CheckReport
from sim.contract.figure import ACTIVE_REQUESTS, LATENCY, MEAN_LATENCY, REQUESTS
from sim.draws.drawing import is_deterministic
from sim.result.capacity import PlanCapacity, capacity_of
from sim.result.expected import Expected, expected
from sim.result.label import label_period, label_run
from sim.result.observed import HasFigures, Observed
from sim.run.kept_run import KeptRun
from sim.run.measure import Measured, MeasuredPeriod, MeasuredWorkload
from sim.run.simulation import Run
from sim.scenario import Scenario
from sim.scenario.model import PlanChoice
from sim.scenario.profile import Period
from sim.statistics.figures import Figures, percentile_figures
from sim.statistics.stability import Stability
from sim.units import NS_PER_MS, IntArray


@dataclass(frozen=True)
class PeriodResult(HasFigures):
    """One period of a load that changes: the requests that arrived in it, over all replications."""

    period: Period
    stability: Stability


@dataclass(frozen=True, repr=False)
class WorkloadResult(HasFigures):
    """One of several workloads under one plan: its figures over all replications."""

    name: str
    latency_ns: tuple[IntArray, ...]


@dataclass(frozen=True, repr=False)
class PlanResult(HasFigures):
    """One plan over all replications.

    Parameters
    ----------
    capacity
        What binds by arithmetic.
    observed
        Each figure per replication, and its mean with interval.
    expected
        Bounds and theory for the same figures.
    pooled_ms
        Percentiles of all replications' latencies put together; not the mean of their percentiles.
    latency_ns
        Latencies of delivered requests after warm-up, one int64 array per replication.
    kept
        The runs whose tables were kept, the first replication's at least.
    """

    plan: PlanChoice
    capacity: PlanCapacity
    pooled_ms: Figures
    latency_ns: tuple[IntArray, ...]
    dropped: tuple[int, ...]
    stability: Stability
    expected: tuple[Expected, ...]
    periods: tuple[PeriodResult, ...]
    workloads: tuple[WorkloadResult, ...]
    checks: CheckReport
    kept: tuple[KeptRun, ...]
    notes: tuple[str, ...]

    @property
    def label(self) -> str:
        return self.plan.label

    def __repr__(self) -> str:
        mean = self.estimates[MEAN_LATENCY].mean
        return f"<PlanResult of {self.label}: mean latency {mean:.1f} ms, {self.stability.label}>"

    @property
    def active_requests(self) -> int:
        """The mean number of active requests, whole and at least 1: with none at all a request is alone."""
        mean = self.estimates[ACTIVE_REQUESTS].mean
        return 1 if math.isnan(mean) else max(1, round(mean))

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs that were kept; a large one that another process made is simulated again."""
        return tuple(kept.run for kept in self.kept)

    @property
    def first_run(self) -> Run:
        """The run of the first replication."""
        return self.kept[0].run


def plan_result(
    scenario: Scenario, plan: PlanChoice, outcomes: list[tuple[Measured, KeptRun | None]]
) -> PlanResult:
    """Return one plan's figures over its replications."""
    measured = [one for one, _ in outcomes]
    latencies_ns = tuple(one.latency_ns for one in measured)
    observed, capacity = observe(scenario, measured), capacity_of(scenario, plan)
    issued = int(sum(float(count) for count in observed.values[REQUESTS]))
    undelivered = issued - sum(map(len, latencies_ns))
    return PlanResult(
        plan=plan,
        capacity=capacity,
        observed=observed,
        pooled_ms=percentile_figures(LATENCY, np.concatenate(latencies_ns), undelivered),
        latency_ns=latencies_ns,
        dropped=tuple(one.dropped for one in measured),
        stability=label_run(scenario, capacity, measured),
        expected=expected(scenario, plan, *active_and_work(measured)) if scenario.is_plain else (),
        periods=period_results(scenario, capacity, [one.periods for one in measured]),
        workloads=workload_results(scenario, [one.workloads for one in measured]),
        checks=reduce(add, (one.checks for one in measured)),
        kept=tuple(kept for _, kept in outcomes if kept is not None),
        notes=(*without_requests(measured), *dict.fromkeys(one.note for one in measured if one.note)),
    )


def without_requests(measured: Sequence[Measured]) -> list[str]:
    """Return what to say of replications in which a plan, or one of several workloads, had no request."""
    counts = {"no request arrived": sum(one.requests == 0 for one in measured)}
    for parts in zip(*(one.workloads for one in measured), strict=True):
        counts[f"no request of {parts[0].name} arrived"] = sum(part.requests == 0 for part in parts)
    of_all = f" of {len(measured)} replications"
    return [
        f"{what} in {count}{of_all}" if count < len(measured) else what
        for what, count in counts.items()
        if count
    ]


def active_and_work(measured: Sequence[Measured]) -> tuple[float, float]:
    """Return the time-average of active requests and the mean slot-time of a request (ms), as simulated.

    The average is NaN where a replication had no request.
    """
    active = float(np.mean([float(one.active_mean) for one in measured]))
    requests = sum(one.requests for one in measured)
    return active, sum(one.work_ns for one in measured) / max(1, requests) / NS_PER_MS


def observe(scenario: Scenario, measured: Sequence[Measured | MeasuredPeriod | MeasuredWorkload]) -> Observed:
    """Return the figures of all replications of a plan, a period or a workload."""
    return Observed.of(
        [one.figures for one in measured],
        tuple(one.outline_ns for one in measured),
        deterministic=is_deterministic(scenario),
        may_fail=any(part.has_faults for part in scenario.parts),
    )


def period_results(
    scenario: Scenario, capacity: PlanCapacity, replications: Sequence[tuple[MeasuredPeriod, ...]]
) -> tuple[PeriodResult, ...]:
    """Return each period's figures over the replications."""
    return tuple(
        PeriodResult(
            observe(scenario, parts),
            parts[0].period,
            label_period(scenario, capacity, parts),
        )
        for parts in zip(*replications, strict=True)
    )


def workload_results(
    scenario: Scenario, replications: Sequence[tuple[MeasuredWorkload, ...]]
) -> tuple[WorkloadResult, ...]:
    """Return each workload's figures over the replications."""
    return tuple(
        WorkloadResult(
            observe(scenario, parts),
            parts[0].name,
            tuple(part.latency_ns for part in parts),
        )
        for parts in zip(*replications, strict=True)
    )
