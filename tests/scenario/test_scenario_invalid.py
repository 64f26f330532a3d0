"""Files in scenarios/invalid/ are refused with the line that their first comment states; nothing crashes."""

import copy
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim.errors import InputError
from sim.scenario import Scenario, load_scenario
from sim.scenario.distribution import TokenDuration, TraceColumn, TraceTokens

ROOT = Path(__file__).parents[2]
INVALID = sorted((ROOT / "scenarios/invalid").glob("*.yaml"))
SHIPPED = sorted((ROOT / "scenarios").glob("*.yaml"))

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.just(10**400),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["closed", "open", "trace", "steps", "profile", "gamma", "tokens", "lognormal", "auto"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def refusal(path: Path | str, overrides: tuple[str, ...] = ()) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_scenario(path, overrides)
    return str(caught.value).split("\n")


def test_there_are_faults_of_every_sort() -> None:
    assert len(INVALID) >= 170


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_states_its_fault(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    shown = f"scenarios/invalid/{path.name}"
    expected = path.read_text().splitlines()[0].removeprefix("# expect: ")
    if re.match(r"\d+: ", expected):
        expected = f"{shown}:{expected}"
    elif expected.startswith("data/"):
        expected = f"scenarios/invalid/{expected}"
    assert refusal(shown) == [expected]


def test_states_all_faults_at_once(tmp_path: Path) -> None:
    path = tmp_path / "many.yaml"
    path.write_text(
        "schema_version: 1\n"
        "name: many\n"
        "name: twice\n"
        "provider: {concurrency: 0, allocation: random}\n"
        "workflow:\n"
        "  name: w\n"
        "  branches:\n"
        "    - {id: a, duration_ms: 0}\n"
        "    - {id: b}\n"
        "  joinoverhead_ms: 3\n"
        "load: {kind: open, rate_per_s: 1, requests: 5, duration_s: 5}\n"
        "slo: {rules: [nonsense]}\n"
    )
    assert refusal(path) == [
        f"{path}:3: name must be stated once; line 2 states it too",
        f"{path}:4: provider.concurrency must be >= 1 (got 0)",
        f"{path}:4: provider.allocation must be one of fair_share, fifo, max_min, priority, weighted "
        "(got 'random')",
        f"{path}:8: workflow.branches[0].duration_ms must be >= 1 (got 0)",
        f"{path}:9: workflow.branches[1].duration_ms is missing",
        f"{path}:10: workflow.joinoverhead_ms is not a known key; did you mean 'join_overhead_ms'?",
        f"{path}:11: load.duration_s must not be given beside requests",
        f"{path}:12: slo.rules[0] must be a rule such as 'latency_ms_p95 <= 400' (got 'nonsense')",
    ]


def test_a_fault_of_a_parent_is_shown_where_the_parent_states_it(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    base, child = tmp_path / "base/parent.yaml", tmp_path / "child.yaml"
    base.write_text(
        (ROOT / "scenarios/moderation.yaml").read_text().replace("concurrency: 20", "concurrency: -1")
    )
    child.write_text("schema_version: 1\nname: child\nextends: base/parent.yaml\nload: {requests: 0}\n")
    assert refusal(child) == [
        f"{base}:6: provider.concurrency must be >= 1 (got -1)",
        f"{child}:4: load.requests must be >= 1 (got 0)",
    ]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("load.active_requests=0", "--set: load.active_requests must be >= 1 (got 0)"),
        ("load.active_requests", "--set: must be key.path=value (got 'load.active_requests')"),
        ("=3", "--set: must be key.path=value (got '')"),
        ("load..x=3", "--set: must be key.path=value (got 'load..x')"),
        ("load.x={", "--set: load.x must be a YAML value (got '{')"),
        (
            "load.x=!!python/name:os.system y",
            "--set: load.x must not have a tag (got '!!python/name:os.system')",
        ),
        ("workflow.branches[7].id=x", "--set: workflow.branches[7] must be an item that the list has"),
        ("workflow.branches.id=x", "--set: workflow.branches must be a mapping to have keys set (got"),
        ("name.first=x", "--set: name must be a mapping to have keys set (got 'moderation')"),
        ("load.file=x.csv", "--set: load.file is not a known key; one of kind, active_requests,"),
        ("extends=peak.yaml", "--set: extends is not a known key; one of schema_version, name"),
        (f"load[{'9' * 5000}]=1", "--set: must be key.path=value (got 'load[999"),
        (f"{'a.' * 5000}a=1", "--set: must be key.path=value (got 'a.a."),
    ],
)
def test_overrides_are_refused_by_their_own_name(override: str, message: str) -> None:
    (line,) = refusal(ROOT / "scenarios/moderation.yaml", (override,))
    assert line.startswith(message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"name: \xff\xfe\n", ":1: must be UTF-8 text"),
        (b"a: 1\nb: \x07\n", ":2: must not hold control characters"),
        (b"[" * 1500, ":1: must not be nested so deeply"),
        (b"a: &a [*a]\n", ":1: must not be nested so deeply"),
        (b"a: &a [1, 1]\nb: &b [*a, *a]\nc: *d\n", ":3: must be YAML: found undefined alias 'd'"),
        (b"a: " + b"9" * 5000, ":1: a must be a number that can be read"),
        (b"a: !!int x\n", ":1: a must be a number that can be read (got 'x')"),
        (
            b'schema_version: 1\nname: "\\ud800"\n',
            ":2: name must be text without lone surrogates (got '\\ud800')",
        ),
        (b"? [a]\n: 1\n", ":1: must have text as keys (got 'sequence')"),
    ],
)
def test_what_is_not_a_scenario_at_all(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "odd.yaml"
    path.write_bytes(content)
    assert any(line.startswith(f"{path}{message}") for line in refusal(path))


def test_a_file_that_expands_without_end_is_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    path = tmp_path / "laughs.yaml"
    path.write_text("\n".join(lines))
    assert "must have no more than 200000 values" in refusal(path)[0]


@pytest.mark.parametrize("name", ["no-such-file.yaml", "", "."])
def test_a_file_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    (line,) = refusal(path)
    assert line.startswith(f"{path}: cannot be read: ")


def test_parents_end_somewhere(tmp_path: Path) -> None:
    for number in range(25):
        (tmp_path / f"{number}.yaml").write_text(f"extends: {number + 1}.yaml\n")
    expected = f"{tmp_path}/20.yaml:1: extends must not be the end of more than 20 files (got '21.yaml')"
    assert refusal(tmp_path / "0.yaml") == [expected]


def test_a_parent_whose_name_no_system_can_have(tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text('extends: "a\\0b.yaml"\n')
    assert refusal(path) == [f"{path}:1: extends cannot be read: embedded null byte (got 'a\\x00b.yaml')"]


def nodes(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value in `data`."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(found for key, item in items for found in nodes(item, (*path, key)))]


def mutated(data: Any, path: tuple[Any, ...], value: Any, key: str | None) -> Any:
    """Return `data` with the value at `path` replaced, or with one more key beside it."""
    if not path:
        return value
    changed = copy.deepcopy(data)
    holder = changed
    for step in path[:-1]:
        holder = holder[step]
    if key is not None and isinstance(holder, dict):
        holder[key] = value
    else:
        holder[path[-1]] = value
    return changed


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_mutation_loads_or_is_refused(data: st.DataObject, tmp_path: Path) -> None:
    content: Any = load_scenario(data.draw(st.sampled_from(SHIPPED))).to_dict()
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(nodes(content)))
        content = mutated(content, path, data.draw(VALUES), data.draw(st.none() | st.text(max_size=5)))
    file = tmp_path / "mutated.yaml"
    file.write_text(yaml.safe_dump(content))
    scenario = loaded_or_lines(file)
    if isinstance(scenario, Scenario):
        usable(scenario)
    else:
        assert all(line.startswith(str(tmp_path)) for line in scenario)


def loaded_or_lines(file: Path) -> Scenario | list[str]:
    try:
        return load_scenario(file)
    except InputError as error:
        return str(error).split("\n")


def usable(scenario: Scenario) -> None:
    """Assert that what a valid scenario offers can be had."""
    assert scenario.parallel_plan(2).branches
    assert all(period.from_s < period.to_s for period in scenario.periods)
    assert len(scenario.digest) == 64
    for _, distribution in scenario.distributions():
        if not isinstance(distribution, TokenDuration | TraceColumn | TraceTokens):
            drawn = distribution.draw(np.random.default_rng(1), 20)
            assert np.all(np.isfinite(drawn) & (drawn >= 0))


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=60) | st.text("{}[]:,-&*!|>'\"#\n\t ab1.", max_size=40).map(str.encode))
def test_any_bytes_load_or_are_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "bytes.yaml"
    file.write_bytes(content)
    assert all(line.startswith(str(tmp_path)) for line in refusal(file))


TABLES = {
    # kind of table: (its header, a row, the load, the duration, where the scenario names the file)
    "profile": (
        "window_start_s,requests_per_s",
        "0,1",
        "{kind: profile, file: table.csv, end_s: 10}",
        "100",
        "5: load.file",
    ),
    "trace": (
        "at,tokens",
        "0,5",
        "{kind: trace, file: table.csv, format: csv, time_unit: s, columns: {timestamp: at}}",
        "{distribution: trace, column: tokens}",
        "5: load.file",
    ),
    "empirical": (
        "ms,other",
        "5,1",
        "{kind: closed, active_requests: 1, requests: 3}",
        "{distribution: empirical, file: table.csv, column: ms}",
        "4: workflow.branches[0].duration_ms.file",
    ),
}
WITHOUT_ROWS = "must name a file with rows (got 'table.csv')"


def read_with(folder: Path, kind: str, content: bytes | None) -> list[str]:
    """Return what is said of a table with this content, or of a folder in its place; without the folder."""
    _, _, load, duration, _ = TABLES[kind]
    table, file = folder / "table.csv", folder / "scenario.yaml"
    if content is None:
        table.mkdir()
    else:
        table.write_bytes(content)
    file.write_text(
        "schema_version: 1\nname: reads\nprovider: {concurrency: 2}\n"
        f"workflow: {{name: w, branches: [{{id: a, duration_ms: {duration}}}]}}\nload: {load}\n"
    )
    return [line.replace(f"{folder}/", "") for line in refusal(file)]


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("", "table.csv:1: must start with a header line"),
        ("\n\n  \n", "table.csv:1: must start with a header line"),
        ("\ufeff", "table.csv:1: must start with a header line"),
        ("HEADER", f"PLACE {WITHOUT_ROWS}"),
        ("HEADER\n", f"PLACE {WITHOUT_ROWS}"),
        ("HEADER\r\n", f"PLACE {WITHOUT_ROWS}"),
        ("HEADER\n\n   \n\n", f"PLACE {WITHOUT_ROWS}"),
        ("\ufeffHEADER\n", f"PLACE {WITHOUT_ROWS}"),
        ("HEADER\n1\n", "table.csv:2: must have 2 values, as the header has (got '1')"),
        ('HEADER\nROW\n"', "table.csv:3: must be CSV: unexpected end of data"),
        (None, "PLACE cannot be read: Is a directory (got 'table.csv')"),
    ],
)
def test_a_table_without_what_it_needs_is_refused(
    kind: str, content: str | None, line: str, tmp_path: Path
) -> None:
    header, row, _, _, place = TABLES[kind]
    data = None if content is None else content.replace("HEADER", header).replace("ROW", row).encode()
    number, _, key = place.partition(" ")
    expected = line.replace("PLACE", f"scenario.yaml:{number} {key}")
    assert read_with(tmp_path, kind, data) == [expected]


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize(("before", "line"), [(0, 1), (1, 2), (9_000, 9_001)])
def test_a_table_that_is_not_utf8_is_refused_by_line(
    kind: str, before: int, line: int, tmp_path: Path
) -> None:
    header, row, *_ = TABLES[kind]
    good = [header, *[row] * 9_000][:before]
    content = "".join(f"{one}\n" for one in good).encode() + b"\xe9\n"
    assert read_with(tmp_path, kind, content) == [f"table.csv:{line}: must be UTF-8 text"]


@pytest.mark.parametrize("kind", TABLES)
def test_a_nul_byte_is_no_number_and_never_shown_as_it_is(kind: str, tmp_path: Path) -> None:
    header, row, *_ = TABLES[kind]
    (tmp_path / "cell").mkdir()
    [said] = read_with(tmp_path / "cell", kind, f"{header}\n{row[0]}\0{row[1:]}\n".encode())
    assert re.fullmatch(rf"table.csv:2: \w+ must be a .* \(got '{row[0]}\\x00'\)", said)
    (tmp_path / "header").mkdir()
    wanted = [name for name in header.split(",") if name != "other"]
    assert read_with(tmp_path / "header", kind, b"\0\0\0\n") == [
        f"table.csv:1: must have a column {name!r}" for name in wanted
    ]


@pytest.mark.parametrize("kind", TABLES)
def test_a_missing_column_is_named(kind: str, tmp_path: Path) -> None:
    header = TABLES[kind][0].split(",")
    missing, kept = (header[0], header[1]) if kind == "empirical" else (header[1], header[0])
    said = f"table.csv:1: must have a column {missing!r}; one of {kept}"
    assert read_with(tmp_path, kind, f"{kept}\n1\n".encode()) == [said]
