"""Borders found by search: what is looked at, and what is inferred of the rest."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sim.answers.flip
from sim.answers.boundary import COARSE, Cell, inferred, search
from sim.answers.flip import flip
from sim.scenario import load_scenario
from tests.small_scenarios import ROOT


def counted(rule: Callable[[Cell], str]) -> tuple[list[Cell], Callable[[Sequence[Cell]], list[str]]]:
    """Return a list that fills with what is asked, and what answers by a rule."""
    asked: list[Cell] = []

    def label(cells: Sequence[Cell]) -> list[str]:
        asked.extend(cells)
        return [rule(cell) for cell in cells]

    return asked, label


@given(st.integers(2, 3000), st.data())
def test_one_border_on_a_line_is_found_with_few_looks(size: int, data: st.DataObject) -> None:
    border = data.draw(st.integers(1, size - 1))
    asked, label = counted(lambda cell: "merge" if cell[1] < border else "keep")
    found = search(1, size, label)
    assert found[0, border - 1] == "merge"
    assert found[0, border] == "keep"
    assert len(asked) == len(set(asked)) <= COARSE + 1 + size.bit_length() + 2


def test_a_label_beside_a_border_is_found() -> None:
    labels = {40: "keep", 41: "merge", 42: "keep"}
    _, label = counted(lambda cell: labels.get(cell[1], "merge" if cell[1] < 40 else "keep"))
    found = search(1, 1000, label)
    assert [found[0, column] for column in range(39, 44)] == [
        "merge", "keep", "merge", "keep", "keep",
    ]  # fmt: skip


@pytest.mark.parametrize("rows", [1, 30, 200])
def test_a_slanted_border_is_followed_and_the_rest_is_inferred_right(rows: int) -> None:
    def rule(cell: Cell) -> str:
        row, column = cell
        return "merge" if column + row // 3 < 100 else "undecided" if column + row // 3 < 103 else "keep"

    asked, label = counted(rule)
    found = search(rows, 150, label)
    rest = inferred(found, rows, 150)
    assert all(rule(cell) == verdict for cell, verdict in (found | rest).items())
    assert len(found) + len(rest) == rows * 150
    assert len(asked) <= 9 * 9 + 12 * rows + 20


def test_a_region_that_touches_two_labels_is_not_inferred() -> None:
    found = {(0, 0): "merge", (0, 2): "keep", (2, 0): "merge", (2, 2): "merge"}
    assert inferred(found, 3, 3) == {}


def test_what_is_known_is_not_asked() -> None:
    asked, label = counted(lambda _: "keep")
    search(1, 9, label, known={(0, 4): "keep"})
    assert (0, 4) not in asked


def test_a_flip_in_a_large_range_is_found_without_simulating_all_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sim.answers.flip, "MOST_LEVELS_SCANNED", 30)
    peak = load_scenario(ROOT / "scenarios" / "peak.yaml")
    table = flip(peak, active=range(1, 41), allocations=["fair_share"], requests_per_user=10, workers=1)
    assert table.sentences() == ["fair_share: merge -> keep-serial between 10 and 11 active requests"]
    values = [level.value for level in table.levels]
    assert {9, 10, 11, 12} <= set(values)
    assert values == sorted(set(values))
    assert len(values) < 20
