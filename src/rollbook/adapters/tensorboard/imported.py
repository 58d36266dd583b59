"""Something is done with a module as soon as the program has imported it."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

TENSORFLOWS = (
    "tensorflow.python.ops.gen_summary_ops",
    "tensorflow.python.summary.writer.event_file_writer",
)
"""Where Python calls the writer of `tf.summary`, whoever made it; the writer of `tf.compat.v1.summary.FileWriter`."""


def when_imported(work: Mapping[str, Callable[[ModuleType], object]]) -> None:
    """Do something with modules (name -> what) as soon as the program has imported them."""
    sys.meta_path.insert(0, _Finder(work))


class _Finder:
    """Lets the library load its module, then does what shall be done with it."""

    def __init__(self, work: Mapping[str, Callable[[ModuleType], object]]) -> None:
        self._work = dict(work)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        work = self._work.pop(name, None)
        if work is None:
            return None
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            work(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
