"""A command that a message advises can be pasted into a shell, whatever runs, places and folders are called."""

from __future__ import annotations

import ast
import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from click import Context

import rollbook
from rollbook.cli.app import app
from rollbook.system.files import pasted
from syntax import tree as tree_of

SRC = Path(rollbook.__file__).parent
QUOTING = ("pasted(", "files.pasted(", "shlex.quote(", "shlex.join(")
QUOTED = {"folder": "folder = shlex.quote(", "_command()": "", "command": "command = _command()"}
"""In cli and demo: names of what was quoted a few lines above, and how."""

COMMAND = rf"rollbook ({'|'.join(app.list_commands(Context(app)))})( [^.;:,(\n]*)?"
ADVISED = re.compile(COMMAND + "$")
MAY_ADVISE = re.compile(COMMAND + r"(\{|(?<= )['\"])")
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
    yield from added(tree)


def added(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The same of what is added to a text that ends in a command: by `+`, or by `+=` in the next line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and ends_in_a_command(node.left):
            yield node.right.lineno, ast.unparse(node.right)
        body = getattr(node, "body", None)
        for one, following in itertools.pairwise(body) if isinstance(body, list) else ():
            if isinstance(following, ast.AugAssign) and ends_in_a_command(getattr(one, "value", None)):
                yield following.lineno, ast.unparse(following.value)


def ends_in_a_command(text: ast.AST | None) -> bool:
    last = text.values[-1] if isinstance(text, ast.JoinedStr) and text.values else text
    if not isinstance(last, ast.Constant) or not isinstance(last.value, str):
        return False
    return last.value.endswith(" ") and ADVISED.search(last.value) is not None


def test_what_is_filled_into_a_command_is_quoted_for_a_shell() -> None:
    found = [
        f"{path.relative_to(SRC)}:{line} {expression}"
        for path in sorted(SRC.rglob("*.py"))
        if MAY_ADVISE.search(JOIN.sub("", code := path.read_text("utf-8")))
        for line, expression in filled_in(tree_of(code))
        if not expression.startswith(QUOTING)
        and not (
            path.relative_to(SRC).parts[0] in ("cli", "demo") and expression in QUOTED and QUOTED[expression] in code
        )
    ]
    assert found == []


def test_the_search_finds_what_is_filled_in() -> None:
    text = 'f"{words}. Put it there: rollbook push --again {folder}, or rollbook pull {url}/{run} --dir {root}; {x}"'
    assert [found for _line, found in filled_in(tree_of(text))] == ["folder", "url", "run", "root"]
    text = """
if found:
    what += f"{found}: rollbook import "
    what += folder
    print("rollbook seal " + place, "rollbook " + name, "ask rollbook " + it)
"""
    assert sorted(found for _line, found in filled_in(tree_of(text))) == ["folder", "place"]


@pytest.mark.parametrize(
    "name", ["runs", "/a/b-1.c", "with spaces", "ü", "it's", 'a;b $HOME `c` "d"', "", "a\nb", "~", "*"]
)
def test_a_quoted_path_is_one_word_of_a_shell(name: str) -> None:
    assert shlex.split(pasted(name)) == [name]
    assert pasted(Path("runs/a")) == "runs/a"
