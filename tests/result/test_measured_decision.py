"""The measured decision: merge, keep, or undecided with what it would take."""

import math

import pytest
from scipy import stats

from sim.result.measured_decision import MeasuredDecision, measured_decision
from sim.statistics.percentile import Missing
from tests.small_scenarios import closed_load, sample

# The sample's extra copy costs 368 micros: at 4 per ms it takes 92 ms to pay for it.
EXTRA_MICROS = 368.0
SERIAL_MS = [421.0, 419.0, 422.5, 418.0]


def decided(savings_ms: list[float], deterministic: bool = False, context: bool = True) -> MeasuredDecision:
    scenario = sample(closed_load(), workflow={} if context else {"shared_context": {}})
    extra = EXTRA_MICROS if context else 0.0
    serial_ms = SERIAL_MS[: len(savings_ms)] if not deterministic else [420.0] * len(savings_ms)
    parallel_ms = [serial - saved for serial, saved in zip(serial_ms, savings_ms, strict=True)]
    return measured_decision(scenario, serial_ms, parallel_ms, extra, deterministic)


def test_a_saving_whose_interval_pays_merges() -> None:
    found = decided([125, 127, 123, 125])
    assert (found.decision, found.more_replications, found.flips_at_saved_ms) == ("merge", 0, None)
    assert found.saved_ms == pytest.approx(125)
    assert found.reason == (
        "merge: saves 125 ms; costs 368 micros extra (2.94 <= 4 micros per saved ms); "
        "prefix reuse 60 % reaches the break-even 41.67 %; 2 slots earn their keep (measured)"
    )
    assert found.verdict is not None
    assert [criterion.passed for criterion in found.verdict.criteria] == [True] * 4


def test_a_loss_whose_interval_is_a_loss_keeps_serial() -> None:
    found = decided([-35, -34, -36, -35])
    assert (found.decision, found.more_replications) == ("keep-serial", 0)
    assert found.reason == "keep-serial: loses 35 ms (measured)"


def test_a_saving_that_does_not_pay_keeps_serial() -> None:
    found = decided([80, 81, 79, 80])
    assert found.decision == "keep-serial"
    assert found.verdict is not None
    assert [criterion.passed for criterion in found.verdict.criteria] == [True, False, False, True]


def test_an_interval_that_holds_the_flip_is_undecided() -> None:
    savings_ms = [100.0, 98.0, 90.0, 88.0]
    found = decided(savings_ms)
    assert found.decision == "undecided"
    assert found.flips_at_saved_ms == pytest.approx(92, rel=1e-12)
    # The mean of 94 is 2 ms over the flip; the deviation is 5.888.
    deviation = math.sqrt(104 / 3)
    needed = next(n for n in range(5, 1000) if stats.t.ppf(0.975, n - 1) * deviation / math.sqrt(n) < 2)
    assert found.more_replications == needed - 4
    assert found.reason == (
        f"undecided: saves 94.00 ms ± 9.37, and the decision flips at 92.00 ms; "
        f"about {needed - 4} more replications would decide it"
    )


def test_an_interval_between_saving_and_losing_is_undecided_where_nothing_is_paid() -> None:
    found = decided([1.0, -1.5, 2.0, -1.0], context=False)
    assert found.decision == "undecided"
    assert found.flips_at_saved_ms == pytest.approx(0, abs=1e-12)


def test_one_more_replication_is_one() -> None:
    found = decided([260.0, 60.0])
    assert found.decision == "undecided"
    assert found.more_replications is not None
    words = f"about {found.more_replications} more replication"
    assert words in found.reason
    assert found.reason.endswith("replication would decide it") == (found.more_replications == 1)


def test_a_saving_right_at_the_flip_is_never_decided() -> None:
    found = decided([91.0, 93.0, 90.0, 94.0])
    assert found.flips_at_saved_ms is not None
    centred = decided([found.flips_at_saved_ms + offset for offset in (-1.0, 1.0, -2.0, 2.0)])
    assert centred.decision == "undecided"
    assert centred.more_replications is None or centred.more_replications > 10**6


def test_one_replication_decides_by_its_mean_and_has_no_interval() -> None:
    found = decided([125.0])
    assert (found.decision, found.difference.half_width) == ("merge", None)


def test_a_deterministic_saving_is_exact() -> None:
    found = decided([125.0], deterministic=True)
    assert (found.decision, found.difference.deterministic) == ("merge", True)
    assert decided([92.0], deterministic=True).decision == "merge"
    assert decided([91.99], deterministic=True).decision == "keep-serial"


def test_a_saving_that_was_not_measured_is_undecided() -> None:
    missing = Missing("no observations")
    found = measured_decision(sample(), [420.0, missing], [295.0, 295.0], EXTRA_MICROS, False)
    assert (found.decision, found.verdict, found.more_replications) == ("undecided", None, None)
    assert found.reason == "undecided: the saving is missing in 1 of 2 replications: no observations"
