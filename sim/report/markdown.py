"""A report in Markdown: the same content, figures as files beside it."""

import re

from jinja2 import Environment, PackageLoader, StrictUndefined

from sim.report.content import ReportContent, Table

DASHES = {"l": ":---", "r": "---:"}


def markdown(content: ReportContent) -> str:
    """Return the report in Markdown with tables as on GitHub."""
    environment = Environment(
        loader=PackageLoader("sim.report"),
        autoescape=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["text"] = escaped
    environment.filters["opening"] = opening
    environment.filters["dashes"] = dashes
    rendered = environment.get_template("report.md.j2").render(report=content)
    return re.sub(r"\n{3,}", "\n\n", rendered).strip() + "\n"


def escaped(text: str) -> str:
    """Return text that Markdown shows as it stands, on one line and not at its beginning."""
    line = " ".join(text.split())
    line = re.sub(r"([\\`*\[\]<|~$])|&(?=#?\w+;)", r"\\\g<0>", line)
    # An underscore inside a word is only an underscore.
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", line)


def opening(text: str) -> str:
    """Return text that Markdown shows as it stands at the beginning of a line: no heading, list or rule."""
    return re.sub(r"^(\d*)(?=(#+|[-+=]+|(?<=\d)[.)])(\s|$)|>)", r"\1\\", escaped(text))


def dashes(table: Table) -> str:
    """Return the line below a table's headings."""
    return "| " + " | ".join(DASHES[letter] for letter in table.alignment) + " |"
