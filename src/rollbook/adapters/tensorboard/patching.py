"""`install()`: unchanged programs that make torch's or tensorboardX's SummaryWriter get rollbook's.

from rollbook.adapters import tensorboard

tensorboard.install()           # before or after the libraries that log are imported
train()                         # its SummaryWriter("runs/x") writes the event files as before, and a run
tensorboard.uninstall()
"""

from __future__ import annotations

import importlib
import sys

from rollbook.adapters.tensorboard import event_files, tensorflow_files
from rollbook.adapters.tensorboard.libraries import PACKAGES, original
from rollbook.adapters.tensorboard.writer import SummaryWriter
from rollbook.errors import MissingExtra, UnknownOption, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

_NAME = "SummaryWriter"


class _Installed(SummaryWriter):
    defaults: dict[str, Any]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**self.defaults, **options})


_installed: dict[str, type[_Installed]] = {}


def install(*libraries: str, **options: object) -> list[str]:
    """Replace the SummaryWriter of torch or tensorboardX with rollbook's.

    The name `SummaryWriter` is replaced in the package and in every loaded module that imported it from there. The
    library's own modules stay as they are. The library's own writer writes the event files, as before. A second call
    adds modules that were loaded since.

    Args:
      libraries: "torch", "tensorboardX" or both; none: those that can be imported. They are imported here. With none,
        scalars that a library writes by tensorboard's EventFileWriter alone (skrl) are recorded, too, and what
        TensorFlow writes by `tf.summary`, as soon as the program imports it.
      options: further arguments for every writer made from then on, such as clock="epoch" for a library whose steps are
        not environment steps, run= or project=.
    Returns:
      The names of the modules in which the class was replaced now.
    Raises:
      UnknownOption: another library.
      MissingExtra: the library is not installed, or none of them is, tensorboard included.
    """
    for library in libraries:
        if library not in PACKAGES:
            hint = did_you_mean(str(library), list(PACKAGES))
            raise UnknownOption(f"install({library!r}): there is no such library to patch.{hint}")
    replaced: list[str] = []
    missing: list[str] = []
    for library in libraries or PACKAGES:
        try:
            importlib.import_module(PACKAGES[library])
        except ImportError as err:
            missing.append(f"{library}: {err}")
            continue
        replaced += _replace(library, options)
    if not libraries:
        tensorflow_files.follow(options)
        try:
            event_files.follow(options)
        except ImportError as err:
            missing.append(f"tensorboard: {err}")
    if missing and (libraries or len(missing) > len(PACKAGES)):
        raise MissingExtra(
            f"install({', '.join(map(repr, libraries))}) found no SummaryWriter to replace ({'; '.join(missing)}). "
            "Install torch and tensorboard, or tensorboardX; or import rollbook.adapters.tensorboard.SummaryWriter"
        )
    return replaced


def uninstall() -> list[str]:
    """Put the libraries' own classes back. Open writers continue.

    Returns:
      The names of the modules in which a class was put back.
    """
    event_files.leave()
    tensorflow_files.leave()
    restored: list[str] = []
    for library, ours in list(_installed.items()):
        theirs = original(library)
        for module in _holding(ours):
            setattr(module, _NAME, theirs)
            restored.append(module.__name__)
        del _installed[library]
    return restored


def _replace(library: str, options: dict[str, object]) -> list[str]:
    theirs, package = original(library), PACKAGES[library]
    if theirs is None:
        return []
    ours = _installed.get(library)
    if ours is None:
        ours = _installed[library] = _new_class()
    ours.defaults = {"events": library, **options}
    names = []
    for module in _holding(theirs):
        if not module.__name__.startswith((f"{package}.", "rollbook.")):
            setattr(module, _NAME, ours)
            names.append(module.__name__)
    return names


def _holding(value: object) -> list[ModuleType]:
    """The loaded modules in which the name refers to this class."""
    return [
        module
        for module in list(sys.modules.values())
        if isinstance(names := getattr(module, "__dict__", None), dict) and names.get(_NAME) is value
    ]


def _new_class() -> type[_Installed]:
    """One class per library: each has its own options of `install`."""
    return type(_NAME, (_Installed,), {"__doc__": SummaryWriter.__doc__, "defaults": {}})
