"""Finding the run that a command line names, and the options that commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rollbook.book.book import Book

__all__ = ["dir_option", "find_book", "find_folder", "format_options", "run_argument"]

F = TypeVar("F", bound=Callable[..., Any])


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
    if os.path.isfile(os.path.join(run, "run.json")):
        return os.path.abspath(run)
    if os.path.isdir(os.path.join(run, "data")):  # a run that lost its run.json
        return os.path.abspath(run)
    from rollbook.runs.catalog import open as open_runs

    return str(open_runs(root).one(run, newest=True).path)


def find_book(run: str, root: str) -> Book:
    """The book of the run that `run` names."""
    from rollbook.book.book import Book

    return Book(find_folder(run, root))
