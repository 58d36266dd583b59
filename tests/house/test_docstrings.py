"""A docstring names no argument that its function or class does not have."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import rollbook
from syntax import definitions
from syntax import tree as tree_of

SRC = Path(rollbook.__file__).parent
SECTION = re.compile(r"^Args:\n((?: +\S.*\n?|\n)+)", re.MULTILINE)
ENTRY = re.compile(r"^  (\*{0,2}\w+(?:, \*{0,2}\w+)*):", re.MULTILINE)


def documented(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """The names under `Args:`, in order."""
    if "Args:" not in (ast.get_docstring(node, clean=False) or ""):
        return []
    text = "".join(SECTION.findall((ast.get_docstring(node) or "") + "\n"))
    return [name for entry in ENTRY.findall(text) for name in re.findall(r"\w+", entry)]


def arguments(node: ast.AST) -> set[str] | None:
    """The arguments of a function, or of the constructor of a class; None if others may be given by name."""
    if isinstance(node, ast.ClassDef):
        makers = [each for each in node.body if getattr(each, "name", "") in ("__init__", "__new__")]
        fields = {each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and _is_name(each.target)}
        own = [arguments(each) for each in makers]
        if node.bases and not makers:
            return None
        return None if None in own else fields.union(*(each for each in own if each is not None))
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    args = node.args
    if args.kwarg is not None:
        return None
    listed = [*args.posonlyargs, *args.args, *args.kwonlyargs, *([args.vararg] if args.vararg else [])]
    return {each.arg for each in listed}


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Name)


def wrong(source: str) -> Iterator[str]:
    """What the docstrings of a module say and its functions do not have."""
    for node in definitions(tree_of(source)):
        names, known = documented(node), arguments(node)
        yield from (f"{node.name}: {name} twice" for name in sorted({n for n in names if names.count(n) > 1}))
        if known is not None:
            yield from (f"{node.name}: no argument {name}" for name in names if name not in known)


def test_no_docstring_documents_an_argument_that_is_not_there_or_one_twice() -> None:
    sources = {str(path.relative_to(SRC)): path.read_text("utf-8") for path in sorted(SRC.rglob("*.py"))}
    found = {name: list(wrong(source)) for name, source in sources.items() if "Args:" in source}
    assert {name: words for name, words in found.items() if words} == {}


def test_the_search_finds_both() -> None:
    code = '''
def f(report):
    """F.

    Args:
      say: called.
      report: called.
      report: again.
    """
'''
    assert list(wrong(code)) == ["f: report twice", "f: no argument say"]
