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
    environment.filters["dashes"] = dashes
    rendered = environment.get_template("report.md.j2").render(report=content)
    return re.sub(r"\n{3,}", "\n\n", rendered).strip() + "\n"


def escaped(text: str) -> str:
    """Return text that Markdown shows as it stands, on one line."""
    line = " ".join(text.split())
    line = re.sub(r"([\\`*\[\]<|~$])|&(?=#?\w+;)", r"\\\g<0>", line)
    # What would begin a heading, a list, a quotation or a rule, where it begins a line.
    line = re.sub(r"^(#+|[-+=]+|\d+(?=[.)]))(?=[.)]?(\s|$))|^>", lambda mark: bare(mark[0]), line)
    # An underscore inside a word is only an underscore.
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", line)


def bare(mark: str) -> str:
    """Return what begins a block of Markdown as text."""
    return f"{mark}\\" if mark.isdigit() else f"\\{mark}"


def dashes(table: Table) -> str:
    """Return the line below a table's headings."""
    return "| " + " | ".join(DASHES[letter] for letter in table.alignment) + " |"
