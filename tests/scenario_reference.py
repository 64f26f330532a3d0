"""The references of the README, written from the schema and from the catalogue of figures.

`python -m tests.scenario_reference` writes them anew.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sim.contract.figure import (
    DELIVERED_LATENCY,
    FIGURES,
    FOLLOW_UP,
    LATENCY,
    TIME_LEVELS,
    WAITING,
    Figure,
    figure_of,
    levels_of,
)
from sim.scenario import json_schema

README = Path(__file__).parent.parent / "README.md"

TOP = "the file"
TOP_WORDS = "The keys at the top; `extends: FILE` takes over those of another file."

Schema = dict[str, Any]


def reference(schema: Schema) -> str:
    """Return one table for each mapping that a scenario file may hold, in the order in which they are met."""
    definitions = schema["$defs"]
    tables = []
    for path, name in mappings(definitions):
        own = mapping_of(definitions[name])
        rows = "".join(row(key, item, own) for key, item in own["properties"].items())
        words = TOP_WORDS if path == TOP else first_paragraph(own["description"])
        heading = f"**{path}**: {words}\n\n"
        tables.append(f"{heading}| key | meaning | default |\n|---|---|---|\n{rows}")
    return "\n".join(tables)


HOLDERS = {None: "", "any": "any", "period": "a period, the whole run", "run": "the whole run"}


def figures() -> str:
    """Return a table of the figures; those of one kind of time share a row."""
    times = (LATENCY, DELIVERED_LATENCY, WAITING, FOLLOW_UP)
    families = {levels_of(time): f"{time}_{{{','.join(TIME_LEVELS)}}}" for time in times}
    shown = {names[0]: family for names, family in families.items()}
    later = {name for names in families for name in names[1:]}
    rows = [figure_row(shown.get(name, name), one) for name, one in FIGURES.items() if name not in later]
    rows.append(figure_row("share_within_{bound}_ms", figure_of("share_within_{bound}_ms")))
    return f"| figure | heading | better | rules may be about |\n|---|---|---|---|\n{''.join(rows)}"


def figure_row(name: str, figure: Figure) -> str:
    """Return one line of the table of figures."""
    return f"| `{name}` | {figure.words} | {figure.better or ''} | {HOLDERS[figure.slo]} |\n"


def mappings(definitions: Schema) -> Iterator[tuple[str, str]]:
    """Yield where each mapping stands and its definition, those of a mapping's keys after it.

    Distributions of tokens are left out: they are those of milliseconds with other units.
    """
    queue, seen = [(TOP, "Scenario")], {"Scenario"}
    while queue:
        path, name = queue.pop(0)
        yield path, name
        own = mapping_of(definitions[name])
        below = []
        for key, item in own["properties"].items():
            for target in references(item):
                if target not in seen and not target.endswith("InTokens") and mapping_of(definitions[target]):
                    seen.add(target)
                    below.append((place(path, key, definitions[target]), target))
        queue = below + queue


def mapping_of(definition: Schema) -> Schema:
    """Return the definition as a mapping, or the one among its forms; empty where it is none."""
    if "properties" in definition:
        return definition
    return next((form for form in definition.get("anyOf", ()) if "properties" in form), {})


def references(item: Any) -> Iterator[str]:
    """Yield the definitions that a key's value may follow."""
    if isinstance(item, list):
        for each in item:
            yield from references(each)
    elif isinstance(item, dict):
        if "$ref" in item:
            yield item["$ref"].removeprefix("#/$defs/")
        for name, each in item.items():
            if name in ("anyOf", "oneOf", "items", "additionalProperties"):
                yield from references(each)


def place(path: str, key: str, definition: Schema) -> str:
    """Return where a mapping stands; durations and loads are told apart by what chooses them."""
    properties = mapping_of(definition)["properties"]
    for chooser, subject in (("distribution", "a duration"), ("kind", f"`{key}`")):
        chosen = properties.get(chooser, {}).get("const")
        if chosen:
            return f"{subject} with `{chooser}: {chosen}`"
    return f"`{key}`" if path == TOP else f"`{key}` of {path.split(' ', maxsplit=1)[0]}"


def row(key: str, item: Schema, own: Schema) -> str:
    """Return one line of a table."""
    if key in own.get("required", ()):
        default = "required"
    else:
        value = item.get("default")
        default = "" if value is None or isinstance(value, dict | list) else f"`{json.dumps(value)}`"
    if "const" in item:
        return f"| `{key}` | `{item['const']}` | required |\n"
    values = f" One of {', '.join(f'`{value}`' for value in item['enum'])}." if "enum" in item else ""
    return f"| `{key}` | {first_paragraph(item['description'])}{values} | {default} |\n"


def first_paragraph(text: str) -> str:
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())


def parts(name: str) -> tuple[str, str, str]:
    """Return the README up to a reference, the reference, and what follows it."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    before, rest = README.read_text(encoding="utf-8").split(begin)
    inside, after = rest.split(end)
    return before + begin, inside, end + after


def written(name: str = "reference") -> str:
    """Return a reference as the README has it."""
    return parts(name)[1]


def write(name: str, text: str) -> None:
    """Write a reference into the README."""
    before, _, after = parts(name)
    README.write_text(before + text + after, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write("reference", reference(json_schema()))
    write("figures", figures())
