"""Checks runs wherever they are: a folder in place, a run in a remote by fetching all of it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Any

import msgspec

from rollbook.book import Book
from rollbook.book.repair import verify as verify_folder
from rollbook.errors import RollbookError
from rollbook.remote.verifying import fetch_checked
from rollbook.remote.views import address_of, remote_of
from rollbook.runs.groups import name_of
from rollbook.runs.questions import Verify
from rollbook.runs.source import Source
from rollbook.schema import source as bytes_from
from rollbook.schema.problems import Problem
from rollbook.system.texts import amount


class VerifiedRun(msgspec.Struct, frozen=True):
    """What is wrong with a run.

    Attributes:
      path: of the run; id: its id; run: project/name id.
      problems: sentences, each with its kind, path and count; () if the run is sound.
    """

    path: str
    id: str
    run: str
    problems: tuple[Problem, ...]

    def __repr__(self) -> str:
        return f"<VerifiedRun {self.run}: {amount(len(self.problems), 'problem') if self.problems else 'sound'}>"


class Verified(msgspec.Struct, frozen=True):
    """What is wrong with the files of some runs.

    Attributes:
      runs: each run, sound ones too, in the order of the runs.
      unread: entries of their folder that cannot be read as runs, in words.
    """

    runs: tuple[VerifiedRun, ...]
    unread: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Verified: {self._how_many_are_sound()}>"

    def sentences(self) -> list[str]:
        """Each problem with its run, what else cannot be read, and how many runs are sound."""
        lines = [f"{run.run}: {problem}" for run in self.runs for problem in run.problems]
        return [*lines, *self.unread, f"{self._how_many_are_sound()}."]

    def _how_many_are_sound(self) -> str:
        sound = sum(not run.problems for run in self.runs)
        return f"{sound:,} of {amount(len(self.runs), 'run')} {'is' if sound == 1 else 'are'} sound"

    def table(self) -> list[dict[str, Any]]:
        """One row per problem: run, id, kind, path (of the file), n (how many it counts), problem."""
        return [
            {
                "run": run.run,
                "id": run.id,
                "kind": problem.kind,
                "path": problem.path,
                "n": problem.n,
                "problem": str(problem),
            }
            for run in self.runs
            for problem in run.problems
        ]


def verified(ask: Verify, source: Source, unread: Sequence[str] = ()) -> Verified:
    """The answer; see `RunSet.verify`. Reads one run after the other.

    Args:
      unread: what could not be read in the folder of the runs.
    """
    runs = [
        VerifiedRun(str(row["path"]), str(row["id"]), name_of(row), _problems_of(str(row["path"]), ask))
        for row in source.rows
    ]
    return Verified(tuple(runs), tuple(map(str, unread)))


def _problems_of(folder: str, ask: Verify) -> tuple[Problem, ...]:
    try:
        return tuple(problems_of(folder, ask))
    except (RollbookError, OSError) as err:
        return (Problem(str(err), "unreadable", folder),)


def problems_of(run: str | os.PathLike[str], ask: Verify) -> list[Problem]:
    """The problems of one run, a sentence each; empty if it is sound. Changes nothing.

    A run in a remote is fetched whole into a temporary folder, past the cache: what is checked are the bytes there.

    Args:
      run: its folder; for a run in a remote that of its view.
    Raises:
      ForeignManifest: its run.json is another tool's.
      NotARun: there is no data of a run.
      RemoteUnreachable: the remote does not answer.
    """
    if ask.quick:
        return Book(run).problems(deep=False)
    if not bytes_from.is_view(run):
        return verify_folder(run)
    url, name = address_of(run)
    with tempfile.TemporaryDirectory(prefix="rollbook-verify-") as folder:
        copy = os.path.join(folder, *name.split("/"))
        os.makedirs(copy)
        problems = [Problem(words, "remote") for words in fetch_checked(remote_of(url), name, copy)]
        here, there = copy, f"{url}/{name}"
        inside = [
            Problem(each.replace(here, there), each.kind, each.path.replace(here, there), each.n, each.writer)
            for each in verify_folder(copy)
        ]
        return [*problems, *inside]
