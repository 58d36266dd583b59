"""Some columns of a table, where all of them would take too much memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.errors import BadInput


@pytest.mark.parametrize("is_finished", [True, False], ids=["sealed", "live"])
def test_a_table_has_the_columns_that_are_asked_for_and_those_that_identify_its_rows(
    tmp_path: Path, is_finished: bool
) -> None:
    options: dict[str, Any] = {"dir": tmp_path, "sinks": [], "rules": (), "keeper": "inline"}
    with rollbook.init("columns", **options) as run:
        for n in range(3):
            run.record("notes", {"text": "long " * 1_000, "score": float(n), "kind": "a" if n else "b"}, env_step=n)
        live = run.book.table("notes", columns=["score", "nothing"])
    table = run.book.table("notes", columns=["score", "nothing"]) if is_finished else live
    assert table["score"].to_pylist() == [0.0, 1.0, 2.0]
    assert table["env_step"].to_pylist() == [0, 1, 2]
    assert table["nothing"].to_pylist() == [None] * 3
    assert {"time", "writer", "lane", "seq", "attempt"} <= set(table.column_names)
    assert {"text", "kind"}.isdisjoint(table.column_names)
    if is_finished:
        chosen = run.book.table("notes", where=("kind", "a"), columns=["score"])
        assert chosen["score"].to_pylist() == [1.0, 2.0]
        assert {"text", "kind"}.isdisjoint(chosen.column_names)


def test_columns_of_metrics_are_asked_for_by_their_keys(tmp_path: Path) -> None:
    with rollbook.init("columns", dir=tmp_path, sinks=[], rules=(), keeper="inline") as run:
        run.log({"loss": 1.0}, env_step=1)
    with pytest.raises(BadInput, match=r"ask metrics\(\['loss'\]\)"):
        run.book.table("metrics", columns=["loss"])
