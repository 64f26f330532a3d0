import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.errors import ArgumentError
from sim.statistics import bounds, theory

# The sample: branches 260 and 160 ms, join 35 ms, 20 slots.
WORK, PARALLEL, SERIAL, SLOTS = 420.0, 295.0, 420.0, 20


def test_the_sample_under_an_open_load() -> None:
    assert bounds.utilisation(38 / 1000, WORK, SLOTS) == pytest.approx(0.798)
    assert bounds.open_throughput_bound(38 / 1000, WORK, SLOTS) == 38 / 1000
    assert bounds.open_throughput_bound(50 / 1000, WORK, SLOTS) == pytest.approx(20 / 420)


@pytest.mark.parametrize(("slots", "latency"), [(1, 455.0), (2, 295.0), (20, 295.0)])
def test_one_request_alone_waits_for_its_critical_path_or_its_work(slots: int, latency: float) -> None:
    assert bounds.open_latency_bound(260, WORK, slots, join=35) == latency


@pytest.mark.parametrize(
    ("users", "latency"), [(10, 295), (14, 295), (16, 336), (18, 378), (20, 420), (30, 630)]
)
def test_the_sample_under_a_closed_load(users: int, latency: float) -> None:
    assert bounds.closed_latency_bound(users, 0, PARALLEL, WORK, SLOTS) == pytest.approx(latency)
    assert bounds.closed_throughput_bound(users, 0, PARALLEL, WORK, SLOTS) == pytest.approx(users / latency)


def test_from_twenty_active_requests_on_no_plan_beats_serial_in_the_mean() -> None:
    assert bounds.latency_bound_of_active(19.9, WORK, SLOTS) < SERIAL
    assert bounds.latency_bound_of_active(20, WORK, SLOTS) == SERIAL


def test_thinking_users_leave_room() -> None:
    assert bounds.closed_latency_bound(30, 210, PARALLEL, WORK, SLOTS) == pytest.approx(420)
    assert bounds.closed_throughput_bound(10, 705, PARALLEL, WORK, SLOTS) == pytest.approx(10 / 1000)


@given(st.integers(1, 300), st.integers(1, 40), st.floats(0, 50), st.floats(0.1, 10))
def test_the_closed_queue_keeps_within_its_bounds(
    users: int, slots: int, think: float, service: float
) -> None:
    found = theory.machine_repair(users, slots, think, service)
    most = bounds.closed_throughput_bound(users, think, service, service, slots)
    least = bounds.closed_latency_bound(users, think, service, service, slots)
    assert found.throughput <= most * (1 + 1e-9)
    assert found.latency >= least * (1 - 1e-9) - 1e-9


def test_grahams_bounds_of_a_span() -> None:
    assert bounds.span_bounds(260, 420, 1) == (420, 420)
    assert bounds.span_bounds(260, 420, 2) == (260, 340)
    assert bounds.span_bounds(8, 24, 2) == (12, 16)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ArgumentError) as refusal:
        bounds.span_bounds(1, 1, 0)
    assert str(refusal.value) == "slots must be >= 1 (got 0)"
    with pytest.raises(ArgumentError) as refusal:
        bounds.closed_latency_bound(1, 0, 1, 0, 1)
    assert str(refusal.value) == "work must be > 0 (got 0)"
    with pytest.raises(ArgumentError) as refusal:
        bounds.utilisation(1, 1, 0)
    assert str(refusal.value) == "slots must be >= 1 (got 0)"
