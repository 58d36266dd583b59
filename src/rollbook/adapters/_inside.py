"""What can be read from a framework's environment without calling it.

An environment may stand for a simulator, a socket or another process: a property of it may raise, hang, or have to be
pickled. So nothing here calls it. `held` reads what an object holds, as `vars` shows it, `chain` follows wrappers by
that, `environment_name` finds an id or a class that way, and `named_by_maker` reads the function that makes one.
"""

from __future__ import annotations

import sys
from functools import partial
from inspect import getattr_static
from types import FunctionType, MemberDescriptorType

from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_MOST_WRAPPERS, _DEEPEST = 64, 3


def held(thing: object, name: str, default: Any = None) -> Any:
    """The attribute `name` that `thing` or its class holds. No property, `__getattr__` or other code of it runs."""
    with tolerating(Exception):
        value = getattr_static(thing, name, default)
        if isinstance(value, MemberDescriptorType):  # a slot
            return value.__get__(thing, type(thing))
        if not hasattr(type(value), "__get__"):
            return value
    return default


def chain(thing: object, name: str) -> Iterator[Any]:
    """`thing`, what it holds as `name` (the wrapped one), and so on to the innermost."""
    seen: set[int] = set()
    while thing is not None and id(thing) not in seen and len(seen) < _MOST_WRAPPERS:
        seen.add(id(thing))
        yield thing
        thing = held(thing, name)


def environment_name(env: object) -> str | None:
    """The id of a single environment in this process, or the name of its class; None without an environment."""
    if env is None:
        return None
    *_, innermost = chain(env, "env")
    name = held(held(innermost, "spec"), "id")
    return name if isinstance(name, str) and name else type(innermost).__name__


def named_by_maker(make: object) -> str | None:
    """The environment that a function without arguments makes, as its code names it; None if it names none or several.

    Looks for a registered id of gymnasium or a class of environments among the function's constants, closure, defaults,
    globals that it uses, and the arguments of a `functools.partial`. The function is not called.
    """
    with tolerating(Exception):
        names = {name for value in _named_values(make, 0) if (name := _name_of(value)) is not None}
        return names.pop() if len(names) == 1 else None
    return None


def _name_of(value: object) -> str | None:
    gymnasium = sys.modules.get("gymnasium")
    if gymnasium is None:
        return None
    if isinstance(value, str):
        return value if value in gymnasium.registry else None
    if isinstance(value, type) and issubclass(value, gymnasium.Env) and not issubclass(value, gymnasium.Wrapper):
        return None if value is gymnasium.Env else value.__name__
    return None


def _named_values(make: Any, depth: int = 0) -> Iterator[object]:
    """The values that a function or class mentions; of functions in its closure and globals, theirs too."""
    yield make
    if isinstance(make, partial):
        for value in (make.func, *make.args, *make.keywords.values()):
            yield from _named_values(value, depth)
    if not isinstance(make, FunctionType) or depth > _DEEPEST:
        return
    code = make.__code__
    yield from code.co_consts
    inside = [*(make.__defaults__ or ()), *(make.__kwdefaults__ or {}).values()]
    for cell in make.__closure__ or ():
        with tolerating(ValueError):  # an empty cell
            inside.append(cell.cell_contents)
    inside += [make.__globals__[name] for name in code.co_names if name in make.__globals__]
    for value in inside:
        if value is not make:
            yield from _named_values(value, depth + 1)
