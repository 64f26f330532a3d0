"""A resolved scenario reads back as what it was made from."""

from pathlib import Path

import pytest

from sim.scenario import load_scenario
from sim.scenario.resolved import load_resolved, resolved_text

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", sorted((ROOT / "scenarios").glob("*.yaml")), ids=lambda path: path.stem)
def test_reads_back_the_same(path: Path, tmp_path: Path) -> None:
    scenario = load_scenario(path, ["experiment.seed=3"])
    file = tmp_path / "scenario.yaml"
    file.write_text(resolved_text(scenario, str(tmp_path)))
    again = load_resolved(str(file), scenario.path, scenario.overrides)
    assert again.to_dict() | {"load": None} == scenario.to_dict() | {"load": None}
    assert (again.digest, again.path, again.overrides) == (scenario.digest, str(path), ("experiment.seed=3",))


@pytest.mark.parametrize(
    "text", ["1e3", "no", "true", "null", "0x1F", "yes: it is", "# no comment", "ü ± 1", "~"]
)
def test_text_stays_text(text: str, tmp_path: Path) -> None:
    scenario = load_scenario(ROOT / "scenarios/peak.yaml").replace({"name": text})
    file = tmp_path / "scenario.yaml"
    file.write_text(resolved_text(scenario, str(tmp_path)), encoding="utf-8")
    assert load_scenario(file).name == text


def test_tables_are_named_from_where_the_file_stands(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "times.csv").write_text("ms\n100\n300\n")
    (tmp_path / "data" / "base.yaml").write_text(
        (ROOT / "scenarios/moderation.yaml")
        .read_text()
        .replace("duration_ms: 260", "duration_ms: {distribution: empirical, file: times.csv, column: ms}")
    )
    (tmp_path / "child.yaml").write_text("schema_version: 1\nname: child\nextends: data/base.yaml\n")
    scenario = load_scenario(tmp_path / "child.yaml")
    (tmp_path / "out").mkdir()
    file = tmp_path / "out" / "scenario.yaml"
    file.write_text(resolved_text(scenario, str(tmp_path / "out")))
    assert 'file: "../data/times.csv"' in file.read_text()
    assert load_scenario(file) == scenario
