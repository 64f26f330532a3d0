"""Writing a report: all files at once, or none."""

from pathlib import Path

from sim.answers.comparison import Comparison
from sim.answers.flip import FlipTable
from sim.report.compose import compose
from sim.report.output_folder import OutputFolder
from sim.report.render import html, markdown
from sim.result.result import Result

HTML, MARKDOWN = "report.html", "report.md"


def write_report(
    subject: Comparison | Result,
    folder: str | Path,
    *,
    flip_table: FlipTable | None = None,
    command: str | None = None,
) -> Path:
    """Write `report.html`, `report.md` and `figures/*.svg` into a folder and return the page's path.

    Parameters
    ----------
    subject
        A comparison; a result is reported like a comparison of one scenario.
    folder
        Made where it is missing; files of an earlier report are replaced.
    flip_table
        Levels of load around the scenarios', for the curve of latency against load.
    command
        What was typed, for the provenance.

    Raises
    ------
    OutputError
        The folder cannot be written; what it held before is left as it was.
    """
    with OutputFolder(folder) as output:
        add_report(output, subject, flip_table=flip_table, command=command)
    return Path(folder) / HTML


def add_report(
    output: OutputFolder,
    subject: Comparison | Result,
    *,
    flip_table: FlipTable | None = None,
    command: str | None = None,
) -> None:
    """Write the files of a report beside others that appear at the same moment; see `write_report`."""
    content = compose(subject, flip_table, command)
    output.write_text(HTML, html(content))
    output.write_text(MARKDOWN, markdown(content))
    for figure in content.figures:
        output.write_text(figure.file, figure.svg)
