"""Values of other tools: texts that are numbers, and nested ones by key."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def flat(prefix: str, value: object, values: dict[str, Any], leave_out: Callable[[str], object]) -> None:
    """Put the value at `prefix` into `values`: the names of mappings are joined with "/"; lists are left out."""
    if isinstance(value, dict):
        if "_type" in value:
            leave_out("pictures, videos and tables")
            return
        for name, inner in value.items():
            flat(f"{prefix}/{name}" if prefix else str(name), inner, values, leave_out)
    elif isinstance(value, (bool, int, float, str)):
        values[prefix] = value
    elif isinstance(value, list):
        leave_out("lists")


def plain(text: str) -> object:
    """The value that a tool wrote as text: a number, a boolean, None, or a text."""
    known = {"True": True, "False": False, "None": None}
    if text in known:
        return known[text]
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if str(number) == text or kind is float:
            return number
    return text


def nested(flat: Mapping[str, Any], apart: str = "/") -> dict[str, Any]:
    """`{"parameters/lr": 1}` as `{"parameters": {"lr": 1}}`; an entry with a value keeps its own path."""
    made: dict[str, Any] = {}
    for path, value in flat.items():
        at = made
        *above, name = path.split(apart)
        for part in above:
            below = at.setdefault(part, {})
            if not isinstance(below, dict):
                at, name = made, path
                break
            at = below
        at[path if isinstance(at.get(name), dict) else name] = value
    return made
