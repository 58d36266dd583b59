"""`install` for a library that is not imported yet: its writers are replaced when the program imports them."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def install_when_imported() -> None:
    """Replace the SummaryWriters of torch and tensorboardX as soon as the program imports them; see `install`."""
    sys.meta_path.insert(0, _Finder())


class _Finder:
    """Lets the library load its module, then replaces its writer with rollbook's."""

    def __init__(self) -> None:
        from rollbook.adapters.tensorboard import native
        from rollbook.adapters.tensorboard.libraries import PACKAGES

        self._libraries = {module: library for library, module in PACKAGES.items()} | {native.EVENT_FILES: ""}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        library = self._libraries.pop(name, None)
        if library is None:
            return None
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            from rollbook.adapters.tensorboard import install
            from rollbook.adapters.tensorboard.event_files import follow

            install(library) if library else follow({})

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
