"""CSV tables: exact timestamps, slices, order, and one line for each bad cell."""

from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.errors import InputError
from sim.scenario import Scenario, load_scenario
from sim.scenario.table import timestamps

HEAD = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
AZURE = (
    HEAD + "2023-11-16 18:17:03.9799600,4808,10\n"
    "2023-11-16 18:17:04.0319600,3180,8\n"
    "2023-11-16 18:17:04.0319601,110,27\n"
)
SCENARIO = """
schema_version: 1
name: trace
provider: {concurrency: 4}
workflow:
  name: single
  branches:
    - id: reply
      duration_ms: {distribution: tokens, overhead_ms: 10, output_tokens: trace, decode_ms_per_token: 15}
load: {kind: trace, file: requests.csv, format: azure}
"""
CSV_LOAD = "load={{kind: trace, file: {file}, format: csv, columns: {{timestamp: at}}, time_unit: {unit}}}"


def replayed(folder: Path, content: str | bytes, *overrides: str) -> Scenario:
    file = folder / "requests.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "trace.yaml").write_text(SCENARIO)
    return load_scenario(folder / "trace.yaml", overrides)


def lines(folder: Path, content: str | bytes, *overrides: str) -> list[str]:
    """Return the refusal, file names without their folder."""
    with pytest.raises(InputError) as caught:
        replayed(folder, content, *overrides)
    return [line.replace(f"{folder}/", "") for line in str(caught.value).split("\n")]


def arrivals(folder: Path, cells: list[str], unit: str) -> list[int]:
    """Return the arrivals (ns) of a CSV file with these timestamps in `unit`."""
    load = CSV_LOAD.format(file=folder / "requests.csv", unit=unit)
    content = "at\n" + "\n".join(cells) + "\n"
    scenario = replayed(folder, content, load, "workflow.branches[0].duration_ms=10")
    return [int(arrival_ns) for arrival_ns in scenario.trace.arrival_ns]


def test_azures_format_keeps_every_digit(tmp_path: Path) -> None:
    scenario = replayed(tmp_path, AZURE)
    assert scenario.trace.arrival_ns.dtype == np.int64
    assert scenario.trace.arrival_ns.tolist() == [0, 52_000_000, 52_000_100]
    assert scenario.trace.columns["input_tokens"].tolist() == [4808, 3180, 110]
    assert scenario.trace.columns["output_tokens"].tolist() == [10, 8, 27]
    assert scenario.branch_means_ms == (10 + 15 * 15,)
    assert scenario.notes == ()


def test_real_files_come_with_marks_blank_lines_and_windows_ends(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + AZURE.replace("\n", "\r\n").encode() + b"\r\n  \r\n\r\n"
    assert replayed(tmp_path, content).trace.arrival_ns.tolist() == [0, 52_000_000, 52_000_100]
    without_end = AZURE.rstrip("\n")
    assert replayed(tmp_path, without_end).trace.arrival_ns.tolist() == [0, 52_000_000, 52_000_100]


def test_timestamps_may_be_written_in_many_ways(tmp_path: Path) -> None:
    cells = [
        "2024-02-28T23:59:59",
        "2024-02-29 00:00:00.5",
        "2024-02-29 00:00:00.5000000014",
        "2024-02-29 01:00:01+01:00",
        "2024-02-28T19:00:02.25-0500",
        "2024-02-29 00:00:03Z",
    ]
    expected = [0, 1_500_000_000, 1_500_000_001, 2_000_000_000, 3_250_000_000, 4_000_000_000]
    assert arrivals(tmp_path, cells, "datetime") == expected


@given(
    start=st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)),
    fraction=st.text("0123456789", min_size=1, max_size=9),
    separator=st.sampled_from(" T"),
)
def test_any_timestamp_is_read_exactly(start: datetime, fraction: str, separator: str) -> None:
    cell = f"{start:%Y-%m-%d}{separator}{start:%H:%M:%S}.{fraction}"
    whole_s = (start.replace(microsecond=0) - datetime(1970, 1, 1)) // timedelta(seconds=1)
    expected = whole_s * 10**9 + int(Decimal(f"0.{fraction}") * 10**9)
    assert timestamps("datetime").read([cell]) == [expected]


@pytest.mark.parametrize(
    ("unit", "cells", "expected_ns"),
    [
        ("s", ["1700000000.1", "1700000000.3", "1700000001"], [0, 200_000_000, 900_000_000]),
        ("s", ["0.1", "0.2999999995", "0.2999999985"], [0, 199_999_998, 200_000_000]),
        ("ms", ["0", "1.5", "1e3"], [0, 1_500_000, 1_000_000_000]),
        ("us", ["10", "11.001"], [0, 1_001]),
        ("ns", ["1700000000123456789", "1700000000123456790"], [0, 1]),
    ],
)
def test_numbers_are_times_without_a_float_between(
    tmp_path: Path, unit: str, cells: list[str], expected_ns: list[int]
) -> None:
    assert arrivals(tmp_path, cells, unit) == expected_ns


@pytest.mark.parametrize(
    "cell",
    ["", "now", "2023-02-30 00:00:00", "2023-11-16 24:00:00", "2023-11-16", "9999-01-01 00:00:00", "NaT"],
)
def test_what_is_no_time(tmp_path: Path, cell: str) -> None:
    rule = "TIMESTAMP must be a time such as 2023-11-16 18:17:03.9799600"
    assert lines(tmp_path, f"{HEAD}{cell},1,1\n") == [f"requests.csv:2: {rule} (got {cell!r})"]


@pytest.mark.parametrize("cell", ["x", "nan", "inf", "1e30", "1e999999999"])
def test_what_is_no_time_in_seconds(cell: str) -> None:
    assert timestamps("s").read([cell]) == [None]


def test_a_time_next_to_nothing_is_read_at_once() -> None:
    assert timestamps("s").read(["1e-999999999"]) == [0]


def test_rows_out_of_order_are_sorted_with_a_note_and_stay_with_their_tokens(tmp_path: Path) -> None:
    seconds = ["02,1", "01,2", "03,3", "01,4"]
    content = HEAD + "".join(f"2023-11-16 18:00:{second},2\n" for second in seconds)
    scenario = replayed(tmp_path, content)
    assert scenario.trace.arrival_ns.tolist() == [0, 0, 10**9, 2 * 10**9]
    assert scenario.trace.columns["input_tokens"].tolist() == [2, 4, 1, 3]
    assert scenario.notes == ("requests.csv: 2 rows were not in order of time and were sorted",)


def test_duplicates_stay(tmp_path: Path) -> None:
    content = HEAD + "2023-11-16 18:00:01,5,6\n" * 3
    assert replayed(tmp_path, content).trace.arrival_ns.tolist() == [0, 0, 0]


def test_a_slice_starts_at_its_own_first_row(tmp_path: Path) -> None:
    assert replayed(tmp_path, AZURE, "load.first=1").trace.arrival_ns.tolist() == [0, 100]
    assert replayed(tmp_path, AZURE, "load.first=1", "load.count=1").branch_means_ms == (10 + 8 * 15,)


def test_rows_outside_the_slice_are_not_looked_at(tmp_path: Path) -> None:
    content = AZURE.replace("4808", "many") + "nonsense\n"
    assert replayed(tmp_path, content, "load.first=1", "load.count=2").trace.arrival_ns.tolist() == [0, 100]


def test_slices_outside_the_file_are_refused(tmp_path: Path) -> None:
    outside = "--set: load.first must be < 3, the rows of the file (got 3)"
    assert lines(tmp_path, AZURE, "load.first=3") == [outside]
    longer = "--set: load.count must be <= 2, the rows from first on (got 5)"
    assert lines(tmp_path, AZURE, "load.first=1", "load.count=5") == [longer]


@given(
    gaps=st.lists(st.integers(0, 10**12), min_size=1, max_size=20),
    scale=st.sampled_from([0.5, 0.1, 3.0, 1 / 3]),
)
def test_time_is_scaled_exactly(
    tmp_path_factory: pytest.TempPathFactory, gaps: list[int], scale: float
) -> None:
    cells = [str(total) for total in np.cumsum(gaps).tolist()]
    folder = tmp_path_factory.mktemp("scaled")
    load = CSV_LOAD.format(file=folder / "requests.csv", unit="ns")
    scenario = replayed(folder, "at\n" + "\n".join(cells), load, "workflow.branches[0].duration_ms=10")
    scaled = scenario.replace({"load.time_scale": scale})
    expected = [round(Fraction(repr(scale)) * ns) for ns in scenario.trace.arrival_ns.tolist()]
    assert scaled.trace.arrival_ns.tolist() == expected


def test_a_scale_that_leaves_the_clock_is_refused(tmp_path: Path) -> None:
    content = HEAD + "2000-01-01 00:00:00,1,1\n2020-01-01 00:00:00,1,1\n"
    message = "--set: load.time_scale must keep all arrivals within 1e+09 s (got 2)"
    assert lines(tmp_path, content, "load.time_scale=2") == [message]
    far = content.replace("2020", "2120")
    assert lines(tmp_path, far) == ["requests.csv:3: TIMESTAMP must lie within 1e+09 s of the first arrival"]


def test_each_bad_cell_is_named_in_order_of_line(tmp_path: Path) -> None:
    content = (
        HEAD + "2023-11-16 18:00:01,abc,-1\n2023-11-16 18:00:02,1\n"
        "\n2023-11-16 18:00:03,1.5,1\nyesterday,1,1,\n2023-11-16 18:00:04,nan,12.0\n"
    )
    assert lines(tmp_path, content) == [
        "requests.csv:2: ContextTokens must be a whole number >= 0 (got 'abc')",
        "requests.csv:2: GeneratedTokens must be a whole number >= 0 (got '-1')",
        "requests.csv:3: must have 3 values, as the header has (got '2023-11-16 18:00:02,1')",
        "requests.csv:5: ContextTokens must be a whole number >= 0 (got '1.5')",
        "requests.csv:6: must have 3 values, as the header has (got 'yesterday,1,1,')",
        "requests.csv:7: ContextTokens must be a whole number >= 0 (got 'nan')",
    ]


def test_many_bad_cells_are_counted(tmp_path: Path) -> None:
    found = lines(tmp_path, HEAD + "2023-11-16 18:00:01,abc,1\n" * 152)
    assert len(found) == 21
    assert found[19] == "requests.csv:21: ContextTokens must be a whole number >= 0 (got 'abc')"
    assert found[20] == "requests.csv: has 132 more bad values"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "requests.csv:1: must start with a header line"),
        (b"\n1,2,3\n", "requests.csv:1: must start with a header line"),
        (HEAD.encode(), "trace.yaml:10: load.file must name a file with rows (got 'requests.csv')"),
        (
            b"TIMESTAMP,ContextToken,Output\n",
            "requests.csv:1: must have a column 'ContextTokens'; did you mean 'ContextToken'?",
        ),
        (HEAD.encode() + b"2023-11-16 18:00:01,\xff,1\n", "requests.csv:2: must be UTF-8 text"),
        (
            HEAD.encode() + b'2023-11-16 18:00:01,"1,1\n',
            "requests.csv:2: must be CSV: unexpected end of data",
        ),
        (
            b"TIMESTAMP,ContextTokens,GeneratedTokens,TIMESTAMP\n",
            "requests.csv:1: must have only one column 'TIMESTAMP'",
        ),
    ],
)
def test_files_that_are_no_trace(tmp_path: Path, content: bytes, message: str) -> None:
    assert lines(tmp_path, content)[0] == message


def test_columns_of_durations_keep_a_requests_branches_together(tmp_path: Path) -> None:
    load = CSV_LOAD.format(file=tmp_path / "requests.csv", unit="s")
    column = "workflow.branches[0].duration_ms={distribution: trace, column: reply ms}"
    content = "at,reply ms,note\n0,100.5,a\n2,300.5,b\n1,200,c\n"
    scenario = replayed(tmp_path, content, load, column)
    assert scenario.trace.columns["reply ms"].tolist() == [100.5, 200, 300.5]
    assert scenario.branch_means_ms == pytest.approx((601 / 3,))
    message = "requests.csv:3: reply ms must be a number >= 0 (got '-300.5')"
    negative = content.replace("300.5", "-300.5")
    assert lines(tmp_path, negative, load, column) == [message]


def test_token_columns_of_a_csv_need_to_be_named(tmp_path: Path) -> None:
    load = CSV_LOAD.format(file=tmp_path / "requests.csv", unit="s")
    message = "trace.yaml:9: workflow.branches[0].duration_ms.output_tokens"
    rule = "must not be trace without load.columns.output_tokens"
    assert lines(tmp_path, "at\n1\n", load) == [f"{message} {rule}"]


def test_a_trace_whose_calls_take_no_time_is_refused(tmp_path: Path) -> None:
    content = HEAD + "2023-11-16 18:00:01,5,0\n"
    override = "workflow.branches[0].duration_ms.overhead_ms=0"
    (line,) = lines(tmp_path, content, override)
    assert line == "trace.yaml:9: workflow.branches[0].duration_ms must have a mean >= 1 (got 0.0)"
