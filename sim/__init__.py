"""slotsim: whether running a workflow's LLM calls in parallel pays, off-peak and at peak.

The names below are the public API; each is imported when it is first used, so that `import sim` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# At once, since a module of the same name would take its place; it needs nothing but the standard library.
from sim.choose_plan import choose_plan as choose_plan

if TYPE_CHECKING:
    from sim.backend import DaskBackend as DaskBackend
    from sim.backend import LocalBackend as LocalBackend
    from sim.capacity import flip as flip
    from sim.capacity import gains as gains
    from sim.choose_plan import load_policy as load_policy
    from sim.comparison import compare as compare
    from sim.decide import evaluate_parallel as evaluate_parallel
    from sim.decide import fair_concurrency as fair_concurrency
    from sim.decide import marginal_gains as marginal_gains
    from sim.errors import SlotsimError as SlotsimError
    from sim.experiment import Precision as Precision
    from sim.experiment import simulate as simulate
    from sim.plan import Branch as Branch
    from sim.plan import ParallelPlan as ParallelPlan
    from sim.policy import policy_for as policy_for
    from sim.scenario import Scenario as Scenario
    from sim.scenario import load_scenario as load_scenario
    from sim.schedule import schedule_branches as schedule_branches
    from sim.sensitivity import sensitivities as sensitivities
    from sim.sizing import size as size
    from sim.sweeping import sweep as sweep

HOME = {
    "Branch": "sim.plan",
    "DaskBackend": "sim.backend",
    "LocalBackend": "sim.backend",
    "ParallelPlan": "sim.plan",
    "Precision": "sim.experiment",
    "Scenario": "sim.scenario",
    "SlotsimError": "sim.errors",
    "compare": "sim.comparison",
    "choose_plan": "sim.choose_plan",
    "evaluate_parallel": "sim.decide",
    "fair_concurrency": "sim.decide",
    "flip": "sim.capacity",
    "gains": "sim.capacity",
    "load_policy": "sim.choose_plan",
    "load_scenario": "sim.scenario",
    "marginal_gains": "sim.decide",
    "policy_for": "sim.policy",
    "schedule_branches": "sim.schedule",
    "sensitivities": "sim.sensitivity",
    "shared_context_cost_micros": "sim.cost",
    "shared_context_tokens": "sim.cost",
    "simulate": "sim.experiment",
    "size": "sim.sizing",
    "sweep": "sim.sweeping",
}

__all__ = list(HOME)


def __getattr__(name: str) -> Any:
    if name in HOME:
        return getattr(import_module(HOME[name]), name)
    raise AttributeError(f"module 'sim' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *HOME])
