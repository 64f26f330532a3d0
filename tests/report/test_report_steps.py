"""Step functions of time: exact, and binned with mean and range."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.report.steps import binned, step_function
from sim.units import IntArray

times = st.lists(st.integers(0, 60), max_size=12)


def array(values: list[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


def test_a_step_holds_from_its_instant_to_the_next() -> None:
    steps = step_function(rise_ns=array([2, 5, 5]), fall_ns=array([7, 9, 9]))
    assert steps.time_ns.tolist() == [0, 2, 5, 7, 9]
    assert steps.value.tolist() == [0, 1, 3, 2, 0]
    assert steps.at(array([0, 1, 2, 4, 5, 8, 9, 50])).tolist() == [0, 0, 1, 1, 3, 2, 0, 0]


def test_changes_that_cancel_at_one_instant_leave_no_trace_in_the_range() -> None:
    steps = step_function(rise_ns=array([0, 4]), fall_ns=array([4, 8]))
    bins = binned(steps, end_ns=8, bins=2)
    assert bins.least.tolist() == [1, 1]
    assert bins.greatest.tolist() == [1, 1]


def test_a_bin_has_the_mean_over_its_own_width() -> None:
    steps = step_function(rise_ns=array([3, 10]), fall_ns=array([20, 20]))
    bins = binned(steps, end_ns=20, bins=4)
    assert bins.edge_ns.tolist() == [0, 5, 10, 15, 20]
    assert bins.mean.tolist() == [0.4, 1.0, 2.0, 2.0]
    assert bins.least.tolist() == [0, 1, 2, 2]
    assert bins.greatest.tolist() == [1, 1, 2, 2]


@given(rises=times, durations=st.data(), bins=st.integers(1, 30))
def test_bins_agree_with_counting_nanosecond_by_nanosecond(
    rises: list[int], durations: st.DataObject, bins: int
) -> None:
    falls = [rise + durations.draw(st.integers(1, 30)) for rise in rises]
    end_ns = 70
    count = np.zeros(end_ns, dtype=np.int64)
    for rise, fall in zip(rises, falls, strict=True):
        count[rise : min(fall, end_ns)] += 1
    found = binned(step_function(array(rises), array(falls)), end_ns, bins)
    parts = [count[start:end] for start, end in zip(found.edge_ns[:-1], found.edge_ns[1:], strict=True)]
    assert found.mean == pytest.approx([part.mean() for part in parts])
    assert found.least.tolist() == [part.min() for part in parts]
    assert found.greatest.tolist() == [part.max() for part in parts]


@pytest.mark.parametrize("bins", [0, 9])
def test_bins_are_at_least_a_nanosecond_wide(bins: int) -> None:
    with pytest.raises(ValueError, match=rf"bins must be from 1 to 8 \(got {bins}\)"):
        binned(step_function(array([1]), array([2])), end_ns=8, bins=bins)
