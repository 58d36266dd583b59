"""`install` for a library that is not imported yet: its writers are replaced when the program imports them."""

from __future__ import annotations

from functools import partial

from rollbook.adapters._imported import when_imported
from rollbook.adapters.tensorboard.libraries import PACKAGES, TENSORFLOWS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


def install_when_imported() -> None:
    """Replace the SummaryWriters of torch and tensorboardX as soon as the program imports them; see `install`."""
    from rollbook.adapters.tensorboard import native

    when_imported({module: partial(_install, library) for library, module in PACKAGES.items()})
    when_imported({native.EVENT_FILES: _follow})
    when_imported(dict.fromkeys(TENSORFLOWS, _follow_tensorflow))


def _install(library: str, _module: ModuleType) -> None:
    from rollbook.adapters.tensorboard import install

    install(library)


def _follow(_module: ModuleType) -> None:
    from rollbook.adapters.tensorboard.event_files import follow

    follow({})


def _follow_tensorflow(_module: ModuleType) -> None:
    from rollbook.adapters.tensorboard.tensorflow_files import follow

    follow({})
