"""Where the time went: the parts of each plan's mean latency, and of its slowest requests."""

from collections.abc import Iterator, Sequence

from sim.answers.comparison import Comparison
from sim.report.content import Block, Cell, Paragraph, Section, Table, table_of
from sim.report.figures.breakdown import breakdown as drawing
from sim.report.figures.breakdown import shown_parts
from sim.report.shown import missing, ms
from sim.report.words import PART_WORDS, plan_cell
from sim.result.plan_result import PlanResult
from sim.result.result import Result
from sim.run.breakdown import PARTS, TimeSpent
from sim.statistics.digits import fixed
from sim.units import NS_PER_MS, NS_PER_S, IntArray

NOT_DELIVERED = "no request was delivered"
WORDS = (
    "The way back from a request's answer to its arrival goes through the join, the call that ended last, "
    "what made that call ready, and so on. Calls beside that way cost no time: another one took longer. "
    "Waiting beside free slots is the request's own cap, or the provider's limit where it has any or keeps "
    "slots for others."
)


def breakdown(comparison: Comparison) -> Section:
    """Return the drawing, the mean parts, and the slowest requests of each scenario."""
    results = comparison.results
    names = shown_parts(results)
    parts = [parts_table(result, names) for result in results]
    slowest = [slowest_table(result, names) for result in results]
    words = Paragraph(WORDS)
    # Words fill the place beside the drawing where the tables are too wide for it.
    wide = any(table.is_wide for table in parts)
    beside: tuple[Block, ...] = (words, *parts) if wide else (*parts, words)
    return Section("breakdown", "Where the time went", (drawing(results), *beside, *slowest))


def parts_table(result: Result, names: Sequence[str]) -> Table:
    """Return the mean of each part on a row, plan by plan."""
    spent = [result.time_spent[plan.label] for plan in result.plans]
    rows = [
        (Cell(f"{PARTS[name].capitalize()}, ms"), *(part_cell(one, name) for one in spent)) for name in names
    ]
    rows.append((Cell("Mean latency of these, ms"), *(sum_cell(one) for one in spent)))
    rows.append((Cell("Requests"), *(coverage_cell(one) for one in spent)))
    return Table(
        f"Parts of the mean latency: {result.scenario.name}",
        "l" + "r" * len(spent),
        (Cell("Part"), *(plan_cell(plan, plan.label) for plan in result.plans)),
        tuple(rows),
    )


def part_cell(spent: TimeSpent, name: str) -> Cell:
    """Return the mean of one part."""
    parts = spent.covered.mean_ms
    return Cell(ms(parts[name])) if parts else missing(NOT_DELIVERED)


def sum_cell(spent: TimeSpent) -> Cell:
    """Return the sum of the parts."""
    parts = spent.covered.mean_ms
    return Cell(ms(sum(parts.values()))) if parts else missing(NOT_DELIVERED)


def coverage_cell(spent: TimeSpent) -> Cell:
    """Return how many requests the parts are of."""
    covered = len(spent.covered.request)
    words = f"{covered:,}"
    return Cell(words if covered == spent.requests else f"the first {words} of {spent.requests:,}")


def slowest_table(result: Result, names: Sequence[str]) -> Table:
    """Return the slowest requests of each plan, each with its parts and the largest of them."""
    several = len(result.scenario.parts) > 1
    headings = ["Plan", "Request", *["Workload"] * several, "Arrival, s", "Latency, ms"]
    headings += [f"{PART_WORDS[name].capitalize()}, ms" for name in names]
    rows = (row for plan in result.plans for row in slowest_rows(result, plan, names))
    alignment = "lr" + "l" * several + "rr" + "r" * len(names) + "l"
    return table_of(f"Slowest requests: {result.scenario.name}", alignment, (*headings, "Mostly"), rows)


def slowest_rows(result: Result, plan: PlanResult, names: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
    """Yield one row per request; a single one where all take equally long."""
    slowest, latency_ns = result.time_spent[plan.label].slowest, plan.latency_ns[0]
    alike = len(latency_ns) > 1 and latency_ns.min() == latency_ns.max()
    note = "all requests take equally long" if alike else ""
    rows = list(zip(slowest.request.tolist(), slowest.parts_ns, strict=True))
    for request, parts_ns in rows[:1] if alike else rows:
        shown = [part for name, part in zip(PARTS, parts_ns.tolist(), strict=True) if name in names]
        yield (
            plan_cell(plan, plan.label),
            Cell(f"{request:,}", note=note),
            *workload_cells(result, plan, request),
            Cell(fixed(int(plan.first_run.out.arrival_ns[request]) / NS_PER_S, 3)),
            Cell(ms(sum(shown) / NS_PER_MS)),
            *(Cell(ms(part_ns / NS_PER_MS)) for part_ns in shown),
            Cell(largest_words(parts_ns)),
        )


def workload_cells(result: Result, plan: PlanResult, request: int) -> tuple[Cell, ...]:
    """Return the workload of a request, where there are several."""
    parts = result.scenario.parts
    if len(parts) == 1:
        return ()
    return (Cell(parts[int(plan.first_run.out.workload[request])].part_name),)


def largest_words(parts_ns: IntArray) -> str:
    """Return the largest part in words, with its share of the latency."""
    largest = int(parts_ns.argmax())
    share = round(100 * int(parts_ns[largest]) / int(parts_ns.sum()))
    return f"{PART_WORDS[list(PARTS)[largest]]}, {share} %"
