"""Optional packages, imported where they are used and named in full where they are missing."""

from __future__ import annotations

from importlib import import_module

from rollbook.errors import MissingExtra

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["need"]


def need(module: str, *, extra: str, why: str, also: str = "") -> Any:
    """The module, or the exact line that installs it.

    Args:
      module: dotted name of the module to import.
      extra: the extra of rollbook that brings it (`pip install 'rollbook[extra]'`).
      why: who asks, as the subject of a sentence: "the W&B sink".
      also: packages that the extra leaves to the user, because their pins decide about everything else: "LightZero".
    Raises:
      MissingExtra: the package is not installed. A package that is installed but broken raises its own error.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as err:
        if (err.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        what = f"{also} 'rollbook[{extra}]'" if also else f"'rollbook[{extra}]'"
        raise MissingExtra(f"{why} needs {module}, which is not installed: pip install {what}") from None
