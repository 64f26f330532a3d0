"""Whether running a request's branches in parallel pays: marginal gains, four criteria, one decision.

Decisions compare exact fractions; only what is shown is rounded, half away from zero.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from sim.plan.cost import (
    break_even_reuse_ratio,
    carriers,
    extra_cost_micros,
    micros_per_saved_ms,
    parallel_cost_micros,
    percent,
    serial_cost_micros,
    shared_context_cost_micros,
    shared_context_tokens,
)
from sim.plan.parallel_plan import ParallelPlan, ratio, real_number, whole_number
from sim.plan.schedule import (
    Schedule,
    has_independent_branches,
    schedule_plan,
)
from sim.plan.spans import Spans, Worth, by_halves, spans_of
from sim.units import NS_PER_MS, Number, exact, ms_to_ns, ns_to_ms, round_half_away

MERGE = "merge"
KEEP_SERIAL = "keep-serial"
DEFAULT_MAX_MICROS_PER_SAVED_MS = 4
DEFAULT_MIN_MARGINAL_GAIN_RATIO = 0.05
MOST_SHOWN_DECIMALS = 12


@dataclass(frozen=True)
class MarginalGain:
    """The makespan (ms, join included) with `concurrency` slots, and what the last of them saves (ms)."""

    concurrency: int
    make_span_ms: float
    saved_vs_previous_ms: float


@dataclass(frozen=True)
class Criterion:
    """One condition of a merge: its figure, the bound it is held against, the outcome, and a sentence.

    `value` and `bound` are not rounded; None where there is no such figure. What the bound means:
    `saved_ms` > bound, `micros_per_saved_ms` <= bound, `prefix_reuse_ratio` >= bound (the break-even ratio),
    `recommended_degree` >= bound.
    """

    name: str
    value: float | None
    bound: float | None
    passed: bool
    words: str


@dataclass(frozen=True)
class Verdict:
    """The four criteria in order, the decision (`merge` only if all hold), and the reason in one sentence."""

    criteria: tuple[Criterion, ...]
    decision: str
    reason: str


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Every figure of one plan, serial against parallel. Times in ms, costs in micros.

    `extra_cost_pct`, `extra_cost_pct_of_baseline` and `micros_per_saved_ms` have 2 decimals,
    `break_even_reuse_ratio` has 4; all else is unrounded. None where a figure does not exist: no time
    saved, nothing to break even on, no baseline. `speedup_limit` is serial over the critical path;
    `break_even_join_overhead_ms` is the join that would eat up all the time saved.
    """

    branches: int
    concurrency: int
    serial_ms: float
    parallel_ms: float
    saved_ms: float
    speedup: float
    speedup_limit: float
    ideal_ms: float
    queue_delay_ms: float
    utilization: float
    break_even_join_overhead_ms: float
    shared_context_tokens: int
    shared_context_cost_micros: int
    serial_cost_micros: int
    parallel_cost_micros: int
    extra_cost_micros: int
    extra_cost_pct: float
    extra_cost_pct_of_baseline: float | None
    micros_per_saved_ms: float | None
    break_even_reuse_ratio: float | None
    end_to_end_ms: float | None
    recommended_degree: int
    decision: str
    reason: str
    criteria: tuple[Criterion, ...]
    schedule: Schedule
    plan: ParallelPlan = field(compare=False)

    @property
    def marginal_gains(self) -> tuple[MarginalGain, ...]:
        """What each slot saves; worked out when it is asked for, as no decision needs all of it."""
        return marginal_gains(self.plan)

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain types that JSON can hold, under their attribute names."""
        figures = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "plan"}
        figures["criteria"] = [asdict(criterion) for criterion in self.criteria]
        figures["marginal_gains"] = [asdict(gain) for gain in self.marginal_gains]
        figures["schedule"] = asdict(figures.pop("schedule"))
        return {name: _plain(value) for name, value in figures.items()}

    def summary(self) -> str:
        """Return the evaluation as lines to read: the reason, times, costs, and the four criteria."""
        marks = (f"  {'pass' if item.passed else 'FAIL'}  {item.words}" for item in self.criteria)
        return "\n".join([self.reason, *self._figures(), *marks])

    def _figures(self) -> list[str]:
        times = (
            f"  serial {_short(self.serial_ms)} ms, parallel {_short(self.parallel_ms)} ms"
            f" on {_slots(self.concurrency)} (queue delay {_short(self.queue_delay_ms)} ms),"
            f" speed-up {_fixed(self.speedup, 2)} of at most {_fixed(self.speedup_limit, 2)}"
        )
        costs = (
            f"  serial {self.serial_cost_micros} micros, parallel {self.parallel_cost_micros} micros"
            f" (+{_fixed(self.extra_cost_pct, 2)} %)"
        )
        return [times, costs]

    def __repr__(self) -> str:
        times = f"serial {_short(self.serial_ms)} ms, parallel {_short(self.parallel_ms)} ms"
        return f"<Evaluation on {_slots(self.concurrency)}: {times}; {self.reason}>"


def fair_concurrency(provider_concurrency: int, active_requests: int) -> int:
    """Return the slots each of `active_requests` may hold when they share the quota evenly; at least 1."""
    slots = whole_number("provider_concurrency", provider_concurrency, at_least=1)
    return max(1, slots // whole_number("active_requests", active_requests, at_least=1))


def marginal_gains(plan: ParallelPlan) -> tuple[MarginalGain, ...]:
    """Return the makespan with 1, 2, ... slots up to the number of branches, whatever slots the plan has."""
    make_spans_ns = [span_ns + plan.join_ns for span_ns in _spans(plan).all()]
    before = (make_spans_ns[0], *make_spans_ns)
    return tuple(
        MarginalGain(degree, ns_to_ms(make_span_ns), ns_to_ms(before_ns - make_span_ns))
        for degree, (before_ns, make_span_ns) in enumerate(zip(before, make_spans_ns, strict=False), start=1)
    )


def recommend_degree(
    plan: ParallelPlan, min_marginal_gain_ratio: Number = DEFAULT_MIN_MARGINAL_GAIN_RATIO
) -> int:
    """Return how many slots earn their keep, at most the plan's slots and branches; 1 if no added one does.

    From 1 on it steps to the degree with the highest gain per added slot (the smaller on a tie), as long
    as that gain is more than the join overhead and at least `min_marginal_gain_ratio` of the makespan
    before the step, join included. So it steps over a plateau, and stops before the gain vanishes.
    """
    return _spans(plan).recommended(_slots_used(plan), _worth(plan, min_marginal_gain_ratio))


def judge(
    plan: ParallelPlan,
    *,
    saved_ms: Number,
    extra_cost_micros: Number,
    recommended_degree: int,
    max_micros_per_saved_ms: Number = DEFAULT_MAX_MICROS_PER_SAVED_MS,
) -> Verdict:
    """Hold a saving, computed or measured, against the four criteria.

    Parameters
    ----------
    plan : ParallelPlan
        Gives the carriers, the context, its prices and its reuse, and which branches are independent.
    saved_ms : number
        Serial minus parallel latency in ms, join and queueing included. A float counts as the decimal it
        is written as; a Fraction is taken exactly.
    extra_cost_micros : number
        What parallel costs more per request.
    recommended_degree : int
        From `recommend_degree`, or measured in the same sense.
    max_micros_per_saved_ms : number
        The most one saved ms may cost.

    Raises
    ------
    PlanError
        For a value that is not finite, a degree below 1, a negative extra cost or threshold.
    """
    saved = exact(real_number("saved_ms", saved_ms))
    extra = exact(real_number("extra_cost_micros", extra_cost_micros, at_least=0))
    degree = whole_number("recommended_degree", recommended_degree, at_least=1)
    limit = exact(real_number("max_micros_per_saved_ms", max_micros_per_saved_ms, at_least=0))
    criteria = (
        _time_criterion(saved),
        _price_criterion(extra, saved, limit),
        _reuse_criterion(plan, saved, limit),
        _degree_criterion(degree),
    )
    decision = MERGE if all(criterion.passed for criterion in criteria) else KEEP_SERIAL
    words = "; ".join(_deciding_words(plan, criteria, decision))
    return Verdict(criteria, decision, f"{decision}: {words}")


def evaluate_parallel(
    plan: ParallelPlan,
    max_micros_per_saved_ms: Number = DEFAULT_MAX_MICROS_PER_SAVED_MS,
    min_marginal_gain_ratio: Number = DEFAULT_MIN_MARGINAL_GAIN_RATIO,
) -> Evaluation:
    """Return every figure of `plan` for one request alone on its slots, and whether parallel pays.

    Raises `PlanError` for a negative threshold or a ratio outside 0 to 1.
    """
    limit = exact(real_number("max_micros_per_saved_ms", max_micros_per_saved_ms, at_least=0))
    spans = _spans(plan)
    saved = Fraction(spans.work_ns - spans.at(plan.concurrency) - plan.join_ns, NS_PER_MS)
    degree = recommend_degree(plan, min_marginal_gain_ratio)
    verdict = judge(
        plan,
        saved_ms=saved,
        extra_cost_micros=extra_cost_micros(plan),
        recommended_degree=degree,
        max_micros_per_saved_ms=limit,
    )
    schedule = schedule_plan(plan)
    return Evaluation(
        **_time_figures(plan, schedule, saved),
        **_cost_figures(plan, saved, limit),
        recommended_degree=degree,
        decision=verdict.decision,
        reason=verdict.reason,
        criteria=verdict.criteria,
        schedule=schedule,
        plan=plan,
    )


def merging_shares(
    plan: ParallelPlan,
    most: int,
    max_micros_per_saved_ms: Number = DEFAULT_MAX_MICROS_PER_SAVED_MS,
    min_marginal_gain_ratio: Number = DEFAULT_MIN_MARGINAL_GAIN_RATIO,
) -> tuple[bool, ...]:
    """Return whether `evaluate_parallel` merges with 1, 2, ... `most` slots, whatever slots the plan has.

    More saving never turns a merge back, so that a share needs a schedule only where what it saves at least
    and at most lies on either side of all that is known; halves narrow that down.
    """
    spans, most_used = _spans(plan), min(most, len(plan.branches))
    first_worth = spans.first_worth(most_used, _worth(plan, min_marginal_gain_ratio))
    if first_worth is None:
        return (False,) * most
    alone_ns, extra = spans.work_ns - plan.join_ns, extra_cost_micros(plan)
    merging_ns: int | None = None
    keeping_ns = 0
    merges = [False] * most
    for slots in by_halves(first_worth, most_used):
        at_least_ns, at_most_ns = alone_ns - spans.most(slots), alone_ns - spans.least(slots)
        if at_most_ns > keeping_ns and (merging_ns is None or at_least_ns < merging_ns):
            at_least_ns = at_most_ns = alone_ns - spans.at(slots)
        if at_most_ns <= keeping_ns:
            continue
        if merging_ns is None or at_least_ns < merging_ns:
            verdict = judge(
                plan,
                saved_ms=Fraction(at_least_ns, NS_PER_MS),
                extra_cost_micros=extra,
                recommended_degree=2,
                max_micros_per_saved_ms=max_micros_per_saved_ms,
            )
            if verdict.decision != MERGE:
                keeping_ns = at_least_ns
                continue
            merging_ns = at_least_ns
        merges[slots - 1] = True
    return (*merges[:most_used], *merges[most_used - 1 : most_used] * (most - most_used))


def _time_figures(plan: ParallelPlan, schedule: Schedule, saved: Fraction) -> dict[str, Any]:
    serial_ns, saved_ns = sum(plan.service_ns), int(saved * NS_PER_MS)
    critical_ns = _spans(plan).critical_ns
    return {
        "branches": len(plan.branches),
        "concurrency": plan.concurrency,
        "serial_ms": ns_to_ms(serial_ns),
        "parallel_ms": schedule.make_span_ms,
        "saved_ms": ns_to_ms(saved_ns),
        "speedup": serial_ns / (serial_ns - saved_ns),
        "speedup_limit": serial_ns / critical_ns,
        "ideal_ms": schedule.ideal_ms,
        "queue_delay_ms": schedule.queue_delay_ms,
        "utilization": schedule.utilization,
        "break_even_join_overhead_ms": ns_to_ms(saved_ns + plan.join_ns),
        "end_to_end_ms": None
        if plan.baseline_ms is None
        else ns_to_ms(ms_to_ns(plan.baseline_ms) - saved_ns),
    }


def _cost_figures(plan: ParallelPlan, saved: Fraction, limit: Fraction) -> dict[str, Any]:
    extra, serial, baseline = extra_cost_micros(plan), serial_cost_micros(plan), plan.baseline_cost_micros
    return {
        "shared_context_tokens": shared_context_tokens(plan),
        "shared_context_cost_micros": shared_context_cost_micros(plan),
        "serial_cost_micros": serial,
        "parallel_cost_micros": parallel_cost_micros(plan),
        "extra_cost_micros": extra,
        "extra_cost_pct": _rounded(percent(extra, serial), 2),
        "extra_cost_pct_of_baseline": None if baseline is None else _rounded(percent(extra, baseline), 2),
        "micros_per_saved_ms": _rounded(micros_per_saved_ms(Fraction(extra), saved), 2),
        "break_even_reuse_ratio": _rounded(break_even_reuse_ratio(plan, saved, limit), 4),
    }


def _slots_used(plan: ParallelPlan) -> int:
    return min(plan.concurrency, len(plan.branches))


def _spans(plan: ParallelPlan) -> Spans:
    return spans_of(plan.service_ns, plan.dependencies)


def _worth(plan: ParallelPlan, min_marginal_gain_ratio: Number) -> Worth:
    return Worth(plan.join_ns, exact(ratio("min_marginal_gain_ratio", min_marginal_gain_ratio)))


def _time_criterion(saved: Fraction) -> Criterion:
    if saved == 0:
        words = "saves no time"
    else:
        shown, _ = _told_apart(abs(saved), Fraction(0), 2)
        words = f"{'saves' if saved > 0 else 'loses'} {_trimmed(shown)} ms"
    return Criterion("saved_ms", float(saved), 0, saved > 0, words)


def _price_criterion(extra: Fraction, saved: Fraction, limit: Fraction) -> Criterion:
    price = micros_per_saved_ms(extra, saved)
    passed = extra == 0 or (price is not None and price <= limit)
    cost = f"costs {_short(extra)} micros extra"
    if extra == 0:
        words = "costs nothing extra"
    elif price is None:
        words = f"{cost} and saves no time"
    else:
        shown_price, shown_limit = _told_apart(price, limit, 2)
        sign = "<=" if passed else ">"
        words = f"{cost} ({shown_price} {sign} {_trimmed(shown_limit)} micros per saved ms)"
    return Criterion("micros_per_saved_ms", _float(price), float(limit), passed, words)


def _reuse_criterion(plan: ParallelPlan, saved: Fraction, limit: Fraction) -> Criterion:
    reuse = exact(plan.prefix_reuse_ratio)
    break_even = break_even_reuse_ratio(plan, saved, limit)
    if carriers(plan) <= 1:
        passed, words = True, "at most one branch carries the shared context"
    elif break_even is None:
        passed, words = False, "no prefix reuse ratio breaks even"
    else:
        passed = reuse >= break_even
        shown_reuse, shown_break_even = _told_apart(100 * reuse, 100 * break_even, 2)
        relation = "reaches" if passed else "is below"
        words = f"prefix reuse {_trimmed(shown_reuse)} % {relation} the break-even {shown_break_even} %"
    return Criterion("prefix_reuse_ratio", float(reuse), _float(break_even), passed, words)


def _degree_criterion(degree: int) -> Criterion:
    passed = degree >= 2
    words = f"{degree} slots earn their keep" if passed else "no added slot earns its keep"
    return Criterion("recommended_degree", degree, 2, passed, words)


def _deciding_words(plan: ParallelPlan, criteria: Sequence[Criterion], decision: str) -> list[str]:
    """Return what decides: all four for a merge, else what failed; where no time is saved, that alone."""
    if decision == MERGE:
        return [criterion.words for criterion in criteria]
    if not has_independent_branches(plan.dependencies):
        return ["no independent branches"]
    failed = [criterion.words for criterion in criteria if not criterion.passed]
    return failed if criteria[0].passed else failed[:1]


def _rounded(value: Fraction | None, decimals: int) -> float | None:
    return None if value is None else round_half_away(value, decimals)


def _float(value: Fraction | None) -> float | None:
    return None if value is None else float(value)


def _fixed(value: Number, decimals: int) -> str:
    return f"{round_half_away(value, decimals):.{decimals}f}"


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _short(value: Number) -> str:
    return _trimmed(_fixed(value, 2))


def _slots(count: int) -> str:
    return f"{count} slot{'' if count == 1 else 's'}"


def _told_apart(value: Fraction, bound: Fraction, decimals: int) -> tuple[str, str]:
    """Return both as text, with more decimals where two different numbers would read the same."""
    texts = _fixed(value, decimals), _fixed(bound, decimals)
    if texts[0] != texts[1] or value == bound or decimals >= MOST_SHOWN_DECIMALS:
        return texts
    return _told_apart(value, bound, decimals + 1)


def _plain(value: object) -> object:
    """Return a figure with its tuples and mappings as JSON reads them back."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value
