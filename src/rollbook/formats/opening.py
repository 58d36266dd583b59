"""`rollbook.open`: the runs of rollbook below a folder, and the runs that other tools left there."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rollbook.errors import BadInput
from rollbook.formats.foreign import Asked, laid_out
from rollbook.runs.catalog import of_others
from rollbook.runs.catalog import open as open_own
from rollbook.runs.columns import fitting
from rollbook.runs.run_set import RunSet
from rollbook.schema.addresses import is_address


def open(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = "runs",
    *,
    foreign: bool = True,
    newest: int | None = None,
    where: str | None = None,
) -> RunSet:
    """All runs below a folder (or the one run that the folder is), as they are now.

    Runs that other tools wrote there are read, too (offline runs of Weights & Biases, event files, progress.csv …; see
    docs/importers.md), through the user's cache folder. Their files never change. A training that a program logged to
    both is rollbook's run alone.

    Args:
      path: a folder of projects, a project, or a run; or the address of one in a remote, such as "s3://bucket/prefix".
        A list of these gives the runs of all, each once, in this order.
      foreign: False reads runs of rollbook alone.
      newest: of the runs of other tools, read only this many, those whose files changed last, and what was read before;
        `unread` of the result is the number of the others. None: all. Of a list, this many of each folder.
      where: only the runs that match, as in `RunSet.where`. Runs of other tools that cannot match, by their name, seed,
        group, tags or configuration, are not read, and `unread` counts them, too.
    Raises:
      RunNotFound: there is no such folder, or it is a file. A folder without runs gives an empty set.
      NotARun, NewerFormat: the folder is one run, and its run.json cannot be read. Among several runs, such a run is
        left out and reported in `problems`.
      BadInput: `where` is invalid, or names a field that no run has; or the list is empty.
    """
    paths = [path] if isinstance(path, (str, os.PathLike)) else [*path]
    if not paths:
        raise BadInput("open([]): this names no folder.", "Pass a folder of runs, or a list of such folders")
    several = []
    unread: list[dict[str, object]] = []
    for one in paths:
        asked = Asked(where) if where else None
        several.append(_opened(one, foreign and not _is_within(one, paths), newest, asked))
        unread += asked.unread if asked is not None else ()
    return _matching(together(several), where, unread)


def together(several: Sequence[RunSet]) -> RunSet:
    """The runs of several sets, each run once, in their order."""
    if len(several) == 1:
        return several[0]
    rows = {str(row["path"]): row for one in several for row in one.rows()}
    problems = dict.fromkeys(problem for one in several for problem in one.problems)
    runs = RunSet([*rows.values()], "", [*problems])
    runs.unread = sum(one.unread for one in several)
    runs.folders = list(dict.fromkeys(folder for one in several for folder in one.folders))
    return runs


def _is_within(path: str | os.PathLike[str], others: Sequence[str | os.PathLike[str]]) -> bool:
    """Whether a folder is below one of the others, with which the runs of other tools in it are read."""
    if is_address(path):
        return False
    mine = os.path.realpath(os.path.expanduser(path))
    roots = [os.path.realpath(os.path.expanduser(each)) for each in others if not is_address(each)]
    return any(mine.startswith(os.path.join(each, "")) and mine != each for each in roots)


def _opened(path: str | os.PathLike[str], foreign: bool, newest: int | None, asked: Asked | None) -> RunSet:
    """The runs of one folder, but for those that were not read since they do not meet a condition."""
    own = open_own(path)
    if not foreign or is_address(path) or (len(own) == 1 and own.rows()[0]["path"] == own.root):
        return own
    known = of_others(own.not_ours)
    problems, folders = [problem for problem in own.problems if problem not in known], set[str]()
    folder, unread = laid_out(
        path, problems, {str(row["path"]) for row in own.rows()}, newest=newest, asked=asked, run_folders=folders
    )
    problems += of_others({path: text for path, text in own.not_ours.items() if path not in folders})
    if folder is None or not os.path.isdir(folder):
        return own
    others = open_own(folder)
    runs = RunSet([*own.rows(), *others.rows()], own.root, [*problems, *others.problems])
    runs.unread = unread
    return runs


def _matching(runs: RunSet, where: str | None, unread: Sequence[dict[str, object]] = ()) -> RunSet:
    """The runs that match; those that were not read say, too, which fields there are and of what type."""
    if not where or not (len(runs) or unread):
        return runs
    rows = runs.rows()
    answers = fitting(where, [*rows, *unread])
    chosen = RunSet([row for row, answer in zip(rows, answers, strict=False) if answer], runs.root, runs.problems)
    chosen.unread, chosen.folders = runs.unread, runs.folders
    return chosen
