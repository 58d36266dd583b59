"""A configuration as strict JSON that two runs can be compared by: no addresses, no NaN tokens, no surprises."""

from __future__ import annotations

import json
import math
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["config_text", "convert_json", "is_json_serializable"]

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_DEEPEST = 8
_LARGEST_ARRAY = 256


def is_json_serializable(v: Any) -> bool:
    """Whether strict JSON can hold `v` as it is."""
    try:
        json.dumps(v, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def convert_json(obj: Any) -> Any:
    """`obj` in plain JSON data.

    Numbers, text, booleans and None stay; NaN and infinities become their names; dicts get text keys; tuples and sets
    become lists; numpy scalars become numbers and small arrays lists; functions and classes their name; other objects
    their text without memory addresses, or, if they have attributes, {text: attributes}; an object that contains itself
    becomes "<cycle>" where it comes up again.
    """
    return _convert(obj, ())


def _convert(obj: Any, above: tuple[int, ...]) -> Any:
    if obj is None or isinstance(obj, (bool, str)):
        return obj
    if isinstance(obj, int):
        return int(obj)
    if isinstance(obj, float):
        return float(obj) if math.isfinite(obj) else str(float(obj))
    if id(obj) in above:
        return "<cycle>"
    if len(above) >= _DEEPEST:
        return _text(obj)
    above = (*above, id(obj))
    if isinstance(obj, dict):
        return {str(key) if not isinstance(key, str) else key: _convert(value, above) for key, value in obj.items()}
    if isinstance(obj, (list, tuple)):
        return [_convert(item, above) for item in obj]
    if isinstance(obj, (set, frozenset)):
        return sorted((_convert(item, above) for item in obj), key=str)
    if hasattr(obj, "dtype") and hasattr(obj, "tolist"):
        size = getattr(obj, "size", None)
        count = size if isinstance(size, int) else obj.numel() if hasattr(obj, "numel") else 0
        return (
            _convert(obj.tolist(), above)
            if count <= _LARGEST_ARRAY
            else f"array of shape {tuple(obj.shape)}, {obj.dtype}"
        )
    name = getattr(obj, "__name__", None)
    if isinstance(name, str):
        return name if "lambda" not in name else _text(obj)
    attributes = getattr(obj, "__dict__", None)
    text = _text(obj)
    public = {key: value for key, value in (attributes or {}).items() if not str(key).startswith("_")}
    if public and _says_more_in_parts(obj, text):
        return {text: _convert(public, above)}
    return text


def _says_more_in_parts(obj: Any, text: str) -> bool:
    """Whether the attributes of an object belong in a configuration: not those of networks, nor of our own objects."""
    ours = type(obj).__module__.partition(".")[0] == "rollbook"
    return not ours and "\n" not in text and not hasattr(obj, "forward")


def _text(obj: Any) -> str:
    try:
        return _ADDRESS.sub("", str(obj))
    except Exception:
        return f"<{type(obj).__name__}>"


def config_text(config: Any) -> str:
    """The text of config.json, laid out as Spinning Up does it."""
    return json.dumps(config, separators=(",", ":\t"), indent=4, sort_keys=True, allow_nan=False)
