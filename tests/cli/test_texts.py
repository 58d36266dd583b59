"""Texts from a run reach no terminal and no spreadsheet as commands."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import rollbook
from rollbook.cli.app import app
from rollbook.system.texts import csv_cell, printable

EVIL = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\x1b]0;title\x07", "\t=1", "\r=1", "a\x1b[2Jb"]


@given(st.text())
def test_any_text_is_made_harmless(text: str) -> None:
    assert printable(text).isprintable()
    cell = csv_cell(text)
    assert "\x1b" not in cell
    assert not cell.startswith(("=", "@"))
    assert csv_cell("-1.5e3") == "-1.5e3", "a number stays one"


@pytest.mark.parametrize("command", ["export", "samples"])
def test_no_csv_holds_a_formula_or_an_escape(tmp_path: Path, command: str) -> None:
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="import") as run:
        run.log_samples(EVIL, reward=[0.0] * len(EVIL))
        for n, text in enumerate(EVIL):
            run.log_text("said", text, env_step=n)
    words = ["export", str(run.folder), "--table", "samples", "--to", "csv"]
    done = CliRunner().invoke(app, words if command == "export" else ["samples", str(run.folder), "--csv"])
    assert done.exit_code == 0, done.output
    content = done.stdout
    assert "\x1b" not in content
    cells = [cell for line in csv.reader(io.StringIO(content)) for cell in line]
    assert any(cell.startswith("'=1+1") for cell in cells)
    assert not [cell for cell in cells if cell.startswith(("=", "@", "+c", "-2", "\t", "\r"))]


def test_show_prints_no_escape_of_a_run(tmp_path: Path) -> None:
    with rollbook.init(
        "p", "r", dir=tmp_path, config={"x": EVIL[4]}, notes=EVIL[4], tags=[EVIL[7]], sinks=[], keeper="import"
    ) as run:
        run.log({EVIL[4]: 1.0}, env_step=1)
    page = Path(run.folder) / "run.json"
    page.write_text(page.read_text().replace(f'"id": "{run.id}"', '"id": "\\u001b]0;x\\u0007"'))
    for words in (["show", str(run.folder)], ["ls", str(tmp_path)]):
        assert "\x1b]" not in CliRunner().invoke(app, words).output
