"""slotsim: whether running a workflow's LLM calls in parallel pays, off-peak and at peak.

The names below are the public API; each is imported when it is first used, so that `import sim` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# At once, since a module of the same name would take its place; it needs nothing but the standard library.
from sim.choose_plan import choose_plan as choose_plan

if TYPE_CHECKING:
    from sim.answers.comparison import compare as compare
    from sim.answers.flip import flip as flip
    from sim.answers.flip import gains as gains
    from sim.answers.policy import policy_for as policy_for
    from sim.answers.sensitivity import sensitivities as sensitivities
    from sim.answers.size import size as size
    from sim.choose_plan import load_policy as load_policy
    from sim.errors import SlotsimError as SlotsimError
    from sim.plan.criteria import evaluate_parallel as evaluate_parallel
    from sim.plan.criteria import fair_concurrency as fair_concurrency
    from sim.plan.criteria import marginal_gains as marginal_gains
    from sim.plan.parallel_plan import Branch as Branch
    from sim.plan.parallel_plan import ParallelPlan as ParallelPlan
    from sim.plan.schedule import schedule_branches as schedule_branches
    from sim.result.experiment import Precision as Precision
    from sim.result.experiment import simulate as simulate
    from sim.run.backend import DaskBackend as DaskBackend
    from sim.run.backend import LocalBackend as LocalBackend
    from sim.scenario import Scenario as Scenario
    from sim.scenario import load_scenario as load_scenario
    from sim.sweeps.sweep import sweep as sweep

HOME = {
    "Branch": "sim.plan.parallel_plan",
    "DaskBackend": "sim.run.backend",
    "LocalBackend": "sim.run.backend",
    "ParallelPlan": "sim.plan.parallel_plan",
    "Precision": "sim.result.experiment",
    "Scenario": "sim.scenario",
    "SlotsimError": "sim.errors",
    "compare": "sim.answers.comparison",
    "choose_plan": "sim.choose_plan",
    "evaluate_parallel": "sim.plan.criteria",
    "fair_concurrency": "sim.plan.criteria",
    "flip": "sim.answers.flip",
    "gains": "sim.answers.flip",
    "load_policy": "sim.choose_plan",
    "load_scenario": "sim.scenario",
    "marginal_gains": "sim.plan.criteria",
    "policy_for": "sim.answers.policy",
    "schedule_branches": "sim.plan.schedule",
    "sensitivities": "sim.answers.sensitivity",
    "shared_context_cost_micros": "sim.plan.cost",
    "shared_context_tokens": "sim.plan.cost",
    "simulate": "sim.result.experiment",
    "size": "sim.answers.size",
    "sweep": "sim.sweeps.sweep",
}

__all__ = list(HOME)


def __getattr__(name: str) -> Any:
    if name in HOME:
        return getattr(import_module(HOME[name]), name)
    raise AttributeError(f"module 'sim' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *HOME])
