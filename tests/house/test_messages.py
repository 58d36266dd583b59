"""The words of errors and warnings: plain English that a reader of another language understands."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rollbook
from syntax import tree as tree_of

SOURCE = Path(__file__).resolve().parents[2] / "src" / "rollbook"
FORMER = re.compile(r"(?<!there )\b(is|are) no (?!longer\b)|\b(is|are) none of\b", re.IGNORECASE)
"""'x is no number' for 'x must be a number' or 'x is not a number'; 'there is no such run' is English."""

JOIN = re.compile(r'"\s*f?"')
"""Between the parts of a text over several lines."""

_TO_DO = (
    "Add|Ask|Call|Choose|Copy|End|Give|Install|Leave|Look|Make|Move|Name|Open|Pass|Read|Record|Remove|Rename|Run|Say|Set|"
    "Take|Train|Try|Use|Wait|Write"
)
ADVICE = re.compile(rf"[.!?}}] ({_TO_DO})\b|; ({_TO_DO.lower()})\b")
"""A sentence, or a part of one, that begins with what to do."""


def messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, text) of every string in what is raised, and in what is said as a message."""
    for node in ast.walk(tree):
        said: list[ast.AST] = []
        if isinstance(node, ast.Raise) and node.exc is not None:
            said = [node.exc]
        elif isinstance(node, ast.Call):
            said = [keyword.value for keyword in node.keywords if keyword.arg == "message"]
        for part in said:
            texts = [
                each.value for each in ast.walk(part) if isinstance(each, ast.Constant) and isinstance(each.value, str)
            ]
            yield node.lineno, "·".join(texts)


def test_no_error_calls_a_thing_no_thing() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}:{line}: {text}"
        for path in sorted(SOURCE.rglob("*.py"))
        if FORMER.search(JOIN.sub("", code := path.read_text("utf-8")))
        for line, text in messages(tree_of(code))
        if FORMER.search(text)
    ]
    assert not wrong, "\n".join(wrong)


def test_what_to_do_is_the_advice_of_an_error_and_no_part_of_its_message() -> None:
    """So that each door can show it in its own way, in the rooms that answer questions about runs."""
    inside = [
        f"{path.relative_to(SOURCE)}:{node.lineno}: {said[-80:]}"
        for room in ("runs", "compare", "server", "formats")
        for path in sorted((SOURCE / room).rglob("*.py"))
        for code in [path.read_text("utf-8")]
        for node in ast.walk(tree_of(code))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and len(node.exc.args) == 1
        if ADVICE.search(said := JOIN.sub("", ast.get_source_segment(code, node.exc.args[0]) or ""))
    ]
    assert not inside, "\n".join(inside)


def test_a_notebook_shows_the_line_of_the_user_and_the_message_alone(tmp_path: Path) -> None:
    with pytest.raises(rollbook.errors.RollbookError) as caught:
        rollbook.open(tmp_path / "nowhere")
    lines = "\n".join(caught.value._render_traceback_()).splitlines()
    assert lines[0].startswith(f'  File "{__file__}"')
    assert lines[1].strip() == 'rollbook.open(tmp_path / "nowhere")'
    assert [line for line in lines if str(SOURCE) in line] == []
    assert lines[-1].startswith("RunNotFound: ")
