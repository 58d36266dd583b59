"""Commands in terminals of any width and encoding, and without any: an answer, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rollbook
from cases import some_of
from forked_programs import Interpreter
from rollbook.errors import BadInput
from rollbook.runs.engine_views import view_sql

ROLLBOOK = [sys.executable, "-m", "rollbook"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("odd")
    config = {"a long name of a setting": "and a long value", "\ud800": {"x\ud800": "\ud800"}}
    for name in ("имя", "b"):
        with rollbook.init("p", name, dir=folder, sinks=(), keeper="inline", config=config) as run:
            run.log({"потеря": 1.0, "test/return": 2.0})
            run.log_episode(return_=1.0, length=2)
    return folder


COMMANDS = """
import json, os, sys
from rollbook.cli import main
for columns, *words in json.loads(sys.argv[1]):
    sys.argv[1:], os.environ["COLUMNS"] = words, columns
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    print(end="\\f")
"""


def _printed(commands: list[list[str]], runs: Path, columns: list[str], **environment: str) -> list[bytes]:
    """What each of these commands prints in terminals of these widths; one program is all of them, and ends at the
    first that fails."""
    words = json.dumps([[width, *command, "--dir", str(runs)] for width in columns for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, words], env={**os.environ, **environment}, capture_output=True, check=False
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr.decode()
    return done.stdout.split(b"\f")[:-1]


def test_no_terminal_is_too_narrow(runs: Path) -> None:
    printed = _printed([["show", "last"], ["ls"], ["show", "last", "--all"]], runs, ["1", "25", "10"])
    assert len(printed) == 9
    assert all(printed)
    assert len(set(printed)) > 3, "the width is looked at by each"


@pytest.mark.parametrize("encoding", some_of(["ascii", "latin-1"], 1))
def test_letters_that_the_output_lacks_are_escaped(runs: Path, encoding: str) -> None:
    commands = [["ls", "--csv"], ["show", "p/имя"], ["sql", "last", 'select "потеря" from metrics']]
    listed, _shown, _selected = _printed(commands, runs, ["80"], PYTHONIOENCODING=encoding)
    assert b"\\u0438\\u043c\\u044f" in listed


@pytest.mark.skipif(sys.platform == "win32", reason="the shell's >&-")
@pytest.mark.parametrize("command", some_of(["show last", "ls"], 1))
def test_a_closed_output_is_no_traceback(runs: Path, command: str) -> None:
    line = f"{sys.executable} -m rollbook {command} --dir {runs} >&-"
    done = subprocess.run(["sh", "-c", line], capture_output=True, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr.decode()


def test_half_a_surrogate_pair_in_a_configuration_spoils_no_table(runs: Path) -> None:
    found = rollbook.open(runs)
    assert found.table().num_rows == 2
    assert len(found.sql("select * from runs").fetchall()) == 2


@pytest.mark.skipif(os.sep == "\\", reason="there it divides folders")
def test_a_path_that_duckdb_cannot_search_is_refused_in_words(tmp_path: Path) -> None:
    folder = tmp_path / "back\\slash"
    with rollbook.init("p", "a", dir=folder, sinks=(), keeper="inline") as run:
        run.log({"loss": 1.0})
    with pytest.raises(BadInput, match="Use a name without"):
        view_sql(folder)
    assert rollbook.open(folder).one("p/a").sql("select count(*) from metrics").fetchall() == [(1,)]


def test_two_dashes_divide_a_program_from_its_arguments(tmp_path: Path) -> None:
    program = tmp_path / "x.py"
    program.write_text("import sys; print(sys.argv[1:])")
    for dashes, expected in ((["--"], "['--lr', '3']"), ([], "['--lr', '3']"), (["--", "--"], "['--', '--lr', '3']")):
        done = subprocess.run(
            [*ROLLBOOK, "run", "--tensorboard", str(program), *dashes, "--lr", "3"], capture_output=True, check=True
        )
        assert done.stdout.decode().strip() == expected


def test_what_is_logged_while_the_interpreter_ends_raises_nothing(tmp_path: Path, interpreter: Interpreter) -> None:
    program = f"""
import sys, rollbook
run = rollbook.init("p", "late", dir={str(tmp_path)!r}, sinks=(), keeper="inline")
class Agent:
    def __del__(self):
        run.log({{"x": 1.0}}); run.log({{"y": "t"}}); run.log_episode(return_=1.0); run.clock(epoch=1); run.dump()
sys.modules["kept"] = Agent()
"""
    done = interpreter.run(program, env=os.environ)
    assert done.returncode == 0
    assert "Exception ignored" not in done.stderr, done.stderr
