"""The structure of the package: imports run one way and never in a circle, and modules stay small."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "sim"
FACE = "sim"

# From the first to the last: what every stage needs, the rooms, and the public face, which no room imports.
# A module imports from its own room and those before it.
ROOMS = (
    "errors",
    "units",
    "contract",
    "plan",
    "statistics",
    "scenario",
    "draws",
    "engine",
    "check",
    "run",
    "result",
    "choose_plan",
    "answers",
    "sweeps",
    "verification",
    "report",
    "cli",
    "__main__",
    FACE,
)
MOST_ENTRIES = 20
LONGEST_FILE = 450
LONGEST_FUNCTION = 70
KERNELS = "*kernels.py"
"""Files of functions that are compiled together; they may be as long as it takes."""
COMPILED = {"kernel", "helper", "part"}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


PATHS = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in PATHS.items()}


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else FACE


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield every module of the package that is imported anywhere: in functions and for type checkers too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import hides where it comes from"
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                yield module if module in PATHS else str(node.module)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            yield named(node.args[0])


def named(argument: ast.expr) -> str:
    """Return what is imported by its name: a literal, so that it can be seen here."""
    assert isinstance(argument, ast.Constant), f"imports what only running it tells: {ast.unparse(argument)}"
    return str(argument.value)


GRAPH = {
    name: {module for module in imported(tree) if module.split(".")[0] == FACE}
    for name, tree in TREES.items()
}


def test_every_module_is_of_a_room() -> None:
    assert {room_of(module) for module in PATHS} == set(ROOMS)


@pytest.mark.parametrize("module", PATHS)
def test_no_import_runs_back_up_the_stream(module: str) -> None:
    here = ROOMS.index(room_of(module))
    assert [other for other in GRAPH[module] if ROOMS.index(room_of(other)) > here] == []


def test_no_imports_run_in_a_circle() -> None:
    TopologicalSorter(GRAPH).prepare()  # its error tells the circle


def test_the_graph_has_what_is_imported_in_functions_for_type_checkers_and_by_name() -> None:
    code = (
        "def later():\n    from sim import units\n    import sim.errors\n"
        "if TYPE_CHECKING:\n    from sim.scenario import Scenario\n"
        "importlib.import_module('sim.cli')\n"
    )
    assert set(imported(ast.parse(code))) == {"sim.units", "sim.errors", "sim.scenario", "sim.cli"}


@pytest.mark.parametrize("module", PATHS)
def test_files_and_functions_are_short(module: str) -> None:
    path, tree = PATHS[module], TREES[module]
    assert path.match(KERNELS) or path.read_text(encoding="utf-8").count("\n") <= LONGEST_FILE
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < LONGEST_FUNCTION, node.name


def test_files_of_kernels_hold_what_is_compiled() -> None:
    for path in PACKAGE.rglob(KERNELS):
        for node in TREES[name_of(path)].body:
            if isinstance(node, ast.FunctionDef):
                made = {ast.unparse(one).split("(")[0] for one in node.decorator_list}
                assert made & COMPILED, f"{path}: {node.name}"


def test_the_top_level_is_small() -> None:
    assert len([path for path in PACKAGE.iterdir() if path.name != "__pycache__"]) <= MOST_ENTRIES


@pytest.mark.parametrize("room", sorted({path.parent for path in PACKAGE.rglob("*.py")}), ids=name_of)
def test_every_room_says_what_comes_in_and_what_goes_out(room: Path) -> None:
    says = ast.get_docstring(TREES[name_of(room)]) or ""
    if room == PACKAGE:
        assert says
    else:
        assert " in" in says.replace("\n", " "), "what comes in"
        assert " out" in says, "what goes out"


def test_checks_share_nothing_with_the_engines_but_the_loader_of_machine_code() -> None:
    shared = {
        other
        for module, others in GRAPH.items()
        if room_of(module) == "check"
        for other in others
        if room_of(other) == "engine"
    }
    assert shared == {"sim.engine.native", "sim.engine.kernel_sort"}
