"""What a request costs: copies of the shared context, serial against parallel, and the price of time saved.

Exact: floats are the decimals they are written as, ceilings and comparisons are taken on fractions.
Costs are in micros (millionths of a currency unit), prices in micros per 1,000 tokens.
"""

import math
from fractions import Fraction

from sim.plan.parallel_plan import ParallelPlan
from sim.units import exact


def carriers(plan: ParallelPlan) -> int:
    """Return how many branches carry the shared context."""
    return sum(branch.carries_shared_context for branch in plan.branches)


def shared_context_tokens(plan: ParallelPlan) -> int:
    """Return the full-price tokens that one copy of the shared context is billed as, rounded up."""
    discount = exact(plan.prefix_reuse_ratio) * (1 - exact(plan.cached_input_price_ratio))
    return math.ceil(plan.shared_context_tokens * (1 - discount))


def shared_context_cost_micros(plan: ParallelPlan) -> int:
    """Return what one copy of the shared context costs, rounded up to whole micros."""
    return math.ceil(Fraction(shared_context_tokens(plan) * plan.input_micros_per_ktok, 1000))


def serial_cost_micros(plan: ParallelPlan) -> int:
    """Return what a serial request costs: its branches, and one copy if any branch carries the context."""
    return _branches_cost_micros(plan) + min(1, carriers(plan)) * shared_context_cost_micros(plan)


def parallel_cost_micros(plan: ParallelPlan) -> int:
    """Return what a parallel request costs: its branches, and one copy for each branch that carries one."""
    return _branches_cost_micros(plan) + carriers(plan) * shared_context_cost_micros(plan)


def extra_cost_micros(plan: ParallelPlan) -> int:
    """Return what parallel costs more than serial: every copy of the shared context after the first."""
    return max(0, carriers(plan) - 1) * shared_context_cost_micros(plan)


def full_copy_cost_micros(plan: ParallelPlan) -> Fraction:
    """Return what the added copies would cost with no token reused, not rounded."""
    added = max(0, carriers(plan) - 1)
    return Fraction(added * plan.shared_context_tokens * plan.input_micros_per_ktok, 1000)


def micros_per_saved_ms(extra_cost_micros: Fraction, saved_ms: Fraction) -> Fraction | None:
    """Return the price of one saved ms; None where no time is saved."""
    return extra_cost_micros / saved_ms if saved_ms > 0 else None


def break_even_reuse_ratio(
    plan: ParallelPlan, saved_ms: Fraction, max_micros_per_saved_ms: Fraction
) -> Fraction | None:
    """Return the prefix reuse ratio from which the added copies fit the budget that the saved time allows.

    None where there is nothing to break even on (at most one carrier, no time saved), and where no ratio
    from 0 to 1 is enough.
    """
    if carriers(plan) <= 1 or saved_ms <= 0:
        return None
    budget, full_cost = max_micros_per_saved_ms * saved_ms, full_copy_cost_micros(plan)
    if budget >= full_cost:
        return Fraction(0)
    discount = 1 - exact(plan.cached_input_price_ratio)
    if discount == 0:
        return None
    needed = (1 - budget / full_cost) / discount
    return needed if needed <= 1 else None


def percent(part: int, whole: int) -> Fraction:
    """Return `part` as a percentage of `whole`, 0 where the whole is 0."""
    return Fraction(100 * part, whole) if whole else Fraction(0)


def _branches_cost_micros(plan: ParallelPlan) -> int:
    return sum(branch.cost_micros for branch in plan.branches)
