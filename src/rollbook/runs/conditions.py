"""Conditions on runs: a small language, read with Python's own parser and walked, never executed."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from rollbook.errors import BadInput

__all__ = ["Condition", "value_at"]

_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: b is not None and a in b,
    ast.NotIn: lambda a, b: b is None or a not in b,
    ast.Is: lambda a, b: a is b or a == b,
    ast.IsNot: lambda a, b: not (a is b or a == b),
}
_WORDS = {"null": None, "true": True, "false": False}
_HAS = re.compile(r"([A-Za-z_][\w.]*)\s+has\s+(\"[^\"]*\"|'[^']*'|-?[\w.]+)")


class Condition:
    """A condition over nested mappings.

    Args:
      text: comparisons of dotted names with constants, joined by and, or, not and brackets; `name has "x"` is `"x" in
    name`. Raises:
      BadInput: it is no such condition.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            tree = ast.parse(_HAS.sub(r"(\2 in \1)", text.strip()), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as err:
            raise BadInput(f"the condition {text!r} cannot be read: {err}. {_HINT}") from None
        self._check(tree)
        self._tree = tree

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether it is true of `row`. Comparing things that have no order is false."""
        return bool(_value(self._tree, row))

    def _check(self, node: ast.AST) -> None:
        if isinstance(node, ast.BoolOp):
            children: list[ast.AST] = list(node.values)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
            children = [node.operand]
        elif isinstance(node, ast.Compare):
            children = [node.left, *node.comparators]
        elif isinstance(node, ast.Attribute):
            children = [node.value]
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            children = list(node.elts)
        elif isinstance(node, (ast.Name, ast.Constant)):
            children = []
        else:
            raise BadInput(f"the condition {self.text!r} uses {type(node).__name__.lower()}, which it may not. {_HINT}")
        for child in children:
            self._check(child)


_HINT = "Write it like: config.lr < 3e-4 and status == 'finished' and tags has 'paper'"


def value_at(row: Mapping[str, Any], name: str) -> Any:
    """The value at a dotted name; None where the way there ends. A key that contains dots itself is found too."""
    found: Any = row
    parts = name.split(".")
    for place, part in enumerate(parts):
        if not isinstance(found, Mapping):
            return None
        rest = ".".join(parts[place:])
        if rest in found:
            return found[rest]
        found = found.get(part)
    return found


def _value(node: ast.AST, row: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _named(ast.unparse(node), row)
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [_value(item, row) for item in node.elts]
    if isinstance(node, ast.UnaryOp):
        inner = _value(node.operand, row)
        if isinstance(node.op, ast.Not):
            return not inner
        return -inner if isinstance(inner, (int, float)) else None
    if isinstance(node, ast.BoolOp):
        if isinstance(node.op, ast.And):
            return all(_value(part, row) for part in node.values)
        return any(_value(part, row) for part in node.values)
    assert isinstance(node, ast.Compare)  # all that _check lets through
    left = _value(node.left, row)
    for kind, right_node in zip(node.ops, node.comparators, strict=True):
        right = _value(right_node, row)
        try:
            if not _COMPARE[type(kind)](left, right):
                return False
        except TypeError:  # None < 3, "a" < 3
            return False
        left = right
    return True


def _named(name: str, row: Mapping[str, Any]) -> Any:
    return _WORDS[name] if name in _WORDS else value_at(row, name)
