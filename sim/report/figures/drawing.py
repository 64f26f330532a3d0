"""From Matplotlib to SVG: the same bytes every time, small, and safe to stand beside others in one page."""

import io
import re
import warnings
from collections.abc import Callable
from html import escape
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure as Canvas

from sim.report.content import Figure
from sim.report.figures.style import MARK, SETTINGS, WIDTH_INCHES

FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
LOOKS = f'role="img" style="stroke-linejoin: round; stroke-linecap: butt; font-family: {FONTS}"'
LEFT_OUT = (r"<metadata>.*?</metadata>", r"<!--.*?-->", r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>")
METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


def drawn(
    name: str,
    words: tuple[str, str, str],
    height_inches: float,
    paint: Callable[[Canvas], None],
) -> Figure:
    """Return the figure that `paint` puts on an empty canvas; `words` are title, caption and description."""
    title, caption, description = words
    settings: Any = SETTINGS | {"svg.hashsalt": name}
    with rc_context(settings):
        canvas = Canvas(figsize=(WIDTH_INCHES, height_inches), layout="constrained", facecolor="none")
        paint(canvas)
        buffer = io.StringIO()
        with warnings.catch_warnings():
            # Text is drawn in the reader's fonts; Matplotlib's, which measure it, need not have every letter.
            warnings.filterwarnings("ignore", message=r"Glyph .* missing from", category=UserWarning)
            canvas.savefig(buffer, format="svg", metadata=METADATA)
    return Figure(name, title, caption, description, cleaned(buffer.getvalue(), name, title, description))


def cleaned(svg: str, name: str, title: str, description: str) -> str:
    """Return an SVG file with text in the reader's fonts, a description, and ids that no other file has."""
    svg = re.sub(r".*?(?=<svg )", "", svg, count=1, flags=re.DOTALL)
    for left_out in LEFT_OUT:
        svg = re.sub(left_out, "", svg, flags=re.DOTALL)
    svg = in_tags(svg.replace(MARK, ""), without_xlink)
    words = f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
    svg = re.sub(r"<svg ([^>]*)>", lambda match: f"<svg {LOOKS} {match[1]}>{words}", svg, count=1)
    return shortened(own_ids(svg, name))


def in_tags(svg: str, change: Callable[[str], str]) -> str:
    """Return an SVG file with every tag changed; the text between tags, which has names in it, stays."""
    return re.sub(r"<[^>]+>", lambda tag: change(tag[0]), svg)


def without_xlink(tag: str) -> str:
    """Return a tag without the namespace that links do without nowadays."""
    return tag.replace("xlink:href", "href").replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "")


def shortened(svg: str) -> str:
    """Return the same drawing in fewer bytes: fonts stated once, hundredths of a point, no empty lines."""
    svg = in_tags(svg, shortened_tag)
    return "\n".join(line.strip() for line in svg.splitlines() if line.strip()) + "\n"


def shortened_tag(tag: str) -> str:
    """Return one tag without the fonts and digits that nobody sees."""
    tag = " ".join(tag.split())
    tag = re.sub(r"font: (\d+) ([\d.]+px) [^;\"]*", r"font-weight: \1; font-size: \2", tag)
    tag = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", tag)
    return re.sub(r"(?<=\d\.\d\d)\d+", "", tag)


def own_ids(svg: str, name: str) -> str:
    """Keep only the ids that something refers to, each with the figure's name in front."""
    tags = "".join(re.findall(r"<[^>]+>", svg))
    used = set(re.findall(r'href="#([^"]+)"', tags)) | set(re.findall(r"url\(#([^)]+)\)", tags))

    def renamed(match: re.Match[str]) -> str:
        return f' id="{name}-{match[1]}"' if match[1] in used else ""

    def own(tag: str) -> str:
        tag = re.sub(r' id="([^"]*)"', renamed, tag)
        tag = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', tag)
        return re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", tag)

    return in_tags(svg, own)
