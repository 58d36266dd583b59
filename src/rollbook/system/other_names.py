"""Modules with a second import name, and modules that rollbook-core alone cannot load.

    import rollbook.wandb as wandb        # rollbook.adapters.wandb

Modules of the reading end, where rollbook-core alone is installed, are an error with the install command.

The finder is first: otherwise a module below a second name would be found in its folder and loaded twice.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

OTHER_NAMES = {"rollbook.wandb": "rollbook.adapters.wandb"}
"""Modules with a second import name, so that a program changes only one line."""

_READERS = ("numpy", "pyarrow")
OF_READERS = {
    "rollbook.book.book": _READERS,
    "rollbook.compare": ("numpy", "scipy"),
    "rollbook.demo.loop": ("numpy",),
    "rollbook.formats.datasets": _READERS,
    "rollbook.plots": ("numpy",),
    "rollbook.runs": _READERS,
    "rollbook.server": (*_READERS, "starlette"),
    "rollbook.stats": ("numpy", "scipy"),
    "rollbook.storage": _READERS,
}
"""Modules that rollbook-core alone does not load, and what they need: the import says so, instead of failing inside."""


class SameModule:
    """Loads the module under its second name."""

    def __init__(self, own_name: str) -> None:
        self._own_name = own_name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module, under its own name."""
        from importlib import import_module

        module = import_module(self._own_name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: the module has been executed under its own name, and keeps it."""
        module.__spec__ = self._spec


class OtherNames:
    """The finder: `sys.meta_path.insert(0, OtherNames)`."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The module of a second name, or None: then the import continues as usual."""
        if not name.startswith("rollbook."):
            return None
        if name in OF_READERS:
            from rollbook.system.optional import need_all

            need_all(name, OF_READERS[name])
        first = ".".join(name.split(".")[:2])
        if first not in OTHER_NAMES:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, SameModule(OTHER_NAMES[first] + name[len(first) :]))  # type: ignore[arg-type]
