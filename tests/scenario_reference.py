"""The scenario reference of the README, written from the schema: `python -m tests.scenario_reference`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sim.scenario import json_schema

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- reference: begin -->\n", "<!-- reference: end -->\n"

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


def written() -> str:
    """Return the reference as the README has it."""
    return README.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]


if __name__ == "__main__":
    before, rest = README.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    README.write_text(
        f"{before}{BEGIN}{reference(json_schema())}{END}{after}", encoding="utf-8", newline="\n"
    )
