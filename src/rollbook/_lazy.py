"""Faces of packages whose names are loaded when they are first used."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

__all__ = ["attach"]


def attach(package: str, names: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for the package's `__init__`: each name is imported from its module at first use.

    Args:
      package: the package's `__name__`.
      names: the modules, by full name, and which public names each of them has.
    Returns:
      (`__getattr__`, `__dir__`). An unknown name is an AttributeError, as from any module; a module of the package
      is found by its own name without having been imported.
    """
    homes = {name: module for module, public in names.items() for name in public}

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        home = homes.get(name)
        if home is not None:
            value = getattr(import_module(home), name)
        else:
            full = f"{package}.{name}"
            if name.startswith("_"):
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            try:
                return import_module(full)
            except ModuleNotFoundError as err:
                if err.name != full:
                    raise
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        return sorted(homes)

    return __getattr__, __dir__
