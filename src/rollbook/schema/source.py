"""Where the bytes of a run's files come from: the folder itself, or a remote of which the folder is a view.

A view (docs/remote.md) has the files of a run with their names and full sizes, with holes for data not fetched yet.
Readers of a byte range call `ensure` first; for other folders this only checks the path. `rollbook.remote.views` does
the fetching. It is named here and not imported, so that the local reader does not depend on object stores.
"""

from __future__ import annotations

import os
from importlib import import_module

from rollbook.errors import BadInput
from rollbook.system.files import user_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    class Source(Protocol):
        """The functions of `rollbook.remote.views` for a path below `cache_root()`; callable from any thread."""

        def ensure(self, path: str, ranges: Iterable[tuple[int, int]] | None = None, *, footer: bool = False) -> None:
            """Fetch these bytes of a file if necessary; without `ranges` the whole file."""

        def fetch(self, folder: str, relatives: Iterable[str]) -> None:
            """Fetch these files of a run completely."""

        def freshen(self, folder: str) -> bool:
            """Update the folder from its remote. Returns whether anything changed."""

        def has(self, folder: str, relative: str) -> bool:
            """Whether the run has a file with this name, here or in its remote."""


_REMOTE = "rollbook.remote.views"
_MARK = f"{os.sep}places{os.sep}"


def _remote() -> Source:
    return import_module(_REMOTE)


def cache_root() -> str:
    """The folder of views: $ROLLBOOK_CACHE, else below the user's cache folder."""
    given = os.environ.get("ROLLBOOK_CACHE")
    if given:
        return os.path.join(os.path.abspath(given), "places")
    return os.path.join(user_cache(), "places")


def is_view(path: str | os.PathLike[str]) -> bool:
    """Whether a path is in the cache of views."""
    text = os.fspath(path)
    return _MARK in text and os.path.abspath(text).startswith(cache_root() + os.sep)


def refuse_view(folder: str, asked: str) -> None:
    """Refuse work on the files of a view: it would change the cache, and not the run.

    Args:
      asked: what was to be done, such as "repair".
    Raises:
      BadInput: the folder is a view.
    """
    if is_view(folder):
        raise BadInput(
            f"{asked} works on the folder of a run, and {folder} is only the cache of a run in a remote. Fetch the run "
            "with `rollbook pull`, and pass that folder"
        )


def ensure(path: str, ranges: Iterable[tuple[int, int]] | None = None, *, footer: bool = False) -> None:
    """Fetch these bytes of a file if it belongs to a view; without `ranges` the whole file.

    Args:
      footer: also fetch its Parquet footer.
    Raises:
      FileNotFoundError: it has been replaced; list again. RemoteUnreachable: no answer.
    """
    if is_view(path):
        _remote().ensure(path, ranges, footer=footer)


def fetch(folder: str | os.PathLike[str], relatives: Iterable[str]) -> None:
    """Fetch these files of a run completely, such as images and checkpoints; unknown ones are skipped.

    Raises:
      RemoteUnreachable: no answer. Damaged: the download differs from the manifest.
    """
    if is_view(folder):
        _remote().fetch(os.fspath(folder), relatives)


def freshen(folder: str | os.PathLike[str]) -> bool:
    """Update a view from its remote. Returns whether anything changed; False for a folder that is not a view.

    Raises:
      NotARun: there is no such run. RemoteError: the remote cannot be used; RemoteUnreachable only if nothing is here.
    """
    return is_view(folder) and _remote().freshen(os.fspath(folder))


def has(folder: str | os.PathLike[str], relative: str) -> bool:
    """Whether a view's run has a file with this name, here or in its remote; False if it is not a view."""
    return is_view(folder) and _remote().has(os.fspath(folder), relative)
