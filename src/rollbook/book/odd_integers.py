"""Integers that readers round: a column has one type, and its key also has floats or needs more than 64 bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from rollbook.schema.problems import Problem
from rollbook.storage import Piece, Pieces
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import to_numpy

_EXACT = 2**53
"""Up to here a 64-bit float has every integer."""


def odd_integers(pieces: Pieces) -> list[Problem]:
    """A problem about the keys of metrics whose integers readers give as floats that differ from them; [] if none.

    Reads kinds and ranges of columns from descriptions where files have them.
    """
    floats: set[str] = set()
    digits: set[str] = set()
    large: dict[str, list[Callable[[], int]]] = {}
    for piece in pieces:
        for key, kind, largest in _columns(piece):
            if kind == "d":
                floats.add(key)
            elif kind == "z":
                digits.add(key)
            elif kind == "q":
                large.setdefault(key, []).append(largest)
    beside = {key for key in floats & large.keys() if any(largest() > _EXACT for largest in large[key])}
    rounded = sorted(digits | beside)
    if not rounded:
        return []
    named = ", ".join(map(repr, rounded[:3])) + (f" and {len(rounded) - 3:,} more" if len(rounded) > 3 else "")
    why = "beyond 64 bits" if not beside else "beyond 2**53 beside floats" + (", or beyond 64 bits" if digits else "")
    words = (
        f"metrics: integers of {named} are {why}; readers give 64-bit floats, which round them. Every digit is in the "
        "files (book.tail(from_start=True), and the column digits)"
    )
    return [Problem(words, "rounded", n=len(rounded))]


_Column = tuple[str, str, Callable[[], int]]
"""A key, the kind of its values in a piece (d, q, b, z), and what finds the largest integer there, sign aside."""


def _columns(piece: Piece) -> Iterator[_Column]:
    if piece.is_long:
        yield from _of_lines(piece)
        return
    schema = piece.without_rows().read().schema if piece.part is not None or piece.is_frames else None
    for index, key in enumerate(piece.meta["keys"]):
        column = piece.column_of(key)
        if schema is None:
            yield key, piece.meta["types"][index], lambda column=column: _largest(piece, column)  # type: ignore[misc]
        elif column in schema.names:
            kind = str(schema.field(column).type)
            code = "q" if "int" in kind else "d" if kind in ("double", "float", "halffloat") else ""
            yield key, code, lambda column=column: _largest(piece, column)  # type: ignore[misc]


def _of_lines(piece: Piece) -> Iterator[_Column]:
    """The same for a piece with a line for each value."""
    lines = piece.few_lines()
    if lines is None:
        table = piece.read(["key", "type", "integer"])
        lines = {name: to_numpy(table[name]) for name in table.column_names}
    keys, kinds, integers = (lines[name][0] for name in ("key", "type", "integer"))
    for kind in ("d", "q", "z"):
        own = np.flatnonzero(kinds == kind)
        for key in dict.fromkeys(keys[own].tolist()):
            yield key, kind, lambda own=own, key=key: _most(integers[own[keys[own] == key]])  # type: ignore[misc]


def _largest(piece: Piece, column: str) -> int:
    if piece.part is not None:
        known = [piece.part.column_range(column, block) for block in range(len(piece.part.row_groups))]
        if all(span is not None and isinstance(span[0], int) for span in known):
            return max((max(abs(span[0]), abs(span[1])) for span in known if span is not None), default=0)
    table = piece.read([column])
    if column not in table.column_names:
        return 0
    cells, valid = to_numpy(table[column])
    return _most(cells if valid is None else cells[valid])


def _most(cells: NDArray) -> int:
    return max(abs(int(cells.min())), abs(int(cells.max()))) if len(cells) else 0
