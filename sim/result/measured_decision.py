"""Merge or keep serial, from what the simulation measured: queueing for other requests' slots included."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sim.plan.criteria import MERGE, Verdict, judge, recommend_degree
from sim.scenario import Scenario
from sim.statistics.figures import Value
from sim.statistics.interval import Difference, paired_difference
from sim.units import Number, exact

UNDECIDED = "undecided"
BISECTIONS = 100


@dataclass(frozen=True, slots=True)
class MeasuredDecision:
    """The four criteria on measured savings.

    Parameters
    ----------
    decision
        `merge`, `keep-serial`, `undecided` where the interval of the saving holds both, or `overloaded` where
        neither plan has a steady state.
    difference
        Parallel minus serial mean latency in ms, paired by replication.
    extra_cost_micros
        What a parallel request costs more.
    verdict
        The four criteria at the mean saving; None where no saving was measured.
    flips_at_saved_ms
        The saving at which the decision flips, where the interval holds it.
    more_replications
        How many more replications would decide it, were mean and spread to stay; None where none would.
    reason
        One sentence.
    """

    decision: str
    difference: Difference
    extra_cost_micros: float
    verdict: Verdict | None
    flips_at_saved_ms: float | None
    more_replications: int | None
    reason: str

    @property
    def saved_ms(self) -> float:
        """Serial minus parallel mean latency."""
        return -self.difference.mean


def measured_decision(
    scenario: Scenario,
    serial_ms: Sequence[Value],
    parallel_ms: Sequence[Value],
    extra_cost_micros: float,
    deterministic: bool,
    *,
    prefix_reuse_ratio: float | None = None,
) -> MeasuredDecision:
    """Judge the mean latencies of serial and parallel, one per replication and in the same order.

    `prefix_reuse_ratio` is what a prefix cache was measured to serve; None where the scenario states it.
    """
    difference = paired_difference(serial_ms, parallel_ms, deterministic=deterministic)
    if math.isnan(difference.mean):
        reason = f"{UNDECIDED}: the saving is {difference.reason}"
        return MeasuredDecision(UNDECIDED, difference, extra_cost_micros, None, None, None, reason)
    judged = Judge(scenario, extra_cost_micros, prefix_reuse_ratio)
    verdict = judged.at(-difference.mean)
    low, high = difference.low, difference.high
    if low is None or high is None or judged.merges(-high) == judged.merges(-low):
        reason = f"{verdict.reason} (measured)"
        return MeasuredDecision(verdict.decision, difference, extra_cost_micros, verdict, None, 0, reason)
    flips_at = judged.flip_between(-high, -low)
    margin = paired_difference([float(value) - flips_at for value in serial_ms], parallel_ms)
    more = margin.more_replications
    when = "no number of replications would"
    if more:
        when = f"about {more:,} more replication{'' if more == 1 else 's'} would decide it"
    reason = (
        f"{UNDECIDED}: saves {-difference.mean:.2f} ms ± {difference.half_width:.2f}, "
        f"and the decision flips at {flips_at:.2f} ms; {when}"
    )
    return MeasuredDecision(UNDECIDED, difference, extra_cost_micros, verdict, flips_at, more, reason)


def cache_price_ratio(scenario: Scenario) -> Number | None:
    """Return the price of a token that a cache serves, as a share of the full one; None without a cache.

    The mean over the branches that carry the shared context to a provider with a cache.
    """
    branches = scenario.workflow.branches
    carrying = [branch for branch in branches if branch.carries_shared_context] or branches
    caches = [scenario.provider_of(branch).prefix_cache for branch in carrying]
    ratios = [exact(cache.read_price_ratio) for cache in caches if cache is not None]
    return Fraction(sum(ratios), len(ratios)) if ratios else None


class Judge:
    """The four criteria as a function of the saving alone."""

    def __init__(
        self, scenario: Scenario, extra_cost_micros: float, prefix_reuse_ratio: float | None
    ) -> None:
        # Queueing is in the measured saving already, so all slots that its branches can use are at hand.
        self.plan = scenario.parallel_plan(scenario.slots_at_hand)
        read_price_ratio = cache_price_ratio(scenario)
        if read_price_ratio is not None and prefix_reuse_ratio is not None:
            self.plan = replace(
                self.plan,
                prefix_reuse_ratio=prefix_reuse_ratio,
                cached_input_price_ratio=read_price_ratio,
            )
        self.degree = recommend_degree(self.plan, scenario.criteria.min_marginal_gain_ratio)
        self.limit = scenario.criteria.max_micros_per_saved_ms
        self.extra_cost_micros = extra_cost_micros

    def at(self, saved_ms: float) -> Verdict:
        """Return the criteria at a saving."""
        return judge(
            self.plan,
            saved_ms=saved_ms,
            extra_cost_micros=self.extra_cost_micros,
            recommended_degree=self.degree,
            max_micros_per_saved_ms=self.limit,
        )

    def merges(self, saved_ms: float) -> bool:
        """Return whether the decision at a saving is to merge; more saving never turns it back."""
        return self.at(saved_ms).decision == MERGE

    def flip_between(self, low_ms: float, high_ms: float) -> float:
        """Return the saving at which the decision turns, between a low one and one that merges."""
        for _ in range(BISECTIONS):
            middle = (low_ms + high_ms) / 2
            if not low_ms < middle < high_ms:
                break
            low_ms, high_ms = (low_ms, middle) if self.merges(middle) else (middle, high_ms)
        return high_ms
