"""Formulas against each other, against brute force on small chains, and against limits known by hand."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.errors import ArgumentError
from sim.statistics import theory
from sim.units import FloatArray

SLOTS = st.integers(1, 60)
SHARES = st.floats(0.01, 0.99)


def stationary(rates: FloatArray) -> FloatArray:
    """Return the stationary distribution of a chain from its rates (states x states, diagonal unused)."""
    generator = rates - np.diag(np.diag(rates))
    generator -= np.diag(generator.sum(axis=1))
    equations = generator.T.copy()
    equations[-1] = 1.0
    right = np.zeros(len(rates))
    right[-1] = 1.0
    solution: FloatArray = np.linalg.solve(equations, right).astype(np.float64)
    return solution


def birth_death(births: list[float], deaths: list[float]) -> FloatArray:
    """Return the rates of a chain on 0..n: births[j] from j to j + 1, deaths[j] from j + 1 to j."""
    return np.diag(births, 1) + np.diag(deaths, -1)


def poisson_pmf(mean: float, count: int) -> FloatArray:
    return np.array([math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(count)])


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (theory.mmc_wait(16, 1, 20), 0.06402),
        (theory.erlang_c(20, 18), 0.55077),
        (theory.mmc_wait(18, 1, 20), 0.27538),
        (theory.mmc_wait(18, 1, 21), 0.13196),
        (theory.mmc_wait(0.8, 1, 1), 4),
        (theory.mm1_latency_percentile(0.8, 1, 0.5), 3.466),
        (theory.mm1_latency_percentile(0.8, 1, 0.95), 14.98),
        (theory.fork_join_one_slot_latency(0.2, 1, 3), 6.0),
        (theory.fork_join_unlimited_latency(1, 3), 1.8333),
    ],
)
def test_the_reference_decimals(found: float, expected: float) -> None:
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("slots", "load"), [(1, 0.3), (3, 2.5), (8, 9.0)])
def test_erlang_b_is_its_definition(slots: int, load: float) -> None:
    terms = [load**k / math.factorial(k) for k in range(slots + 1)]
    assert theory.erlang_b(slots, load) == pytest.approx(terms[-1] / sum(terms), rel=1e-13)


@given(SHARES)
def test_with_one_slot_the_probability_of_waiting_is_the_load(share: float) -> None:
    assert theory.erlang_c(1, share) == pytest.approx(share, rel=1e-12)


@pytest.mark.parametrize(("slots", "load"), [(1, 0.6), (2, 1.5), (5, 4.0), (20, 14.0)])
def test_erlang_c_and_the_wait_are_those_of_the_chain(slots: int, load: float) -> None:
    states = 400
    chain = birth_death([load] * states, [float(min(j, slots)) for j in range(1, states + 1)])
    share = stationary(chain)
    present = np.arange(states + 1)
    assert theory.erlang_c(slots, load) == pytest.approx(share[present >= slots].sum(), rel=1e-9)
    queue = share @ np.maximum(present - slots, 0)
    assert theory.mmc_wait(load, 1, slots) == pytest.approx(queue / load, rel=1e-9)


@given(SLOTS, SHARES, st.floats(0.001, 1000))
def test_times_scale_with_their_unit(slots: int, share: float, unit: float) -> None:
    rate = share * slots
    for wait in (theory.mmc_wait, theory.mdc_wait):
        assert wait(rate / unit, unit, slots) == pytest.approx(unit * wait(rate, 1, slots), rel=1e-6)


def test_five_thousand_slots_stay_in_range() -> None:
    waiting = [theory.erlang_c(5000, load) for load in (2500, 4900, 4990, 4999.9)]
    assert waiting == sorted(waiting)
    assert 0 <= waiting[0] < 1e-200
    # Halfin and Whitt: at c = a + b sqrt(a) the probability tends to 1 / (1 + b Phi(b) / phi(b)).
    load = 5000 - math.sqrt(5000)
    beta = (5000 - load) / math.sqrt(load)
    phi = math.exp(-(beta**2) / 2) / math.sqrt(2 * math.pi)
    limit = 1 / (1 + beta * 0.5 * (1 + math.erf(beta / math.sqrt(2))) / phi)
    assert theory.erlang_c(5000, load) == pytest.approx(limit, rel=0.02)


@pytest.mark.parametrize(("slots", "share"), [(1, 0.3), (5, 0.7), (20, 0.95)])
def test_the_wait_percentiles_average_to_the_mean(slots: int, share: float) -> None:
    rate, waiting, parts = share * slots, theory.erlang_c(slots, share * slots), 2000
    beyond = [waiting * (part + 0.5) / parts for part in range(parts)]
    percentiles = [theory.mmc_wait_percentile(rate, 1, slots, 1 - one) for one in beyond]
    assert waiting * np.mean(percentiles) == pytest.approx(theory.mmc_wait(rate, 1, slots), rel=1e-3)


def test_a_wait_percentile_below_the_share_that_does_not_wait_is_zero() -> None:
    assert theory.mmc_wait_percentile(16, 1, 20, 0.5) == 0.0
    # M/M/1: P(W > t) = rho exp(-(1 - rho) t).
    assert theory.mmc_wait_percentile(0.8, 1, 1, 0.95) == pytest.approx(math.log(0.8 / 0.05) / 0.2)


@given(SHARES, st.floats(0.1, 10))
def test_pollaczek_khinchine_between_its_special_cases(share: float, service: float) -> None:
    rate = share / service
    exponential = theory.mg1_wait(rate, service, 1)
    assert exponential == pytest.approx(theory.mmc_wait(rate, service, 1))
    assert theory.mg1_wait(rate, service, 0) == pytest.approx(exponential / 2)
    assert theory.mg1_wait(rate, service, 3) == pytest.approx(5 * exponential)


@given(SHARES)
def test_constant_service_on_one_slot_is_pollaczek_khinchine(share: float) -> None:
    assert theory.mdc_wait(share, 1, 1) == pytest.approx(theory.mg1_wait(share, 1, 0), rel=1e-9)


@pytest.mark.parametrize(
    ("slots", "share"), [(1, 0.5), (1, 0.9), (2, 0.8), (5, 0.3), (5, 0.9), (20, 0.8), (20, 0.9), (20, 0.95)]
)
def test_constant_service_is_the_chain_of_one_service_apart(slots: int, share: float) -> None:
    # All in service now are gone one service later, so that X' = (X - c)^+ + Poisson(a).
    states, load = 500, slots * share
    arriving = poisson_pmf(load, states)
    chain = np.zeros((states, states))
    for present in range(states):
        queue = max(present - slots, 0)
        chain[present, queue:] = arriving[: states - queue]
    share_of_time = stationary(chain)
    queue_mean = share_of_time @ np.maximum(np.arange(states) - slots, 0)
    assert theory.mdc_wait(load, 1, slots) == pytest.approx(queue_mean / load, rel=1e-6)


@given(st.integers(1, 200), st.floats(0.5, 0.97))
def test_both_ways_to_the_constant_service_wait_agree(slots: int, share: float) -> None:
    decay = slots * (share - 1 - math.log(share))
    by_series = theory._mdc_wait_by_series(slots, share, 1 + math.ceil(40 / decay))
    by_roots = theory._mdc_queue_by_roots(slots, share) / (slots * share)
    assert by_series == pytest.approx(by_roots, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("slots", [1, 20, 500, 5000])
def test_constant_service_is_steady_from_no_load_to_saturation(slots: int) -> None:
    shares = [0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.979, 0.981, 0.99, 0.999, 0.9999]
    waits = [theory.mdc_wait(share * slots, 1, slots) for share in shares]
    assert waits == sorted(waits)
    assert waits[0] >= 0
    # In heavy traffic the wait is half of that of exponential service.
    exponential = theory.mmc_wait(0.9999999 * slots, 1, slots)
    assert theory.mdc_wait(0.9999999 * slots, 1, slots) == pytest.approx(exponential / 2, rel=1e-3)


@pytest.mark.parametrize(("slots", "share"), [(2, 0.7), (4, 0.8), (10, 0.9), (20, 0.9)])
def test_constant_service_is_near_cosmetatos_approximation(slots: int, share: float) -> None:
    # Cosmetatos, "Some approximate equilibrium results for the multi-server queue", 1976.
    correction = (1 - share) * (slots - 1) * (math.sqrt(4 + 5 * slots) - 2) / (16 * share * slots)
    approximate = theory.mmc_wait(share * slots, 1, slots) / 2 * (1 + correction)
    assert theory.mdc_wait(share * slots, 1, slots) == pytest.approx(approximate, rel=0.03)


@given(SLOTS, SHARES)
def test_allen_cunneen_is_exact_where_it_should_be(slots: int, share: float) -> None:
    rate = share * slots
    assert theory.allen_cunneen_wait(rate, 1, slots, 1, 1) == theory.mmc_wait(rate, 1, slots)
    assert theory.allen_cunneen_wait(share, 1, 1, 1, 0.5) == pytest.approx(theory.mg1_wait(share, 1, 0.5))
    assert theory.allen_cunneen_wait(rate, 1, slots, 0, 0) == 0.0


@given(SHARES, st.floats(0, 4))
def test_kingmans_bound_lies_above_the_exact_wait(share: float, service_cv: float) -> None:
    assert theory.kingman_wait_bound(share, 1, 1, service_cv) >= theory.mg1_wait(share, 1, service_cv)


def test_kingmans_bound_is_reached_in_heavy_traffic() -> None:
    exact = theory.mg1_wait(0.9999, 1, 2)
    assert theory.kingman_wait_bound(0.9999, 1, 1, 2) == pytest.approx(exact, rel=1e-3)


def test_fork_join_with_one_branch_is_a_plain_queue() -> None:
    assert theory.fork_join_one_slot_latency(0.8, 1, 1) == pytest.approx(5)
    assert theory.fork_join_unlimited_latency(160, 1) == 160


def test_fork_join_of_many_branches_grows_like_their_logarithm() -> None:
    euler = 0.5772156649015329
    assert theory.fork_join_unlimited_latency(1, 10**6) == pytest.approx(math.log(10**6) + euler, rel=1e-6)


@pytest.mark.parametrize(("users", "slots", "think"), [(1, 1, 3.0), (3, 2, 1.0), (10, 3, 0.5), (6, 9, 2.0)])
def test_machine_repair_is_the_chain(users: int, slots: int, think: float) -> None:
    service = 1.5
    share = stationary(
        birth_death(
            [(users - j) / think for j in range(users)],
            [min(j, slots) / service for j in range(1, users + 1)],
        )
    )
    present = np.arange(users + 1)
    throughput = share @ np.minimum(present, slots) / service
    found = theory.machine_repair(users, slots, think, service)
    assert found.throughput == pytest.approx(throughput)
    assert found.latency == pytest.approx(share @ present / throughput)
    assert found.wait == pytest.approx(found.latency - service, abs=1e-12)
    assert found.utilisation == pytest.approx(share @ np.minimum(present, slots) / slots)


@given(st.integers(1, 600), SLOTS, st.floats(0, 100), st.floats(0.1, 10))
def test_machine_repair_obeys_littles_law(users: int, slots: int, think: float, service: float) -> None:
    found = theory.machine_repair(users, slots, think, service)
    assert found.throughput * (found.latency + think) == pytest.approx(users, rel=1e-9)
    assert 0 < found.utilisation <= 1 + 1e-12


def test_users_who_do_not_think_keep_the_slots_busy() -> None:
    assert theory.machine_repair(30, 20, 0, 2) == theory.ClosedQueue(10.0, 3.0, 1.0, 1.0)
    assert theory.machine_repair(10, 20, 0, 2) == theory.ClosedQueue(5.0, 2.0, 0.0, 0.5)


def test_very_many_users_who_think_long_are_an_open_load() -> None:
    closed = theory.machine_repair(2_000_000, 20, 2_000_000 / 16, 1)
    assert closed.throughput == pytest.approx(16, rel=1e-4)
    assert closed.wait == pytest.approx(theory.mmc_wait(16, 1, 20), rel=1e-3)


@pytest.mark.parametrize("share", [1.0, 1.05, 100.0])
def test_from_saturation_on_waits_are_infinite(share: float) -> None:
    assert theory.erlang_c(20, 20 * share) == 1.0
    assert theory.mmc_wait(20 * share, 1, 20) == math.inf
    assert theory.mmc_wait_percentile(20 * share, 1, 20, 0.5) == math.inf
    assert theory.mm1_latency_percentile(share, 1, 0.5) == math.inf
    assert theory.mg1_wait(share, 1, 0) == math.inf
    assert theory.mdc_wait(20 * share, 1, 20) == math.inf
    assert theory.allen_cunneen_wait(20 * share, 1, 20, 0, 0) == math.inf
    assert theory.kingman_wait_bound(share, 1, 1, 1) == math.inf
    assert theory.fork_join_one_slot_latency(share, 1 / 3, 3) == math.inf


def test_without_arrivals_nobody_waits() -> None:
    assert theory.mmc_wait(0, 1, 20) == 0.0
    assert theory.mmc_wait_percentile(0, 1, 20, 0.99) == 0.0
    assert theory.mg1_wait(0, 1, 2) == 0.0
    assert theory.mdc_wait(0, 1, 20) == 0.0
    assert theory.kingman_wait_bound(0, 1, 1, 1) == 0.0
    assert theory.fork_join_one_slot_latency(0, 2, 3) == 6.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.erlang_b(0, 1), "slots must be >= 1 (got 0)"),
        (lambda: theory.erlang_c(1, -1), "offered_load must be >= 0 and finite (got -1)"),
        (lambda: theory.mmc_wait(math.nan, 1, 1), "arrival_rate must be >= 0 and finite (got nan)"),
        (lambda: theory.mdc_wait(1, 0, 1), "service_mean must be > 0 and finite (got 0)"),
        (lambda: theory.mg1_wait(0.5, 1, -1), "service_cv must be >= 0 and finite (got -1)"),
        (lambda: theory.mm1_latency_percentile(0.5, 1, 1), "level must be > 0 and < 1 (got 1)"),
        (lambda: theory.machine_repair(0, 1, 1, 1), "users must be >= 1 (got 0)"),
        (lambda: theory.fork_join_unlimited_latency(1, 0), "branches must be >= 1 (got 0)"),
        (lambda: theory.fork_join_one_slot_latency(1, 1, 0), "branches must be >= 1 (got 0)"),
    ],
)
def test_bad_arguments_are_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ArgumentError) as refusal:
        call()
    assert str(refusal.value) == message


@given(SLOTS, SHARES)
def test_batches_of_one_are_erlang_c(slots: int, share: float) -> None:
    rate = share * slots / 2.5
    assert theory.batch_mmc_wait(rate, 2.5, slots, 1) == pytest.approx(theory.mmc_wait(rate, 2.5, slots))


@given(SHARES, st.integers(1, 6))
def test_batches_on_one_slot_wait_for_earlier_batches_and_for_their_own(share: float, batch: int) -> None:
    # The first call of a batch waits like a customer of M/E_n/1, the k-th for k - 1 siblings more.
    rate = share / batch
    whole = theory.fork_join_one_slot_latency(rate, 1.0, batch) - batch
    assert theory.batch_mmc_wait(rate, 1.0, 1, batch) == pytest.approx(whole + (batch - 1) / 2)


@pytest.mark.parametrize(("slots", "batch"), [(3, 2), (2, 4)])
def test_batches_are_the_chain_solved_whole(slots: int, batch: int) -> None:
    states, rate = 400, 0.6 * slots / batch
    chain = np.zeros((states, states))
    for present in range(states):
        chain[present, min(present + batch, states - 1)] += rate
        if present:
            chain[present, present - 1] += min(present, slots)
    queued = stationary(chain) @ np.maximum(0, np.arange(states) - slots)
    assert theory.batch_mmc_wait(rate, 1.0, slots, batch) == pytest.approx(queued / (batch * rate), rel=1e-9)


def test_batches_of_many_slots_do_not_overflow() -> None:
    assert theory.batch_mmc_wait(1_900, 1.0, 2_000, 1) == pytest.approx(theory.mmc_wait(1_900, 1.0, 2_000))


def test_batches_at_the_ends() -> None:
    assert theory.batch_mmc_wait(0, 1.0, 3, 2) == 0
    assert theory.batch_mmc_wait(1.5, 1.0, 3, 2) == math.inf


def test_serial_calls_queue_as_at_n_times_the_rate() -> None:
    assert theory.serial_latency(1.6, 0.5, 2, 1) == theory.mmc_wait(1.6, 0.5, 2) + 0.5
    # On one slot: n visits, each of the latency 1 / (1 - n L) of M/M/1.
    assert theory.serial_latency(0.2, 1.0, 1, 3) == pytest.approx(3 / (1 - 0.6))
    assert theory.serial_latency(1.0, 1.0, 2, 2) == math.inf
