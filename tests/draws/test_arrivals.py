"""Arrivals: rounded gaps, prefixes, windows, and the counts that a profile promises."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sim.draws.arrivals import CountClock, open_arrivals_ns, rate_arrivals_ns
from sim.draws.streams import Streams
from sim.scenario.load import OpenLoad
from sim.scenario.profile import RateTable
from sim.units import FloatArray, IntArray
from tests.small_scenarios import ROOT, from_file

TRACES = Path(os.environ.get("SLOTSIM_TRACES", ROOT.parent / "shared" / "traces"))
REAL_PROFILE = TRACES / "servegen_m_large_rate.csv"
DAY_S, WINDOW_S, WINDOWS = 86_400, 600, 144
EDGES_S = np.arange(WINDOWS + 1, dtype=np.float64) * WINDOW_S


def load_of(**keys: object) -> OpenLoad:
    return OpenLoad.model_validate({"kind": "open", **keys})


def stream(seed: int = 1) -> np.random.Generator:
    return Streams(seed, 0, "w").stream("arrivals")


def table(edges: list[float], start: list[float], end: list[float] | None = None) -> RateTable:
    return RateTable(np.array(edges), np.array(start), np.array(end if end is not None else start))


def test_fixed_gaps_are_rounded_half_to_even_and_then_summed() -> None:
    # A third of a second is 333,333,333.3 ns: every gap is rounded, so that no sum of floats drifts.
    arrivals = open_arrivals_ns(load_of(arrivals="fixed", rate_per_s=3, requests=4), stream)
    assert arrivals.tolist() == [333_333_333, 666_666_666, 999_999_999, 1_333_333_332]
    # A gap of 62.5 ns lies halfway and goes to the even 62; one of 187.5 ns to 188.
    for rate, gap in ((16_000_000 / 1.0, 62), (16_000_000 / 3, 188)):
        load = load_of(arrivals="fixed", rate_per_s=1, requests=3).model_copy(update={"rate_per_s": rate})
        assert open_arrivals_ns(load, stream).tolist() == [gap, 2 * gap, 3 * gap]


@pytest.mark.parametrize("form", [{}, {"arrivals": "gamma", "cv": 2.5}, {"arrivals": "fixed"}])
def test_more_requests_leave_the_first_as_they_were(form: dict[str, object]) -> None:
    few, many = (
        open_arrivals_ns(load_of(rate_per_s=7, requests=count, **form), stream) for count in (50, 3_000)
    )
    assert few.tolist() == many[:50].tolist()


@pytest.mark.parametrize("form", [{}, {"arrivals": "gamma", "cv": 0.4}])
def test_a_duration_holds_the_arrivals_before_its_end(form: dict[str, object]) -> None:
    for_a_while = open_arrivals_ns(load_of(rate_per_s=50, duration_s=60, **form), stream)
    counted = open_arrivals_ns(load_of(rate_per_s=50, requests=len(for_a_while) + 1, **form), stream)
    assert for_a_while.tolist() == counted[:-1].tolist()
    assert for_a_while[-1] < 60_000_000_000 <= counted[-1]


def test_an_arrival_at_the_end_of_a_duration_is_outside() -> None:
    assert open_arrivals_ns(load_of(arrivals="fixed", rate_per_s=10, duration_s=0.5), stream).tolist() == [
        100_000_000,
        200_000_000,
        300_000_000,
        400_000_000,
    ]


@pytest.mark.parametrize(("form", "cv"), [({}, 1.0), ({"arrivals": "gamma", "cv": 2.0}, 2.0)])
def test_gaps_have_the_stated_mean_and_variation(form: dict[str, object], cv: float) -> None:
    gaps = np.diff(open_arrivals_ns(load_of(rate_per_s=20, requests=200_000, **form), stream))
    assert gaps.mean() == pytest.approx(50e6, rel=5 * cv / np.sqrt(200_000))
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.03)


# Rates 0, 2 and 0 to 3: a pause, a window, a rise.
UNEVEN = table([0, 10, 20, 26], [0, 2, 0], [0, 2, 3])


def test_the_expected_count_of_windows() -> None:
    clock = CountClock(UNEVEN)
    assert clock.edge_count.tolist() == [0, 0, 20, 29]
    times = np.array([0.0, 5.0, 10.0, 15.0, 20.0, 22.0, 26.0])
    # In the rise of 0.5 per s^2 the count is 0.25 t^2.
    assert clock.count(times).tolist() == [0, 0, 0, 10, 20, 21, 29]


def test_the_clock_is_read_back_over_pauses_and_rises() -> None:
    clock = CountClock(UNEVEN)
    assert clock.time_s(np.array([1.0, 10.0, 21.0, 24.0])).tolist() == [10.5, 15.0, 22.0, 24.0]


@given(
    st.lists(st.tuples(st.floats(0.1, 1e4), st.floats(0, 500), st.floats(0, 500)), min_size=1, max_size=6),
    st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=5),
)
def test_reading_the_clock_back_is_its_inverse(
    pieces: list[tuple[float, float, float]], shares: list[float]
) -> None:
    widths, start, end = (np.array(part) for part in zip(*pieces, strict=True))
    clock = CountClock(RateTable(np.append(0.0, np.cumsum(widths)), start, end))
    whole = clock.edge_count[-1]
    counts = np.array(shares) * whole
    times = clock.time_s(counts)
    assert ((times >= 0) & (times <= clock.rates.end_s * (1 + 1e-12))).all()
    assert clock.count(times) == pytest.approx(counts, rel=1e-9, abs=1e-9 * max(1.0, whole))


def test_nothing_arrives_in_a_pause_or_after_the_end() -> None:
    pauses = table([0, 100, 200, 300, 400], [0, 5, 0, 5])
    arrivals = rate_arrivals_ns(pauses, stream)
    windows = np.histogram(arrivals, np.array([0, 100, 200, 300, 400]) * 10**9)[0]
    assert windows[0] == windows[2] == 0
    assert windows[1] > 300
    assert windows.sum() == len(arrivals)
    assert (np.diff(arrivals) >= 0).all()


def test_a_rate_that_ends_in_a_pause_ends() -> None:
    arrivals = rate_arrivals_ns(table([0, 10, 1000], [3, 0]), stream)
    assert len(arrivals) > 0
    assert arrivals.max() < 10 * 10**9


def test_a_constant_rate_table_gives_exponential_gaps() -> None:
    arrivals = rate_arrivals_ns(table([0, 40, 41, 100, 1_000], [30, 30, 30, 30]), stream)
    # Edges between equal rates leave no trace.
    assert stats.kstest(np.diff(arrivals) / 1e9, "expon", args=(0, 1 / 30)).pvalue > 0.001


def test_within_a_rise_arrivals_crowd_towards_its_end() -> None:
    rise = table([0, 1_000], [0], [40])
    arrivals = rate_arrivals_ns(rise, stream) / 1e9
    # Given their number, the arrivals are independent with distribution (t / 1000)^2.
    assert stats.kstest(arrivals, lambda time_s: (time_s / 1_000) ** 2).pvalue > 0.001


def joint_p_value(counts: IntArray, expected: FloatArray) -> float:
    """Return the smallest exact two-sided Poisson p-value of the windows, times their number (Bonferroni)."""
    below, above = stats.poisson.cdf(counts, expected), stats.poisson.sf(counts - 1, expected)
    return float(np.minimum(below, above).min() * 2 * len(counts))


def windows_of(arrivals: IntArray, edges_s: FloatArray) -> IntArray:
    return np.diff(np.searchsorted(arrivals, np.rint(edges_s * 1e9).astype(np.int64)))


def day_of(folder: Path, file: Path, interpolation: str, rate_scale: float, first_s: int = 0) -> RateTable:
    load = {
        "kind": "profile",
        "file": str(file),
        "interpolation": interpolation,
        "rate_scale": rate_scale,
        "first_s": first_s,
        "end_s": first_s + DAY_S,
    }
    rates = from_file(folder, load).rates
    assert rates is not None
    return rates


@pytest.mark.parametrize("interpolation", ["constant", "linear"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_window_of_the_sample_profile_has_its_count(
    tmp_path: Path, interpolation: str, seed: int
) -> None:
    rates = day_of(tmp_path, ROOT / "scenarios" / "data" / "profile.csv", interpolation, 0.5)
    edges_s = EDGES_S
    expected = np.diff(CountClock(rates).count(edges_s))
    counts = windows_of(rate_arrivals_ns(rates, lambda: stream(seed)), edges_s)
    assert joint_p_value(counts, expected) > 0.01


@pytest.mark.skipif(not REAL_PROFILE.exists(), reason=f"no {REAL_PROFILE.name} in {TRACES} (SLOTSIM_TRACES)")
@pytest.mark.parametrize("day", [0, 5])
def test_every_window_of_a_real_day_has_its_count(tmp_path: Path, day: int) -> None:
    # A fifteenth of the real rate: 4 to 39 requests per s.
    scale = 1 / 15
    rates = day_of(tmp_path, REAL_PROFILE, "constant", scale, day * DAY_S)
    written = np.loadtxt(REAL_PROFILE, delimiter=",", skiprows=1)
    expected = written[day * WINDOWS : (day + 1) * WINDOWS, 1] * scale * WINDOW_S
    counts = windows_of(rate_arrivals_ns(rates, stream), EDGES_S)
    assert counts.sum() > 500_000
    assert joint_p_value(counts, expected) > 0.01


def test_a_window_that_loses_its_edge_would_be_found() -> None:
    # Each window emits as if it were 6 s shorter: 1 % of the requests.
    expected = np.full(WINDOWS, 6_000.0)
    counts = np.random.default_rng(1).poisson(expected * 0.99)
    assert stats.poisson.cdf(counts.sum(), expected.sum()) < 1e-6
    assert joint_p_value(np.random.default_rng(1).poisson(expected * 0.9), expected) < 0.01
