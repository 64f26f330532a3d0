"""A report as one HTML file that needs nothing else: no network, no script, figures inline."""

import re

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from sim.report.content import Figure, ReportContent
from sim.report.figures.drawing import in_tags

NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'


def html(content: ReportContent) -> str:
    """Return the report as a page that is well-formed XML too."""
    environment = Environment(
        loader=PackageLoader("sim.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["inline"] = inline
    template = environment.get_template("report.html.j2")
    style = Markup(environment.get_template("report.css").render())
    return template.render(report=content, style=style)


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
