"""The importers by name. A new one is one file and one line here.

A package of its own offers one as an entry point in the group `rollbook.importers`, named like the format and pointing
at its class. Nothing is imported before it is asked for.
"""

from __future__ import annotations

from pathlib import Path

from rollbook.errors import BadInput, UnknownOption, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Any

    from rollbook.protocols import Importer

__all__ = ["GROUP", "choose", "make", "names", "summary"]

GROUP = "rollbook.importers"

_IMPORTERS = {
    "csv": "csv:Csv",
    "tensorboard": "tensorboard:TensorBoard",
}


def names() -> list[str]:
    """The names that `make` knows, those of other packages included."""
    return sorted({*_IMPORTERS, *_entry_points()})


def make(name: str, **options: Any) -> Importer:
    """The importer of that name.

    Raises:
      UnknownOption: no importer has that name, or it has no such option. BadInput: an option with an unusable value.
    """
    import inspect

    made = _load(name)
    known = [option for option in inspect.signature(made).parameters if option != "self"]
    strange = [option for option in options if option not in known]
    if strange:
        hint = did_you_mean(strange[0], known)
        raise UnknownOption(f"importer {name!r} has no option {strange[0]!r}.{hint}")
    importer: Importer = made(**options)
    return importer


def choose(path: str | os.PathLike[str]) -> str:
    """The name of the importer for what is at `path`.

    Raises:
      BadInput: nothing is there; none of them, or several, read it.
    """
    place = Path(path)
    if not place.exists():
        raise BadInput(f"import {place}: there is no such file or folder")
    found = [name for name in names() if make(name).finds(place)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise BadInput(f"import {place}: no importer reads what is there. There are: {', '.join(names())}")
    raise BadInput(f"import {place}: {' and '.join(found)} read what is there. Say which: format={found[0]!r}")


def summary(name: str) -> str:
    """What an importer says of itself, in one line."""
    return (getattr(_load(name), "__doc__", None) or name).strip().splitlines()[0].rstrip(".")


def _load(name: str) -> Any:
    from importlib import import_module

    if name in _IMPORTERS:
        module, _, member = _IMPORTERS[name].partition(":")
        return getattr(import_module(f"rollbook.importers.{module}"), member)
    point = _entry_points().get(name)
    if point is None:
        raise UnknownOption(f"no importer is named {name!r}.{did_you_mean(str(name), names())}")
    return point.load()


def _entry_points() -> Mapping[str, Any]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP)}
