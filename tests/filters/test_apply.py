"""A plain function stands wherever a filter is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook import sinks
from rollbook.errors import BadInput
from rollbook.protocols import Row
from rollbook.sinks import Memory, filters
from rollbook.sinks.filters import Apply


def only_losses(row: Row) -> Row | None:
    return row if any("loss" in key for key in row.values) else None


def in_thousands(row: Row) -> Row:
    return replace(row, values={key: value / 1000 for key, value in row.values.items()})  # type: ignore[operator]


def rows() -> list[Row]:
    return [
        Row(1.0, {}, {"loss": 3000.0}, seq=1),
        Row(2.0, {}, {"return": 5.0}, seq=2),
        Row(3.0, {}, {}, mark="final", seq=3),
    ]


def test_a_function_drops_and_changes_rows_and_never_sees_a_mark() -> None:
    kept = Memory()
    Apply(Apply(kept, in_thousands), only_losses).write(rows())
    assert [(dict(row.values), row.mark) for row in kept.rows] == [({"loss": 3.0}, ""), ({}, "final")]


def test_a_sink_takes_functions_among_the_names_of_filters() -> None:
    sink: Any = sinks.make("memory", filters=[only_losses, "drop_none", f"{__name__}:in_thousands"])
    assert isinstance(sink, Apply)
    assert [type(sink.to).__name__, type(sink.to.to).__name__] == ["DropNone", "Apply"]


def test_an_answer_that_is_no_row_is_a_failure_that_names_the_function() -> None:
    def only_keys(row: Row) -> Any:
        return dict(row.values)

    with pytest.raises(BadInput, match=r"only_keys.*returned dict"):
        Apply(Memory(), only_keys).write(rows())
    with pytest.raises(BadInput, match="function of a row"):
        filters.make("apply", Memory(), function=3)
    with pytest.raises(BadInput, match="could not find"):
        filters.make("apply", Memory(), function="rollbook.nowhere:f")


def test_the_keeper_learns_where_a_function_is_and_one_that_it_cannot_find_is_an_error_of_init(tmp_path: Path) -> None:
    sink = {"name": "jsonl", "filters": [filters.make]}
    assert filters.plain_specs(sink["filters"]) == ["rollbook.sinks.filters:make"]
    with pytest.raises(BadInput, match="cannot find this"):
        rollbook.init("p", dir=tmp_path, sinks=[{"name": "jsonl", "filters": [lambda row: row]}])


def test_a_function_of_a_module_filters_what_the_keeper_forwards(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "filters_of_mine.py").write_text(
        "def no_host(row):\n    return None if any(key.startswith('host/') for key in row.values) else row\n"
        "def loud(row):\n    return row if row.values.get('loss', 0) > 1 else None\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import filters_of_mine  # type: ignore[import-not-found]

    sink = {"name": "jsonl", "filters": [filters_of_mine.no_host, filters_of_mine.loud]}
    with rollbook.init("p", dir=tmp_path / "runs", sinks=[sink], keeper="inline") as run:
        for n in range(4):
            run.log({"loss": float(n)}, env_step=n)
    lines = (run.folder / "log" / "jsonl" / "metrics.jsonl").read_text().splitlines()
    assert [line.count('"loss"') for line in lines if '"loss"' in line] == [1, 1]
