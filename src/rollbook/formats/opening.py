"""`rollbook.open`: the runs of rollbook below a folder, and the runs that other tools left there."""

from __future__ import annotations

import os

from rollbook.formats.foreign import laid_out
from rollbook.ground.addresses import is_address
from rollbook.runs.catalog import open as open_own
from rollbook.runs.run_set import RunSet


def open(path: str | os.PathLike[str] = "runs", *, foreign: bool = True, newest: int | None = None) -> RunSet:
    """All runs below a folder (or the one run that the folder is), as they are now.

    Runs that other tools wrote there are read, too (offline runs of Weights & Biases, event files, progress.csv …; see
    docs/importers.md), through the user's cache folder. Their files never change. A training that a program logged to
    both is rollbook's run alone.

    Args:
      path: a folder of projects, a project, or a run; or the address of one in a remote, such as "s3://bucket/prefix".
      foreign: False reads runs of rollbook alone.
      newest: of the runs of other tools, read only this many, those whose files changed last, and what was read before;
        `unread` of the result is the number of the others. None: all.
    Raises:
      RunNotFound: there is no such folder. A folder without runs gives an empty set.
      NotARun, NewerFormat: the folder is one run, and its run.json cannot be read. Among several runs, such a run is
        left out and reported in `problems`.
    """
    own = open_own(path)
    if not foreign or is_address(path) or (len(own) == 1 and own.rows()[0]["path"] == own.root):
        return own
    problems = list(own.problems)
    folder, unread = laid_out(path, problems, {str(row["path"]) for row in own.rows()}, newest=newest)
    if folder is None or not os.path.isdir(folder):
        return own
    others = open_own(folder)
    runs = RunSet([*own.rows(), *others.rows()], own.root, [*problems, *others.problems])
    runs.unread = unread
    return runs
