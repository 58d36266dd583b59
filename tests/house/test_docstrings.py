"""A docstring names nothing of rollbook that is not there: no argument, no module, no class."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import rollbook
from syntax import definitions
from syntax import tree as tree_of

SRC = Path(rollbook.__file__).parent
SECTION = re.compile(r"^Args:\n((?: +\S.*\n?|\n)+)", re.MULTILINE)
ENTRY = re.compile(r"^  (\*{0,2}\w+(?:, \*{0,2}\w+)*):", re.MULTILINE)
ROOMS = {path.parent.name for path in SRC.glob("*/__init__.py")} - {"book", "run", "runs", "schema"}  # also variables
DOTTED = re.compile(rf"`((?:rollbook\.)?(?:{'|'.join(sorted(ROOMS))})(?:\.\w+)+)")


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


def is_there(name: str) -> bool:
    """Whether `name` is a module of rollbook, or something in one; the leading "rollbook." may be left out."""
    found = rollbook
    for part in name.removeprefix("rollbook.").split("."):
        if not hasattr(found, part):
            try:
                importlib.import_module(f"{found.__name__}.{part}")
            except (AttributeError, ModuleNotFoundError):
                return False
        found = getattr(found, part)
    return True


def dotted_names(source: str) -> Iterator[str]:
    """The names of rollbook that stand between backticks in its docstrings, with their module."""
    module = tree_of(source)
    for node in (module, *definitions(module)):
        yield from DOTTED.findall(ast.get_docstring(node) or "")


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


def test_what_a_docstring_points_to_is_there() -> None:
    sources = {str(path.relative_to(SRC)): path.read_text("utf-8") for path in sorted(SRC.rglob("*.py"))}
    found = {name: set(dotted_names(source)) for name, source in sources.items()}
    assert sum(map(len, found.values())) > 20
    assert {name: gone for name, names in found.items() if (gone := {n for n in names if not is_there(n)})} == {}


def test_a_module_that_moved_is_missed() -> None:
    assert list(dotted_names('"""See `capture.encode` and `rollbook.values.kinds.Row`."""')) == [
        "capture.encode",
        "rollbook.values.kinds.Row",
    ]
    assert is_there("values.spool.encode")
    assert not is_there("capture.encode")
