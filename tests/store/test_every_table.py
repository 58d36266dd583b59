"""Every table that `rollbook.schema.tables` lists, wherever somebody may meet it: live, sealed and merged."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import rollbook
from rollbook.cli.app import app
from rollbook.journal.reader import JournalReader
from rollbook.keeper.main import Keeper
from rollbook.schema.tables import FORWARDED, TABLES
from rollbook.sinks.memory import Memory
from rollbook.storage.sealed_rows import SealedRows
from rollbook.storage.sealing.folder import seal

ROWS = 3
CELLS = {"text": "some words", "number": 1.5, "integer": 7, "boolean": True, "numbers": [1.0, 2.0, 4.0]}
LEFT_OUT = {("histograms", "edges"), ("histograms", "counts")}  # a row has these or `values`

# One run a table, by a program that is killed: nothing of it is sealed until somebody does.
PROGRAM = """
import json, os, sys, rollbook
from rollbook.system.tuning import TUNING
TUNING.first_cost_seconds = float("inf")  # no row comes by itself, however slow the machine is
for table, cells in json.loads(sys.argv[2]).items():
    run = rollbook.init("tables", table, dir=sys.argv[1], keeper="inline", sinks=[])
    for n in range(int(sys.argv[3])):
        if table == "metrics":
            run.log({"loss": float(n)}, env_step=n)
        else:
            row = {name: [f"{cell} {n}" if isinstance(cell, str) else cell] for name, cell in cells.items()}
            run.record(table, row, env_step=n)
os._exit(0)
"""


def cells_of(name: str) -> dict[str, Any]:
    return {column: CELLS[kind] for column, kind in TABLES[name].columns.items() if (name, column) not in LEFT_OUT}


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tables")
    wanted = json.dumps({name: cells_of(name) for name in TABLES})
    subprocess.run([sys.executable, "-c", PROGRAM, str(root), wanted, str(ROWS)], check=True, timeout=600)
    return root


@pytest.fixture(scope="module", params=["live", pytest.param("sealed", marks=pytest.mark.long), "merged"])
def runs(request: pytest.FixtureRequest, killed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp(request.param)
    shutil.copytree(killed, root, dirs_exist_ok=True)
    if request.param != "live":
        for run in (root / "tables").iterdir():
            seal(run, final=request.param == "merged")
            assert list((run / "data").glob("*/**/*.parquet")), f"{run.name} was not sealed"
    return root


@pytest.fixture(params=list(TABLES))
def table(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def books(runs: Path) -> dict[str, Any]:
    """Table -> the run that has rows of it."""
    return {book.name: book for book in rollbook.open(runs)}


@pytest.fixture
def folder(books: dict[str, Any], table: str) -> Path:
    return Path(books[table].path)


def test_a_book_shows_its_rows_with_the_columns_it_always_has(books: dict[str, Any], table: str) -> None:
    rows = books[table].table(table)
    assert rows.num_rows == ROWS
    assert set(TABLES[table].columns) <= set(rows.column_names)
    for column, value in cells_of(table).items():
        words = isinstance(value, str)
        assert rows[column].to_pylist() == [f"{value} {n}" if words else value for n in range(ROWS)]


def test_a_row_reader_gives_its_rows_to_all_that_ask_for_them(folder: Path, table: str) -> None:
    with JournalReader(folder, sealed=SealedRows(folder), tables=frozenset({table})) as reader:
        rows = [row for row in reader.rows_since({}) if not row.mark]
        assert not reader.problems
    assert [(row.table, row.clocks.get("env_step")) for row in rows] == [(table, n) for n in range(ROWS)]
    assert all(row.values for row in rows)


def test_a_later_keeper_forwards_what_sinks_get_and_nothing_else(folder: Path, table: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(folder, run)
    memory = Memory()
    Keeper(run, sinks=[memory]).run_to_end()
    assert sum(not row.mark for row in memory.rows) == (ROWS if table in FORWARDED else 0)


def test_show_counts_it(folder: Path, table: str) -> None:
    shown = CliRunner().invoke(app, ["show", str(folder), "--json"])
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["tables"] == {table: ROWS}


def test_it_is_exported(folder: Path, table: str) -> None:
    written = CliRunner().invoke(app, ["export", str(folder), "--table", table, "--to", "jsonl"])
    assert written.exit_code == 0, written.output
    assert len(written.stdout.splitlines()) == ROWS


def test_the_page_for_developers_names_its_columns(table: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "internals.md").read_text("utf-8")
    lines = [line for line in page.splitlines() if line.startswith(f"| {table} |")]
    assert table == "metrics" or any(all(column in line for column in TABLES[table].columns) for line in lines), lines
