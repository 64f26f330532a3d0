"""The decision: the price of a saved millisecond, and the four criteria, measured and by arithmetic."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sim.answers.comparison import Comparison
from sim.contract.figure import COST_PER_SUCCESS, PREFIX_REUSE
from sim.contract.plan import SERIAL
from sim.plan.cost import carriers
from sim.plan.criteria import Criterion
from sim.report.content import Block, Cell, Paragraph, Section, Table, table_of
from sim.report.figures.price import Priced, price_figure
from sim.report.shown import Show, missing, ms
from sim.report.words import decision_cell
from sim.result.decision import ArithmeticDecision
from sim.result.measured_decision import MeasuredDecision
from sim.result.plan_result import PeriodResult, PlanResult, WorkloadResult
from sim.result.result import Result
from sim.statistics.digits import BLANK, fixed, plus_minus, trimmed

Measured = PlanResult | PeriodResult | WorkloadResult
NOT_DELIVERED = "no request was delivered in some replication"
NO_BASELINE = "the scenario states no baseline cost"

PRICE_HEADINGS = (
    "Scenario",
    "Basis",
    "Saved, ms",
    "Serial, micros",
    "Parallel, micros",
    "Extra, micros",
    "Extra, % of serial",
    "Extra, % of baseline",
    "Micros per saved ms",
    "Decision",
)
CRITERIA_HEADINGS = ("Basis", "Criterion", "Value", "Bound", "Result", "In words")
CRITERIA: dict[str, tuple[str, str, Show, Show]] = {
    "saved_ms": ("Time saved, ms", ">", ms, trimmed),
    "micros_per_saved_ms": ("Micros per saved ms", "≤", lambda value: fixed(value, 2), trimmed),
    PREFIX_REUSE: (
        "Prefix reuse against break-even",
        "≥",
        lambda value: f"{trimmed(100 * value)} %",
        lambda value: f"{fixed(100 * value, 2)} %",
    ),
    "recommended_degree": ("Recommended degree, slots", "≥", trimmed, trimmed),
}


def decision(comparison: Comparison) -> Section:
    """Return prices and criteria of every scenario."""
    rows = [row for result in comparison.results for row in price_rows(result)]
    prices = table_of("The price of a saved millisecond", "llrrrrrrrl", PRICE_HEADINGS, rows)
    criteria = [criteria_table(result) for result in comparison.results]
    return Section(
        "decision",
        "Decision",
        (prices, *criteria, Paragraph(BASIS_WORDS)),
    )


NO_PRICE = "No drawing of the price: by arithmetic no plan saves time at an extra cost."
NO_RATIO = (
    "No drawing of the price over a given reuse ratio: here reuse is what the provider's cache makes of it."
)
BASIS_WORDS = (
    "Measured: serial minus parallel mean latency as simulated, queueing for other requests' slots included. "
    "Arithmetic: one request alone at its mean times on its fair share of the slots. Parallel is merged "
    "only if all four criteria hold; where both plans were simulated the measured ones decide. They are "
    "judged with all slots at hand that its branches can use: queueing is in the measured saving already. "
    "Costs are those of a delivered request: what failed ones cost is paid by those that did not fail."
)


@dataclass(frozen=True, slots=True)
class Judged:
    """A measured decision: what it is about, and the cost per request of serial and of the other plan."""

    basis: str
    decision: MeasuredDecision
    serial_micros: float
    other_micros: float


def price_rows(result: Result) -> Iterator[tuple[Cell, ...]]:
    """Yield the price as measured, then by arithmetic."""
    name, baseline = result.scenario.name, result.scenario.workflow.baseline.cost_micros
    for one in judgements(result):
        criteria = one.decision.verdict.criteria if one.decision.verdict else ()
        extra = one.decision.extra_cost_micros
        costs = cost_cells(one.serial_micros, one.other_micros, extra, baseline)
        saved, decided = saved_cell(one.decision), decision_cell(one.decision.decision)
        yield (Cell(name), Cell(one.basis), saved, *costs, price_of(criteria), decided)
    for at in result.decision.arithmetic:
        evaluation = at.evaluation
        serial, parallel = evaluation.serial_cost_micros, evaluation.parallel_cost_micros
        costs = cost_cells(serial, parallel, evaluation.extra_cost_micros, baseline)
        saved, decided = Cell(ms(evaluation.saved_ms)), decision_cell(evaluation.decision)
        basis = Cell(arithmetic_basis(result, at))
        yield (Cell(name), basis, saved, *costs, price_of(evaluation.criteria), decided)


def saved_cell(measured: MeasuredDecision) -> Cell:
    """Return the measured saving with the half-width of its paired interval."""
    difference = measured.difference
    if math.isnan(difference.mean):
        return missing(difference.reason)
    return Cell(plus_minus(measured.saved_ms, difference.half_width, 1))


def cost_cells(serial: float, other: float, extra: float, baseline: float | None) -> tuple[Cell, ...]:
    """Return what a request costs in either plan, and what the other costs more, in micros and percent."""
    return (
        micros_cell(serial),
        micros_cell(other),
        micros_cell(extra),
        extra_cell(extra, serial, "serial costs nothing"),
        extra_cell(extra, baseline, NO_BASELINE),
    )


def micros_cell(micros: float) -> Cell:
    """Return a cost; blank where no request was delivered."""
    return missing(NOT_DELIVERED) if math.isnan(micros) else Cell(trimmed(micros, 1))


def extra_cell(extra: float, whole: float | None, nothing: str) -> Cell:
    """Return what the other plan costs more, as a share of a cost; blank where that is `nothing`."""
    if not whole:
        return missing(nothing)
    share = 100 * extra / whole
    return missing(NOT_DELIVERED) if math.isnan(share) else Cell(f"{fixed(share, 2)} %")


def price_of(criteria: Sequence[Criterion]) -> Cell:
    """Return the micros per saved ms among the criteria."""
    price = next((item for item in criteria if item.name == "micros_per_saved_ms"), None)
    return (
        missing("no time is saved") if price is None or price.value is None else Cell(fixed(price.value, 2))
    )


def judgements(result: Result) -> Iterator[Judged]:
    """Yield the measured decisions: on the whole run, on its periods, on its workloads."""
    decision = result.decision
    if decision.measured is None:
        return
    serial, other = serial_and_other(result)
    yield judged("measured", decision.measured, serial, other)
    for number, (name, measured) in enumerate(decision.by_period.items()):
        yield judged(f"measured, {name}", measured, serial.periods[number], other.periods[number])
    for number, (name, measured) in enumerate(decision.by_workload.items()):
        yield judged(f"measured, {name}", measured, serial.workloads[number], other.workloads[number])


def serial_and_other(result: Result) -> tuple[PlanResult, PlanResult]:
    """Return the two plans that the measured decision is about."""
    serial = next(plan for plan in result.plans if plan.plan.plan == SERIAL)
    chosen = (name for name, one in result.decision.by_plan.items() if one is result.decision.measured)
    return serial, result.plan(next(chosen))


def judged(basis: str, measured: MeasuredDecision, serial: Measured, other: Measured) -> Judged:
    """Return a measured decision with the costs that it rests on."""
    costs = [part.estimates[COST_PER_SUCCESS].mean for part in (serial, other)]
    return Judged(basis, measured, *costs)


def arithmetic_basis(result: Result, at: ArithmeticDecision) -> str:
    """Return what the arithmetic was done for."""
    share = at.evaluation.concurrency
    slots = "slot" if share == 1 else "slots"
    several = len(result.scenario.parts) > 1
    whose = f"{result.scenario.parts[0].part_name}, " if several else ""
    cached = ", without its cache" if result.scenario.has_prefix_cache else ""
    return f"arithmetic, {whose}{at.active_requests:,} active on {share:,} {slots} each{cached}"


def criteria_table(result: Result) -> Table:
    """Return the four criteria of one scenario, on each basis."""
    rows: list[tuple[Cell, ...]] = []
    for one in judgements(result):
        verdict = one.decision.verdict
        if verdict is None:
            gap = missing(one.decision.difference.reason)
            rows.append((Cell(one.basis), Cell("all four"), gap, gap, gap, Cell("")))
        else:
            rows += criteria_rows(one.basis, verdict.criteria)
    for at in result.decision.arithmetic:
        rows += criteria_rows(arithmetic_basis(result, at), at.evaluation.criteria)
    return table_of(f"The four criteria: {result.scenario.name}", "llrrll", CRITERIA_HEADINGS, rows)


def criteria_rows(basis: str, criteria: Sequence[Criterion]) -> list[tuple[Cell, ...]]:
    """Return one row per criterion."""
    return [criterion_row(basis, item) for item in criteria]


def criterion_row(basis: str, item: Criterion) -> tuple[Cell, ...]:
    """Return value, bound and outcome of one criterion."""
    name, relation, show_value, show_bound = CRITERIA[item.name]
    return (
        Cell(basis),
        Cell(name),
        Cell(BLANK if item.value is None else show_value(item.value)),
        Cell(BLANK if item.bound is None else f"{relation} {show_bound(item.bound)}"),
        Cell("pass", "good") if item.passed else Cell("fail", "bad"),
        Cell(item.words),
    )


def price_drawing(results: Sequence[Result]) -> tuple[Block, ...]:
    """Return the price over the reuse ratio for what saves time at a cost, each arithmetic once."""
    priced: dict[object, Priced] = {}
    for result in results:
        # Where the provider has a cache, reuse is a result, and a write costs more than a copy.
        for at in () if result.scenario.has_prefix_cache else result.decision.arithmetic:
            plan = result.scenario.parallel_plan(1)
            key = (plan, at.evaluation.saved_ms, result.scenario.criteria.max_micros_per_saved_ms)
            has_price = at.evaluation.saved_ms > 0 and carriers(plan) > 1 and plan.input_micros_per_ktok > 0
            if has_price and plan.shared_context_tokens > 0 and key not in priced:
                label = f"{result.scenario.name}, {ms(at.evaluation.saved_ms)} ms saved"
                priced[key] = Priced(label, plan, at.evaluation)
    if not priced:
        caches = any(result.scenario.has_prefix_cache for result in results)
        return (Paragraph(NO_RATIO if caches else NO_PRICE),)
    return (price_figure(tuple(priced.values()), results[0].scenario.criteria.max_micros_per_saved_ms),)
