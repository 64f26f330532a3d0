"""A report as one HTML file that needs nothing else, and in Markdown with its figures as files beside it."""

import re
from collections.abc import Callable

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sim.report.content import Figure, ReportContent, Table
from sim.report.figures.drawing import in_tags

NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'


DASHES = {"l": ":---", "r": "---:"}


def templates(**filters: Callable[..., str]) -> Environment:
    """Return the templates of reports, with further filters; HTML escapes what it is given."""
    environment = Environment(
        loader=PackageLoader("sim.report"),
        autoescape=lambda name: name is not None and name.startswith("report.html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    return environment


def html(content: ReportContent) -> str:
    """Return the report as a page that is well-formed XML too: no network, no script, figures inline."""
    environment = templates(inline=inline)
    style = Markup(environment.get_template("report.css").render())
    return environment.get_template("report.html.j2").render(report=content, style=style)


def inline(figure: Figure) -> Markup:
    """Return a figure's SVG for a page: its colours can be redefined there, for dark screens.

    A page shows the figure's title and description itself, so the drawing refers to them by id.
    """
    svg = figure.svg.replace(NAMESPACE, "", 1)
    svg = re.sub(r"<title>.*?</title><desc>.*?</desc>", "", svg, count=1, flags=re.DOTALL)
    labels = f'<svg aria-labelledby="{figure.name}-title" aria-describedby="{figure.name}-words" '
    svg = svg.replace("<svg ", labels, 1)
    return Markup(in_tags(svg, with_variables))


def with_variables(tag: str) -> str:
    """Return a tag whose colours a page can redefine."""
    return re.sub(r"(: ?)#([0-9a-f]{6})\b", r"\1var(--c-\2, #\2)", tag)


def markdown(content: ReportContent) -> str:
    """Return the report in Markdown with tables as on GitHub."""
    template = templates(text=escaped, opening=opening, dashes=dashes).get_template("report.md.j2")
    return re.sub(r"\n{3,}", "\n\n", template.render(report=content)).strip() + "\n"


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
