"""Shares of requests over replications: Wilson intervals that know that requests of a run are alike."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sim.statistics.interval import Estimate, Value, estimate, student_quantile
from sim.units import FloatArray, IntArray

MOST_KEPT = 1000
"""Latencies that an outline has: enough to tell a share above a median to a thousandth."""
NEVER_NS = np.iinfo(np.int64).max
"""The latency of a request that was not delivered."""


def outline(times_ns: IntArray, undelivered: int) -> IntArray:
    """Return latencies of issued requests in order, at most 1,000 at even ranks of them.

    Undelivered ones are `NEVER_NS`, later than any. Small enough to keep of every run.
    """
    count = len(times_ns) + undelivered
    ranks = np.arange(count)
    if count > MOST_KEPT:
        ranks = (2 * np.arange(MOST_KEPT) + 1) * count // (2 * MOST_KEPT)
    of_delivered = ranks[ranks < len(times_ns)]
    found_ns = np.partition(times_ns, of_delivered)[of_delivered]  # a sort takes longer
    return np.append(found_ns, np.full(len(ranks) - len(found_ns), NEVER_NS, dtype=np.int64))


def proportion(
    values: Sequence[Value],
    requests: Sequence[Value],
    outlines_ns: Sequence[IntArray],
    confidence: float = 0.95,
    deterministic: bool = False,
) -> Estimate:
    """Return the mean of a share of requests over independent replications, with its Wilson interval.

    Parameters
    ----------
    values : the share in each replication, 0..1
    requests : of how many requests it is the share, in each
    outlines_ns : the latencies of these requests, see `outline`
    confidence, deterministic : as for `estimate`

    Returns
    -------
    Estimate
        Its interval is Wilson's for n / max(1, d) requests, with n all requests and d the design effect: the
        variance between replications over that of independent requests. Where all shares are equal they say
        nothing of d, and that of the share of latencies above the pooled median stands in. Where d is above
        1 it is known as well as a variance of so many replications, and the quantile is Student's. None in
        the cases in which `estimate` gives none.

    Notes
    -----
    Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22, 1927; n over the
    design effect: Kish, "Survey Sampling", 1965, section 8.2; Korn and Graubard, "Confidence intervals for
    proportions with small expected number of positive counts", Survey Methodology 24, 1998.
    """
    plain = estimate(values, confidence, deterministic)
    if plain.half_width is None:
        return plain
    shares, counts = (np.array([float(each) for each in some]) for some in (values, requests))
    effect = design_effect(shares, counts)
    if effect is None:
        effect = design_effect(shares_above_median(outlines_ns, counts), counts)
    effect = max(1.0, effect or 1.0)
    freedom = len(shares) - 1 if effect > 1 else math.inf
    low, high = wilson(plain.mean, float(counts.sum()) / effect, student_quantile(freedom, confidence))
    return replace(plain, half_width=max(plain.mean - low, high - plain.mean), ends=(low, high))


def wilson(share: float, count: float, quantile: float) -> tuple[float, float]:
    """Return both ends of Wilson's interval for a share (0..1) of so many independent trials."""
    weight = quantile**2 / count
    middle = (share + weight / 2) / (1 + weight)
    reach = quantile * math.sqrt(share * (1 - share) / count + weight / (4 * count)) / (1 + weight)
    # A share that is 0 or 1 is an end itself; rounding must not move it.
    return (0.0 if share == 0 else middle - reach), (1.0 if share == 1 else middle + reach)


def design_effect(shares: FloatArray, counts: FloatArray) -> float | None:
    """Return the variance of a mean share over that of as many independent requests.

    None where all shares are equal: then it cannot be seen.
    """
    if np.all(shares == shares[0]):
        return None
    mean = float(shares.mean())
    between = float(shares.var(ddof=1)) / len(shares)
    return between * float(counts.sum()) / (mean * (1 - mean))


def shares_above_median(outlines_ns: Sequence[IntArray], counts: FloatArray) -> FloatArray:
    """Return for each replication the share of its latencies above the median of all together."""
    weights = np.concatenate(
        [np.full(len(one), count / len(one)) for one, count in zip(outlines_ns, counts, strict=True)]
    )
    pooled_ns = np.concatenate(list(outlines_ns))
    order = np.argsort(pooled_ns, kind="stable")
    covered = np.cumsum(weights[order])
    median_ns = pooled_ns[order][np.searchsorted(covered, covered[-1] / 2)]
    return np.array([float(np.mean(one > median_ns)) for one in outlines_ns])
