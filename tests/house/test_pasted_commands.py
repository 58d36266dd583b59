"""A command that a message advises can be pasted into a shell, whatever runs, places and folders are called."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from click import Context

import rollbook
from rollbook.cli.app import app
from rollbook.ground.files import pasted
from syntax import tree as tree_of

SRC = Path(rollbook.__file__).parent
QUOTING = ("pasted(", "files.pasted(", "shlex.quote(", "shlex.join(")
QUOTED = {"place", "folder", "_command()", "command"}
"""In cli and demo: names of what was quoted a few lines above."""

COMMAND = rf"rollbook ({'|'.join(app.list_commands(Context(app)))})( [^.;:,(\n]*)?"
ADVISED = re.compile(COMMAND + "$")
MAY_ADVISE = re.compile(COMMAND + r"\{")
JOIN = re.compile(r'"\s*f?"')
"""Between the parts of a text over several lines."""


def filled_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, expression) of everything that is filled into a command of ours in a text."""
    for text in ast.walk(tree):
        if not isinstance(text, ast.JoinedStr):
            continue
        before = ""
        for part in text.values:
            if isinstance(part, ast.Constant):
                before += str(part.value)
            elif isinstance(part, ast.FormattedValue):
                if ADVISED.search(before):
                    yield part.lineno, ast.unparse(part.value)
                before += "X"


def test_what_is_filled_into_a_command_is_quoted_for_a_shell() -> None:
    found = [
        f"{path.relative_to(SRC)}:{line} {expression}"
        for path in sorted(SRC.rglob("*.py"))
        if MAY_ADVISE.search(JOIN.sub("", code := path.read_text("utf-8")))
        for line, expression in filled_in(tree_of(code))
        if not expression.startswith(QUOTING)
        and not (path.relative_to(SRC).parts[0] in ("cli", "demo") and expression in QUOTED)
    ]
    assert found == []


def test_the_search_finds_what_is_filled_in() -> None:
    text = 'f"{words}. Put it there: rollbook push --anew {folder}, or rollbook pull {url}/{run} --dir {root}; {x}"'
    assert [found for _line, found in filled_in(tree_of(text))] == ["folder", "url", "run", "root"]


@pytest.mark.parametrize(
    "name", ["runs", "/a/b-1.c", "with spaces", "ü", "it's", 'a;b $HOME `c` "d"', "", "a\nb", "~", "*"]
)
def test_a_quoted_path_is_one_word_of_a_shell(name: str) -> None:
    assert shlex.split(pasted(name)) == [name]
    assert pasted(Path("runs/a")) == "runs/a"
