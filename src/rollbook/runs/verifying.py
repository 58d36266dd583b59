"""Checks a run wherever it is: a folder in place, a run in a remote by fetching all of it."""

from __future__ import annotations

import os
import tempfile

from rollbook.book.repair import verify as verify_folder
from rollbook.remote.verifying import fetch_checked
from rollbook.remote.views import address_of, remote_of
from rollbook.schema import source


def verify(run: str | os.PathLike[str]) -> list[str]:
    """The problems of a run, one sentence each; empty if it is sound. Changes nothing.

    A run in a remote is fetched whole into a temporary folder, past the cache: what is checked are the bytes there.

    Args:
      run: its folder; for a run in a remote that of its view.
    Raises:
      ForeignManifest: its run.json is another tool's.
      NotARun: there is no data of a run.
      RemoteUnreachable: the remote does not answer.
    """
    if not source.is_view(run):
        return [*verify_folder(run)]
    url, name = address_of(run)
    with tempfile.TemporaryDirectory(prefix="rollbook-verify-") as folder:
        copy = os.path.join(folder, *name.split("/"))
        os.makedirs(copy)
        problems = fetch_checked(remote_of(url), name, copy)
        inside = [text.replace(copy, f"{url}/{name}") for text in verify_folder(copy)]
        return [*problems, *inside]
