"""Something is done with a module as soon as the program has imported it."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def when_imported(work: Mapping[str, Callable[[ModuleType], object]]) -> None:
    """Do something with modules (name -> what) as soon as the program has imported them."""
    sys.meta_path.insert(0, _Finder(work))


class _Finder:
    """Lets the library load its module, then does what shall be done with it. A program that only asks whether there is
    such a module (`importlib.util.find_spec`) has not imported it yet."""

    def __init__(self, work: Mapping[str, Callable[[ModuleType], object]]) -> None:
        self._work = dict(work)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in self._work:
            return None
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            work = self._work.pop(name, None)
            if not self._work and self in sys.meta_path:
                sys.meta_path.remove(self)
            if work is not None:
                work(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
