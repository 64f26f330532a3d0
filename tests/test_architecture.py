"""The structure of the package: imports run one way, and modules stay small."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "sim"

# From the first stage to the last; a module imports from its own stage and those before it. What stands on
# one line belongs to one stage.
STAGES = (
    ("errors", "units"),
    ("plan", "schedule", "spans", "cost", "decide"),
    ("scenario",),
    ("streams", "arrivals", "workload"),
    ("engine",),
    ("check",),
    ("percentile", "interval", "warmup", "stability", "theory", "bounds", "validation"),
    ("engine_input", "attempts", "shared_view", "shared_simulation", "simulation"),
    (
        "figures",
        "follow_up",
        "attempt_cost",
        "accounts",
        "shared_figures",
        "breakdown",
        "measure",
        "kept_run",
        "steadiness",
        "expected",
        "verdict",
        "tables",
    ),
    ("plan_result",),
    ("decision",),
    ("objective",),
    ("result",),
    ("backend",),
    ("experiment",),
    ("boundary", "capacity"),
    ("comparison",),
    ("grid", "point_store", "sweeping", "sweep_table"),
    ("verification",),
    ("size_theory", "candidate"),
    ("size_search",),
    ("sizing",),
    ("break_even", "sensitivity_inputs"),
    ("simulated_inputs",),
    ("sensitivity",),
    ("choose_plan", "policy_table"),
    ("policy",),
    ("summary",),
    ("capacity_summary", "answer_words"),
    ("output", "report"),
    ("cli", "__main__"),
)
STAGE_OF = {noun: stage for stage, nouns in enumerate(STAGES) for noun in nouns}
LONGEST_FILE = 450
LONGEST_FUNCTION = 70
# The functions of a kernel, which stand together: what they share with others is in files of its own.
ONE_FILE_BY_NEED = {
    "check/kernels.py",
    "check/shared_kernels.py",
    "engine/kernels.py",
    "engine/shared/kernels.py",
}
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def noun_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_nouns(tree: ast.AST) -> Iterator[str]:
    """Yield the parts of the package that a module needs to be imported; not those it needs only later."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sim."):
            yield (node.module or "").split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("sim."))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_import_runs_back_up_the_stream(path: Path) -> None:
    stage = STAGE_OF[noun_of(path)]
    later = [noun for noun in imported_nouns(ast.parse(path.read_text())) if STAGE_OF[noun] > stage]
    assert later == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_and_functions_are_short(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= LONGEST_FILE or str(path.relative_to(PACKAGE)) in ONE_FILE_BY_NEED
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < LONGEST_FUNCTION, node.name


def test_every_part_of_the_package_has_a_stage() -> None:
    assert {noun_of(path) for path in MODULES} <= set(STAGE_OF)
