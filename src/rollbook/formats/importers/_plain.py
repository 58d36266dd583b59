"""Flatten nested values of other tools' rows to values by key."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def flat(prefix: str, value: object, values: dict[str, Any], leave_out: Callable[[str], object]) -> None:
    """Put the value at `prefix` into `values`: the names of mappings are joined with "/"; lists are left out."""
    if isinstance(value, dict):
        if "_type" in value:
            leave_out("pictures, films and tables")
            return
        for name, inner in value.items():
            flat(f"{prefix}/{name}" if prefix else str(name), inner, values, leave_out)
    elif isinstance(value, (bool, int, float, str)):
        values[prefix] = value
    elif isinstance(value, list):
        leave_out("lists")
