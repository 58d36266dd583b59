"""`rollbook.open`: the runs of rollbook below a folder, and with them the runs that other tools left there."""

from __future__ import annotations

import os

from rollbook.formats.foreign import laid_out
from rollbook.ground.addresses import is_address
from rollbook.runs.catalog import open as open_own
from rollbook.runs.run_set import RunSet

__all__ = ["open"]


def open(path: str | os.PathLike[str] = "runs", *, foreign: bool | None = None) -> RunSet:
    """All runs below a folder (or the one run that the folder is), as they are now.

    In a folder without runs of rollbook, those that other tools wrote there (offline runs of Weights & Biases, event
    files, progress.csv …; see docs/importers.md) are read, through the user's cache folder; their files never change.

    Args:
      path: a folder of projects, a project, or a run; or the address of one in a store, such as "s3://bucket/prefix".
      foreign: True reads runs of other tools also beside runs of rollbook, where both may tell of one training (a
        program that logs to TensorBoard and to rollbook); False never does.
    Raises:
      RunNotFound: there is no such folder. A folder without runs gives an empty set.
      NotARun, NewerFormat: the folder is one run, and its run.json cannot be read. Among many runs such a one is left
        out and told of in `problems`.
    """
    own = open_own(path)
    wanted = not len(own) if foreign is None else foreign
    if not wanted or is_address(path) or (len(own) == 1 and own.rows()[0]["path"] == own.root):
        return own
    problems = list(own.problems)
    folder = laid_out(path, problems, own={str(row["path"]) for row in own.rows()})
    if folder is None or not os.path.isdir(folder):
        return own
    others = open_own(folder)
    return RunSet([*own.rows(), *others.rows()], own.root, [*problems, *others.problems])
