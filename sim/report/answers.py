"""Reports of answers about capacity: one page each, of the same blocks as the report of a scenario."""

from importlib.metadata import version

from sim.answers.policy import PolicyResult, rule_words
from sim.answers.sensitivity import Sensitivity
from sim.answers.size import Sizing
from sim.answers.words import verdict_now
from sim.report.content import Cell, Paragraph, ReportContent, Section, Table
from sim.report.output_folder import OutputFolder
from sim.report.render import html, markdown
from sim.report.sections.breaks import break_evens, changes
from sim.report.sections.policies import outcome, rule
from sim.report.sections.sizes import answer, candidates
from sim.report.words import setting_words
from sim.report.write import HTML, MARKDOWN
from sim.scenario import Scenario


def sizing_report(sizing: Sizing, command: str) -> ReportContent:
    """Return the report of a sizing."""
    return page(
        sizing.scenario,
        sizing.sentence[:1].upper() + sizing.sentence[1:],
        f"Which {sizing.path} meets the objectives?",
        (answer(sizing), candidates(sizing)),
        command,
    )


def sensitivity_report(sensitivity: Sensitivity, command: str) -> ReportContent:
    """Return the report of break-even values."""
    words = verdict_now(sensitivity)
    return page(
        sensitivity.scenario,
        words[:1].upper() + words[1:],
        "What would have to change for the verdict to change?",
        (break_evens(sensitivity), changes(sensitivity)),
        command,
    )


def policy_report(result: PolicyResult, command: str) -> ReportContent:
    """Return the report of a policy."""
    words = rule_words(result.table)
    return page(
        result.scenario,
        words[:1].upper() + words[1:],
        f"Which plan should a request of {result.scenario.workflow.name} run, at which load?",
        (rule(result), outcome(result)),
        command,
    )


def page(
    scenario: Scenario, headline: str, subtitle: str, sections: tuple[Section, ...], command: str
) -> ReportContent:
    """Return a report about one scenario that ends with what it was made from."""
    return ReportContent(
        title=scenario.name,
        subtitle=subtitle,
        headline=headline,
        cards=(),
        warnings=(),
        sections=(*sections, origin(scenario, command)),
    )


def origin(scenario: Scenario, command: str) -> Section:
    """Return what it takes to ask again."""
    rows = {
        "Scenario": setting_words(scenario),
        "Scenario file": scenario.path,
        "SHA-256 of its content": scenario.digest,
        "Overrides": ", ".join(scenario.overrides) or "none",
        "Seed": str(scenario.experiment.seed),
        "slotsim version": version("slotsim"),
    }
    cells = tuple((Cell(words), Cell(value)) for words, value in rows.items())
    table = Table("To ask this again", "ll", (Cell(""), Cell(scenario.name)), cells)
    return Section("provenance", "Provenance", (Paragraph(f"Command: {command}"), table))


def add_answer(output: OutputFolder, content: ReportContent) -> None:
    """Write the files of such a report."""
    output.write_text(HTML, html(content))
    output.write_text(MARKDOWN, markdown(content))
    for figure in content.figures:
        output.write_text(figure.file, figure.svg)
