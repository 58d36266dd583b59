"""Modules that are elsewhere: the old path gives the new module and a DeprecationWarning, for one release.

    import rollbook.filters        # DeprecationWarning: rollbook.filters is rollbook.sinks.filters now

Modules of the reading end, where rollbook-core alone is installed, are an error with the install command.

The finder is first: otherwise a module of a moved package would be found in its folder and loaded twice.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

OTHER_NAMES = {"rollbook.wandb": "rollbook.adapters.wandb"}
"""Modules with a second import name, so that a program changes only one line."""

MOVED = {
    "rollbook.adapters.keys": "rollbook.ground.aliases",
    "rollbook.aliases": "rollbook.ground.aliases",
    "rollbook.capture.host": "rollbook.keeper.host",
    "rollbook.capture.ledger": "rollbook.capture",
    "rollbook.capture.transitions": "rollbook.capture",
    "rollbook.cluster": "rollbook.run",
    "rollbook.datasets": "rollbook.formats.datasets",
    "rollbook.filters": "rollbook.sinks.filters",
    "rollbook.importers": "rollbook.formats.importers",
    "rollbook.manifest": "rollbook.ground.manifest",
    "rollbook.repair": "rollbook.book.repair",
    "rollbook.report": "rollbook.runs.report",
    "rollbook.sinks.jsonl": "rollbook.sinks",
    "rollbook.tables": "rollbook.ground.tables",
    "rollbook.values": "rollbook.ground.values",
}
"""The old path of each public module of the previous release, and its new path. Inner modules follow."""


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
    """Loads the new module under the old name."""

    def __init__(self, today: str) -> None:
        self._today = today

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The new module."""
        from importlib import import_module

        module = import_module(self._today)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: the module has been executed under its new name, and keeps it."""
        module.__spec__ = self._spec


class MovedModules:
    """The finder: `sys.meta_path.insert(0, MovedModules)`."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The new module for an old name, or None: then the import fails as usual."""
        if not name.startswith("rollbook."):
            return None
        if name in OF_READERS:
            from rollbook.ground.optional import need_all

            need_all(name, OF_READERS[name])
        parts = name.split(".")
        first = ".".join(parts[:2])
        if first not in MOVED and len(parts) > 2:
            first = ".".join(parts[:3])
        today = MOVED.get(first)
        if today is None and (first := ".".join(parts[:2])) not in OTHER_NAMES:
            return None
        from importlib.machinery import ModuleSpec
        from warnings import warn

        if today is None:
            return ModuleSpec(name, SameModule(OTHER_NAMES[first] + name[len(first) :]))  # type: ignore[arg-type]

        today += name[len(first) :]
        words = f"{name} is {today} now; the old path goes with the next release"
        warn(words, DeprecationWarning, stacklevel=2)
        return ModuleSpec(name, SameModule(today))  # type: ignore[arg-type]
