"""Columns of the `steps` table as numpy arrays, and arrays combined into observations and actions.

Nothing here imports pandas, which pyarrow's own conversions do at their first use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.errors import BadInput
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import to_numpy

Cells = NDArray | list[Any]
"""One value per row: an array whose first axis is the rows, or a list if they have no common shape."""


def column_cells(column: pa.ChunkedArray, *, shapes: Sequence[str | None] | None = None) -> Cells:
    """The cells of a column without nulls.

    Args:
      shapes: one text per row, "84,84,3", from the column `shape/<name>`; None: there is no such column.
    """
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _list_cells(column, shapes)
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column.to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return column.to_pylist()  # type: ignore[no-any-return]
    values, _ = to_numpy(column)
    return values


def from_json(cells: list[object]) -> Cells:
    """Numbers, and lists of numbers of one shape, as an array."""
    try:
        array = np.asarray(cells)
    except ValueError:
        return cells
    return array if array.dtype.kind in "biuf" else cells


def _list_cells(column: pa.ChunkedArray, shapes: Sequence[str | None] | None) -> Cells:
    even = _even(column, None if shapes is None else set(shapes))
    if even is not None:
        return even
    parts: list[Any] = []
    for chunk in column.chunks:
        parts += _split(chunk)
    if shapes is not None:
        parts = [
            part if shape is None or isinstance(part, list) else part.reshape([int(axis) for axis in shape.split(",")])
            for part, shape in zip(parts, shapes, strict=True)
        ]
    return stacked(parts)


def _even(column: pa.ChunkedArray, shapes: set[str | None] | None) -> NDArray | None:
    """Lists of one length (and one shape) together, without an object per row; else None."""
    if not len(column) or (shapes is not None and len(shapes) != 1):
        return None
    parts, widths = [], set()
    for chunk in column.chunks:
        if not len(chunk):
            continue
        flat = chunk.flatten()
        if not (pa.types.is_integer(flat.type) or pa.types.is_floating(flat.type) or pa.types.is_boolean(flat.type)):
            return None
        values, valid = to_numpy(flat)
        if valid is not None:
            return None
        lengths = to_numpy(chunk.value_lengths())[0]
        widths |= {int(lengths.min()), int(lengths.max())}
        if len(widths) != 1:
            return None
        parts.append(values)
    values = parts[0] if len(parts) == 1 else np.concatenate(parts)
    shape = next(iter(shapes)) if shapes else None
    axes = [widths.pop()] if shape is None else [int(axis) for axis in shape.split(",")]
    return values.reshape(len(column), *axes)


def _split(chunk: Any) -> list[Any]:
    if not len(chunk):
        return []
    flat = chunk.flatten()
    if not (pa.types.is_integer(flat.type) or pa.types.is_floating(flat.type) or pa.types.is_boolean(flat.type)):
        return chunk.to_pylist()  # type: ignore[no-any-return]
    values, valid = to_numpy(flat)
    if valid is not None:  # a hole inside a cell
        return chunk.to_pylist()  # type: ignore[no-any-return]
    ends = np.cumsum(to_numpy(chunk.value_lengths())[0])
    return np.split(values, ends[:-1])


def stacked(parts: Sequence[Any]) -> Cells:
    """One array if all parts are arrays of one type and shape, else the list."""
    if parts and all(isinstance(part, np.ndarray) for part in parts):
        first = parts[0]
        if all(part.shape == first.shape and part.dtype == first.dtype for part in parts):
            return np.stack(parts)
    return list(parts)


def join_cells(first: Cells, second: Cells) -> Cells:
    """The cells of both, in order."""
    if (
        isinstance(first, np.ndarray)
        and isinstance(second, np.ndarray)
        and first.shape[1:] == second.shape[1:]
        and first.dtype == second.dtype
    ):
        return np.concatenate([first, second])
    return stacked([*first, *second]) if len(first) or len(second) else first


def one_row(cell: object) -> Cells:
    """A cell as a column of one row."""
    return np.asarray(cell)[None] if isinstance(cell, (np.ndarray, np.generic)) else [cell]


def plain_cell(cell: object) -> object:
    """A cell without numpy."""
    return cell.tolist() if isinstance(cell, (np.ndarray, np.generic)) else cell


def leaves_of(columns: Mapping[str, object], prefix: str) -> dict[str, Any]:
    """The columns under `prefix`: the column itself under "", its parts under their paths."""
    return {path: columns[name] for path, name in _leaves_among(tuple(columns), prefix)}


@lru_cache(maxsize=256)
def _leaves_among(names: tuple[str, ...], prefix: str) -> tuple[tuple[str, str], ...]:
    """Path and name of each of the leaves; cached, because most episodes have the same names."""
    start = f"{prefix}/"
    below = ((name[len(start) :], name) for name in names if name.startswith(start))
    return (("", prefix), *below) if prefix in names else tuple(below)


def tree_of(leaves: Mapping[str, object]) -> object:
    """Leaves by path as nested dicts; as tuples where the names of a level are 0, 1, 2, …"""
    if set(leaves) == {""}:
        return leaves[""]
    groups: dict[str, dict[str, object]] = {}
    for path, column in leaves.items():
        head, _, rest = path.partition("/")
        groups.setdefault(head, {})[rest] = column
    tree = {name: tree_of(group) for name, group in groups.items()}
    if set(tree) == {str(i) for i in range(len(tree))}:
        return tuple(tree[str(i)] for i in range(len(tree)))
    return tree


def as_space(leaves: Mapping[str, Any], space: Any, what: str = "observations") -> object:
    """Leaves by path in the structure of the space: nested dicts and tuples of arrays of the space's type, [rows,
    *shape].

    Graphs, sequences and values of one of several spaces have no common shape: they become a list of values, each in
    the form of the space's `sample`.

    Raises:
      BadInput: a part of the space was not recorded, or has another shape.
    """
    kind = type(space).__name__
    if kind == "Dict":
        return {
            name: as_space(_below(leaves, str(name)), part, f"{what}/{name}") for name, part in space.spaces.items()
        }
    if kind == "Tuple":
        if set(leaves) == {""}:  # a tuple of plain numbers may be stored as one list
            rows = leaves[""]
            return tuple(
                as_space({"": stacked([np.asarray(row[i]) for row in rows])}, part, f"{what}/{i}")
                for i, part in enumerate(space.spaces)
            )
        return tuple(as_space(_below(leaves, str(i)), part, f"{what}/{i}") for i, part in enumerate(space.spaces))
    if kind in _RAGGED and leaves:
        count = len(next(iter(leaves.values())))
        rows = ({path: cells[row] for path, cells in leaves.items() if cells[row] is not None} for row in range(count))
        return [_as_element(row, space, what) for row in rows]
    if "" not in leaves:
        raise BadInput(
            f"the space has {what}, which was not recorded; found {sorted(leaves) or 'nothing'}.",
            "Pass the right space.",
        )
    cells = leaves[""]
    if kind not in ("Box", "Discrete", "MultiDiscrete", "MultiBinary"):
        return list(cells)
    try:
        return np.asarray(cells, dtype=space.dtype).reshape(len(cells), *space.shape)
    except (ValueError, TypeError) as err:
        shape = getattr(cells, "shape", "ragged")
        raise BadInput(f"{what} of shape {shape} do not fit {space} ({err}).", "Pass the right space.") from None


_RAGGED = ("Graph", "Sequence", "OneOf")


def is_ragged(space: object) -> bool:
    """Whether values of the space vary in structure: graphs, sequences, one of several spaces."""
    if type(space).__name__ in _RAGGED:
        return True
    parts = getattr(space, "spaces", ())
    return any(map(is_ragged, parts.values() if hasattr(parts, "values") else parts))


def _as_element(parts: Mapping[str, Any], space: Any, what: str) -> Any:
    """One value of a space from its parts by path, in the form of the space's `sample`."""
    kind = type(space).__name__
    if kind == "Dict":
        return {
            name: _as_element(_below(parts, str(name)), part, f"{what}/{name}") for name, part in space.spaces.items()
        }
    if kind == "Tuple":
        return tuple(_as_element(_below(parts, str(i)), part, f"{what}/{i}") for i, part in enumerate(space.spaces))
    if kind == "OneOf":
        chosen = int(_as_element(_below(parts, "0"), _Index, what))
        return np.int64(chosen), _as_element(_below(parts, "1"), space.spaces[chosen], f"{what}/1")
    if kind == "Graph":
        return _as_graph(parts, space, what)
    if kind == "Sequence":
        return _as_sequence(parts, space, what)
    if "" not in parts:
        raise BadInput(
            f"the space has {what}, which was not recorded; found {sorted(parts) or 'nothing'}.",
            "Pass the right space.",
        )
    cell = parts[""]
    if space is _Index or kind not in ("Box", "Discrete", "MultiDiscrete", "MultiBinary"):
        return cell
    try:
        array = np.asarray(cell, dtype=space.dtype).reshape(space.shape)
    except (ValueError, TypeError) as err:
        raise BadInput(f"{what} {cell!r:.100} does not fit {space} ({err}).", "Pass the right space.") from None
    return array[()] if kind == "Discrete" else array


class _Index:
    """Represents the space of a list element."""


def _as_sequence(parts: Mapping[str, object], space: Any, what: str) -> object:
    inner = space.feature_space
    if "" in parts and space.stack:
        return np.asarray(parts[""], dtype=inner.dtype).reshape(-1, *inner.shape)
    heads = {path.partition("/")[0] for path in parts} - {""}
    elements = [_as_element(_below(parts, str(i)), inner, f"{what}/{i}") for i in range(len(heads))]
    if space.stack:
        return np.asarray(elements, dtype=inner.dtype).reshape(-1, *inner.shape)
    return tuple(elements)


def _as_graph(parts: Mapping[str, object], space: Any, what: str) -> object:
    from gymnasium.spaces import GraphInstance

    def several(name: str, inner: Any) -> Any:
        if inner is None or name not in parts:
            return None
        cell = parts[name]
        return np.asarray(cell, dtype=inner.dtype).reshape(-1, *inner.shape)

    nodes = several("nodes", space.node_space)
    if nodes is None:
        raise BadInput(f"the space has {what}/nodes, which was not recorded; found {sorted(parts)}.")
    links = parts.get("edge_links")
    return GraphInstance(
        nodes=nodes,
        edges=several("edges", space.edge_space),
        edge_links=None if links is None else np.asarray(links, dtype=np.int32).reshape(-1, 2),
    )


def _below(leaves: Mapping[str, object], name: str) -> dict[str, Any]:
    below = {"": leaves[name]} if name in leaves else {}
    below.update((path[len(name) + 1 :], column) for path, column in leaves.items() if path.startswith(f"{name}/"))
    return below
