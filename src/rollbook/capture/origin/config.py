"""A configuration of any make as plain data, and as the two Python files of a run's folder.

    data, problems = plain(Namespace(lr=3e-4, net=NetConfig(sizes=(64, 64))))
    write_config_files(folder, config)      # total_config.py, formatted_total_config.py

Understood, nested in any way: dicts and other mappings (OmegaConf, EasyDict, ConfigDict, gin), dataclasses, attrs and
msgspec classes, pydantic models, argparse and simple namespaces, named tuples, numpy scalars and arrays, paths, enums.
Functions and classes become their qualified names. Whatever else there is becomes its repr and is named in `problems`.
Nothing is imported to recognise these, and nothing of the configuration is called but its own accessors.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set

from rollbook.capture.origin.secrets import HIDDEN, hidden
from rollbook.errors import BadInput
from rollbook.foreign import is_foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["FORMATTED", "TOTAL", "hidden_places", "literal", "plain", "pretty", "source", "write_config_files"]

TOTAL, FORMATTED = "total_config.py", "formatted_total_config.py"

_DEEPEST = 60  # Python's own parser stops at 200 brackets, json's at about 1,000 levels
_MOST_NODES = 200_000
_LARGEST_ARRAY = 10_000
_LONGEST_REPR = 1_000
_MOST_NAMED = 20
_AS_TEXT = frozenset({"datetime", "decimal", "fractions", "ipaddress", "uuid", "pathlib", "zoneinfo"})
_MOST_BITS = 14_000  # more digits than Python converts


def plain(config: Any) -> tuple[dict[str, Any], list[str]]:
    """A configuration as data that JSON can hold, and what could not be kept as it was.

    Tuples stay tuples and int, float, bool and None stay keys: JSON writes them as lists and text by itself. Sets
    become sorted lists, bytes and complex numbers their repr, other keys their repr. NaN and infinities stay floats.

    Returns:
      The data, and at most one sentence that names every place where only a repr could be kept. What looks like a
      secret is "***" in the data; see `hidden_places`.
    Raises:
      BadInput: the configuration as a whole is no set of named values.
    """
    return _walked(config, _Walk(json=True))


def literal(config: Any) -> tuple[dict[Any, Any], list[str]]:
    """The same as data that Python source can hold: tuples, sets, bytes, complex numbers and keys stay as they are."""
    return _walked(config, _Walk(json=False))


def source(config: Any, *, formatted: bool = False) -> str:
    """Python source that assigns the configuration to `exp_config`; executed, it gives `literal(config)` back."""
    data, _ = literal(config)
    text = _pretty(data, 0, len("exp_config = ")) if formatted else _inline(data)
    return f"# The full configuration of this run, as plain Python data. Written by rollbook.\nexp_config = {text}\n"


def pretty(data: Any, *, used: int = 0) -> str:
    """What `literal` returned as Python source over as many lines as it needs; `used` characters stand before it."""
    return _pretty(data, 0, used)


def write_config_files(
    folder: str | os.PathLike[str], config: Any, *, attempt: int = 1, formatted_text: str | None = None
) -> None:
    """Write both configuration files of a run, each as a whole or not at all.

    Where a life of the run changes what the one before it had written, that is kept as `total_config.attempt_1.py` and
    so on, by the number of the life that it belongs to.

    Args:
      attempt: which life writes.
      formatted_text: what the formatted one holds instead; a framework's own form.
    Raises:
      OSError: the folder cannot be written. BadInput: see `plain`.
    """
    for name, formatted in ((TOTAL, False), (FORMATTED, True)):
        path = os.path.join(folder, name)
        beside = f"{path}.{os.urandom(4).hex()}.tmp"
        text = formatted_text if formatted and formatted_text is not None else source(config, formatted=formatted)
        former = os.path.join(folder, name.replace(".py", f".attempt_{attempt - 1}.py"))
        if attempt > 1 and not os.path.exists(former):
            _set_aside(path, former, text)
        try:
            with open(beside, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(beside, path)
        except BaseException:
            try:
                os.unlink(beside)
            except OSError as raised:
                if is_foreign(raised):
                    raise
            raise


def _set_aside(path: str, former: str, text: str) -> None:
    """Keep the file of an earlier life under a name of its own, if it says something else."""
    try:
        with open(path, encoding="utf-8") as file:
            differs = file.read() != text
    except FileNotFoundError:
        return
    if differs:
        os.replace(path, former)


def _walked(config: Any, walk: _Walk) -> tuple[dict[Any, Any], list[str]]:
    if config is None:
        return {}, []
    fields = _fields(config)
    if fields is None:
        fields = _attributes(config)
    if fields is None:
        raise BadInput(
            f"config={_short_repr(config)}: a configuration is a set of named values; found {type(config).__name__}. "
            "Pass a dict, dataclass, argparse namespace, pydantic model or anything like a mapping."
        )
    data = walk.fields(fields, "", (id(config),))
    return data, walk.report()


class _Walk:
    """One pass over a configuration."""

    def __init__(self, json: bool) -> None:
        self._json = json
        self._refused: list[str] = []
        self._left = _MOST_NODES

    def report(self) -> list[str]:
        if not self._refused:
            return []
        return [f"{_named(self._refused)}: no Python or JSON form, only the repr was kept"]

    def fields(self, items: Iterable[tuple[Any, Any]], path: str, above: tuple[int, ...]) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        names: set[str] = set()
        for name, inner in items:
            key = self._key(name)
            if self._json:
                if _json_name(key) in names:  # 1 and "1" are one key in JSON
                    key = f"{name!r} ({type(name).__name__})"
                names.add(_json_name(key))
            place = f"{path}.{key}" if path else str(key)
            found[key] = _without_secret(key, self.value(inner, place, above))
        return found

    def _key(self, name: Any) -> Any:
        if isinstance(name, str):
            return str.__str__(name)
        if name is None or type(name) in (bool, float) or (type(name) is int and name.bit_length() < _MOST_BITS):
            return name
        key = _Walk(json=False).value(name, "", ())
        try:
            hash(key)
        except TypeError as raised:
            if is_foreign(raised):
                raise
            return _short_repr(name)
        return repr(key) if self._json and not isinstance(key, (str, int, float)) else key

    def value(self, value: Any, path: str, above: tuple[int, ...]) -> Any:
        kind = type(value)
        if value is None or kind is bool or kind is float:
            return value
        if kind is int:
            return hex(value) if self._json and value.bit_length() > _MOST_BITS else value
        self._left -= 1
        if id(value) in above:
            return f"<see {'the top' if above.index(id(value)) == 0 else 'above'}>"
        if len(above) > _DEEPEST or self._left < 0:
            return self._refuse(value, path)
        try:
            return self._other(value, path, (*above, id(value)))
        except Exception as raised:  # an accessor of the caller's object failed
            if is_foreign(raised):
                raise
            return self._refuse(value, path)

    def _other(self, value: Any, path: str, above: tuple[int, ...]) -> Any:
        kind = type(value)
        if _is_enum(value) and not isinstance(value, (str, int, float)):
            return _qualified(kind, value.name)
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, int):
            return self.value(int.__int__(value), path, above)
        if isinstance(value, float):
            return float.__float__(value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return repr(bytes(value)) if self._json else bytes(value)
        if isinstance(value, complex):
            return repr(complex(value)) if self._json else complex(value)
        if not isinstance(value, type):
            fields = _fields(value)
            if fields is not None:
                return self.fields(fields, path, above)
        if isinstance(value, Set):
            inner = sorted((self.value(one, path, above) for one in value), key=_order)
            return inner if self._json else frozenset(inner) if isinstance(value, frozenset) else set(inner)
        if hasattr(value, "dtype") and hasattr(value, "tolist"):
            return self._array(value, path, above)
        if isinstance(value, Sequence) and not isinstance(value, type):
            items = [self.value(one, f"{path}.{i}", above) for i, one in enumerate(value)]
            return tuple(items) if isinstance(value, tuple) else items
        if hasattr(value, "__fspath__"):
            return os.fsdecode(value)
        if hasattr(value, "func") and hasattr(value, "keywords") and callable(value):  # functools.partial
            return {
                "partial": self.value(value.func, path, above),
                "args": self.value(list(value.args), path, above),
                "keywords": self.value(dict(value.keywords), path, above),
            }
        if callable(value):
            name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
            if isinstance(name, str):
                return _qualified(value, name)
        if kind.__module__.partition(".")[0] in _AS_TEXT:
            return str(value)
        if kind.__name__.endswith(("dtype", "DType")) or (kind.__module__ == "torch" and kind.__name__ == "device"):
            return str(value)
        if "." in kind.__qualname__ and "<locals>" not in kind.__qualname__:  # class Config: class net: …
            fields = _attributes(value)
            if fields is not None:
                return self.fields(fields, path, above)
        return self._refuse(value, path)

    def _array(self, value: Any, path: str, above: tuple[int, ...]) -> Any:
        size = 1
        for length in value.shape:
            size *= int(length)
        if size > _LARGEST_ARRAY:
            self._refused.append(f"{path} ({size} numbers)")
            return f"<{type(value).__name__} {value.dtype} {tuple(value.shape)}>"
        inner = value.tolist()
        if type(inner) is type(value):  # numpy.longdouble is its own item
            return float(inner)
        return self.value(inner, path, above)

    def _refuse(self, value: Any, path: str) -> str:
        self._refused.append(f"{path} ({type(value).__qualname__})")
        return _short_repr(value)


def _without_secret(key: Any, value: Any) -> Any:
    """A value under its name, as it may be kept; lists as their items."""
    if isinstance(value, (list, tuple)):
        items = [_without_secret(key, item) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    return hidden(key, value)


def hidden_places(config: Mapping[Any, Any], path: str = "") -> list[str]:
    """The dotted names in a plain configuration whose value, or a part of it, was hidden."""
    places: list[str] = []
    for key, value in config.items():
        place = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping):
            places += hidden_places(value, place)
        elif isinstance(value, (list, tuple)):
            places += hidden_places(dict(enumerate(value)), place)
        elif isinstance(value, str) and HIDDEN in value:
            places.append(place)
    return places


def _named(places: list[str]) -> str:
    more = len(places) - _MOST_NAMED
    return ", ".join(places[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _fields(value: Any) -> Iterable[tuple[Any, Any]] | None:
    """The names and values of anything that is made of named values, or None."""
    kind = type(value)
    if isinstance(value, dict):
        return list(dict.items(value))
    if isinstance(value, type):
        return None
    if isinstance(value, Mapping) or (hasattr(kind, "keys") and hasattr(kind, "__getitem__")):
        return [(name, _item(value, name)) for name in value.keys()]  # noqa: SIM118  (iterating need not give keys)
    for names in ("__dataclass_fields__", "__struct_fields__"):
        if hasattr(kind, names):
            return [(name, getattr(value, name)) for name in getattr(kind, names) if hasattr(value, name)]
    if hasattr(kind, "__attrs_attrs__"):
        return [(field.name, getattr(value, field.name)) for field in kind.__attrs_attrs__]
    if hasattr(kind, "model_dump"):
        return list(value.model_dump().items())
    if hasattr(kind, "__fields__") and hasattr(kind, "dict"):  # pydantic 1
        return list(value.dict().items())
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return list(zip(kind._fields, value, strict=True))
    if kind.__name__ in ("Namespace", "SimpleNamespace") or any(
        base.__module__ in ("argparse", "types") and base.__name__.endswith("Namespace") for base in kind.__mro__
    ):
        return list(vars(value).items())
    if hasattr(kind, "flag_values_dict"):  # absl
        return list(value.flag_values_dict().items())
    return None


def _item(value: Any, name: Any) -> Any:
    try:
        return value[name]
    except Exception as err:  # OmegaConf raises for "???" and for interpolations that lead nowhere
        if is_foreign(err):
            raise
        return f"<{type(err).__name__}>"


def _attributes(config: Any) -> Iterable[tuple[Any, Any]] | None:
    """The public values of a class that holds a configuration as attributes, of an instance of one, or of a module."""
    if isinstance(config, (str, bytes, int, float, complex, Sequence, Set)) or hasattr(config, "dtype"):
        return None
    kind = config if isinstance(config, type) else type(config)
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__[:-1]):
        for name, value in vars(base).items():
            if isinstance(value, type) and value.__qualname__ == f"{base.__qualname__}.{name}":
                found[name] = dict(_attributes(value) or ())
            elif not callable(value) and not hasattr(type(value), "__get__"):
                found[name] = value
    if not isinstance(config, type):
        found.update(getattr(config, "__dict__", {}))
    return [(n, v) for n, v in found.items() if n[:1] != "_" and type(v).__name__ != "module"] or None


def _is_enum(value: Any) -> bool:
    return hasattr(type(value), "__members__") and hasattr(value, "name") and hasattr(value, "value")


def _json_name(key: Any) -> str:
    """The text that JSON makes of a key."""
    if isinstance(key, str):
        return key
    return {None: "null", True: "true", False: "false"}[key] if key is None or type(key) is bool else repr(key)


def _qualified(value: Any, name: str) -> str:
    module = getattr(value, "__module__", None)
    prefix = f"{value.__qualname__}." if isinstance(value, type) and value.__qualname__ != name else ""
    return f"{module}.{prefix}{name}" if module and module != "builtins" else f"{prefix}{name}"


def _short_repr(value: Any) -> str:
    import re

    try:
        text = repr(value)
    except Exception as err:
        if is_foreign(err):
            raise
        text = f"<{type(value).__qualname__} whose repr failed: {type(err).__name__}>"
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", text)  # the same configuration reads the same in every run
    return text if len(text) <= _LONGEST_REPR else f"{text[:_LONGEST_REPR]}…"


def _order(value: Any) -> tuple[str, Any]:
    if type(value) in (int, float, bool) and value == value:
        return "", float(value) if abs(value) < 2**53 else 0.0
    return type(value).__name__, _inline(value)


def _atom(value: Any) -> str:
    if type(value) is int and value.bit_length() > _MOST_BITS:
        return hex(value)
    if type(value) is float and value - value != 0:
        return f'float("{value}")'
    if type(value) is complex:
        return f"complex({_atom(value.real)}, {_atom(value.imag)})"
    return repr(value)


def _parts(value: Any) -> tuple[str, list[tuple[str, Any]], str] | None:
    """Opening, (text before the value, value) per item, closing; None for what has no items."""
    if isinstance(value, dict):
        return "{", [(f"{_inline(key)}: ", inner) for key, inner in value.items()], "}"
    if isinstance(value, list):
        return "[", [("", inner) for inner in value], "]"
    if isinstance(value, tuple):
        return "(", [("", inner) for inner in value], ",)" if len(value) == 1 else ")"
    if isinstance(value, (set, frozenset)):
        items = [("", inner) for inner in sorted(value, key=_order)]
        opening, closing = ("{", "}") if items else ("set(", ")")
        if isinstance(value, frozenset):
            opening, closing = ("frozenset({", "})") if items else ("frozenset(", ")")
        return opening, items, closing
    return None


def _inline(value: Any) -> str:
    parts = _parts(value)
    if parts is None:
        return _atom(value)
    opening, items, closing = parts
    return opening + ", ".join(before + _inline(inner) for before, inner in items) + closing


def _pretty(value: Any, level: int, used: int) -> str:
    """`value` over as many lines as it needs; `used` characters stand before it on its line."""
    parts = _parts(value)
    line = _inline(value)
    if parts is None or not parts[1] or (level > 0 and used + len(line) <= 100):
        return line
    opening, items, closing = parts
    indent = "    " * (level + 1)
    lines = [f"{indent}{before}{_pretty(inner, level + 1, len(indent) + len(before))}," for before, inner in items]
    return "\n".join([opening, *lines, "    " * level + closing.lstrip(",")])
