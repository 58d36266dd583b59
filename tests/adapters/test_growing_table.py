"""Delimited files whose columns come one by one."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases import examples
from rollbook.adapters import _table
from rollbook.adapters._table import GrowingTable


def read(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


def test_a_column_that_comes_late_leaves_earlier_rows_empty_there(tmp_path: Path) -> None:
    table = GrowingTable(tmp_path / "a.csv")
    table.write({"loss": 0.5})
    table.write({"loss": 0.25, "kl": 0.125})
    table.write({"kl": 1})
    table.close()
    assert (tmp_path / "a.csv").read_text() == "loss,kl\n0.5,\n0.25,0.125\n,1\n"


def test_every_row_is_in_the_file_as_soon_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    table = GrowingTable(path)
    for i in range(5):
        table.write({f"k{j}": i for j in range(i + 1)})
        assert len(read(path)) == i + 1
    table.close()


def test_a_folder_that_is_used_again_keeps_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "progress.txt"
    for epoch in range(3):
        table = GrowingTable(path, "\t")
        table.write({"Epoch": epoch, f"only{epoch}": 1})
        table.close()
    rows = read(path, "\t")
    assert [row["Epoch"] for row in rows] == ["0", "1", "2"]
    assert rows[2]["only2"] == "1"
    assert rows[0]["only2"] == ""


def test_a_row_torn_by_a_kill_is_cut_off_when_the_file_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n1,2\n3,")
    table = GrowingTable(path)
    table.write({"a": 5, "b": 6})
    table.close()
    assert path.read_text() == "a,b\n1,2\n5,6\n"


def test_a_text_with_newlines_survives_a_new_column(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    table = GrowingTable(path)
    table.write({"note": 'two\nlines, "quoted"', "x": 1})
    table.write({"y": 2})
    table.close()
    rows = read(path)
    assert rows[0] == {"note": 'two\nlines, "quoted"', "x": "1", "y": ""}
    assert rows[1] == {"note": "", "x": "", "y": "2"}


def test_a_large_file_is_not_rewritten_for_every_new_column(tmp_path: Path) -> None:
    rewrites = []

    class Counted(GrowingTable):
        def _rewrite(self) -> None:
            rewrites.append(1)
            super()._rewrite()

    path = tmp_path / "a.csv"
    table = Counted(path, clock=lambda: 0.0, small=1000)
    for i in range(400):
        table.write({f"k{i}": i})
    table.close()
    rows = read(path)
    assert len(rows) == 400
    assert all(rows[i][f"k{i}"] == str(i) for i in range(400))
    assert len(rewrites) < 80


def test_rows_that_wait_for_a_rewrite_wait_a_few_seconds_at_most(tmp_path: Path) -> None:
    now = [0.0]
    path = tmp_path / "a.csv"
    table = GrowingTable(path, clock=lambda: now[0], small=0)
    table.write({"a": "x" * 1000})
    table.write({"b": 1})
    assert len(read(path)) == 1
    now[0] = _table.WAIT_SECONDS
    table.write({"b": 2})
    assert [row["b"] for row in read(path)] == ["", "1", "2"]
    table.close()


def test_a_disk_that_is_full_leaves_whole_rows_behind(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    table = GrowingTable(path)
    table.write({"a": 1})

    class Full:
        def __init__(self, file: object) -> None:
            self.file = file

        def write(self, text: bytes) -> None:
            self.file.write(text[:1])  # type: ignore[attr-defined]

        def flush(self) -> None:
            self.file.flush()  # type: ignore[attr-defined]
            raise OSError(28, "No space left on device")

        def __getattr__(self, name: str) -> object:
            return getattr(self.file, name)

    table._file = Full(table._file)
    with pytest.raises(OSError, match="No space"):
        table.write({"a": 2})
    assert path.read_text() == "a\n1\n"
    table.write({"a": 3})
    table.close()
    assert path.read_text() == "a\n1\n3\n"


def test_nothing_is_left_beside_the_file(tmp_path: Path) -> None:
    table = GrowingTable(tmp_path / "a.csv")
    for i in range(10):
        table.write({f"k{i}": i})
    table.close()
    table.close()
    assert os.listdir(tmp_path) == ["a.csv"]
    with pytest.raises(OSError, match="closed"):
        table.write({"a": 1})


cells = st.one_of(
    st.none(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(codec="utf-8", exclude_characters="\r\x00")),
)


@settings(max_examples=examples(10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.dictionaries(st.sampled_from([*"abcd", "e,f", 'g"h']), cells, min_size=1), min_size=1, max_size=8),
    delimiter=st.sampled_from([",", "\t"]),
    cut=st.integers(0, 8),
)
def test_what_was_written_is_read_back(tmp_path: Path, rows: list[dict[str, object]], delimiter: str, cut: int) -> None:
    path = tmp_path / "t.csv"
    path.unlink(missing_ok=True)
    for part in (rows[:cut], rows[cut:]):
        table = GrowingTable(path, delimiter)
        for row in part:
            table.write(row)
        table.close()
    found = read(path, delimiter)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    expected = [{c: "" if row.get(c) is None else str(row[c]) for c in columns} for row in rows]
    if len(columns) > 1:  # a single empty cell is an empty line, which csv readers skip
        assert found == expected
