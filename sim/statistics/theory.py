"""What queueing theory says, to hold simulated figures against.

One pool of `slots` serves in order of arrival. Times (service, wait, latency) share one unit, whichever it
is, and rates count per that unit. A queue that gets at least as much work as it can do has no steady state:
its waits are `inf`, never an error. Every function raises `ArgumentError` for a negative or non-finite
argument or fewer than one slot.
"""

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from sim.errors import ArgumentError

# Crommelin's series is summed until its terms have shrunk by exp(-40), if that takes no more terms than this;
# above this load SciPy's incomplete gamma function stops before it has converged.
SERIES_DECAY = 40.0
MAX_SERIES_TERMS = 2_000
MAX_SERIES_LOAD = 0.98
CHAIN_TAIL = 1e-15
CHAIN_LARGE = 1e200


@dataclass(frozen=True, slots=True)
class ClosedQueue:
    """The steady state of a closed load; `latency` and `wait` per request, `utilisation` per slot (0..1)."""

    throughput: float
    latency: float
    wait: float
    utilisation: float


def erlang_b(slots: int, offered_load: float) -> float:
    """Return the share of arrivals that M/M/c/c (no queue) turns away; `offered_load` in erlangs.

    B(0) = 1, B(k) = a B(k-1) / (k + a B(k-1)), which only adds and multiplies positive numbers.
    Source: Erlang 1917; Cooper, "Introduction to Queueing Theory", 2nd ed., chapter 3.
    """
    _check_slots(slots)
    _check_not_negative("offered_load", offered_load)
    blocked = 1.0
    for slot in range(1, slots + 1):
        blocked = offered_load * blocked / (slot + offered_load * blocked)
    return blocked


def erlang_c(slots: int, offered_load: float) -> float:
    """Return the probability that an arrival waits in M/M/c; 1 from saturation on.

    C = B / (1 - rho (1 - B)), with rho = offered load / slots and B of `erlang_b`.
    Source: Erlang 1917; Cooper, chapter 3.
    """
    blocked = erlang_b(slots, offered_load)
    share = offered_load / slots
    return 1.0 if share >= 1 else blocked / (1 - share * (1 - blocked))


def mmc_wait(arrival_rate: float, service_mean: float, slots: int) -> float:
    """Return the mean wait in M/M/c: C s / (c - a), over all arrivals, those without a wait included.

    C of `erlang_c`, s the mean service time, a = arrival rate x s. Source: Cooper, chapter 3.
    """
    load = _offered_load(arrival_rate, service_mean, slots)
    return math.inf if load >= slots else erlang_c(slots, load) * service_mean / (slots - load)


def mmc_wait_percentile(arrival_rate: float, service_mean: float, slots: int, level: float) -> float:
    """Return the `level` (0..1) quantile of the wait in M/M/c, 0 where that many do not wait at all.

    P(W > t) = C exp(-(c - a) t / s) for waits in order of arrival. Source: Cooper, chapter 3.
    """
    _check_level(level)
    load = _offered_load(arrival_rate, service_mean, slots)
    if load >= slots:
        return math.inf
    waiting = erlang_c(slots, load)
    beyond = 1 - level
    return math.log(waiting / beyond) * service_mean / (slots - load) if waiting > beyond else 0.0


def mm1_latency_percentile(arrival_rate: float, service_mean: float, level: float) -> float:
    """Return the `level` (0..1) quantile of the latency in M/M/1: -ln(1 - level) s / (1 - rho).

    The latency is exponential. Source: Kleinrock, "Queueing Systems", vol. 1, section 5.7.
    """
    _check_level(level)
    load = _offered_load(arrival_rate, service_mean, 1)
    return math.inf if load >= 1 else -math.log1p(-level) * service_mean / (1 - load)


def mg1_wait(arrival_rate: float, service_mean: float, service_cv: float) -> float:
    """Return the mean wait in M/G/1: L E[S^2] / (2 (1 - rho)), E[S^2] = s^2 (1 + cv^2).

    Source: Pollaczek 1930, Khinchine 1932; Kleinrock, vol. 1, section 5.6.
    """
    _check_not_negative("service_cv", service_cv)
    load = _offered_load(arrival_rate, service_mean, 1)
    return math.inf if load >= 1 else load * service_mean * (1 + service_cv**2) / (2 * (1 - load))


def mdc_wait(arrival_rate: float, service: float, slots: int) -> float:
    """Return the exact mean wait in M/D/c, every service taking `service`.

    Crommelin's series where it ends soon, else the roots of the generating function; both are exact, the
    first keeps its relative precision when the wait is tiny, the second close to saturation.
    Source: Crommelin, "Delay probability formulae when the holding times are constant", Post Office
    Electrical Engineers Journal 25, 1932; Tijms, "A First Course in Stochastic Models", section 9.6.
    """
    load = _offered_load(arrival_rate, service, slots)
    if load >= slots:
        return math.inf
    if load == 0:
        return 0.0
    share = load / slots
    # P(Poisson(k a) >= k c) <= exp(-k c (rho - 1 - ln rho)), Chernoff's bound.
    decay = slots * (share - 1 - math.log(share))
    terms = 1 + SERIES_DECAY / decay if decay > 0 else math.inf
    if share <= MAX_SERIES_LOAD and terms <= MAX_SERIES_TERMS:
        return service * _mdc_wait_by_series(slots, share, math.ceil(terms))
    return service * _mdc_queue_by_roots(slots, share) / load


def allen_cunneen_wait(
    arrival_rate: float, service_mean: float, slots: int, arrival_cv: float, service_cv: float
) -> float:
    """Return an approximate mean wait in G/G/c: (ca^2 + cs^2) / 2 times that of M/M/c.

    Exact for M/M/c and M/G/1, good in heavy traffic, a sanity band elsewhere.
    Source: Allen, "Probability, Statistics, and Queueing Theory", 2nd ed., chapter 5.
    """
    _check_not_negative("arrival_cv", arrival_cv)
    _check_not_negative("service_cv", service_cv)
    wait = mmc_wait(arrival_rate, service_mean, slots)
    return wait if math.isinf(wait) else wait * (arrival_cv**2 + service_cv**2) / 2


def kingman_wait_bound(
    arrival_rate: float, service_mean: float, arrival_cv: float, service_cv: float
) -> float:
    """Return an upper bound of the mean wait in G/G/1: L (va + vs) / (2 (1 - rho)), v the variances.

    Nothing arrives at a rate of 0, and the bound is 0. Source: Kingman, "Some inequalities for the queue
    GI/G/1", Biometrika 49, 1962.
    """
    _check_not_negative("arrival_cv", arrival_cv)
    _check_not_negative("service_cv", service_cv)
    load = _offered_load(arrival_rate, service_mean, 1)
    if load >= 1:
        return math.inf
    if load == 0:
        return 0.0
    spread = arrival_cv**2 / arrival_rate + arrival_rate * (service_cv * service_mean) ** 2
    return spread / (2 * (1 - load))


def serial_latency(arrival_rate: float, service_mean: float, slots: int, calls: int) -> float:
    """Return the mean latency of requests that make n exponential calls one after another, waiting anew.

    A request that comes back joins the end of the queue. In order of arrival and with one exponential service
    for all, the calls queue as those of an M/M/c with n times the rate: n (wait + s).
    Source: Baskett, Chandy, Muntz and Palacios, "Open, closed, and mixed networks of queues with different
    classes of customers", Journal of the ACM 22, 1975.
    """
    _check_branches(calls)
    return calls * (mmc_wait(calls * arrival_rate, service_mean, slots) + service_mean)


def batch_mmc_wait(arrival_rate: float, service_mean: float, slots: int, batch: int) -> float:
    """Return the mean wait of a call in M/M/c where n calls arrive together: a fork, served in order.

    The number of calls j is a Markov chain: what flows up over each cut, L (p(j-n+1) + .. + p(j)), flows down
    as p(j+1) min(j+1, c) / s. The mean wait follows from the mean number queued by Little's law.
    Source: Kleinrock, "Queueing Systems", vol. 1, section 4.5 (bulk arrivals), with c slots.
    """
    _check_branches(batch)
    load = _offered_load(batch * arrival_rate, service_mean, slots)
    if load >= slots:
        return math.inf
    if load == 0:
        return 0.0
    last = deque([1.0], maxlen=batch)
    present, total, queued = 0, 1.0, 0.0
    # A tail below the last bit of the sum is a tail that does not count.
    while present <= slots or last[-1] * present > CHAIN_TAIL * (1 - load / slots) * queued:
        present += 1
        last.append(arrival_rate * math.fsum(last) * service_mean / min(present, slots))
        total += last[-1]
        queued += max(0, present - slots) * last[-1]
        if total > CHAIN_LARGE:
            last = deque((one / total for one in last), maxlen=batch)
            queued, total = queued / total, 1.0
    return queued / total / (batch * arrival_rate)


def fork_join_one_slot_latency(arrival_rate: float, branch_mean: float, branches: int) -> float:
    """Return the mean latency of requests with n independent exponential branches on one slot, join 0.

    The branches run one after another, so that the request is a customer of M/E_n/1: its service has mean
    n s and cv 1 / sqrt(n), and `mg1_wait` gives the wait.
    """
    _check_branches(branches)
    work = branches * branch_mean
    return mg1_wait(arrival_rate, work, 1 / math.sqrt(branches)) + work


def fork_join_unlimited_latency(branch_mean: float, branches: int) -> float:
    """Return E[max] of n independent exponential branches, each on a slot of its own: s (1 + 1/2 + .. + 1/n).

    Source: Feller, "An Introduction to Probability Theory and Its Applications", vol. 2, section I.6.
    """
    _check_branches(branches)
    _check_not_negative("branch_mean", branch_mean)
    return branch_mean * math.fsum(1 / k for k in range(1, branches + 1))


def machine_repair(users: int, slots: int, think_mean: float, service_mean: float) -> ClosedQueue:
    """Return the steady state of N users who think, ask for one service, and wait for it.

    Thinking (mean Z) and service (mean s) are exponential. The number j of users at the slots is a
    birth-death chain with rates (N - j) / Z up and min(j, c) / s down; its probabilities are computed as
    logarithms, so that no number of users overflows. With the throughput X = E[min(j, c)] / s, latency and
    wait follow from Little's law. Source: Kleinrock, "Queueing Systems", vol. 1, section 3.10.
    """
    if users < 1:
        raise ArgumentError("users", "must be >= 1", users)
    _check_slots(slots)
    _check_not_negative("think_mean", think_mean)
    _check_positive("service_mean", service_mean)
    present = np.arange(users + 1, dtype=np.float64)
    busy = np.minimum(present, slots)
    if think_mean == 0:
        share = np.where(present == users, 1.0, 0.0)
    else:
        steps = (
            np.log(users - present[:-1]) - np.log(busy[1:]) + math.log(service_mean) - math.log(think_mean)
        )
        logs = np.concatenate(([0.0], np.cumsum(steps)))
        weights = np.exp(logs - logs.max())
        share = weights / weights.sum()
    in_service = float(share @ busy)
    throughput = in_service / service_mean
    queued = float(share @ (present - busy))
    wait = queued / throughput
    return ClosedQueue(throughput, wait + service_mean, wait, in_service / slots)


def _mdc_wait_by_series(slots: int, share: float, terms: int) -> float:
    """Return the wait in services: the sum over k >= 1 of P(N_k >= k c) - P(N_k >= k c + 1) / rho.

    N_k is Poisson with mean k c rho. By Spitzer's identity: each term is E[(k D - A_kc)^+] / k for A_kc the
    time of k c arrivals, of which one slot serves k when the slots take turns.
    """
    from scipy.special import gammainc  # noqa: PLC0415  a command's help must not wait for SciPy

    full = np.arange(1, terms + 1, dtype=np.float64) * slots
    # P(Poisson(x) >= n) is the regularised lower gamma function of n and x.
    at_least = gammainc(full, full * share)
    more_than = gammainc(full + 1, full * share)
    return float(np.maximum(at_least - more_than / share, 0.0).sum())


def _mdc_queue_by_roots(slots: int, share: float) -> float:
    """Return the mean number of waiting customers: the sum of 1/(1 - z_k) - (c (c-1) - a^2) / (2 (c - a)).

    z_1..z_{c-1} are the roots inside the unit circle, other than 1, of z^c = exp(a (z - 1)), a = c rho.
    Taking c-th roots, z = u exp(rho (z - 1)) with u^c = 1, which Lambert's function solves.
    """
    from scipy.special import lambertw  # noqa: PLC0415  a command's help must not wait for SciPy

    unity = np.exp(2j * np.pi * np.arange(1, slots) / slots)
    roots = -lambertw(-share * math.exp(-share) * unity) / share
    load = slots * share
    return float((1 / (1 - roots)).real.sum()) - (slots * (slots - 1) - load**2) / (2 * slots * (1 - share))


def _offered_load(arrival_rate: float, service_mean: float, slots: int) -> float:
    _check_slots(slots)
    _check_not_negative("arrival_rate", arrival_rate)
    _check_positive("service_mean", service_mean)
    return arrival_rate * service_mean


def _check_slots(slots: int) -> None:
    if slots < 1:
        raise ArgumentError("slots", "must be >= 1", slots)


def _check_branches(branches: int) -> None:
    if branches < 1:
        raise ArgumentError("branches", "must be >= 1", branches)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ArgumentError("level", "must be > 0 and < 1", level)


def _check_not_negative(field: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise ArgumentError(field, "must be >= 0 and finite", value)


def _check_positive(field: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise ArgumentError(field, "must be > 0 and finite", value)
