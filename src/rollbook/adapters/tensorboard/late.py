"""`install` for a library that is not imported yet: its writers are replaced when the program imports them."""

from __future__ import annotations

import sys
from functools import partial

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


def install_when_imported() -> None:
    """Replace the SummaryWriters of torch and tensorboardX as soon as the program imports them; see `install`."""
    from rollbook.adapters.tensorboard import native
    from rollbook.adapters.tensorboard.libraries import PACKAGES

    when_imported({module: partial(_install, library) for library, module in PACKAGES.items()})
    when_imported({native.EVENT_FILES: _follow})
    when_imported(dict.fromkeys(TENSORFLOWS, _follow_tensorflow))


def when_imported(work: Mapping[str, Callable[[ModuleType], object]]) -> None:
    """Do something with modules (name -> what) as soon as the program has imported them."""
    sys.meta_path.insert(0, _Finder(work))


def _install(library: str, _module: ModuleType) -> None:
    from rollbook.adapters.tensorboard import install

    install(library)


def _follow(_module: ModuleType) -> None:
    from rollbook.adapters.tensorboard.event_files import follow

    follow({})


def _follow_tensorflow(_module: ModuleType) -> None:
    from rollbook.adapters.tensorboard.tensorflow_files import follow

    follow({})


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
