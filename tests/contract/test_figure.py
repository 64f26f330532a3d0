"""The catalogue of figures: every figure once, and nothing that says it differently."""

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from sim.answers.policy import policy_for
from sim.contract.figure import (
    FIGURES,
    LATENCY,
    MEAN_LATENCY,
    P95_LATENCY,
    PERCENTILES,
    Figure,
    bound_within,
    figure_of,
    levels_of,
    share_within,
    shares_within,
)
from sim.contract.output import REQUEST_OUTCOMES
from sim.result.experiment import simulate
from sim.result.result import Result
from sim.scenario import load_scenario
from sim.scenario.slo import METRICS, PERIOD_METRICS, REQUEST_METRICS, RULE_SCHEMA

PACKAGE = Path(__file__).parent.parent.parent / "sim"
UNITS = {"ms": "ms", "micros": "micros", "requests/s": "per_s"}
# Keys of a scenario, checks or criteria that are called as a figure is; in subscripts they are figures.
OTHER_MEANINGS = {"requests", "utilisation", "prefix_reuse_ratio"}
SHORT = {
    "day": (),
    "mix-peak": ("plans=[parallel]",),
    "review": ("load.duration_s=600",),
    "cache-peak": ("load.requests=300",),
    "retry-storm": ("load.duration_s=5",),
}


@cache
def result_of(name: str) -> Result:
    rules = [f"{P95_LATENCY} <= 400", f"{MEAN_LATENCY} <= 300.5", "utilisation <= 0.9"]
    stated = [f"slo={{rules: {rules}}}"] if name == "day" else []
    return simulate(
        load_scenario(f"scenarios/{name}.yaml", [*SHORT[name], *stated]), engine="simpy", workers=1
    )


def named(result: Result) -> set[str]:
    """Return the names of all figures of a result."""
    sides = [side.values for plan in result.plans for part in (plan.workloads, plan.periods) for side in part]
    return {name for values in (*sides, *(plan.values for plan in result.plans)) for name in values}


def test_each_figure_has_a_name_and_a_heading_of_its_own() -> None:
    assert all(name == figure.name for name, figure in FIGURES.items())
    assert len({figure.heading for figure in FIGURES.values()}) == len(FIGURES)
    assert len({figure.title for figure in FIGURES.values()}) == len(FIGURES)


@pytest.mark.parametrize("figure", FIGURES.values(), ids=list(FIGURES))
def test_units_come_last(figure: Figure) -> None:
    stem = re.sub(rf"_(mean|max|{'|'.join(PERCENTILES)}|per_request|per_success)$", "", figure.name)
    assert stem.endswith(UNITS.get(figure.unit, ""))
    assert (figure.unit == "%") == (figure.kind == "share")
    assert (figure.unit == "ms") == (figure.kind == "time")


def test_what_is_usual_is_a_number_or_a_figure() -> None:
    assert all(one.usual in FIGURES for one in FIGURES.values() if isinstance(one.usual, str))


def test_every_outcome_of_a_request_has_a_share() -> None:
    assert [f"{outcome}_share" for outcome in REQUEST_OUTCOMES] == [
        name for name, one in FIGURES.items() if one.kind == "share" and one.slo == "any"
    ]


def test_headings() -> None:
    p99_9, reuse = FIGURES["waiting_ms_p99_9"], FIGURES["prefix_reuse_ratio"]
    assert (p99_9.words, p99_9.title) == ("waiting of a call, p99.9, ms", "Waiting of a call, p99.9, ms")
    assert (reuse.words, reuse.title, reuse.column_title) == ("prefix reuse, %", *["Prefix reuse"] * 2)
    assert FIGURES["latency_ms_p95"].column_title == "p95, ms"


def test_shares_within_a_bound_are_figures_too() -> None:
    name, short = share_within(400.0), share_within(0.5)
    assert (name, short, bound_within(name)) == (
        "share_within_400_ms",
        "share_within_0.5_ms",
        "400",
    )
    assert figure_of(name) == Figure(name, "within 400 ms", "%", "share", "higher")
    assert shares_within([MEAN_LATENCY, name]) == [name]
    assert figure_of(MEAN_LATENCY) is FIGURES[MEAN_LATENCY]


@pytest.mark.parametrize("name", SHORT)
def test_every_figure_of_a_run_is_in_the_catalogue(name: str) -> None:
    unknown = named(result_of(name)) - FIGURES.keys()
    assert unknown == set(shares_within(unknown))


def test_every_figure_of_the_catalogue_is_one_of_some_run() -> None:
    assert set.union(*(named(result_of(name)) for name in SHORT)) >= FIGURES.keys()


def test_bounds_of_an_slo_name_shares() -> None:
    (plan, *_) = result_of("day").plans
    assert shares_within(plan.estimates) == ["share_within_300.5_ms", "share_within_400_ms"]
    assert list(plan.pooled_ms) == list(levels_of(LATENCY)[1:-1])


def test_rules_are_about_the_figures_that_say_so() -> None:
    by_holder = {"any": REQUEST_METRICS, "period": PERIOD_METRICS, "run": METRICS}
    for name, figure in FIGURES.items():
        within = [holder for holder, metrics in by_holder.items() if name in metrics]
        expected = list(by_holder)[list(by_holder).index(figure.slo) :] if figure.slo else []
        assert within == expected
    pattern = re.compile(str(RULE_SCHEMA["pattern"]))
    assert [name for name in FIGURES if pattern.search(f"{name} <= 1")] == [
        name for name, figure in FIGURES.items() if figure.slo
    ]


def test_a_policy_is_told_in_figures_of_the_catalogue() -> None:
    policy = policy_for(load_scenario("scenarios/day.yaml"), active=[2, 20], workers=1, engine="simpy")
    assert policy.summary()["whole"]["plans"]["policy"].keys() <= FIGURES.keys()


def literals(path: Path) -> Iterable[tuple[str, bool]]:
    """Yield the strings of a module, and whether each is a subscript."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            yield str(node.slice.value), True
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value, False


def test_a_figure_is_named_in_the_catalogue_alone() -> None:
    modules = [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "contract/figure.py"]
    found = [
        f"{path.relative_to(PACKAGE)}: {text}"
        for path in modules
        for text, is_key in literals(path)
        if (text in FIGURES and (is_key or text not in OTHER_MEANINGS)) or text.startswith("share_within_")
    ]
    assert found == []
