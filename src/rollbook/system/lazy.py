"""Lazy packages: names are loaded at their first use."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


def attach(
    package: str,
    names: Mapping[str, Sequence[str]],
    *,
    made: Mapping[str, Callable[[str], object]] | None = None,
    before: Callable[[str], object] | None = None,
    modules: bool = True,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package's `__init__`: each name is imported from its module at first use.

    Args:
      package: the package's `__name__`.
      names: module (full name) -> its public names.
      made: name -> a function that creates its value, called at each access.
      before: called with a name of `names` at each access, before its module is loaded; it may raise, for a missing
        framework.
      modules: whether modules of the package are accessible by name without an import.
    Returns:
      (`__getattr__`, `__dir__`). An unknown name is an AttributeError, as in any module; one that needs more than
      rollbook-core, where that alone is installed, is MissingExtra. `__dir__` returns `names` and the package's
      `__all__`, or its public modules without an `__all__`.
    """
    homes = {name: module for module, public in names.items() for name in public}

    def __getattr__(name: str) -> Any:
        if made is not None and name in made:
            return made[name](name)
        from importlib import import_module

        home = homes.get(name)
        if home is not None:
            if before is not None:
                before(name)
                return getattr(import_module(home), name)
            try:
                value = getattr(import_module(home), name)
            except ImportError as err:
                from rollbook.system.optional import core_alone

                if (missing := core_alone(f"{package}.{name}", err)) is not None:
                    raise missing from None
                raise
            setattr(sys.modules[package], name, value)
            return value
        if modules and not name.startswith("_"):
            full = f"{package}.{name}"
            try:
                return import_module(full)
            except ModuleNotFoundError as err:
                if err.name != full:
                    raise
        # With `name` and `obj` Python itself adds "Did you mean: 'open'?".
        raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])

    def __dir__() -> list[str]:
        face = sys.modules[package]
        listed = getattr(face, "__all__", None)
        if listed is None:
            from pkgutil import iter_modules

            listed = [module.name for module in iter_modules(face.__path__) if not module.name.startswith("_")]
        return sorted({*listed, *homes})

    return __getattr__, __dir__
