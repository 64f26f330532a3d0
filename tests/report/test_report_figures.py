"""What the drawings show, and that they are safe to stand in one page."""

import re
import xml.etree.ElementTree as ET
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure as Canvas

import sim
from sim.contract.output import RunOutput
from sim.plan.cost import extra_cost_micros
from sim.report.figures.drawing import drawn
from sim.report.figures.gantt import bars, shown_requests
from sim.report.figures.latency import distribution_points
from sim.report.figures.over_time import MOST_BINS, bins_of
from sim.report.figures.price import Priced, price_at
from sim.report.figures.warm_up import running_points
from tests.reports import content_of, off_peak_and_peak, scenario

SVG = "{http://www.w3.org/2000/svg}"


@given(
    latencies=st.lists(st.integers(1, 50), min_size=1, max_size=300),
    most=st.integers(2, 40),
)
def test_points_of_a_distribution_lie_on_it(latencies: list[int], most: int) -> None:
    ordered = np.sort(np.array(latencies, dtype=np.float64))
    latency_ms, share = distribution_points(ordered, most)
    assert share[0] == 0
    assert share[-1] == 1
    assert latency_ms[-1] == ordered[-1]
    assert len(latency_ms) <= most + 1
    for latency, part in zip(latency_ms[1:], share[1:], strict=True):
        below, up_to = np.searchsorted(ordered, latency), np.searchsorted(ordered, latency, "right")
        assert below < round(part * len(ordered)) <= up_to


def test_a_long_run_is_drawn_with_few_points() -> None:
    latency_ms, share = distribution_points(np.sort(np.random.default_rng(1).exponential(size=50_000)), 400)
    assert len(latency_ms) == len(share) == 401
    assert np.abs(np.interp(0.5, share, latency_ms) - np.log(2)) < 0.02


def test_points_of_a_running_mean_are_exact() -> None:
    latency_ns = np.arange(1, 1001) * 1_000_000
    points, mean_ms = running_points(latency_ns)
    assert len(points) == 400
    assert points[0] == 0
    assert points[-1] == 999
    assert mean_ms == pytest.approx([latency_ns[: point + 1].mean() / 1e6 for point in points])


def test_the_price_line_is_the_plan_arithmetic() -> None:
    plan = scenario("off-peak").parallel_plan(2)
    one = Priced("off-peak", plan, sim.evaluate_parallel(plan))
    assert [round(price_at(one, reuse), 2) for reuse in (0.6, 0.3, 0.0)] == [2.94, 4.67, 6.40]
    assert price_at(one, 0.45) == extra_cost_micros(replace(plan, prefix_reuse_ratio=0.45)) / 125


def test_the_slots_drawn_are_those_of_the_first_requests() -> None:
    run = off_peak_and_peak().results[0].plan("serial").first_run
    assert shown_requests(run) == 40
    assert len(bars(run).of_first(40).call) == 80


def test_bins_are_wider_than_what_a_regular_load_repeats() -> None:
    found = off_peak_and_peak().results[0].plan("serial").first_run.out
    out = RunOutput(**{field.name: getattr(found, field.name) for field in fields(RunOutput)})
    assert bins_of(out) == 40
    assert bins_of(replace(out, completion_ns=out.completion_ns + 10**12)) <= MOST_BINS


def test_every_drawing_is_named_described_and_its_own() -> None:
    seen: set[str] = set()
    for figure in content_of("comparison").figures:
        root = ET.fromstring(figure.svg)
        assert root.tag == f"{SVG}svg"
        assert root.get("role") == "img"
        assert root.findtext(f"{SVG}title") == figure.title
        assert root.findtext(f"{SVG}desc") == figure.description
        ids = [element.get("id", "") for element in root.iter() if element.get("id")]
        assert len(ids) == len(set(ids))
        assert all(name.startswith(f"{figure.name}-") for name in ids)
        assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', figure.svg)) <= set(ids)
        assert not seen & set(ids)
        seen |= set(ids)


def test_digits_are_cut_in_coordinates_and_never_in_words() -> None:
    def paint(canvas: Canvas) -> None:
        canvas.text(0.123456, 0.5, "0.123456")

    figure = drawn("digits", ("0.123456", "", "a third is 0.333333"), 1, paint)
    assert figure.svg.count("0.123456") == 2
    assert "a third is 0.333333" in figure.svg
    assert not re.search(r"<text[^>]*\d\.\d{3}", figure.svg)


def test_an_overloaded_plan_is_marked_in_every_drawing_of_it() -> None:
    figures = {figure.name: figure.svg for figure in content_of("overloaded").figures}
    of_plans = [name for name in figures if not name.startswith(("gains", "price"))]
    assert sorted(of_plans) == [
        "mean-latency",
        "open-latency",
        "open-over-time",
        "open-slots",
        "open-warm-up",
        "where-the-time-went",
    ]
    for name in of_plans:
        for label in ("serial", "parallel", "adaptive"):
            assert f"{label} (overloaded)" in figures[name]
            assert f">{label}<" not in figures[name]
