"""From results to what a report says, section by section, the verdict first."""

import math
from collections.abc import Sequence

from sim.answers.comparison import Comparison, flip_sentence, plan_differences
from sim.answers.flip import FlipTable
from sim.contract.figure import MEAN_DELIVERED_LATENCY
from sim.contract.plan import SERIAL
from sim.plan.criteria import KEEP_SERIAL
from sim.report.content import Card, Reading, ReportContent, Section
from sim.report.sections.breakdown import breakdown
from sim.report.sections.capacity import capacity
from sim.report.sections.decision import decision, serial_and_other
from sim.report.sections.differences import differences
from sim.report.sections.evidence import checks, slo, theory
from sim.report.sections.glance import glance
from sim.report.sections.latency import latency
from sim.report.sections.load import load
from sim.report.sections.origin import notes, origin
from sim.report.sections.reuse import reuse
from sim.report.sections.review import review
from sim.report.sections.slots import slots
from sim.report.sections.time import time
from sim.report.shown import estimate_cell, percent
from sim.report.words import (
    DECISION_MARKS,
    DECISIONS,
    FINITE_RUN,
    delivered_share,
    setting_words,
    slug,
)
from sim.result.decision import sustainable_words
from sim.result.measured_decision import UNDECIDED, MeasuredDecision
from sim.result.plan_result import PlanResult
from sim.result.result import Result
from sim.statistics.digits import plus_minus
from sim.statistics.stability import COLLAPSED, OVERLOADED


def compose(
    subject: Comparison | Result, flip_table: FlipTable | None = None, command: str | None = None
) -> ReportContent:
    """Return the content of a report; see `sim.report.write_report`."""
    comparison = subject if isinstance(subject, Comparison) else alone(subject)
    return ReportContent(
        title=" against ".join(result.scenario.name for result in comparison.results),
        subtitle=subtitle(comparison),
        headline=headline(comparison),
        cards=tuple(card(result) for result in comparison.results),
        warnings=tuple(warnings(comparison)),
        sections=sections(comparison, flip_table, command),
    )


def alone(result: Result) -> Comparison:
    """Return a result as a comparison of one scenario."""
    return Comparison((result,), tuple(plan_differences(result)), (), None, flip_sentence((result,), None))


def sections(
    comparison: Comparison, flip_table: FlipTable | None, command: str | None
) -> tuple[Section, ...]:
    """Return the sections that have something to say, in order."""
    names = figure_names(comparison.results)
    candidates = (
        capacity(comparison),
        glance(comparison),
        decision(comparison),
        slo(comparison),
        load(flip_table) if flip_table else None,
        reuse(comparison),
        latency(comparison, names),
        slots(comparison),
        breakdown(comparison),
        time(comparison, names),
        review(comparison, names),
        differences(comparison),
        theory(comparison),
        checks(comparison),
        notes(comparison),
        origin(comparison, command),
    )
    return tuple(section for section in candidates if section is not None)


ENDS_BY_NATURE = "the load ends by nature, so that its figures are judged as they are"
MEAN = "mean"
"""The figure `mean-latency` is about all scenarios, so that the figures of one cannot begin so."""


def figure_names(results: Sequence[Result]) -> tuple[str, ...]:
    """Return what the files of each scenario's figures begin with, each different."""
    taken = {MEAN}
    names = []
    for number, result in enumerate(results, start=1):
        name = slug(result.scenario.name)
        while name in taken:
            name = f"{name}-{number}"
        taken.add(name)
        names.append(name)
    return tuple(names)


def headline(comparison: Comparison) -> str:
    """Return the verdict in a few words."""
    decisions = {result.decision.decision for result in comparison.results}
    if len(comparison.results) > 1:
        return flip_headline(comparison, decisions)
    result = comparison.results[0]
    measured = result.decision.measured
    verdict = DECISIONS[result.decision.decision]
    if measured is None or math.isnan(measured.saved_ms):
        return verdict
    other, ending = serial_and_other(result)[1].label, ""
    if measured.decision == OVERLOADED:
        return f"{verdict}: no steady state, no verdict"
    if measured.verdict is None:
        return f"{verdict}: {other if measured.decision == KEEP_SERIAL else SERIAL} has no steady state"
    if measured.saved_ms == 0:
        return f"{verdict}: {other} takes as long as serial"
    saved = plus_minus(abs(measured.saved_ms), measured.difference.half_width, 1)
    if measured.saved_ms > 0 and not price_is_right(measured):
        ending = ", at too high a price"
    return f"{verdict}: {other} {'saves' if measured.saved_ms > 0 else 'loses'} {saved} ms{ending}"


def price_is_right(measured: MeasuredDecision) -> bool:
    """Return whether the saving is worth what it costs."""
    criteria = measured.verdict.criteria if measured.verdict else ()
    return all(one.passed for one in criteria if one.name == "micros_per_saved_ms")


def flip_headline(comparison: Comparison, decisions: set[str]) -> str:
    """Return whether the verdict flips, and between which loads; as the comparison's sentence begins."""
    if OVERLOADED in decisions and len(decisions - {OVERLOADED}) <= 1:
        return "No verdict where it is overloaded"
    if len(decisions) == 1:
        verdict = DECISIONS[next(iter(decisions))].lower()
        return f"The verdict does not flip: {verdict} everywhere"
    if comparison.flip is None:
        return "The verdict flips"
    low, high = sorted((comparison.flip.merge_at, comparison.flip.keep_at))
    return f"The verdict flips between {low:g} and {high:g} active requests"


def subtitle(comparison: Comparison) -> str:
    """Return what was asked, and of which workflows."""
    parts = (part for result in comparison.results for part in result.scenario.parts)
    workflows = dict.fromkeys(part.workflow.name for part in parts)
    return f"Does running the calls of {', '.join(workflows)} in parallel pay?"


def card(result: Result) -> Card:
    """Return one scenario's verdict with its numbers."""
    return Card(
        title=result.scenario.name,
        setting=setting_words(result.scenario),
        decision=DECISIONS[result.decision.decision],
        mark=DECISION_MARKS[result.decision.decision],
        readings=tuple(reading(plan) for plan in result.plans),
        reason=reason(result),
    )


def reading(plan: PlanResult) -> Reading:
    """Return a plan's mean latency."""
    overloaded = plan.stability.label == OVERLOADED
    label = f"{plan.label} ⚠ {OVERLOADED}" if overloaded else plan.label
    delivered = delivered_share(plan.estimates)
    if delivered < 1:
        label = f"{label}, {percent(delivered)} delivered"
    text = estimate_cell(plan.estimates[MEAN_DELIVERED_LATENCY]).text
    return Reading(label, f"{text} ms", OVERLOADED if overloaded else "")


def reason(result: Result) -> str:
    """Return why, with the interval of the measured saving where there is one."""
    measured, words = result.decision.measured, result.decision.reason
    words = words.split(": ", 1)[-1]
    words = words[:1].upper() + words[1:]
    if measured is None or not measured.difference.half_width or measured.decision == UNDECIDED:
        return words
    if measured.verdict is None:
        return words
    saved = plus_minus(measured.saved_ms, measured.difference.half_width, 1)
    return f"{words}. Saved: {saved} ms (95 %, {measured.difference.replications:,} replications)"


def warnings(comparison: Comparison) -> list[str]:
    """Return one sentence for each scenario and reason of overload or collapse, naming its plans."""
    plans: dict[tuple[str, str, str, str], list[str]] = {}
    for result in comparison.results:
        for plan in result.plans:
            found = plan.stability
            if found.label in (OVERLOADED, COLLAPSED):
                meaning = ENDS_BY_NATURE if found.is_finite else f"{FINITE_RUN}{sustainable_words(plan)}"
                key = (result.scenario.name, found.label, found.reason, meaning)
                plans.setdefault(key, []).append(plan.label)
    return [
        f"{label.capitalize()}: {name} ({', '.join(labels)}). {reason[:1].upper()}{reason[1:]}; {meaning}."
        for (name, label, reason, meaning), labels in plans.items()
    ]
