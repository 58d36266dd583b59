"""Any configuration as plain data, and as the two Python files of a run's folder.

    data, problems = plain(Namespace(lr=3e-4, net=NetConfig(sizes=(64, 64))))
    write_config_files(folder, config)      # total_config.py, formatted_total_config.py

Supported, nested in any way: dicts and other mappings (OmegaConf, EasyDict, ConfigDict, gin), dataclasses, attrs and
msgspec classes, pydantic models, argparse and simple namespaces, named tuples, numpy scalars and arrays, paths, enums.
Functions and classes become their qualified names. Anything else becomes its repr and is named in `problems`. No
package is imported to recognise these types. Only the accessors of the configuration are called.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set

from rollbook.errors import BadInput
from rollbook.run.origin.secrets import HIDDEN, hidden, without_secrets
from rollbook.system.files import exists, replacing
from rollbook.system.guard import ours, tolerating
from rollbook.values.walk import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from rollbook.values.array_types import NDArray

TOTAL, FORMATTED = "total_config.py", "formatted_total_config.py"

_HEAD = "# The full configuration of this run, as plain Python data. Written by rollbook."
_DEEPEST = 60  # Python's own parser stops at 200 brackets, json's at about 1,000 levels
_MOST_NODES = 200_000
_LARGEST_ARRAY = 10_000
_LONGEST_REPR = 1_000
_MOST_NAMED = 20
_AS_TEXT = frozenset({"datetime", "decimal", "fractions", "ipaddress", "uuid", "pathlib", "zoneinfo"})
_MOST_BITS = 14_000  # more digits than Python converts


def plain(config: object) -> tuple[dict[str, Any], list[str]]:
    """A configuration as data for JSON, and a report of what could not be stored as given.

    Tuples stay tuples, and int, float, bool and None stay keys; JSON converts them to lists and text. Sets become
    sorted lists; bytes, complex numbers and other keys become their repr. NaN and infinities stay floats.

    Returns:
      The data, and at most one sentence that names every path at which only a repr could be stored. Values that look
      like secrets are "***" in the data; see `hidden_paths`.
    Raises:
      BadInput: the configuration as a whole is not a set of named values.
    """
    return _walked(config, _Configured(json=True))


def literal(config: object) -> tuple[dict[Any, object], list[str]]:
    """The same for Python source: tuples, sets, bytes, complex numbers and keys stay as they are."""
    return _walked(config, _Configured(json=False))


def source(config: object, *, formatted: bool = False) -> str:
    """Python source that assigns the configuration to `exp_config`. Running it gives `literal(config)` again."""
    data, _ = literal(config)
    text = _pretty(data, 0, len("exp_config = ")) if formatted else _inline(data)
    return f"{_HEAD}\nexp_config = {text}\n"


def pretty(data: object, *, used: int = 0) -> str:
    """The result of `literal` as Python source, on as many lines as needed; `used` characters precede it."""
    return _pretty(data, 0, used)


def write_config_files(
    folder: str | os.PathLike[str], config: object, *, attempt: int = 1, formatted_text: str | None = None
) -> None:
    """Write both configuration files of a run, each completely or not at all.

    If an attempt changes what the former one wrote, the old file is kept as `total_config.attempt_1.py` and so on, by
    the number of its attempt.

    Args:
      attempt: number of the writing attempt.
      formatted_text: the text of the formatted file instead; a framework's own form. If a later attempt has no such
        text (a program that continues without the adapter), the existing file stays as it is.
    Raises:
      OSError: the folder cannot be written. BadInput: see `plain`.
    """
    for name, formatted in ((TOTAL, False), (FORMATTED, True)):
        path = os.path.join(folder, name)
        if formatted and formatted_text is None and _is_of_a_framework(path):
            continue
        text = formatted_text if formatted and formatted_text is not None else source(config, formatted=formatted)
        former = os.path.join(folder, name.replace(".py", f".attempt_{attempt - 1}.py"))
        if attempt > 1 and not exists(former):
            _set_aside(path, former, text)
        with replacing(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
            file.write(text)


def _is_of_a_framework(path: str) -> bool:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            first = file.readline()
    except FileNotFoundError:
        return False
    return bool(first.strip()) and first.rstrip("\n") != _HEAD


def _set_aside(path: str, former: str, text: str) -> None:
    """Keep the file of an earlier attempt under a separate name, if its content differs."""
    try:
        with open(path, encoding="utf-8") as file:
            differs = file.read() != text
    except FileNotFoundError:
        return
    if differs:
        os.replace(path, former)


def _walked(config: object, walk: _Configured) -> tuple[dict[Any, object], list[str]]:
    if config is None:
        return {}, []
    parts = named_parts(config)
    if parts is None:
        parts = _attributes(config)
    if parts is None:
        raise BadInput(
            f"config={_short_repr(config)}: a configuration is a set of named values; found {type(config).__name__}. "
            "Pass a dict, dataclass, argparse namespace, pydantic model or anything like a mapping."
        )
    data = walk.mapping(parts, (), (id(config),))
    paths = walk.refused_paths
    return data, [f"{_named(paths)}: no Python or JSON form, only the repr was kept"] if paths else []


class _Configured(Walk):
    """One pass over a configuration, to the form for JSON or for Python source.

    Attributes:
      refused_paths: the paths at which only a repr could be stored, each with its type.
    """

    deepest = _DEEPEST

    def __init__(self, json: bool) -> None:
        self._json = json
        self._left = _MOST_NODES
        self.refused_paths: list[str] = []

    def atom(self, value: object, path: tuple[Any, ...]) -> object:
        if type(value) is int and self._json and value.bit_length() > _MOST_BITS:
            return hex(value)
        return repr(value) if self._json and type(value) is bytes else value

    def key(self, name: object) -> object:
        if isinstance(name, str):
            return without_secrets(str.__str__(name))
        if _is_enum(name):
            return self.key(name.value)  # type: ignore[attr-defined]
        if name is None or type(name) in (bool, float) or (type(name) is int and name.bit_length() < _MOST_BITS):
            return name
        key = _Configured(json=False)(name)
        with tolerating(TypeError) as missed:
            hash(key)
        if missed:
            return _short_repr(name)
        return repr(key) if self._json and not isinstance(key, (str, int, float)) else key

    def mapping(
        self, parts: Iterable[tuple[object, object]], path: tuple[Any, ...], above: tuple[int, ...]
    ) -> dict[object, object]:
        data: dict[object, object] = {}
        names: set[str] = set()
        around = _names(path)
        for name, inner in parts:
            key = self.key(name)
            if self._json:
                if _json_name(key) in names:  # 1 and "1" are one key in JSON
                    key = f"{name!r} ({type(name).__name__})"
                names.add(_json_name(key))
            data[key] = _without_secret(key, self.value(inner, (path, key), above), around)
        return data

    def sequence(self, items: Iterable[object], path: tuple[Any, ...], above: tuple[int, ...]) -> object:
        plain_items = super().sequence(items, path, above)
        return tuple(plain_items) if isinstance(items, tuple) else plain_items

    def again(self, value: object, path: tuple[Any, ...], above: tuple[int, ...]) -> str:
        return f"<see {'the top' if above.index(id(value)) == 0 else 'above'}>"

    def other(self, value: object, path: tuple[Any, ...], above: tuple[int, ...]) -> object:
        self._left -= 1
        if self._left < 0:
            return self.refused(value, path)
        with tolerating(Exception):  # an accessor of the caller's object failed
            return self._form(value, path, above)
        return self.refused(value, path)

    def _form(self, value: Any, path: tuple[Any, ...], above: tuple[int, ...]) -> object:
        kind = type(value)
        if isinstance(value, int):
            return self.atom(int.__int__(value), path)
        if isinstance(value, float):
            return float.__float__(value)
        if _is_enum(value):
            return _qualified(kind, value.name)
        if isinstance(value, complex):
            return repr(complex(value)) if self._json else complex(value)
        parts = named_parts(value)
        if parts is not None:
            return self.mapping(parts, path, above)
        if isinstance(value, Set):
            inner = sorted((self.value(element, path, above) for element in value), key=_order)
            return inner if self._json else frozenset(inner) if isinstance(value, frozenset) else set(inner)
        if hasattr(value, "dtype") and hasattr(value, "tolist"):
            return self.array(value, path, above)
        if isinstance(value, Sequence) and not isinstance(value, type):
            return self.sequence(value, path, above)
        return self.rest(value, path, above)

    def rest(self, value: Any, path: tuple[Any, ...], above: tuple[int, ...]) -> object:
        kind = type(value)
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
            parts = _attributes(value)
            if parts is not None:
                return self.mapping(parts, path, above)
        return self.refused(value, path)

    def array(self, array: NDArray, path: tuple[Any, ...], above: tuple[int, ...]) -> object:
        size = 1
        for length in array.shape:
            size *= int(length)
        if size > _LARGEST_ARRAY:
            self.refused_paths.append(f"{where(path)} ({size} numbers)")
            return f"<{type(array).__name__} {array.dtype} {tuple(array.shape)}>"
        inner = array.tolist()
        if type(inner) is type(array):  # numpy.longdouble is its own item
            return float(inner)
        return self.value(inner, path, above)

    def refused(self, value: object, path: tuple[Any, ...]) -> str:
        self.refused_paths.append(f"{where(path)} ({type(value).__qualname__})")
        return _short_repr(value)


def _without_secret(key: object, value: object, around: list[object]) -> object:
    """A named value without its secrets; lists and sets item by item."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return type(value)(_without_secret(key, item, around) for item in value)
    return hidden(key, value, around)


def _names(path: tuple[Any, ...]) -> list[object]:
    """The names in a path, outermost first, without item numbers."""
    names: list[object] = []
    while path:
        path, name = path
        if not isinstance(name, int):
            names.append(name)
    return names[::-1]


def hidden_paths(config: Mapping[Any, object], path: str = "") -> list[str]:
    """The dotted names in a plain configuration whose value, or a part of it, was hidden."""
    paths: list[str] = []
    for key, value in config.items():
        inner = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping):
            paths += hidden_paths(value, inner)
        elif isinstance(value, (list, tuple)):
            paths += hidden_paths(dict(enumerate(value)), inner)
        elif isinstance(value, str) and HIDDEN in value:
            paths.append(inner)
    return paths


def _named(paths: list[str]) -> str:
    more = len(paths) - _MOST_NAMED
    return ", ".join(paths[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _attributes(config: object) -> list[tuple[object, object]] | None:
    """The public values of a class with a configuration in its attributes, of its instance, or of a module."""
    if isinstance(config, (str, bytes, int, float, complex, Sequence, Set)) or hasattr(config, "dtype"):
        return None
    kind = config if isinstance(config, type) else type(config)
    attributes: dict[str, object] = {}
    for base in reversed(kind.__mro__[:-1]):
        for name, value in vars(base).items():
            if isinstance(value, type) and value.__qualname__ == f"{base.__qualname__}.{name}":
                attributes[name] = dict(_attributes(value) or ())
            elif not callable(value) and not hasattr(type(value), "__get__"):
                attributes[name] = value
    if not isinstance(config, type):
        attributes.update(getattr(config, "__dict__", {}))
    return [(n, v) for n, v in attributes.items() if n[:1] != "_" and type(v).__name__ != "module"] or None


def _is_enum(value: object) -> bool:
    return hasattr(type(value), "__members__") and hasattr(value, "name") and hasattr(value, "value")


def _json_name(key: object) -> str:
    """A key as JSON writes it."""
    if isinstance(key, str):
        return key
    return {None: "null", True: "true", False: "false"}[key] if key is None or type(key) is bool else repr(key)


def _qualified(value: object, name: str) -> str:
    module = getattr(value, "__module__", None)
    prefix = f"{value.__qualname__}." if isinstance(value, type) and value.__qualname__ != name else ""
    return f"{module}.{prefix}{name}" if module and module != "builtins" else f"{prefix}{name}"


def _short_repr(value: object) -> str:
    return Walk.repr_of(value, _LONGEST_REPR)


def _order(value: Any) -> tuple[str, object]:
    if type(value) in (int, float, bool) and value == value:
        return "", float(value) if abs(value) < 2**53 else 0.0
    return type(value).__name__, _inline(value)


def _atom(value: object) -> str:
    if type(value) is int and value.bit_length() > _MOST_BITS:
        return hex(value)
    if type(value) is float and value - value != 0:
        return f'float("{value}")'
    if type(value) is complex:
        return f"complex({_atom(value.real)}, {_atom(value.imag)})"
    return repr(value)


def _parts(value: object) -> tuple[str, list[tuple[str, object]], str] | None:
    """Opening, (text before the value, value) per item, closing; None for a value without items."""
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


def _inline(value: object) -> str:
    parts = _parts(value)
    if parts is None:
        return _atom(value)
    opening, items, closing = parts
    return opening + ", ".join(before + _inline(inner) for before, inner in items) + closing


def _pretty(value: object, level: int, used: int) -> str:
    """`value` on as many lines as needed; `used` characters precede it on its line."""
    parts = _parts(value)
    line = _inline(value)
    if parts is None or not parts[1] or (level > 0 and used + len(line) <= 100):
        return line
    opening, items, closing = parts
    indent = "    " * (level + 1)
    lines = [f"{indent}{before}{_pretty(inner, level + 1, len(indent) + len(before))}," for before, inner in items]
    return "\n".join([opening, *lines, "    " * level + closing.lstrip(",")])


def where(path: tuple[Any, ...]) -> str:
    """A path as text: "net.sizes.2"."""
    names: list[str] = []
    while path:
        path, name = path
        names.append(str(name))
    return ".".join(reversed(names))


def entries_of(config: object) -> dict[Any, object]:
    """The readable entries of anything with named values. Never raises.

    A value that cannot be read is the name of its exception, a configuration without named values the entry `config`.
    """
    for read in (named_parts, _attributes, _pairs):
        with tolerating(Exception):
            parts = read(config)
            if parts is not None:
                return dict(parts)
    return {} if config is None else {"config": _short_repr(config)}


def _pairs(config: Any) -> list[tuple[Any, object]]:
    return list(dict(config).items())


def named_parts(value: Any) -> list[tuple[object, object]] | None:
    """The names and values of anything with named values, or None.

    Mappings, named tuples, dataclasses, msgspec and attrs classes, pydantic models, namespaces, absl flags. If reading
    a value raises (a missing one of OmegaConf), the value is the name of the exception.
    """
    kind = type(value)
    if isinstance(value, dict):
        return list(dict.items(value))
    if isinstance(value, type):
        return None
    if hasattr(kind, "keys") and hasattr(kind, "__getitem__"):
        return [(name, _item(value, name)) for name in value.keys()]  # noqa: SIM118  (iterating need not give keys)
    for names in ("__dataclass_fields__", "__struct_fields__"):
        if hasattr(kind, names):
            return [(name, _field(value, name)) for name in getattr(kind, names) if _has(value, name)]
    if hasattr(kind, "__attrs_attrs__"):
        return [(field.name, _field(value, field.name)) for field in kind.__attrs_attrs__]
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


def _has(value: object, name: str) -> bool:
    with tolerating(Exception):
        return hasattr(value, name)
    return True


def _field(value: object, name: str) -> object:
    try:
        return getattr(value, name)
    except ours(Exception) as err:
        return f"<{type(err).__name__}>"


def _item(value: Any, name: object) -> object:
    try:
        return value[name]
    except ours(Exception) as err:  # OmegaConf raises for "???" and for unresolved interpolations
        return f"<{type(err).__name__}>"
