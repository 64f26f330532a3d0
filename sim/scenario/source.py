"""A scenario file as a tree that remembers where each value was written.

YAML 1.2 scalars: `no` and `on` are text, `1e3` is a number. Nothing but plain data can be read.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

import yaml

from sim.errors import Fault, InputError
from sim.scenario.base import NOTHING, Path, fault_in

MAX_NODES = 200_000
MAX_STEPS = 20
MAX_PARENTS = 20
TAG = "tag:yaml.org,2002:"
PATH_STEP = re.compile(r"\.?([^.\[\]]+)|\[([0-9]{1,9})\]")


@dataclass(frozen=True, slots=True)
class Node:
    """A value and the file and line that state it: a mapping's or a key's line is that of the key."""

    value: Any
    file: str
    line: int | None

    def plain(self) -> Any:
        """Return the value as plain data; a key that is null is as good as left out."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items() if node.value is not None}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def child(self, step: str | int) -> "Node | None":
        """Return the node one step down, None where there is none."""
        if isinstance(self.value, dict):
            below: Node | None = self.value.get(step)
            return below
        has_step = isinstance(self.value, list) and isinstance(step, int) and step < len(self.value)
        return self.value[step] if has_step else None

    @property
    def named_file(self) -> str:
        """The file that this value names: relative to the file that states it, else as it stands."""
        return str(self.value) if self.line is None else beside(self.file, self.value)

    def at(self, path: Path) -> "Node":
        """Return the deepest node along `path`."""
        node = self
        for step in path:
            below = node.child(step)
            if below is None:
                break
            node = below
        return node


WORKLOAD_KEYS = ("workflow", "load", "slo")
"""The keys of a scenario that each workload states for itself, in a file with several."""


@dataclass(frozen=True, slots=True)
class PartTree:
    """A scenario's view of its file: of several workloads it sees its own, and what all have in common."""

    whole: Node
    workload: int | None = None

    def place(self, path: Path) -> Path:
        """Return where a key path of the scenario stands in the file."""
        has_moved = self.workload is not None and path[:1] and path[0] in WORKLOAD_KEYS
        return ("workloads", self.workload or 0, *path) if has_moved else path

    def at(self, path: Path) -> Node:
        """Return the deepest node along a key path of the scenario."""
        return self.whole.at(self.place(path))

    def plain(self) -> dict[str, Any]:
        """Return the scenario as plain data."""
        tree = self.whole
        if self.workload is not None:
            common = {key: node for key, node in tree.value.items() if key != "workloads"}
            own = tree.at(("workloads", self.workload)).value
            keys = {key: own[key] for key in WORKLOAD_KEYS if key in own}
            tree = replace(tree, value={**common, **keys})
        data: dict[str, Any] = tree.plain()
        return data


class _Loader(yaml.SafeLoader):
    """PyYAML's parser with the scalars of YAML 1.2."""


_Loader.yaml_implicit_resolvers = {}

for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"null|Null|NULL|~|", ["n", "N", "~", ""]),
    ("int", r"[-+]?[0-9][0-9_]*", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
):
    _Loader.add_implicit_resolver(TAG + _tag, re.compile(rf"^(?:{_pattern})$"), list(_first))

_SCALARS: dict[str, Callable[[str], Any]] = {
    TAG + "str": str,
    TAG + "null": lambda _: None,
    TAG + "bool": lambda text: text.lower() == "true",
    TAG + "int": lambda text: int(text.replace("_", "")),
    TAG + "float": lambda text: float(re.sub(r"\.(?=inf|nan)", "", text.lower()).replace("_", "")),
}


class _Builder:
    """Turns YAML's nodes into ours and collects what may not be in a scenario file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.faults: list[Fault] = []
        self.nodes_left = MAX_NODES

    def build(self, node: yaml.Node, path: str = "", line: int | None = None) -> Node:
        """Return our tree of `node`; `line` is the line of the key that holds it."""
        line = line or node.start_mark.line + 1
        self.nodes_left -= 1
        if self.nodes_left < 0:
            raise InputError(fault_in(self.file, line, path, f"must have no more than {MAX_NODES} values"))
        if isinstance(node, yaml.MappingNode):
            return Node(self._mapping(node, path), self.file, line)
        if isinstance(node, yaml.SequenceNode):
            items = [self.build(item, f"{path}[{index}]") for index, item in enumerate(node.value)]
            return Node(items, self.file, line)
        return Node(self._scalar(node, path, line), self.file, line)

    def _mapping(self, node: yaml.MappingNode, path: str) -> dict[str, Node]:
        found: dict[str, Node] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != TAG + "str":
                self._fault(
                    line, path, "must have text as keys", key if isinstance(key, str) else key_node.id
                )
                continue
            below = joined(path, key)
            if key in found:
                self._fault(line, below, f"must be stated once; line {found[key].line} states it too")
            found[key] = self.build(value_node, below, line)
        return found

    def _scalar(self, node: yaml.Node, path: str, line: int) -> Any:
        convert = _SCALARS.get(node.tag)
        if convert is None:
            self._fault(line, path, "must not have a tag", node.tag.replace(TAG, "!!"))
            return None
        try:
            return convert(node.value)
        except ValueError:
            self._fault(line, path, "must be a number that can be read", node.value)
            return None

    def _fault(self, line: int, path: str, rule: str, value: object = NOTHING) -> None:
        self.faults.append(fault_in(self.file, line, path, rule, value))


def joined(path: str, step: str | int) -> str:
    """Return `path` with one more step: `workflow.branches` and 1 are `workflow.branches[1]`."""
    if isinstance(step, int):
        return f"{path}[{step}]"
    key = step if re.fullmatch(r"[\w-]+", step) else repr(step)
    return f"{path}.{key}" if path else key


def written(path: Path) -> str:
    """Return a path as it is written in messages and overrides."""
    text = ""
    for step in path:
        text = joined(text, step)
    return text


def read_tree(
    file: str, stated: Fault | None = None, above: tuple[str, ...] = ()
) -> tuple[Node, list[Fault]]:
    """Return a scenario file with its parents merged in, and the faults that do not stop the reading.

    Parameters
    ----------
    file : path of the file, as messages show it.
    stated : a fault to fill in where another file's `extends` names this one.
    above : the files that were read on the way here.
    """
    tree, faults = _parse(file, _text(file, stated))
    parent = tree.value.pop("extends", None)
    if parent is None:
        return tree, faults
    here = fault_in(file, parent.line, "extends", "", parent.plain())
    if not isinstance(parent.value, str) or not parent.value.strip():
        raise InputError(*faults, replace(here, rule="must be the path of one file"))
    seen = (*above, os.path.normpath(file))
    target = beside(file, parent.value)
    if target in seen:
        raise InputError(replace(here, rule="must not lead back to the file itself"))
    if len(seen) > MAX_PARENTS:
        raise InputError(replace(here, rule=f"must not be the end of more than {MAX_PARENTS} files"))
    base, base_faults = read_tree(target, here, seen)
    return merged(base, tree), base_faults + faults


def beside(file: str, relative: str) -> str:
    """Return `relative` as seen from the folder of `file`."""
    return os.path.normpath(os.path.join(os.path.dirname(file), relative))  # noqa: PTH118, PTH120


def _text(file: str, stated: Fault | None) -> str:
    try:
        return FilePath(file).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(not_utf8(file, error.object)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        fault = stated or fault_in(file, None, "", "")
        raise InputError(replace(fault, rule=f"cannot be read: {reason}")) from None


def not_utf8(file: str, content: bytes) -> Fault:
    """Return the fault of a file that is not UTF-8, at the first line that is not."""
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
    return fault_in(file, line, "", "must be UTF-8 text")


def _parse(file: str, text: str) -> tuple[Node, list[Fault]]:
    builder = _Builder(file)
    try:
        composed = yaml.compose(text, Loader=_Loader)
        tree = builder.build(composed) if composed is not None else Node(None, file, 1)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise InputError(fault_in(file, line, "", _yaml_rule(str(error.problem)))) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InputError(fault_in(file, line, "", "must not hold control characters")) from None
    except (RecursionError, yaml.YAMLError):
        raise InputError(fault_in(file, 1, "", "must not be nested so deeply")) from None
    if tree.value is None:
        raise InputError(fault_in(file, 1, "", "is empty"))
    if not isinstance(tree.value, dict):
        raise InputError(fault_in(file, tree.line, "", "must be a mapping of keys", tree.plain()))
    return tree, builder.faults


def _yaml_rule(problem: str) -> str:
    """Return what YAML's parser found as a rule."""
    if "'\\t'" in problem:
        return "must be indented with spaces, not with tabs"
    return "must be one YAML document" if "another document" in problem else f"must be YAML: {problem}"


def merged(base: Node, above: Node) -> Node:
    """Return `above` over `base`: mappings merge, anything else replaces; null takes a key away.

    Mappings of another kind (a load's `kind`, a distribution's name) replace too: their keys do not mix.
    """
    if not (isinstance(base.value, dict) and isinstance(above.value, dict)) or _another_kind(base, above):
        return above
    both = dict(base.value)
    for key, node in above.value.items():
        both[key] = merged(both[key], node) if key in both else node
    return Node(both, above.file, above.line)


def _another_kind(base: Node, above: Node) -> bool:
    for key in ("kind", "distribution"):
        old, new = base.child(key), above.child(key)
        if old is not None and new is not None and old.value != new.value:
            return True
    return False


def overridden(tree: Node, changes: Sequence[tuple[str, Any]], file: str) -> Node:
    """Return the tree with values replaced; `changes` are pairs of a key path and plain data.

    Raises
    ------
    InputError
        A path that cannot be followed; `file` is what the message shows as its origin.
    """
    faults: list[Fault] = []
    for path, value in changes:
        try:
            steps = _steps(path)
            if not 0 < len(steps) <= MAX_STEPS:
                raise InputError(fault_in(file, None, "", "must be key.path=value", path))
            tree = _with(tree, steps, node_of(value, file), file, ())
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    return tree


def node_of(value: Any, file: str) -> Node:
    """Return plain data as a tree without lines."""
    if isinstance(value, dict):
        return Node({str(key): node_of(item, file) for key, item in value.items()}, file, None)
    if isinstance(value, list | tuple):
        return Node([node_of(item, file) for item in value], file, None)
    return Node(value, file, None)


def parsed_override(text: str) -> tuple[str, Any]:
    """Return `key.path=value` as its path and its value, read as YAML."""
    path, equals, value = text.partition("=")
    if not equals:
        raise InputError(fault_in("--set", None, "", "must be key.path=value", text))
    builder = _Builder("--set")
    try:
        composed = yaml.compose(value, Loader=_Loader)
        plain = builder.build(composed, path).plain() if composed is not None else None
    except (yaml.YAMLError, RecursionError):
        raise InputError(fault_in("--set", None, path, "must be a YAML value", value)) from None
    if builder.faults:
        raise InputError(*(replace(fault, line=None) for fault in builder.faults))
    return path.strip(), plain


def _steps(path: str) -> Path:
    matches = list(PATH_STEP.finditer(path))
    if "".join(match.group() for match in matches) != path or path.startswith("."):
        return ()
    return tuple(key if key else int(index) for key, index in (match.groups() for match in matches))


def _with(node: Node, steps: Path, new: Node, file: str, path: Path) -> Node:
    if not steps:
        return new
    step, value = steps[0], node.value
    here = (*path, step)
    if isinstance(step, int):
        if not isinstance(value, list) or step >= len(value):
            raise InputError(fault_in(file, None, written(here), "must be an item that the list has"))
        items = list(value)
        items[step] = _with(items[step], steps[1:], new, file, here)
        return replace(node, value=items)
    if not isinstance(value, dict):
        raise InputError(
            fault_in(file, None, written(path), "must be a mapping to have keys set", node.plain())
        )
    below = _with(value.get(step, Node({}, file, None)), steps[1:], new, file, here)
    return replace(node, value={**value, step: below})
