"""Objects by name, for filters that take a function and have to be made in another process."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rollbook.errors import BadInput


def object_at(path: str, asked_by: str) -> Any:
    """The object named "package.module:name".

    Args:
      asked_by: the name of the filter, for the error.
    Raises:
      BadInput: there is no such module or name.
    """
    module, _, name = path.partition(":")
    try:
        if not name:
            raise ImportError("there is no ':' in it")
        named: object = import_module(module)
        for part in name.split("."):
            named = getattr(named, part)
    except (ImportError, AttributeError) as err:
        raise BadInput(
            f"filter {asked_by!r} was given {path!r}, and could not find it ({err}). "
            "Write 'package.module:function' with a module that can be imported."
        ) from None
    return named
