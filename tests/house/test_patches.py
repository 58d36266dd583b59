"""Tests drive public faces: what of rollbook's inside they replace is counted here, and may only become less."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from syntax import tree as tree_of

TESTS = Path(__file__).parents[1]
MOST = 80


def patches(file: Path) -> Iterator[int]:
    """The lines in which an attribute of rollbook is replaced: `setattr` of a monkeypatch, or `mock.patch`."""
    text = file.read_text(encoding="utf-8")
    tree = tree_of(text if re.search(r"\.(setattr|delattr|patch|object)\(", text) else "")
    origin = {
        alias.asname or alias.name.split(".")[0]: f"{getattr(node, 'module', '') or ''}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
            continue
        if node.func.attr in ("setattr", "delattr", "patch", "object"):
            target = node.args[0]
            text = target.value if isinstance(target, ast.Constant) else ast.unparse(target)
            root = origin.get(str(text).partition(".")[0], str(text))
            if "rollbook" in root or "rollbook" in str(text):
                yield node.lineno


def test_tests_replace_no_more_of_the_inside_than_they_did() -> None:
    """Instead: a real process that lives or has died, a folder on `sys.path`, an argument, an environment variable; for
    sizes and waits the fixture `tuned`."""
    found = [f"{file.relative_to(TESTS)}:{line}" for file in sorted(TESTS.rglob("*.py")) for line in patches(file)]
    assert len(found) <= MOST, f"{len(found)}: {found}"
