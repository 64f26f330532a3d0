"""slotsim: whether running a workflow's LLM calls in parallel pays, off-peak and at peak.

What is imported below is the public API. Type checkers read it as it stands; when the program runs, an import
is made when its name is first used, so that `import sim` is quick.
"""

import ast
from functools import cache
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

# At once, since a module of the same name would take its place; it needs nothing but the standard library.
from sim.choose_plan import choose_plan as choose_plan

if TYPE_CHECKING:
    from sim.answers.comparison import Comparison as Comparison
    from sim.answers.comparison import compare as compare
    from sim.answers.flip import FlipTable as FlipTable
    from sim.answers.flip import Gains as Gains
    from sim.answers.flip import flip as flip
    from sim.answers.flip import gains as gains
    from sim.answers.policy import PolicyResult as PolicyResult
    from sim.answers.policy import policy_for as policy_for
    from sim.answers.sensitivity import Sensitivity as Sensitivity
    from sim.answers.sensitivity import sensitivities as sensitivities
    from sim.answers.size import Sizing as Sizing
    from sim.answers.size import size as size
    from sim.choose_plan import load_policy as load_policy
    from sim.errors import ArgumentError as ArgumentError
    from sim.errors import CheckError as CheckError
    from sim.errors import EngineError as EngineError
    from sim.errors import InputError as InputError
    from sim.errors import OutputError as OutputError
    from sim.errors import PlanError as PlanError
    from sim.errors import SlotsimError as SlotsimError
    from sim.plan.cost import shared_context_cost_micros as shared_context_cost_micros
    from sim.plan.cost import shared_context_tokens as shared_context_tokens
    from sim.plan.criteria import evaluate_parallel as evaluate_parallel
    from sim.plan.criteria import fair_concurrency as fair_concurrency
    from sim.plan.criteria import marginal_gains as marginal_gains
    from sim.plan.parallel_plan import Branch as Branch
    from sim.plan.parallel_plan import ParallelPlan as ParallelPlan
    from sim.plan.schedule import schedule_branches as schedule_branches
    from sim.result.experiment import Precision as Precision
    from sim.result.experiment import simulate as simulate
    from sim.result.plan_result import PlanResult as PlanResult
    from sim.result.result import Result as Result
    from sim.run.backend import DaskBackend as DaskBackend
    from sim.run.backend import LocalBackend as LocalBackend
    from sim.scenario import Scenario as Scenario
    from sim.scenario import load_scenario as load_scenario
    from sim.sweeps.sweep import Sweep as Sweep
    from sim.sweeps.sweep import sweep as sweep

__version__ = "0.1.0"


@cache
def public_imports() -> dict[str, CodeType]:
    """Return the import of each public name, from the list above: it stands there once."""
    module = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    lists = (node.body for node in module.body if isinstance(node, ast.If))
    imports = [node for body in lists for node in body if isinstance(node, ast.ImportFrom)]
    return {
        str(alias.asname): compile(ast.Module([node], []), __file__, "exec")
        for node in imports
        for alias in node.names
    }


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted({"__version__", "choose_plan", *public_imports()})
    if name not in public_imports():
        raise AttributeError(f"module 'sim' has no attribute {name!r}")
    exec(public_imports()[name], globals())
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *public_imports()})
