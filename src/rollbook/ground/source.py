"""Where the bytes of a run's files come from: the folder itself, or a remote that the folder is a view of.

A view (docs/remote.md) has the files of a run at their names and full sizes, with holes where nothing was fetched yet.
Readers of a byte range ask `ensure` for it first; for a folder that is no view that costs one look at its path. What
fetches is `rollbook.remote.views`: it is named here and not imported, so that the local reader knows no object store.
"""

from __future__ import annotations

import os
from importlib import import_module

from rollbook.ground.files import user_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    class Source(Protocol):
        """What `rollbook.remote.views` offers for a path below `cache_root()`; from any thread."""

        def ensure(self, path: str, ranges: Iterable[tuple[int, int]] | None = None, *, footer: bool = False) -> None:
            """Have these bytes of a file here; all of it without `ranges`."""

        def fetch(self, folder: str, relatives: Iterable[str]) -> None:
            """Have these files of a run here as a whole."""

        def freshen(self, folder: str) -> bool:
            """Bring the folder up to date with its remote. Whether anything changed."""

        def has(self, folder: str, relative: str) -> bool:
            """Whether the run has a file of that name, here or in its remote."""


__all__ = ["cache_root", "ensure", "fetch", "freshen", "has", "is_view"]

_REMOTE = "rollbook.remote.views"
_MARK = f"{os.sep}places{os.sep}"


def _remote() -> Source:
    return import_module(_REMOTE)


def cache_root() -> str:
    """Where views are kept: $ROLLBOOK_CACHE, else below the user's cache folder."""
    given = os.environ.get("ROLLBOOK_CACHE")
    if given:
        return os.path.join(os.path.abspath(given), "places")
    return os.path.join(user_cache(), "places")


def is_view(path: str | os.PathLike[str]) -> bool:
    """Whether a path lies in the cache of views."""
    text = os.fspath(path)
    return _MARK in text and os.path.abspath(text).startswith(cache_root() + os.sep)


def ensure(path: str, ranges: Iterable[tuple[int, int]] | None = None, *, footer: bool = False) -> None:
    """Have these bytes of a file here, if it belongs to a view; all of it without `ranges`.

    Args:
      footer: have its Parquet footer.
    Raises:
      FileNotFoundError: it has been replaced; list again. PlaceAway: no answer.
    """
    if is_view(path):
        _remote().ensure(path, ranges, footer=footer)


def fetch(folder: str | os.PathLike[str], relatives: Iterable[str]) -> None:
    """Have these files of a run here as a whole, such as pictures and checkpoints; unknown ones are passed over.

    Raises:
      PlaceAway: no answer. Damaged: what came is not what the manifest says.
    """
    if is_view(folder):
        _remote().fetch(os.fspath(folder), relatives)


def freshen(folder: str | os.PathLike[str]) -> bool:
    """Bring a view up to date with its remote. Whether anything changed; False for a folder that is no view.

    Raises:
      NotARun: there is no such run. PlaceError: the remote cannot be used; PlaceAway only if nothing is here.
    """
    return is_view(folder) and _remote().freshen(os.fspath(folder))


def has(folder: str | os.PathLike[str], relative: str) -> bool:
    """Whether the run of a view has a file of that name, here or in its remote; False for a folder that is no view."""
    return is_view(folder) and _remote().has(os.fspath(folder), relative)
