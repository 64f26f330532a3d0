"""Break-even values, each confirmed by `decide` on both sides, and what a change of 10 % does."""

import json

import pytest
from typer.testing import CliRunner

import sim
from sim.answers.sensitivity import Sensitivity, sensitivities
from sim.answers.simulated_inputs import Judged, simulated_inputs
from sim.cli import app
from sim.errors import ArgumentError
from tests.small_scenarios import ROOT

OFF_PEAK = "scenarios/off-peak.yaml"
REUSE = "workflow.shared_context.prefix_reuse_ratio"
EXPECTED = {
    "workflow.join_overhead_ms": [68],
    "workflow.branches[0].duration_ms": [127, 3005],
    "workflow.branches[1].duration_ms": [127, 4905],
    "workflow.shared_context.tokens": [4348],
    "workflow.shared_context.input_micros_per_ktok": [340],
    REUSE: [5 / 12],
    "workflow.shared_context.cached_input_price_ratio": [0.375],
    "criteria.max_micros_per_saved_ms": [2.944],
    "criteria.min_marginal_gain_ratio": [160 / 455],
    "load.active_requests": [11],
    "provider.concurrency": [19],
}


@pytest.fixture(autouse=True)
def _at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="module")
def off_peak() -> Sensitivity:
    return sensitivities(sim.load_scenario(ROOT / OFF_PEAK))


def decided(*words: str) -> str:
    result = CliRunner().invoke(app, ["decide", OFF_PEAK, "--json", *words], prog_name="slotsim")
    assert result.exit_code == 0, result.output
    return str(json.loads(result.stdout)["decisions"][0]["decision"])


def test_every_break_even_value_of_the_sample(off_peak: Sensitivity) -> None:
    found = {one.path: [flip.value for flip in one.flips] for one in off_peak.inputs}
    assert found == EXPECTED
    assert all(flip.confirmed for one in off_peak.inputs for flip in (*one.flips, *one.latency_flips))
    assert off_peak.base.decision == "merge"
    assert (off_peak.base.saved_ms, off_peak.base.micros_per_saved_ms) == (125, 2.944)


@pytest.mark.parametrize("path", EXPECTED)
def test_decide_confirms_both_sides(off_peak: Sensitivity, path: str) -> None:
    for flip in off_peak.of(path).flips:
        assert flip.holds_at == pytest.approx(flip.fails_at, abs=1.000001)
        for value, decision in ((flip.holds_at, "merge"), (flip.fails_at, "keep-serial")):
            assert decided("--set", f"{path}={value!r}") == decision


def test_decide_confirms_active_requests(off_peak: Sensitivity) -> None:
    (flip,) = off_peak.of("active requests").flips
    assert decided("--active", str(flip.holds_at)) == "merge"
    assert decided("--active", str(flip.fails_at)) == "keep-serial"


def test_the_latency_alone_breaks_even_at_a_longer_join(off_peak: Sensitivity) -> None:
    (flip,) = off_peak.of("join overhead").latency_flips
    assert (flip.value, flip.holds_at, flip.fails_at) == (160, 159.999999, 160)
    assert off_peak.of(REUSE).latency_flips == ()


def test_from_serial_the_values_that_would_merge_are_found() -> None:
    peak = sensitivities(sim.load_scenario("scenarios/peak.yaml"))
    assert peak.base.decision == "keep-serial"
    assert [flip.value for flip in peak.of("active requests").flips] == [10]
    assert [flip.value for flip in peak.of("slots").flips] == [40]
    chain = sensitivities(sim.load_scenario("scenarios/chain-b.yaml"))
    assert [flip.value for flip in chain.of("exchange rate").flips] == [368 / 90]
    assert [flip.value for flip in chain.of("join overhead").flips] == [28]


def test_a_change_of_ten_per_cent(off_peak: Sensitivity) -> None:
    join = off_peak.of("join overhead")
    assert (join.less.value, join.less.saved_ms, join.more.saved_ms) == (31.5, 128.5, 121.5)
    assert join.less.micros_per_saved_ms == pytest.approx(368 / 128.5)
    users = off_peak.of("active requests")
    assert (users.less.value, users.more.value) == (9, 11)
    assert (users.more.saved_ms, users.more.micros_per_saved_ms) == (-35, None)
    assert [one.name for one in off_peak.by_swing][:4] == [
        "active requests",
        "slots",
        "branch sensitive_words",
        "join overhead",
    ]


def test_the_growth_of_the_join_is_an_input_of_three_branches() -> None:
    gains = sensitivities(sim.load_scenario("scenarios/gains.yaml"))
    assert [flip.value for flip in gains.of("growth of the join per branch").flips] == [210]
    assert [flip.value for flip in gains.of("join overhead").flips] == [420]


def faulty() -> sim.Scenario:
    """Return a scenario whose calls fail, short enough to be simulated often."""
    stated = ["load.requests=150", "experiment.replications=5", "experiment.warmup=none"]
    scenario = sim.load_scenario("scenarios/faulty.yaml", [*stated, "criteria.max_micros_per_saved_ms=100"])
    return scenario.replace({"workflow.failures": {"server_error": 0.05}})


def test_a_failure_rate_is_simulated() -> None:
    counted: list[int] = []
    found = sensitivities(faulty(), workers=1, progress=counted.append)
    rate = found.of("workflow.failures.server_error")
    assert (rate.basis, rate.value) == ("simulated", 0.05)
    assert [rate.less.value, rate.more.value] == pytest.approx([0.045, 0.055])
    assert rate.less.saved_ms != rate.more.saved_ms
    assert counted == list(range(1, len(counted) + 1))
    assert found.simulated is not None


@pytest.mark.parametrize("unsure", [0.0, 0.02])
def test_a_simulated_flip_is_closed_in_on_until_it_cannot_be_told(unsure: float) -> None:
    def judge(scenario: sim.Scenario) -> Judged:
        rate = scenario.workflow.failures.server_error
        undecided = abs(rate - 0.23) < unsure
        return Judged("undecided" if undecided else "merge" if rate < 0.23 else "keep-serial", 1, 1, 1)

    (rate,) = simulated_inputs(faulty())
    (flip,) = rate.flips(judge(faulty()), judge)
    assert flip[0] < 0.23 < flip[1]
    assert flip[1] - flip[0] < (0.01 if unsure == 0 else 0.2)
    assert all(abs(value - 0.23) >= unsure for value in flip)


def test_without_simulation_failures_are_left_out() -> None:
    found = sensitivities(faulty(), simulate=False)
    assert {one.basis for one in found.inputs} == {"arithmetic"}
    assert found.simulated is None


def test_an_open_load_has_to_say_how_many_are_active() -> None:
    scenario = sim.load_scenario("scenarios/open.yaml")
    with pytest.raises(ArgumentError) as caught:
        sensitivities(scenario, simulate=False)
    assert str(caught.value) == (
        "active must be given: the load does not say how many requests are active (got None)"
    )
    assert sensitivities(scenario, simulate=False, active=10).of("active_requests").flips[0].value == 11


def test_the_summary_is_plain(off_peak: Sensitivity) -> None:
    text = json.dumps(off_peak.summary(), allow_nan=False)
    assert json.loads(text)["inputs"][0]["name"] == "active requests"
