from __future__ import annotations

import csv
import json
import math

import pandas
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rollbook import testing
from rollbook.errors import BadInput
from rollbook.protocols import Row
from rollbook.sinks import Csv, Jsonl
from rollbook.values import Histogram, Image


def table(folder, name="metrics"):
    with (folder / "log" / "csv" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def files(folder):
    return sorted(path.name for path in (folder / "log" / "csv").iterdir())


def test_a_scope_has_a_table_of_its_own(write):
    folder = write(Csv(), {"train/return": 1.5, "train/solved": True}, scope="train", env_step=7, epoch=1)
    assert table(folder, "train") == [
        ["time", "attempt", "env_step", "epoch", "train/return", "train/solved"],
        ["1700000000.25", "1", "7", "1", "1.5", "True"],
    ]


def test_rows_logged_outside_of_scopes_go_by_the_first_part_of_their_keys_where_they_share_it(write):
    folder = write(Csv(), {"a/x": 1}, {"b/x": 1, "b/y": 2}, {"a/x": 1, "b/x": 2}, {"x": 1})
    assert files(folder) == ["a.csv", "b.csv", "metrics.2.csv", "metrics.csv"]


def test_one_table_for_all_on_request(write):
    folder = write(Csv(per_scope=False), {"a/x": 1}, {"a/x": 2}, scope="a")
    assert files(folder) == ["metrics.csv"]


def test_what_the_run_did_not_log_itself_is_written_on_request_only(write):
    rows = [
        {"train/x": 1.0},
        {"host/cpu_percent": 5.0},
        {"rollbook/rows": 3, "mine": 2.0},
        {"time/update_seconds": 0.5},
    ]
    folder = write(Csv(), *rows)
    assert files(folder) == ["metrics.csv", "time.csv", "train.csv"]
    assert table(folder) == [["time", "attempt", "mine"], ["1700000002.25", "1", "2.0"]]


def test_everything_is_written_if_nothing_is_to_be_left_out(write):
    folder = write(Csv(leave_out="", per_scope=False), {"x": 1.0}, {"host/cpu_percent": 5.0})
    assert table(folder, "metrics.2") == [["time", "attempt", "host/cpu_percent"], ["1700000001.25", "1", "5.0"]]


def test_what_is_left_out_can_be_chosen(write):
    folder = write(Csv(leave_out="^x"), {"y": 1.0}, {"x": 5.0})
    assert table(folder) == [["time", "attempt", "y"], ["1700000000.25", "1", "1.0"]]


def test_the_long_table_leaves_out_the_same(write):
    folder = write(Csv(per_scope=False), *({f"k{i}": float(i), "host/cpu": 1.0} for i in range(40)))
    assert {line[-2] for line in table(folder, "metrics.long")[1:]} == {f"k{i}" for i in range(32, 40)}


@pytest.mark.parametrize("pattern", ["(", 3])
def test_a_pattern_that_is_none_is_reported(pattern):
    with pytest.raises(BadInput, match="csv sink was given leave_out"):
        Csv(leave_out=pattern)


def test_pandas_reads_the_numbers_that_were_written(write):
    values = [0.1 + 0.2, math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e308]
    folder = write(Csv(), *({"x": value, "note": 'a,"b"\nc'} for value in values))
    found = pandas.read_csv(folder / "log/csv/metrics.csv", float_precision="round_trip")
    assert [repr(value) for value in found["x"]] == [repr(value) for value in values]
    assert set(found["note"]) == {'a,"b"\nc'}


def test_missing_is_not_nan(write):
    folder = write(Csv(), {"a": 1.0, "b": math.nan}, {"a": 2.0})
    assert [row[2:] for row in table(folder)] == [["a", "b"], ["1.0", "nan"], ["2.0", ""]]


def test_a_late_column_begins_the_next_part_and_no_line_is_written_twice(write):
    folder = write(Csv(), {"a": 1}, {"a": 2}, {"a": 3, "b": 4}, {"a": 5}, {"b": 6, "a": 7})
    assert [row[2:] for row in table(folder)] == [["a"], ["1"], ["2"]]
    assert [row[2:] for row in table(folder, "metrics.2")] == [["a", "b"], ["3", "4"], ["5", ""], ["7", "6"]]
    joined = pandas.concat([pandas.read_csv(folder / "log/csv" / name) for name in files(folder)])
    assert sorted(joined["a"]) == [1, 2, 3, 5, 7]


def test_keys_without_end_go_to_the_long_table(write):
    folder = write(Csv(), *({f"k{i}": float(i), f"j{i}": -1} for i in range(40)), env_step=3)
    assert len(files(folder)) == 33
    long = table(folder, "metrics.long")
    assert long[0] == ["time", "attempt", *testing.CLOCKS, "key", "value"]
    assert long[1][2:] == ["3", "", "", "k32", "32.0"]
    assert len(long) == 1 + 2 * 8


def test_scopes_without_end_share_a_table(run):
    sink = Csv()
    sink.open(run)
    sink.write([Row(0.0, {}, {f"s{i}/x": 1}, f"s{i}") for i in range(70)])
    assert "other.csv" in files(run.folder)
    assert len({name.split(".")[0] for name in files(run.folder)}) == 65


def test_names_that_differ_in_case_alone_have_tables_of_their_own(write):
    folder = write(Csv(), {"train/x": 1}, {"Train/x": 2}, {"Train/x": 3})
    assert len({name.lower() for name in files(folder)}) == 2


def test_keys_named_like_the_first_columns_keep_their_values(write):
    folder = write(Csv(), {"time": 1, "env_step": 2, "value/time": 3}, env_step=9)
    header, row = table(folder)
    assert dict(zip(header, row, strict=True)) == {
        "time": "1700000000.25",
        "attempt": "1",
        "env_step": "9",
        "value/time": "1",
        "value/env_step": "2",
        "value/value/time": "3",
    }


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.dictionaries(st.text(max_size=8), st.text(max_size=8), min_size=1, max_size=4), max_size=6))
def test_any_text_comes_back_as_it_was(tmp_path_factory, rows):
    run = testing.some_run(tmp_path_factory.mktemp("csv"))
    sink = Csv(per_scope=False)
    sink.open(run)
    sink.write([Row(float(i), {}, row) for i, row in enumerate(rows)])
    found = {}
    for name in files(run.folder) if rows else []:
        header, *lines = table(run.folder, name.removesuffix(".csv"))
        for line in lines:
            found[float(line[0])] = {k: v for k, v in zip(header[2:], line[2:], strict=True) if v or k}
    for i, row in enumerate(rows):
        expected = {("value/" + k if k in ("time", "attempt") else k): v for k, v in row.items()}
        assert {k: v for k, v in found[float(i)].items() if v} == {k: v for k, v in expected.items() if v}


def lines(folder):
    def no_json(name):
        pytest.fail(f"{name} is no JSON")

    text = (folder / "log/jsonl/metrics.jsonl").read_text("ascii")
    return [json.loads(line, parse_constant=no_json) for line in text.split("\n") if line]


def test_a_row_is_a_line_of_valid_json(write):
    folder = write(Jsonl(), {"train/return": 1.5, "train/n": 3, "train/on": True}, scope="train", env_step=7)
    assert lines(folder) == [
        {
            "time": 1700000000.25,
            "attempt": 1,
            "scope": "train",
            "env_step": 7,
            "train/return": 1.5,
            "train/n": 3,
            "train/on": True,
        }
    ]


def test_numbers_that_json_lacks_are_strings_that_python_reads(write):
    (line,) = lines(write(Jsonl(), {"a": math.nan, "b": math.inf, "c": -math.inf}))
    assert (line["a"], line["b"], line["c"]) == ("NaN", "Infinity", "-Infinity")
    assert math.isnan(float(line["a"]))
    assert float(line["c"]) == -math.inf


def test_integers_keep_all_their_digits(write):
    (line,) = lines(write(Jsonl(), {"a": 2**63 + 1, "b": 10**5000}))
    assert line["a"] == 2**63 + 1
    assert int(line["b"], 16) == 10**5000


def test_histograms_and_media_are_objects(write):
    (line,) = lines(write(Jsonl(), {"h": Histogram([0, 1, 2], [3, 4]), "i": Image("media/a.png", 4, 2)}))
    assert line["h"]["kind"] == "histogram"
    assert (line["h"]["edges"], line["h"]["counts"]) == ([0, 1, 2], [3, 4])
    assert line["i"] == {"kind": "image", "path": "media/a.png", "width": 4, "height": 2}


def test_pandas_reads_json_lines(write):
    folder = write(Jsonl(), {"x": 1.5}, {"x": 2.5, "y": 1})
    assert list(pandas.read_json(folder / "log/jsonl/metrics.jsonl", lines=True)["x"]) == [1.5, 2.5]
