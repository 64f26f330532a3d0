"""The decision: the price of a saved millisecond, and the four criteria, measured and by arithmetic."""

from collections.abc import Iterator, Sequence

from sim.comparison import Comparison
from sim.cost import carriers, parallel_cost_micros, serial_cost_micros
from sim.decide import Criterion, fair_concurrency
from sim.decision import ArithmeticDecision
from sim.report.content import Block, Cell, Paragraph, Section, Table
from sim.report.figures.price import Priced, price_figure
from sim.report.shown import BLANK, Show, fixed, missing, ms, plus_minus, trimmed
from sim.report.words import decision_cell
from sim.result import Result
from sim.verdict import MeasuredDecision

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
    "prefix_reuse_ratio": (
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
    prices = Table(
        "The price of a saved millisecond",
        "llrrrrrrrl",
        tuple(Cell(text) for text in PRICE_HEADINGS),
        tuple(rows),
    )
    criteria = [criteria_table(result) for result in comparison.results]
    return Section(
        "decision",
        "Decision",
        (prices, *criteria, Paragraph(BASIS_WORDS)),
    )


BASIS_WORDS = (
    "Measured: serial minus parallel mean latency as simulated, queueing for other requests' slots included. "
    "Arithmetic: one request alone at its mean times on its fair share of the slots. Parallel is merged "
    "only if all four criteria hold; where both plans were simulated the measured ones decide. They are "
    "judged with all of the provider's slots at hand, since queueing is in the measured saving already."
)


def price_rows(result: Result) -> Iterator[tuple[Cell, ...]]:
    """Yield the price as measured, then by arithmetic."""
    name, costs = Cell(result.scenario.name), cost_cells(result)
    for basis, measured in measured_decisions(result):
        price = price_of(measured.verdict.criteria if measured.verdict else ())
        saved = saved_cell(measured)
        yield (name, Cell(basis), saved, *costs, price, decision_cell(measured.decision))
    for at in result.decision.arithmetic:
        evaluation = at.evaluation
        price = price_of(evaluation.criteria)
        saved = Cell(ms(evaluation.saved_ms))
        yield (
            name,
            Cell(arithmetic_basis(result, at)),
            saved,
            *costs,
            price,
            decision_cell(evaluation.decision),
        )


def saved_cell(measured: MeasuredDecision) -> Cell:
    """Return the measured saving with the half-width of its paired interval."""
    difference = measured.difference
    if difference.mean != difference.mean:
        return missing(difference.reason)
    return Cell(plus_minus(measured.saved_ms, difference.half_width, 1))


def cost_cells(result: Result) -> tuple[Cell, ...]:
    """Return what a request costs in either plan, and what parallel costs more."""
    plan = result.scenario.parallel_plan(1)
    evaluation = result.decision.arithmetic[0].evaluation
    baseline = evaluation.extra_cost_pct_of_baseline
    return (
        Cell(f"{serial_cost_micros(plan):,}"),
        Cell(f"{parallel_cost_micros(plan):,}"),
        Cell(f"{evaluation.extra_cost_micros:,}"),
        Cell(f"{fixed(evaluation.extra_cost_pct, 2)} %"),
        missing("the scenario states no baseline cost")
        if baseline is None
        else Cell(f"{fixed(baseline, 2)} %"),
    )


def price_of(criteria: Sequence[Criterion]) -> Cell:
    """Return the micros per saved ms among the criteria."""
    price = next((item for item in criteria if item.name == "micros_per_saved_ms"), None)
    return (
        missing("no time is saved") if price is None or price.value is None else Cell(fixed(price.value, 2))
    )


def measured_decisions(result: Result) -> Iterator[tuple[str, MeasuredDecision]]:
    """Yield the measured decisions with their basis: the whole run, then its periods."""
    if result.decision.measured is not None:
        yield "measured", result.decision.measured
    for period, measured in result.decision.by_period.items():
        yield f"measured, {period}", measured


def arithmetic_basis(result: Result, at: ArithmeticDecision) -> str:
    """Return what the arithmetic was done for."""
    share = fair_concurrency(result.scenario.provider.concurrency, at.active_requests)
    slots = "slot" if share == 1 else "slots"
    return f"arithmetic, {at.active_requests:,} active on {share:,} {slots} each"


def criteria_table(result: Result) -> Table:
    """Return the four criteria of one scenario, on each basis."""
    rows: list[tuple[Cell, ...]] = []
    for basis, measured in measured_decisions(result):
        if measured.verdict is None:
            rows.append((Cell(basis), Cell("all four"), *[missing(measured.difference.reason)] * 3, Cell("")))
        else:
            rows += criteria_rows(basis, measured.verdict.criteria)
    for at in result.decision.arithmetic:
        rows += criteria_rows(arithmetic_basis(result, at), at.evaluation.criteria)
    return Table(
        f"The four criteria: {result.scenario.name}",
        "llrrll",
        tuple(Cell(text) for text in CRITERIA_HEADINGS),
        tuple(rows),
    )


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
        for at in result.decision.arithmetic:
            plan = result.scenario.parallel_plan(1)
            key = (plan, at.evaluation.saved_ms, result.scenario.criteria.max_micros_per_saved_ms)
            has_price = at.evaluation.saved_ms > 0 and carriers(plan) > 1 and plan.input_micros_per_ktok > 0
            if has_price and plan.shared_context_tokens > 0 and key not in priced:
                label = f"{result.scenario.name}, {ms(at.evaluation.saved_ms)} ms saved"
                priced[key] = Priced(label, plan, at.evaluation)
    if not priced:
        return (Paragraph("No drawing of the price: by arithmetic no plan saves time at an extra cost."),)
    return (price_figure(tuple(priced.values()), results[0].scenario.criteria.max_micros_per_saved_ms),)
