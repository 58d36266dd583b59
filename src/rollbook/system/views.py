"""Finds the viewer of runs among the installed modules, so that books and runs do not depend on it."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_GROUP, _NAME = "rollbook.views", "page"


def show(folder: str | os.PathLike[str], height: int = 640) -> Any:
    """The page of a run or of a folder of runs, for a notebook cell.

    Raises:
      MissingExtra: no installed module can show runs, or the installation is older than the page.
    """
    from importlib.metadata import entry_points

    for point in entry_points(group=_GROUP, name=_NAME):
        return point.load()(folder, height=height)
    from rollbook.errors import MissingExtra

    raise MissingExtra(f"show(): no installed package shows runs ({_GROUP}: {_NAME}). Install rollbook again")
