"""A question that asks several things of a run sees one state of it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.book import Book


def test_what_is_asked_within_a_read_sees_the_same_rows_and_after_it_the_newest(tmp_path: Path) -> None:
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="inline") as run:
        run.log({"a": 1.0}, env_step=1)
        book = Book(run.folder)

        def within(tables: dict[str, Any]) -> tuple[int, int, list[str]]:
            run.log({"b": 2.0}, env_step=2)  # the training goes on meanwhile
            return sum(piece.rows for piece in tables["metrics"]), len(book.latest()), book.keys()

        assert book.files.read(["metrics", "episodes"], within) == (1, 1, ["a"])
        assert book.keys() == ["a", "b"]
        assert sorted(book.latest()) == ["a", "b"]


@pytest.mark.parametrize("changed", ["long ago", "just now"])
def test_the_first_rows_of_a_table_are_found_by_an_open_book(changed: str, tmp_path: Path) -> None:
    for name in ("one", "other"):
        with rollbook.init("p", name, dir=tmp_path, sinks=[], keeper="inline") as run:
            run.log({"a": 1.0})
            if name == "other":
                run.log_text("note", "words")
    one, other = (next((tmp_path / "p").glob(f"{name}-*/data")) for name in ("one", "other"))
    if changed == "long ago":
        os.utime(one, (1.0, 1.0))
    book = Book(one.parent)
    assert book.text().num_rows == 0
    shutil.copytree(other / "text", one / "text")
    assert book.text().num_rows == 1
    shutil.rmtree(one / "text")
    assert book.text().num_rows == 0
