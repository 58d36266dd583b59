"""What of a class or a module of theirs ours lacks: methods, attributes, arguments, their order and their defaults.

assert lacks(Ours, Theirs) == {"log.add_text": "no such method"}        # the expected differences, each with its reason
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterable
from typing import Any

__all__ = ["lacks", "star"]

_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def star(title: str) -> set[str]:
    """The names that `from <title> import *` brings."""
    names: dict[str, Any] = {}
    exec(f"from {title} import *", names)
    return set(names) - {"__builtins__"}


def lacks(ours: Any, theirs: Any, *, names: Iterable[str] | None = None, stop_at: type = object) -> dict[str, str]:
    """What a program written for `theirs` misses in `ours`: {public name: what is different}.

    Args:
      ours, theirs: two classes, two modules, or two objects.
      names: which names; None for all public ones, of a class those of its bases below `stop_at` too.
    """
    found: dict[str, str] = {}
    for name in sorted(set(names) if names is not None else _public(theirs, stop_at)):
        there, here = getattr(theirs, name, None), getattr(ours, name, None)
        if not hasattr(ours, name):
            found[name] = "missing"
        elif callable(there) and not callable(here):
            found[name] = f"is a {type(here).__name__}, not callable"
        elif callable(there):
            difference = differs(here, there)
            if difference:
                found[name] = difference
    return found


def _public(thing: Any, stop_at: type) -> set[str]:
    if inspect.ismodule(thing):
        return set(getattr(thing, "__all__", [n for n in vars(thing) if n[:1] != "_"]))
    kind = thing if isinstance(thing, type) else type(thing)
    bases = [base for base in kind.__mro__ if base is not stop_at and base is not object]
    return {name for base in bases for name in vars(base) if name[:1] != "_"}


def differs(here: Any, there: Any) -> str:
    """How a call written for `there` fails with `here`, in words; "" if it does not."""
    try:
        theirs = list(inspect.signature(there).parameters.values())
    except (TypeError, ValueError):  # a builtin tells nothing
        return ""
    ours = list(inspect.signature(here).parameters.values())
    by_name = {parameter.name: parameter for parameter in ours}
    many = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in ours)
    keywords = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in ours)
    order = [p.name for p in ours if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY)]
    said = []
    for place, parameter in enumerate(p for p in theirs if p.kind not in _MANY):
        mine = by_name.get(parameter.name)
        if mine is None or mine.kind in _MANY:
            if not keywords:
                said.append(f"no argument {parameter.name!r}")
            continue
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and not many and order[place : place + 1] != [mine.name]:
            said.append(f"{parameter.name!r} stands elsewhere")
        if parameter.default is not parameter.empty and mine.default is mine.empty:
            said.append(f"{parameter.name!r} has no default")
        elif _plain(parameter.default) and parameter.default != mine.default:
            said.append(f"{parameter.name!r} is {mine.default!r}, not {parameter.default!r}")
    known = {parameter.name for parameter in theirs}
    said += [
        f"asks for {p.name!r}"
        for p in ours
        if p.name not in known and p.default is p.empty and p.kind not in _MANY and p.name != "self"
    ]
    return "; ".join(said)


def _plain(value: Any) -> bool:
    return value is not inspect.Parameter.empty and isinstance(value, (int, float, str, bool, types.NoneType))
