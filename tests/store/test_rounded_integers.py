"""Integers that a column of 64-bit floats cannot have are named where a run is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import rollbook
from rollbook.book import Book
from rollbook.cli.app import app

ROWS: dict[str, list[Any]] = {
    "beside floats": [2**53 + 1, 0.5],
    "negative": [-(2**53) - 1, 0.5],
    "beyond 64 bits": [2**63, 1],
    "exact beside floats": [2**53, 0.5],
    "integers alone": [2**62 + 1, -(2**62) - 1],
    "floats alone": [1e300, 0.5],
    "truth": [True, 0.5],
}
ROUNDED = ["beside floats", "beyond 64 bits", "negative"]


@pytest.mark.parametrize("times", [1, 20], ids=["rare rows", "streams"])
@pytest.mark.parametrize("is_sealed", [False, True], ids=["live", "sealed"])
def test_rounded_integers_are_named_and_no_others(tmp_path: Path, times: int, is_sealed: bool) -> None:
    run = rollbook.init("p", "numbers", dir=tmp_path, sinks=[], keeper="inline")
    for _ in range(times):
        for row in zip(*ROWS.values(), strict=True):
            run.log(dict(zip(ROWS, row, strict=True)))
    if is_sealed:
        run.finish()
    book = Book(run.folder)
    (said,) = book.problems()
    assert f"integers of {', '.join(map(repr, ROUNDED))} are" in said
    assert book.problems(deep=False) == [said]
    assert said in CliRunner().invoke(app, ["show", str(run.folder)]).output.replace("\n", " ")
    rows = book.tail(from_start=True, stop=lambda: True)
    assert 2**53 + 1 in {row.values.get("beside floats") for row in rows}, "the digits are there"
    run.finish()


def test_a_run_of_plain_numbers_has_no_remark(tmp_path: Path) -> None:
    with rollbook.init("p", "plain", dir=tmp_path, sinks=[], keeper="inline") as run:
        for n in range(20):
            run.log({"n": n, "loss": 1 / (n + 1), "seed": 2**60 + n})
    assert Book(run.folder).problems() == []
