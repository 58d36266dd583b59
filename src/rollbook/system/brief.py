"""Prints an object on one screen: arrays by length and extremes, sequences by their content.

@brief
@dataclass(frozen=True)
class Curve:
    x: NDArray            # print(curve): Curve(x=<200 numbers, 0 to 990>)
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, TypeVar

_WIDTH, _MOST_LINES = 100, 40
_MOST_ITEMS, _LONGEST = 3, 60

C = TypeVar("C", bound=type)


def brief(cls: C) -> C:
    """Give a dataclass a repr of at most 40 lines of 100 columns, for any content of its arrays."""
    cls.__repr__ = _repr  # type: ignore[assignment]
    return cls


def screenful(lines: list[str]) -> str:
    """Lines that fit on one screen: long ones are wrapped, and left-out ones are counted."""
    try:
        width = min(max(os.get_terminal_size(1).columns, 40), _WIDTH)
    except OSError:  # the output is no terminal
        width = _WIDTH
    wrapped = [
        part
        for line in lines
        for part in textwrap.wrap(line, width, subsequent_indent="  ", break_on_hyphens=False) or [""]
    ]
    if len(wrapped) > _MOST_LINES:
        left_out = len(wrapped) - _MOST_LINES + 1
        wrapped = [*wrapped[: _MOST_LINES - 1], f"… {left_out:,} lines more"]
    return "\n".join(wrapped)


def _repr(self: Any) -> str:
    return with_cells(self, [field.name for field in fields(self) if field.repr])


def with_cells(value: object, names: Iterable[str]) -> str:
    """The repr of an object by some of its attributes, of at most 40 lines of 100 columns."""
    name = type(value).__name__
    parts = [f"{each}={_words(getattr(value, each))}" for each in names]
    line = f"{name}({', '.join(parts)})"
    return line if len(line) <= _WIDTH else screenful([f"{name}(", *(f"  {part}," for part in parts), ")"])


def _words(value: Any, depth: int = 0) -> str:
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return _array(value, shape)
    if isinstance(value, (list, tuple, dict, set, frozenset)) and value:
        whole = _items(value, depth)
        if whole is not None:
            return whole
        kinds = {type(item).__name__ for item in (value.values() if isinstance(value, dict) else value)}
        return f"<{len(value):,} {kinds.pop() if len(kinds) == 1 else 'items'}>"
    text = repr(value)
    if hasattr(value, "__dataclass_fields__") and (depth or "\n" in text or len(text) > _WIDTH):
        called = next((str(getattr(value, name)) for name in ("label", "name", "key") if hasattr(value, name)), "")
        return f"<{type(value).__name__}{' ' if called else ''}{called:.20}>"
    text = " ".join(text.split())
    return text if len(text) <= 3 * _LONGEST else f"{text[: 3 * _LONGEST]}…"


def _items(value: Any, depth: int) -> str | None:
    """A short sequence unchanged; None for a long one."""
    if len(value) > _MOST_ITEMS or depth:
        return None
    if isinstance(value, dict):
        inside = ", ".join(f"{key!r}: {_words(item, depth + 1)}" for key, item in value.items())
    else:
        inside = ", ".join(_words(item, depth + 1) for item in value)
    if len(inside) > _LONGEST:
        return None
    if isinstance(value, tuple):
        return f"({inside}{',' if len(value) == 1 else ''})"
    return f"[{inside}]" if isinstance(value, list) else f"{{{inside}}}"


def _array(array: Any, shape: tuple[int, ...]) -> str:
    size = " x ".join(f"{n:,}" for n in shape)
    kind = getattr(getattr(array, "dtype", None), "kind", "O")
    if kind not in "iuf" or 0 in shape:
        return f"<{size} {'numbers' if kind in 'iuf' else 'values'}>"
    import numpy as np

    finite = array[np.isfinite(array)]
    if not finite.size:
        return f"<{size} numbers, none of them finite>"
    less = f", {array.size - finite.size:,} not finite" if finite.size < array.size else ""
    return f"<{size} numbers, {finite.min():.6g} to {finite.max():.6g}{less}>"
