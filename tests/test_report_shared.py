"""Reports on shared providers: workloads, reuse, review, limits, and where the time went."""

import pytest
from rich.table import Table as TerminalTable

from sim.cli.show_time import time_parts
from sim.report.content import Table
from tests.reports import mix, off_peak_and_peak
from tests.test_report import tables, texts


def rows_of(table: Table) -> dict[str, list[str]]:
    """Return the rows by their first cell."""
    return {row[0].text: texts(row[1:]) for row in table.rows}


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
