import math

import numpy as np

from sim.statistics.agreement import (
    OF_MEAN_LATENCY,
    OF_MEAN_WAIT,
    validates,
    validates_band,
    validates_exactly,
)

# Twenty values of mean 10 and sample deviation 0.1026: the 99.9 % half-width is 3.8834 x 0.1026 / sqrt(20).
NARROW = [9.9, 10.1] * 10
WIDE = [9.0, 11.0] * 10


def test_the_rule_is_two_percent_of_the_latency_or_ten_of_the_wait() -> None:
    assert (OF_MEAN_LATENCY.ratio, OF_MEAN_LATENCY.quantity) == (0.02, "mean latency")
    assert (OF_MEAN_WAIT.ratio, OF_MEAN_WAIT.quantity) == (0.10, "mean wait")


def test_theory_within_a_narrow_interval_passes() -> None:
    verdict = validates(10.05, NARROW, scale=10.05)
    assert verdict.passed
    assert verdict.words == "theory 10.05 lies within the 99.9 % interval 9.91091 to 10.0891"
    assert (verdict.low, verdict.high, verdict.simulated.mean) == (10.05, 10.05, 10.0)


def test_theory_outside_the_interval_fails() -> None:
    verdict = validates(10.5, NARROW, scale=10.5)
    assert not verdict.passed
    assert verdict.words == "theory 10.5 lies outside the 99.9 % interval 9.91091 to 10.0891"


def test_an_interval_too_wide_to_prove_anything_fails() -> None:
    verdict = validates(10.0, WIDE, scale=10.0)
    assert not verdict.passed
    assert verdict.words == "half-width 0.8909 is not under 2 % of the mean latency 10"


def test_the_wait_has_its_own_precision() -> None:
    assert validates(10.0, WIDE, scale=10.0, precision=OF_MEAN_WAIT).passed
    verdict = validates(10.0, WIDE, scale=5.0, precision=OF_MEAN_WAIT)
    assert verdict.words == "half-width 0.8909 is not under 10 % of the mean wait 5"


def test_too_few_replications_fail_though_all_else_holds() -> None:
    verdict = validates(10.0, [9.99, 10.01] * 9 + [10.0], scale=10.0)
    assert not verdict.passed
    assert verdict.words == "needs 20 replications, has 19"


def test_every_fault_is_told() -> None:
    verdict = validates(15.0, [9.0, 11.0, 10.0], scale=15.0, confidence=0.9)
    assert verdict.words == (
        "needs 20 replications, has 3; theory 15 lies outside the 90 % interval 8.31415 to 11.6859; "
        "half-width 1.686 is not under 2 % of the mean latency 15"
    )


def test_a_figure_that_is_missing_fails_with_its_reason() -> None:
    for verdict in (validates(1.0, [1.0, math.nan], 1.0), validates_band(0, 2, [1.0, math.nan])):
        assert not verdict.passed
        assert verdict.words == "missing in 1 of 2 replications"
    assert validates(1.0, [1.0], 1.0).words == "one replication"
    assert validates(1.0, [], 1.0).words == "no replications"


def test_a_right_simulator_passes_and_one_with_five_percent_more_service_fails() -> None:
    draws = np.random.default_rng(7).exponential(1.0, size=(20, 20_000)).mean(axis=1)
    assert validates(1.0, draws.tolist(), scale=1.0).passed
    assert not validates(1.0, (1.05 * draws).tolist(), scale=1.0).passed


def test_a_band_holds_the_whole_interval_or_fails() -> None:
    inside = validates_band(9.5, 10.5, NARROW)
    assert inside.passed
    assert inside.words == "the 99.9 % interval 9.91091 to 10.0891 lies within the band 9.5 to 10.5"
    for low, high in ((9.95, 11.0), (9.0, 10.05)):
        outside = validates_band(low, high, NARROW)
        assert not outside.passed
        assert outside.words == f"the 99.9 % interval 9.91091 to 10.0891 leaves the band {low:g} to {high:g}"
    assert validates_band(9.0, 11.0, NARROW[:4]).words.startswith("needs 20 replications, has 4")


def test_exact_values_allow_nothing_else() -> None:
    passed = validates_exactly(295.0, [295.0, 295.0])
    assert passed.passed
    assert passed.words == "every value equals theory"
    assert passed.simulated.deterministic
    failed = validates_exactly(295.0, [295.0, 295.000001])
    assert not failed.passed
    assert failed.words == "1 of 2 values differ from theory 295, first 295.000001"


def test_exact_values_within_a_tolerance() -> None:
    assert (
        validates_exactly(629.9, [630.0, 629.8], tolerance=0.2).words == "every value is within 0.2 of theory"
    )
    assert not validates_exactly(629.9, [630.2], tolerance=0.2).passed


def test_exact_values_that_are_missing_fail() -> None:
    assert validates_exactly(295.0, []).words == "no values"
    assert not validates_exactly(295.0, [math.nan]).passed
