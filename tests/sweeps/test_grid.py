"""What a sweep varies, as text and as values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.errors import ArgumentError
from sim.sweeps.grid import Axis, Grid, key_of


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1:4", (1, 2, 3, 4)),
        ("a=1:10:4", (1, 5, 9)),
        ("a=0:1:0.25", (0.0, 0.25, 0.5, 0.75, 1.0)),
        ("a=0.1:0.3:0.1", (0.1, 0.2, 0.3)),
        ("a=-2:1", (-2, -1, 0, 1)),
        ("a=5, 1,5,2", (5, 1, 2)),
        ("a=1:3,10", (1, 2, 3, 10)),
        ("a=log:1:1000:4", (1, 10, 100, 1000)),
        ("a=log:1:8:10", (1, 2, 3, 4, 5, 6, 8)),
        ("a=log:1.0:2:3", (1.0, 1.41421, 2.0)),
        ("a=fifo,null,true,1.5,'x:y',\"p,q\"", ("fifo", None, True, 1.5, "x:y", "p,q")),
        ("a=1,true,1.0,false,0", (1, True, False, 0)),
    ],
)
def test_values_of_one_key(text: str, values: tuple[object, ...]) -> None:
    axis = Axis.parsed(text)
    assert axis.keys == ("a",)
    assert [(value, type(value)) for (value,) in axis.values] == [(value, type(value)) for value in values]


def test_keys_that_change_together() -> None:
    axis = Axis.parsed("provider.concurrency, workflow.branches[0].duration_ms = 20:100, 40:null,20:100")
    assert axis.keys == ("provider.concurrency", "workflow.branches[0].duration_ms")
    assert axis.values == ((20, 100), (40, None))


FORM = "must be KEY=VALUES or KEY,KEY=VALUE:VALUE"
SCALARS = "must have values that are numbers, words, true, false or null"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("load.active_requests", FORM),
        ("=1:2", FORM),
        ("a,=1:2", FORM),
        ("1a=3", FORM),
        ("a=", SCALARS),
        ("a=1,,2", SCALARS),
        ("a=[1", SCALARS),
        ("a=[1]", SCALARS),
        ("a=.nan", SCALARS),
        ("a=5:1", "must have FROM <= TO"),
        ("a=1:2:0", "must have a STEP > 0"),
        ("a=1:2:-1", "must have a STEP > 0"),
        ("a=1:99999999", "must give no more than 10,000,000 points"),
        ("a=log:0:1:3", "must have 0 < FROM < TO for log steps"),
        ("a=log:1:10:1", "must have a COUNT >= 2 of log steps"),
        ("a=1:b", "must have values such as 1:40, 0:1:0.025, log:1:1000:10, 5, fifo, null or 'a:b'"),
        ("a,b=1:2:3", "must give 2 values, separated by colons, each time"),
    ],
)
def test_a_fault_is_one_line(text: str, rule: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        Axis.parsed(text)
    assert str(caught.value) == f"--vary {rule} (got {text!r})"


def test_a_key_is_varied_once() -> None:
    with pytest.raises(ArgumentError) as caught:
        Grid.parsed(["a=1:2", "b,a=1:2"])
    assert str(caught.value) == "--vary must name each key once (got 'a')"


def test_the_number_of_points_is_bounded() -> None:
    with pytest.raises(ArgumentError) as caught:
        Grid.parsed(["a=1:10000", "b=1:10000"])
    assert str(caught.value) == "--vary must give no more than 10,000,000 points (got '100,000,000')"


def test_the_last_axis_changes_fastest() -> None:
    grid = Grid.parsed(["a=1:2", "b,c=x:1,y:2"])
    assert list(grid.points()) == [
        {"a": 1, "b": "x", "c": 1},
        {"a": 1, "b": "y", "c": 2},
        {"a": 2, "b": "x", "c": 1},
        {"a": 2, "b": "y", "c": 2},
    ]


def test_probes_hold_every_value() -> None:
    grid = Grid.parsed(["a=1:3", "b=x,y"])
    assert list(grid.probes()) == [
        {"a": 1, "b": "x"},
        {"a": 2, "b": "x"},
        {"a": 3, "b": "x"},
        {"a": 1, "b": "y"},
    ]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_a_grid_has_every_combination_once(sizes: list[int]) -> None:
    grid = Grid.from_values({f"k{number}": range(size) for number, size in enumerate(sizes)})
    points = [key_of(point) for point in grid.points()]
    assert len(points) == len(set(points)) == len(grid)


def test_values_from_python() -> None:
    grid = Grid.from_values({"a": range(2), ("b", "c"): [(None, "x")]})
    assert list(grid.points()) == [{"a": 0, "b": None, "c": "x"}, {"a": 1, "b": None, "c": "x"}]


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ({}, "vary must be given (got None)"),
        ({"a": []}, "vary must give values (got {'a': []})"),
        ({"a": [[1]]}, "vary must give numbers, text, true, false or None (got [1])"),
        ({"a": [float("inf")]}, "vary must give numbers, text, true, false or None (got inf)"),
        ({("a", "b"): [(1,)]}, "vary must give 2 values for a, b (got (1,))"),
    ],
)
def test_faults_of_values_from_python(vary: dict[str | tuple[str, ...], list[object]], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        Grid.from_values(vary)
    assert str(caught.value) == message
