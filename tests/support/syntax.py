"""Sources as trees, each parsed once by a worker: tests of the house look at all of them."""

from __future__ import annotations

import ast
import functools
import gc
from collections.abc import Iterator


@functools.cache
def tree(source: str) -> ast.Module:
    """The syntax tree of some source; not to be changed.

    Without the collector of garbage: what it calls may parse, too, and CPython before 3.11.9 then says "recursion depth
    mismatch" (gh-106905).
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        if was_on:
            gc.enable()


def definitions(module: ast.Module) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Its classes and functions, also inner ones: of all nodes only the statements are looked at, one in twelve."""
    waiting: list[ast.AST] = [module]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, block, ())
