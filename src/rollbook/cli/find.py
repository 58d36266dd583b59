"""Finding the run that a command line names, and the options that commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from rollbook.remote import is_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book.book import Book
    from rollbook.runs.run_set import RunSet

__all__ = ["dir_option", "find_book", "find_folder", "find_runs", "format_options", "run_argument", "runs_below"]

F = TypeVar("F", bound=Callable[..., Any])

_NO_RUNS = "{what}. Say where runs lie with --dir or $ROLLBOOK_DIR, or record one with: rollbook demo"


def run_argument(command: F) -> F:
    """The argument RUN."""
    return click.argument("run")(command)


def dir_option(command: F) -> F:
    """The option --dir: where runs lie."""
    return click.option(
        "--dir",
        "root",
        default=lambda: os.environ.get("ROLLBOOK_DIR", "runs"),
        show_default="$ROLLBOOK_DIR or runs",
        help="The folder that holds all runs.",
    )(command)


def format_options(command: F) -> F:
    """The options --json and --csv."""
    command = click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)
    return click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")(command)


def find_folder(run: str, root: str) -> str:
    """The folder of the run that `run` names: a path, or the words of `RunSet.one`; the newest where several fit.

    Raises:
      RunNotFound: nothing of that name, with what is there.
    """
    if is_address(run):
        from rollbook.runs.catalog import open as open_runs

        return str(open_runs(run).one(newest=True).path)
    if os.path.isfile(os.path.join(run, "run.json")):
        return os.path.abspath(run)
    if os.path.isdir(os.path.join(run, "data")):  # a run that lost its run.json
        return os.path.abspath(run)
    from rollbook.errors import RunNotFound, did_you_mean

    runs = runs_below(root)
    try:
        return str(runs.one(run, newest=True).path)
    except RunNotFound:
        rows = runs.rows()
        if not rows:
            raise RunNotFound(_NO_RUNS.format(what=f"there is no run below {root}")) from None
        names = sorted({f"{row['project']}/{row['name']}" for row in rows})
        raise RunNotFound(f"there is no run {run!r} below {root}.{did_you_mean(run, names)}") from None


def runs_below(root: str) -> RunSet:
    """All runs below a folder.

    Raises:
      RunNotFound: there is no such folder, in the words of the command line.
    """
    from rollbook.errors import RunNotFound
    from rollbook.runs.catalog import open as open_runs

    if not is_address(root) and not os.path.isdir(root):
        raise RunNotFound(_NO_RUNS.format(what=f"there is no folder {root!r} here"))
    return open_runs(root)


def find_book(run: str, root: str) -> Book:
    """The book of the run that `run` names."""
    from rollbook.book.book import Book

    return Book(find_folder(run, root))


def find_runs(runs: str, root: str, where: str | None = None) -> RunSet:
    """The runs that `runs` names: a folder (of one run or of many), the words of `RunSet.named`, or "" for all.

    Raises:
      RunNotFound: nothing of that name, or nothing that fits `where`.
    """
    from rollbook.errors import RunNotFound
    from rollbook.runs.catalog import open as open_runs

    is_path = bool(runs) and os.path.isdir(runs) and (os.sep in runs or not os.path.isdir(os.path.join(root, runs)))
    if is_path or is_address(runs):
        chosen = open_runs(runs)
    else:
        chosen = open_runs(root)
        chosen = chosen.named(runs) if runs else chosen
    chosen = chosen.where(where) if where else chosen
    if not len(chosen):
        asked = f" for which {where}" if where else ""
        raise RunNotFound(f"there are no runs{asked} below {runs or root}. Look what there is with: rollbook ls")
    return chosen
