"""From what pydantic found to our own words: `file:line: path rule (got value)`."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from pydantic import ValidationError

from sim.errors import Fault
from sim.scenario.base import Broken, Path, fault_in
from sim.scenario.source import PartTree, written

KnownKeys = Mapping[int, tuple[str, ...]]

RULES = {
    "greater_than_equal": "must be >= {ge:.15g}",
    "greater_than": "must be > {gt:.15g}",
    "less_than_equal": "must be <= {le:.15g}",
    "less_than": "must be < {lt:.15g}",
    "int_parsing_size": "must be a number of fewer digits",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be finite",
    "string_type": "must be text",
    "string_unicode": "must be text without lone surrogates",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "model_type": "must be a mapping of keys",
    "too_short": "must not be empty",
    "too_long": "must have at most {max_length} items",
    "string_too_short": "must not be blank",
    "string_pattern_mismatch": "must not be blank",
    "unprintable": "must not hold control characters or line breaks",
    "string_too_long": "must have at most {max_length} characters",
}


def faults_of(error: ValidationError, tree: PartTree, data: Any, known: KnownKeys) -> list[Fault]:
    """Return every fault that `error` carries, with file and line.

    Parameters
    ----------
    tree, data : what was validated, as a tree with lines and as the plain data of it.
    known : the keys of each validated mapping, by the id of the mapping.
    """
    found = [pair for item in error.errors(include_url=False) for pair in _broken(item, data, known)]
    misspelt = {(*path[:-1], broken.meant) for path, broken in found if isinstance(broken, UnknownKey)}
    faults = [fault_at(tree, path, broken) for path, broken in found if path not in misspelt]
    once = {str(fault): fault for fault in faults}
    return sorted(once.values(), key=lambda fault: (fault.file, fault.line or 0))


def fault_at(tree: PartTree, path: Path, broken: Broken) -> Fault:
    """Return the fault of a broken rule; a missing key points at the mapping that should have it."""
    whole = (*path, *broken.path)
    node = tree.at(whole)
    as_written = isinstance(broken.value, float) and broken.value == node.value
    value = node.value if as_written else broken.value
    return fault_in(node.file, node.line, written(tree.place(whole)), broken.rule, value)


@dataclass(frozen=True)
class UnknownKey(Broken):
    """A key that its mapping does not have, and the one that was probably meant."""

    meant: str | None = None

    @classmethod
    def among(cls, key: str, choices: tuple[str, ...]) -> Self:
        """Return the fault of `key`, with the closest of `choices`."""
        return cls((), f"is not a known key{nearest(key, choices)}", meant=closest(key, choices))


def closest(word: str, choices: tuple[str, ...]) -> str | None:
    """Return the choice that looks most like `word`; None where none does."""
    return next(iter(difflib.get_close_matches(word, choices, n=1)), None)


def nearest(word: str, choices: tuple[str, ...]) -> str:
    """Return `; did you mean 'x'?` for the choice closest to `word`, else the choices there are."""
    meant = closest(word, choices)
    return f"; did you mean {meant!r}?" if meant else f"; one of {', '.join(choices)}"


def _broken(item: Any, data: Any, known: KnownKeys) -> Iterator[tuple[Path, Broken]]:
    """Yield the path in the data and the broken rule of one pydantic error."""
    path, holder = _followed(item["loc"], data)
    kind, value = item["type"], item["input"]
    if kind == "broken_rules":
        yield from ((path, broken) for broken in item["ctx"]["broken"])
    elif kind == "extra_forbidden":
        yield path, UnknownKey.among(str(path[-1]), known.get(id(holder), ()))
    elif kind == "missing":
        yield path, Broken((), "is missing")
    elif kind == "no_choice":
        yield path, _no_choice(item["ctx"], value)
    elif kind != "too_short" or not value:
        yield path, Broken((), _rule(kind, item.get("ctx", {})), value)


def _followed(location: Path, data: Any) -> tuple[Path, Any]:
    """Return the part of a pydantic location that the data has (or lacks as a key), and what holds its end.

    Tags of unions are left out, and so is what goes on below a short form such as a plain number.
    """
    path: Path = ()
    holder = data
    for step in location:
        if str(step).startswith("<") and not (isinstance(data, dict) and step in data):
            continue
        if not isinstance(data, dict | list):
            break
        holder, path = data, (*path, step)
        try:
            data = data[step]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            break
    return path, holder


def _no_choice(context: Mapping[str, Any], value: Any) -> Broken:
    key, choices = context["key"], ", ".join(context["choices"])
    if not isinstance(value, dict):
        return Broken((), context["rule"], value)
    if key not in value:
        return Broken((key,), f"is missing; one of {choices}")
    return Broken((key,), f"must be one of {choices}", value[key])


def _rule(kind: str, context: Mapping[str, Any]) -> str:
    if kind == "literal_error":
        choices = str(context["expected"]).replace("'", "").replace(" or ", ", ")
        return f"must be one of {choices}" if "," in choices else f"must be {choices}"
    return RULES[kind].format(**context)
