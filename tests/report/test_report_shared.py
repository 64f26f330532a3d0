"""Reports on shared providers: workloads, reuse, review, limits, and where the time went."""

import json
import math
from functools import cache

import pytest
from rich.table import Table as TerminalTable

import sim
from sim.cli.show_time import time_parts
from sim.report.compose import alone, card, compose, headline
from sim.report.content import Cell, Figure, Paragraph, Section, Table
from sim.report.figures.over_time import over_time, slots_words
from sim.report.sections.glance import glance
from sim.report.sections.latency import figures_table, workloads_table
from sim.report.sections.load import load
from sim.report.sections.reuse import reuse
from sim.report.sections.review import review
from sim.report.steps import active_requests, queue_length, slots_in_use, slots_offered
from sim.report.words import rate_words, setting_words
from sim.result.result import Result
from tests.report.test_report import tables, texts
from tests.reports import mix, off_peak_and_peak, scenario
from tests.small_scenarios import closed_load, open_load, sample


def rows_of(table: Table) -> dict[str, list[str]]:
    """Return the rows by their first cell."""
    return {row[0].text: texts(row[1:]) for row in table.rows}


def table_of(section: Section | None) -> Table:
    """Return the only table of a section."""
    assert section is not None
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    return table


@cache
def cached() -> Result:
    return sim.simulate(scenario("cache-off-peak", "load.requests=200", "experiment.replications=2"))


@cache
def reviewed() -> Result:
    return sim.simulate(scenario("review", "load.duration_s=8000", "experiment.replications=1"))


@cache
def stormy() -> Result:
    short = ("load.duration_s=60", "experiment.replications=2")
    return sim.simulate(scenario("retry-storm", *short))


@cache
def stepped() -> Result:
    """Return one provider with steps and one without, asked by the two branches of a request."""
    plain = sample(closed_load(6, 40), plans=["parallel"]).to_dict()
    plain.pop("provider")
    steps = [{"at_s": 0.5, "concurrency": 2}, {"at_s": 1, "concurrency": 6}]
    plain["providers"] = {
        "first": {"concurrency": 4, "concurrency_steps": steps},
        "second": {
            "concurrency": 3,
            "allocation": "fifo",
            "prices": [{"from_hour": 8, "to_hour": 9, "ratio": 2}],
        },
    }
    plain["workflow"]["branches"][1]["provider"] = "second"
    return sim.simulate(sim.Scenario.model_validate(plain))


def test_the_parts_of_the_mean_latency_stand_plan_by_plan() -> None:
    assert rows_of(tables("comparison")["Parts of the mean latency: peak"]) == {
        "Service on the critical path, ms": ["420.0", "160.0", "420.0"],
        "Waiting while every slot was taken, ms": ["0.0", "260.0", "0.0"],
        "Join, ms": ["0.0", "35.0", "0.0"],
        "Mean latency of these, ms": ["420.0", "455.0", "420.0"],
        "Requests": ["200", "200", "200"],
    }


def test_one_slowest_request_stands_for_those_that_are_all_alike() -> None:
    table = tables("comparison")["Slowest requests: off-peak"]
    assert [texts(row) for row in table.rows] == [
        ["serial", "0", "0.000", "420.0", "420.0", "0.0", "0.0", "service, 100 %"],
        ["parallel", "0", "0.000", "295.0", "260.0", "0.0", "35.0", "service, 88 %"],
        ["adaptive", "0", "0.000", "295.0", "260.0", "0.0", "35.0", "service, 88 %"],
    ]
    assert table.notes == ("all requests take equally long",)


def test_the_slowest_requests_have_their_parts_and_the_largest_in_words() -> None:
    table = tables("mix")["Slowest requests: mix-peak"]
    for plan in mix().plans:
        rows = [texts(row) for row in table.rows if row[0].text == plan.label]
        slowest = mix().time_spent[plan.label].slowest
        assert [row[1] for row in rows] == [f"{request:,}" for request in slowest.request.tolist()]
        assert {row[2] for row in rows} <= {one.name for one in plan.workloads}
        latencies = [float(row[4].replace(",", "")) for row in rows]
        assert len(rows) == 10
        assert latencies == sorted(latencies, reverse=True)
        for row, latency in zip(rows, latencies, strict=True):
            parts = [float(text.replace(",", "")) for text in row[5:-1]]
            assert sum(parts) == pytest.approx(latency, abs=0.2)
            assert row[-1].endswith(f", {round(100 * max(parts) / latency)} %")


def test_the_summary_has_the_parts_and_what_they_cover() -> None:
    for result in (*off_peak_and_peak().results, mix()):
        for label, plan in result.summary()["plans"].items():
            assert sum(plan["breakdown_ms"].values()) == pytest.approx(plan["latency_ms_mean"], rel=1e-12)
            assert plan["breakdown_requests"] == plan["breakdown_requests_of"] == plan["requests"]
            slowest = plan["slowest_requests"]
            assert slowest[0]["latency_ms"] == plan["latency_ms_max"], label
            assert len(slowest) == 10


def test_the_terminal_shows_the_parts_that_took_any_time() -> None:
    *_, table = time_parts(off_peak_and_peak().results[1])
    assert isinstance(table, TerminalTable)
    assert [[column.header, *column.cells] for column in table.columns] == [
        [
            "where the time went, ms",
            "service on the critical path",
            "waiting while every slot was taken",
            "join",
            "requests covered",
        ],
        ["parallel", "160.0", "260.0", "35.0", "200 of 200"],
        ["serial", "420.0", "0.0", "0.0", "200 of 200"],
        ["adaptive", "420.0", "0.0", "0.0", "200 of 200"],
    ]


def test_reuse_stands_beside_the_ratio_that_breaks_even() -> None:
    table = table_of(reuse(alone(cached())))
    rows = {row[2].text: row for row in table.rows}
    assert list(rows) == ["serial", "parallel", "warm_first"]
    assert {row[1].text for row in table.rows} == {
        "Poisson arrivals at 3 per hour; 20 slots, first in, first out, a prefix cache"
    }
    assert (rows["parallel"][4].text, rows["parallel"][5]) == ("41.67 %", Cell("not reached", "bad"))
    assert (rows["warm_first"][4].text, rows["warm_first"][5]) == ("41.67 %", Cell("reached", "good"))
    assert rows["serial"][4].note == "serial is what the others are held against"
    shares = [float(rows[plan][3].text.split()[0]) for plan in rows]
    means = [cached().plan(plan).estimates["prefix_reuse_ratio"].mean for plan in rows]
    assert shares == pytest.approx([100 * mean for mean in means], abs=0.06)
    assert reuse(off_peak_and_peak()) is None


def test_the_summary_has_reuse_and_break_even_of_every_plan() -> None:
    by_plan = cached().summary()["decision"]["by_plan"]
    for label in ("parallel", "warm_first"):
        mean = cached().plan(label).estimates["prefix_reuse_ratio"].mean
        assert by_plan[label]["prefix_reuse_ratio"] == pytest.approx(mean)
        assert by_plan[label]["break_even_reuse_ratio"] == pytest.approx(0.41667, abs=1e-5)


def test_a_saving_that_costs_too_much_says_so_in_the_headline() -> None:
    assert headline(alone(cached())) == "Keep serial: parallel saves 125.0 ms, at too high a price"
    assert headline(alone(mix())).startswith("Merge: parallel saves ")


def test_review_shows_turnaround_and_a_growing_backlog() -> None:
    section = review(alone(reviewed()), ["review"])
    table = table_of(section)
    assert section is not None
    assert [figure.name for figure in section.blocks if isinstance(figure, Figure)] == ["review-reviews"]
    figures = reviewed().plan("serial").estimates
    assert texts(table.rows[0]) == [
        "review",
        "moderation.classify",
        "serial",
        f"{figures['follow_up_ms_mean'].mean / 60_000:.1f}",
        f"{figures['follow_up_ms_p95'].mean / 60_000:.1f}",
        f"{figures['follow_up_backlog_at_half'].mean:.0f}",
        f"{figures['follow_up_backlog_at_end'].mean:.0f}",
        f"{figures['follow_up_reviewers_needed'].mean:.2f}",
        "5",
        "grows",
    ]
    assert review(off_peak_and_peak(), ["off-peak", "peak"]) is None


def test_requests_that_were_not_delivered_are_told_wherever_latencies_stand() -> None:
    plan = stormy().plan("parallel")
    delivered = f"{100 * plan.estimates['succeeded_share'].mean:.1f} %"
    assert card(stormy()).readings[1].label == f"parallel, {delivered} delivered"
    row = table_of(glance(alone(stormy()))).rows[1]
    assert row[4].text == delivered
    rows = rows_of(figures_table(stormy()))
    assert {"Attempts per call", "Attempts turned away", "Succeeded", "Failed"} <= set(rows)
    plain = rows_of(figures_table(off_peak_and_peak().results[0]))
    assert not {"Attempts per call", "Attempts turned away", "Succeeded", "Failed"} & set(plain)


def test_the_longest_wait_and_the_share_of_each_workload_are_in_its_row() -> None:
    table = workloads_table(mix())
    headings = texts(table.headings)
    for row in table.rows:
        found = dict(zip(headings, texts(row), strict=True))
        (one,) = (each for each in mix().plan(found["Plan"]).workloads if each.name == found["Workload"])
        assert found["Longest wait, ms"] == f"{one.estimates['waiting_ms_max'].mean:.1f}"
        assert found["Slot-time of all"] == f"{100 * one.estimates['slot_share'].mean:.1f} %"
        assert found["Delivered"] == "100.0 %"
        bounds = {"chain-a": " % in 500 ms", "chain-b": " % in 900 ms", "chain-c": ""}
        assert found["Within its bounds"].endswith(bounds[one.name])
    assert not any(name.startswith("share_within") for name in mix().plans[0].estimates)


def test_slots_that_step_are_drawn_as_they_are_offered_by_all_providers() -> None:
    run = stepped().plans[0].first_run
    offered = slots_offered(run)
    assert (offered.time_ns.tolist(), offered.value.tolist()) == ([0, 500_000_000, 10**9], [7, 5, 9])
    assert slots_words(offered) == "7 → 5 → 9 slots"
    assert "7 → 5 → 9 slots of 2 providers" in over_time(stepped(), "stepped").svg
    assert slots_words(slots_offered(off_peak_and_peak().results[0].plans[0].first_run)) == "20 slots"


def test_every_attempt_counts_in_the_curves_over_time() -> None:
    run = stormy().plan("parallel").first_run
    end_ns = run.out.horizon_ns
    for curve, total_ns in (
        (slots_in_use(run), run.busy_ns(0, end_ns)),
        (active_requests(run), sum(run.out.active_integral_ns)),
        (queue_length(run), int((run.out.attempts.start_ns - run.out.attempts.ready_ns).sum())),
    ):
        lengths_ns = [*(curve.time_ns[1:] - curve.time_ns[:-1]).tolist(), 0]
        assert sum(map(int.__mul__, curve.value.tolist(), lengths_ns)) == total_ns


def test_a_setting_names_every_provider_and_its_rules() -> None:
    assert setting_words(stepped().scenario) == (
        "6 active requests, closed load; first: 4 → 2 → 6 slots, fair share; "
        "second: 3 slots, first in, first out, prices by the hour"
    )
    assert setting_words(scenario("mix-peak-priority")).endswith("; 20 slots, by priority")
    assert setting_words(scenario("mix-peak-weighted")).endswith("; 20 slots, weighted fair share")
    assert [rate_words(rate) for rate in (38, 0.1, 0.05)] == [
        "38 per second",
        "0.1 per second",
        "180 per hour",
    ]


def test_scenarios_of_one_name_are_told_apart_in_a_summary() -> None:
    first = scenario("off-peak", "load.requests=20", "plans=[serial]")
    comparison = sim.compare([first, first.replace({"load.active_requests": 3})])
    names = list(comparison.summary()["scenarios"])
    assert names == [f"off-peak ({first.path}) 1", f"off-peak ({first.path}) 2"]
    assert list(off_peak_and_peak().summary()["scenarios"]) == ["off-peak", "peak"]


@cache
def undelivered() -> Result:
    """Return a run of which no request came to an answer."""
    plain = sample(
        open_load(38, 40),
        workflow={"failures": {"server_error": 1}},
        experiment={"replications": 2},
    )
    return sim.simulate(plain)


def test_a_run_that_delivered_nothing_has_blanks_with_the_reason() -> None:
    content = compose(undelivered())
    assert content.headline == "Undecided"
    assert [one.label for one in content.cards[0].readings] == [
        "serial, 0.0 % delivered",
        "parallel, 0.0 % delivered",
    ]
    found = {
        block.caption: block
        for section in content.sections
        for block in section.blocks
        if isinstance(block, Table)
    }
    assert found["Slowest requests: small"].rows == ()
    assert "no request was delivered" in found["Parts of the mean latency: small"].notes
    assert "no request was delivered in some replication" in found["The price of a saved millisecond"].notes
    assert (
        json.loads(json.dumps(undelivered().summary(), allow_nan=False))["plans"]["serial"]["breakdown_ms"]
        == {}
    )
    *_, table = time_parts(undelivered())
    assert isinstance(table, TerminalTable)
    assert [list(column.cells) for column in table.columns] == [["requests covered"], ["0 of 0"], ["0 of 0"]]


def test_levels_of_a_provider_that_fails_have_no_bounds() -> None:
    faulty = scenario("faulty")
    table = sim.flip(faulty, active=(2,), allocations=("priority",), requests_per_user=20, workers=1)
    (level,) = table.levels
    assert all(math.isnan(figure.bound_ms) for figure in level.plans.values())
    section = load(table)
    (levels,) = (block for block in section.blocks if isinstance(block, Table))
    assert (levels.rows[0][0].text, levels.rows[0][5].text) == ("by priority", "\N{EN DASH}")
    assert levels.notes == ("the bounds are those of a plain provider: no failures, limits, cache or ranks",)
    assert not any(isinstance(block, Paragraph) and "critical path" in block.text for block in section.blocks)
    assert json.loads(json.dumps(table.summary(), allow_nan=False))["levels"][0]["plans"]["serial"] == {
        "latency_ms_mean": level.plans["serial"].mean.mean,
        "half_width_95": level.plans["serial"].mean.half_width,
        "latency_ms_min": level.plans["serial"].least_ms,
        "latency_ms_max": level.plans["serial"].greatest_ms,
        "latency_ms_mean_at_least": None,
        "stability": level.plans["serial"].stability,
    }
