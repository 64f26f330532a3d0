"""Points kept in a file: what a killed process leaves, what is not mixed in."""

from pathlib import Path

import pytest

from sim.errors import InputError, OutputError
from sim.sweeps.grid import Point
from sim.sweeps.point_store import NAME, PointStore, Row

HEADER = {"scenario_sha256": "0123456789abcdef", "slotsim_version": "1.0"}
FIRST: Point = {"a": 1, "b": None}
SECOND: Point = {"a": 0.1, "b": "x,\ny"}
ROWS: list[Row] = [
    {"plan": "serial", "latency_ms_mean": 1 / 3},
    {"plan": "parallel", "latency_ms_mean": None},
]


def filled(folder: Path) -> bytes:
    """Return the bytes of a store with two points."""
    store = PointStore.at(folder, HEADER)
    store.add(FIRST, ROWS)
    store.add(SECOND, ROWS[:1])
    return (folder / NAME).read_bytes()


def test_points_come_back_as_they_were(tmp_path: Path) -> None:
    filled(tmp_path)
    store = PointStore.at(tmp_path, HEADER)
    assert FIRST in store
    assert {"b": "x,\ny", "a": 0.1} in store
    assert {"a": 2, "b": None} not in store
    assert store.rows(FIRST) == ROWS
    assert store.rows(SECOND) == ROWS[:1]


def test_a_line_cut_off_anywhere_is_dropped_and_the_end_is_the_same(tmp_path: Path) -> None:
    whole = filled(tmp_path / "whole")
    starts = [0] + [place + 1 for place, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole)):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / NAME).write_bytes(whole[:cut])
        store = PointStore.at(folder, HEADER)
        kept = sum(start <= cut for start in starts[1:]) - 1
        assert (FIRST in store, SECOND in store) == (kept >= 1, kept >= 2)
        for point, rows in ((FIRST, ROWS), (SECOND, ROWS[:1])):
            if point not in store:
                store.add(point, rows)
        assert (folder / NAME).read_bytes() == whole


def test_points_of_another_scenario_or_version_are_not_mixed_in(tmp_path: Path) -> None:
    before = filled(tmp_path)
    other = {"scenario_sha256": "fedcba9876543210", "slotsim_version": "1.1"}
    with pytest.raises(InputError) as caught:
        PointStore.at(tmp_path, other)
    assert str(caught.value) == (
        f"{tmp_path / NAME}: holds points of scenario_sha256 0123456789ab, now fedcba987654, "
        "slotsim_version 1.0, now 1.1; --fresh starts over"
    )
    assert (tmp_path / NAME).read_bytes() == before
    assert FIRST not in PointStore.at(tmp_path, other, fresh=True)
    assert FIRST not in PointStore.at(tmp_path, other)


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    lines = filled(tmp_path).splitlines(keepends=True)
    (tmp_path / NAME).write_bytes(lines[0] + b'{"point":\n' + lines[2])
    with pytest.raises(InputError) as caught:
        PointStore.at(tmp_path, HEADER)
    assert str(caught.value) == f"{tmp_path / NAME}:2: is damaged; --fresh starts over"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'{"point":{"a":1,', b'{"point":{"a":2,'),
        (b'"latency_ms_mean":0.3333333333333333}', b'"latency_ms_mean":0.3333333333333334}'),
        (b'"plan":"serial"', b'"plan":"merged"'),
        (b'"sha256":"', b'"sha999":"'),
    ],
)
def test_a_line_that_is_not_what_was_written_is_simulated_anew(
    tmp_path: Path, old: bytes, new: bytes
) -> None:
    head, first, second = filled(tmp_path).splitlines(keepends=True)
    assert old in first
    (tmp_path / NAME).write_bytes(head + first.replace(old, new) + second)
    store = PointStore.at(tmp_path, HEADER)
    assert (FIRST in store, {"a": 2, "b": None} in store, SECOND in store) == (False, False, True)
    store.add(FIRST, ROWS)
    again = PointStore.at(tmp_path, HEADER)
    assert (again.rows(FIRST), again.rows(SECOND)) == (ROWS, ROWS[:1])


def test_a_line_of_another_scenario_below_this_header_is_simulated_anew(tmp_path: Path) -> None:
    head, first, _ = filled(tmp_path).splitlines(keepends=True)
    other = PointStore.at(tmp_path / "other", HEADER | {"slotsim_version": "1.1"})
    other.add(SECOND, ROWS)
    lines = (tmp_path / "other" / NAME).read_bytes().splitlines(keepends=True)
    (tmp_path / NAME).write_bytes(head + lines[1] + first)
    store = PointStore.at(tmp_path, HEADER)
    assert (FIRST in store, SECOND in store) == (True, False)


def test_a_file_that_another_has_written_to_meanwhile_is_told(tmp_path: Path) -> None:
    filled(tmp_path)
    one, other = (PointStore.at(tmp_path, HEADER) for _ in range(2))
    one.add({"a": 3, "b": None}, ROWS[1:])
    changed = f"{tmp_path / NAME}: has changed since it was read here; run the command again"
    with pytest.raises(InputError) as caught:
        other.add({"a": 4, "b": None}, ROWS)
    assert str(caught.value) == changed
    assert one.rows({"a": 3, "b": None}) == ROWS[1:]
    third = PointStore.at(tmp_path, HEADER, fresh=True)
    third.add(SECOND, ROWS)
    third.add(FIRST, ROWS[:1])
    for point in (FIRST, SECOND):  # one stands elsewhere now, and another stands where it was
        with pytest.raises(InputError) as caught:
            one.rows(point)
        assert str(caught.value) == changed


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="could not be written"):
        PointStore.at(tmp_path / "file", HEADER)


def test_a_store_in_memory() -> None:
    store = PointStore()
    store.add(FIRST, ROWS)
    assert store.rows(FIRST) == ROWS
    assert SECOND not in store
