"""The nested dicts of statistics that trainers hand to a logger, made flat."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from numbers import Number
from typing import Any

from rollbook.ground.values import scalar_of

__all__ = ["episodes_of", "flat", "for_native"]


def flat(data: Mapping[Any, object], parent_key: str = "", delimiter: str = "/") -> Iterator[tuple[str, object]]:
    """The leaves of nested dicts with their keys joined; empty dicts vanish."""
    for key, value in data.items():
        name = f"{parent_key}{delimiter}{key}" if parent_key else str(key)
        name = name.removeprefix(delimiter)
        if isinstance(value, Mapping):
            yield from flat(value, name, delimiter)
        else:
            yield name, value


def for_native(
    data: Mapping[Any, object],
    parent_key: str = "",
    delimiter: str = "/",
    *,
    exclude_arrays: bool,
    clash: Callable[[str], None],
) -> dict[str, object]:
    """What Tianshou's own loggers keep of `data`: numbers (more kinds than there), and arrays unless excluded.

    Args:
      clash: told the name that two values of one dict come to; the later one counts.
    """
    plain: dict[str, object] = {}
    for name, value in flat(data, parent_key, delimiter):
        is_array = hasattr(value, "__array_interface__") and hasattr(value, "ndim") and _is_ndarray(value)
        if is_array:
            if exclude_arrays:
                continue
        elif (not isinstance(value, Number) and scalar_of(value) is None) or isinstance(value, complex):
            continue
        if name in plain:
            clash(name)
        plain[name] = value
    return plain


def episodes_of(data: Mapping[str, object]) -> dict[str, Any]:
    """The columns of the table `episodes` for the episodes a collector reports as arrays; {} if it reports none."""
    returns: Any = data.get("returns", data.get("rews"))
    lengths: Any = data.get("lens")
    if not _is_ndarray(returns) or not len(returns):
        return {}
    columns: dict[str, object] = {}
    if returns.ndim == 1:
        columns["return"] = returns.astype(float).tolist()
    else:  # one column per agent
        columns["return"] = returns.reshape(len(returns), -1).sum(axis=1).astype(float).tolist()
        columns["returns"] = [row.tolist() for row in returns]
    if _is_ndarray(lengths) and len(lengths) == len(returns):
        columns["length"] = lengths.astype(int).tolist()
    return columns


def _is_ndarray(value: object) -> bool:
    return hasattr(value, "__array_interface__") and hasattr(value, "astype") and hasattr(value, "__setitem__")
