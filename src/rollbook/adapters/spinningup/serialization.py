"""A configuration as strict JSON, comparable between runs: no addresses and no NaN tokens."""

from __future__ import annotations

import json
import math

from rollbook.values.walk import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from rollbook.values.array_types import NDArray

__all__ = ["config_text", "convert_json", "is_json_serializable"]

_DEEPEST = 8
_LARGEST_ARRAY = 256


def is_json_serializable(v: object) -> bool:
    """Whether strict JSON can hold a value unchanged.

    Args:
      v: the value.
    """
    try:
        json.dumps(v, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def convert_json(obj: object) -> Any:
    """`obj` as plain JSON data.

    - Numbers, text, booleans and None are unchanged; NaN and infinities become their names.
    - Dicts get text keys; tuples and sets become lists; numpy scalars become numbers and small arrays lists.
    - Functions and classes become their name.
    - Other objects become their text without memory addresses, or, if they have attributes, {text: attributes}.
    - An object inside itself becomes "<cycle>".

    Args:
      obj: any object.
    """
    return _Converted()(obj)


class _Converted(Walk):
    deepest = _DEEPEST - 1

    def atom(self, value: object, path: tuple[Any, ...]) -> object:
        if isinstance(value, bytes) or (isinstance(value, float) and not math.isfinite(value)):
            return str(value)
        return value

    def parts(self, value: object) -> Iterable[tuple[object, object]] | None:
        return value.items() if isinstance(value, dict) else None

    def sequence(self, items: Iterable[object], path: tuple[Any, ...], above: tuple[int, ...]) -> object:
        plain = super().sequence(items, path, above)
        return sorted(plain, key=str) if isinstance(items, (set, frozenset)) else plain

    def array(self, array: NDArray, path: tuple[Any, ...], above: tuple[int, ...]) -> object:
        if array.size > _LARGEST_ARRAY:
            return f"array of shape {tuple(array.shape)}, {array.dtype}"
        return self.value(array.tolist(), path, above)

    def rest(self, value: object, path: tuple[Any, ...], above: tuple[int, ...]) -> object:
        name = getattr(value, "__name__", None)
        if isinstance(name, str):
            return name if "lambda" not in name else self.text_of(value)
        text = self.text_of(value)
        attributes = getattr(value, "__dict__", None) or {}
        public = {key: inner for key, inner in attributes.items() if not str(key).startswith("_")}
        if public and _is_clearer_in_parts(value, text):
            return {text: self.mapping(public.items(), path, above)}
        return text

    def again(self, value: object, path: tuple[Any, ...], above: tuple[int, ...]) -> str:
        return "<cycle>"

    def refused(self, value: object, path: tuple[Any, ...]) -> str:
        return self.text_of(value)


def _is_clearer_in_parts(obj: object, text: str) -> bool:
    """Whether an object's attributes belong in a configuration: not those of networks, nor of rollbook's objects."""
    ours = type(obj).__module__.partition(".")[0] == "rollbook"
    return not ours and "\n" not in text and not hasattr(obj, "forward")


def config_text(config: object) -> str:
    """The text of config.json, in Spinning Up's layout."""
    return json.dumps(config, separators=(",", ":\t"), indent=4, sort_keys=True, allow_nan=False)
