import math

import numpy as np
import pytest

from sim.errors import ArgumentError
from sim.statistics.stability import Backlog, Stability, backlog, rise_in_words, rises
from sim.units import FloatArray, IntArray

STEADY = Backlog(first=1, last=15, lowest_in_last_third=8, increments=(5, -3, 2, -4, 4, -1, 3, -6))
RISING = Backlog(first=1, last=400, lowest_in_last_third=250, increments=(20, 22, 19, 25, 21, 18, 23, 20))


def paths(
    slots: int, load_per_slot: float, requests: int, runs: int, arrival_cv: float = 1.0
) -> tuple[IntArray, IntArray]:
    """Arrivals and completions in ns (runs x requests) of G/M/c in order of arrival, services of mean 1 s.

    The slot that is free first takes the next request: Kiefer and Wolfowitz's recursion, all runs at once.
    """
    rng = np.random.default_rng(20)
    shape = 1 / arrival_cv**2
    gaps: FloatArray = rng.gamma(shape, 1 / shape, (runs, requests)) / (load_per_slot * slots)
    arrivals = gaps.cumsum(axis=1)
    services = rng.exponential(1.0, (runs, requests))
    completions = np.empty_like(arrivals)
    free = np.zeros((runs, slots))
    every = np.arange(runs)
    for request in range(requests):
        slot = free.argmin(axis=1)
        start = np.maximum(arrivals[:, request], free[every, slot])
        completions[:, request] = free[every, slot] = start + services[:, request]
    return (arrivals * 1e9).astype(np.int64), (completions * 1e9).astype(np.int64)


def share_overloaded(slots: int, load_per_slot: float, requests: int, arrival_cv: float = 1.0) -> float:
    """How often a run is called overloaded from its backlog alone, over 100 seeds."""
    arrivals, completions = paths(slots, load_per_slot, requests, 100, arrival_cv)
    found = [rises([backlog(*run)], slots) for run in zip(arrivals, completions, strict=True)]
    return float(np.mean(found))


@pytest.mark.parametrize("load_per_slot", [0.5, 0.8])
@pytest.mark.parametrize("requests", [300, 2000])
@pytest.mark.parametrize("slots", [1, 20])
def test_a_moderate_load_is_not_called_overloaded(slots: int, requests: int, load_per_slot: float) -> None:
    assert share_overloaded(slots, load_per_slot, requests) <= 0.02


@pytest.mark.slow
@pytest.mark.parametrize("slots", [1, 20])
def test_almost_all_of_what_there_is_for_10_000_requests_is_not_called_overloaded(slots: int) -> None:
    assert share_overloaded(slots, 0.97, 10_000) <= 0.02


def test_bursty_arrivals_at_half_the_slots_are_not_called_overloaded() -> None:
    assert share_overloaded(20, 0.5, 1000, arrival_cv=3) <= 0.02


@pytest.mark.parametrize("slots", [1, 20])
def test_five_percent_too_much_is_found_from_the_backlog_alone(slots: int) -> None:
    assert share_overloaded(slots, 1.05, 10_000) >= 0.95


def test_replications_together_find_what_one_short_run_cannot() -> None:
    arrivals, completions = paths(20, 1.05, 2000, 40)
    runs = [backlog(*run) for run in zip(arrivals, completions, strict=True)]
    alone = np.mean([rises([run], 20) for run in runs])
    assert alone < 0.9
    assert rises(runs, 20)


def test_many_replications_of_a_high_load_are_not_called_overloaded() -> None:
    arrivals, completions = paths(20, 0.9, 2000, 60)
    runs = [backlog(*run) for run in zip(arrivals, completions, strict=True)]
    assert not rises(runs, 20)


def test_the_backlog_of_a_small_run() -> None:
    # Arrivals at 0, 10, .. 200 ns, each staying 25 ns but the last ten, which stay 1,000.
    arrivals = np.arange(0, 201, 10, dtype=np.int64)
    completions = arrivals + np.where(arrivals > 100, 1000, 25)
    found = backlog(arrivals, completions)
    # Active after 0, 10, 20 ns .. : 1, 2, 3, 3, 3, ..; the last third begins at 133 ns.
    assert found == Backlog(
        first=1, last=10, lowest_in_last_third=3, increments=(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, *(1,) * 7)
    )


def test_the_backlog_of_a_period_counts_who_came_before() -> None:
    arrivals = np.array([0, 1, 2, 50, 60], dtype=np.int64)
    completions = np.array([100, 100, 55, 58, 70], dtype=np.int64)
    found = backlog(arrivals, completions, start_ns=40, end_ns=60)
    assert (found.first, found.last, found.lowest_in_last_third) == (3, 3, 2)
    assert sum(found.increments) == 0
    assert len(found.increments) == 19


def test_arrivals_at_one_instant_have_no_trend() -> None:
    found = backlog(np.zeros(50, dtype=np.int64), np.arange(1, 51, dtype=np.int64))
    assert found == Backlog(first=50, last=50, lowest_in_last_third=50, increments=())
    assert not rises([found], 20)


def test_load_that_grows_within_the_slots_is_stable() -> None:
    growing = Backlog(first=1, last=19, lowest_in_last_third=14, increments=(1,) * 18)
    assert not rises([growing], 20)


def test_a_backlog_rises_beyond_what_there_is_room_for() -> None:
    assert not rises([STEADY], 5)
    assert rises([RISING], 20)
    assert not rises([RISING], 250)
    assert not rises([RISING], math.inf)
    assert rise_in_words([RISING], 20) == (
        "active requests grew from 1 to 400 while requests arrived, "
        "and never fell back to the 20 that there is room for in the last third of that time"
    )


def test_only_a_load_without_an_end_has_no_steady_state() -> None:
    over, ends = Stability("overloaded", "why"), Stability("overloaded", "why", is_finite=True)
    assert (over.is_overloaded, over.has_no_steady_state) == (True, True)
    assert (ends.is_overloaded, ends.has_no_steady_state) == (False, False)
    collapsed = Stability("collapsed", "why")
    assert (collapsed.is_overloaded, collapsed.has_no_steady_state) == (False, True)
    assert not Stability("near saturation", "why").has_no_steady_state


def test_bad_arguments_are_refused() -> None:
    nothing = np.array([], dtype=np.int64)
    with pytest.raises(ArgumentError) as refusal:
        backlog(nothing, nothing, end_ns=-1)
    assert str(refusal.value) == "end_ns must be >= start_ns, 0 (got -1)"
    with pytest.raises(ArgumentError) as refusal:
        backlog(nothing, nothing, start_ns=5, end_ns=4)
    assert str(refusal.value) == "end_ns must be >= start_ns, 5 (got 4)"
