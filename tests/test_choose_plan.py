"""What a service asks for each request, from a module that stands alone."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import sim
from sim.choose_plan import Choice, choose_plan, load_policy

MODULE = Path(sim.__file__).parent / "choose_plan.py"
DAY = [
    {"active_from": 1, "active_to": 10, "plan": "parallel", "max_degree": 2},
    {"active_from": 11, "active_to": None, "plan": "serial", "max_degree": 1},
]
NIGHT = [{"active_from": 1, "active_to": None, "plan": "parallel", "max_degree": 3}]
POLICY = {
    "kind": "slotsim-policy",
    "version": 1,
    "hours": [
        {"from_hour": 0.0, "levels": NIGHT},
        {"from_hour": 7.5, "levels": DAY},
        {"from_hour": 20.0, "levels": NIGHT},
    ],
}


@pytest.mark.parametrize(
    ("active", "hour", "choice"),
    [
        (1, 0.0, ("parallel", 3)),
        (500, 7.49, ("parallel", 3)),
        (10, 7.5, ("parallel", 2)),
        (11, 12.0, ("serial", 1)),
        (10**9, 19.999, ("serial", 1)),
        (11, 23.99, ("parallel", 3)),
    ],
)
def test_the_level_and_the_hour_are_looked_up(active: int, hour: float, choice: tuple[str, int]) -> None:
    assert choose_plan(POLICY, active, hour) == Choice(*choice)
    assert sim.choose_plan(POLICY, active, hour).plan == choice[0]


@pytest.mark.parametrize(
    ("active", "hour", "message"),
    [
        (0, 1.0, "active_requests must be >= 1 (got 0)"),
        (1, 24.0, "hour must be >= 0 and < 24 (got 24.0)"),
        (1, -0.5, "hour must be >= 0 and < 24 (got -0.5)"),
    ],
)
def test_what_is_no_load_or_no_hour_is_refused(active: int, hour: float, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the message is compared whole
        choose_plan(POLICY, active, hour)
    assert str(caught.value) == message


def test_a_policy_is_loaded_and_anything_else_refused(tmp_path: Path) -> None:
    good, other, later = (tmp_path / name for name in ("good.json", "other.json", "later.json"))
    good.write_text(json.dumps(POLICY))
    other.write_text("[1]")
    later.write_text(json.dumps({**POLICY, "version": 2}))
    assert load_policy(good) == POLICY
    for file in (other, later):
        with pytest.raises(ValueError, match="must be a slotsim-policy of version 1"):
            load_policy(file)


def test_the_module_stands_alone(tmp_path: Path) -> None:
    names = {
        node.module for node in ast.walk(ast.parse(MODULE.read_text())) if isinstance(node, ast.ImportFrom)
    }
    assert names <= {"collections.abc", "os", "typing"}
    (tmp_path / "choose_plan.py").write_text(MODULE.read_text())
    (tmp_path / "policy.json").write_text(json.dumps(POLICY))
    code = "from choose_plan import *; print(choose_plan(load_policy('policy.json'), 11, 12.5))"
    shown = subprocess.run(
        [sys.executable, "-S", "-E", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert shown.stdout == "Choice(plan='serial', max_degree=1)\n"
