"""A smaller version of the coverage benchmark: intervals hold theory about as often as they say."""

import pytest
from scipy import stats

from tests.benchmarks.coverage import Coverage, coverage, report, theory_ms


def test_intervals_hold_theory_about_as_often_as_they_say() -> None:
    found = coverage(seeds=24, replications=5, requests=1_200, workers=1)
    # Fewer than this many of 24 would come once in a thousand times, were the coverage 90 %.
    assert found.covered >= stats.binom.ppf(0.001, 24, 0.90)
    assert found.mean_ms == pytest.approx(theory_ms(), rel=0.15)


def test_the_report_says_what_was_found() -> None:
    found = Coverage(requests=4_000, seeds=200, covered=189, half_width_ms=10.0, mean_ms=64.1)
    text = report([found])
    assert "| 4,000 | 64.10 | 10.00 | 189 of 200 | 94.5 % |" in text
    assert "Erlang C gives a mean wait of 64.02 ms" in text
