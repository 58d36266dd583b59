"""Finds the runs that a command line names: one rule for all commands, and their shared options.

A word is the address of a store, the folder of a run, a folder of runs, an id, a name (also project/name, name-id and
project/name-id), a project, or "last". A word with a separator is a path if that path exists. Any other word is first
searched among the runs below --dir, and then taken as a folder. A command about several runs takes all matches; one
about a single run takes the newest match that has something to show for it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import click

from rollbook.cli.output import clean, remark
from rollbook.errors import NotARun
from rollbook.runs.absent import no_run_below, no_run_called, no_run_for
from rollbook.schema import manifest
from rollbook.schema.addresses import is_address
from rollbook.schema.source import is_view
from rollbook.system.files import pasted
from rollbook.system.guard import tolerating
from rollbook.system.texts import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book import Book
    from rollbook.runs.run_set import RunSet

F = TypeVar("F", bound=Callable[..., Any])

_NO_RUNS = "{what}. Say where runs lie with --dir or $ROLLBOOK_DIR, or record one with: rollbook demo"
_MOST_TRIED = 100
"""At most this many of the newest runs are checked for something to show."""
_DEEPEST = 4
"""How deep a folder is searched for runs whose run.json is lost."""

_DEEPEST_HERE = 1
"""How deep the working folder, which may be anybody's home, is searched for results of other tools."""


def run_argument(command: F) -> F:
    """The argument RUN, for commands that change something: required."""
    return click.argument("run")(command)


def run_argument_or_last(command: F) -> F:
    """The argument RUN, for commands that only read: default is the last run."""
    return click.argument("run", default="last")(command)


def dir_option(command: F) -> F:
    """The option --dir: the folder of runs."""
    return click.option(
        "--dir",
        "root",
        default=lambda: os.environ.get("ROLLBOOK_DIR") or "runs",
        help="The folder of all runs; default: $ROLLBOOK_DIR or runs.",
    )(command)


def runs_options(command: F) -> F:
    """Which runs a command about several takes: the argument RUNS, which may be repeated, --dir and --where."""
    command = click.option("--where", default=None, help="Condition on runs, such as \"status = 'finished'\".")(command)
    return click.argument("runs", metavar="[RUNS]...", nargs=-1)(dir_option(command))


def limit_option(most: int) -> Callable[[F], F]:
    """The option --limit, of a command that prints a table.

    Args:
      most: its default.
    """
    kind = click.IntRange(min=1)
    return click.option("--limit", default=most, type=kind, show_default=True, help="At most this many rows.")


def format_options(command: F) -> F:
    """The options --json and --csv."""
    command = click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)
    return click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")(command)


def find_runs(
    words: str | Sequence[str],
    root: str,
    where: str | None = None,
    *,
    having: Callable[[Book], bool] | None = None,
    what: str = "",
    may_be_none: bool = False,
    newest: int | None = None,
) -> RunSet:
    """All runs that a word names, or several words together; "" and () name all below `root`.

    Args:
      where: a condition that they must meet.
      having: which run "last" may be: the newest that meets it. `what` names what such a run has.
      may_be_none: an empty result is allowed.
      newest: of a folder, as in `rollbook.open`.
    Raises:
      RunNotFound: nothing of that name, or nothing that meets `where`.
    """
    words = [words] if isinstance(words, str) else list(dict.fromkeys(words)) or [""]
    words = [_as_listed(word) for word in words]
    if len(words) > 1:
        return _found_together(words, root, where, having=having, what=what, may_be_none=may_be_none, newest=newest)
    (word,) = words
    runs = _meant(word, root, where, may_be_none, newest)
    if not _is_last(word, runs):
        return runs
    last = _newest(runs, having, what)
    return runs.filter(lambda row: row["path"] == str(last.path))


def _found_together(
    words: Sequence[str], root: str, where: str | None, *, may_be_none: bool, newest: int | None, **last: Any
) -> RunSet:
    """The runs that several words name, each once."""
    from rollbook.formats.opening import open as open_runs
    from rollbook.formats.opening import together

    if all(_is_path(word) or (_is_folder(word) and not os.path.isdir(root)) for word in words):
        runs = open_runs(list(words), newest=newest, where=where)
    else:
        runs = together([find_runs(word, root, may_be_none=may_be_none, newest=newest, **last) for word in words])
        runs = runs.where(where) if where and len(runs) else runs
    if len(runs) or may_be_none:
        return runs
    if where:
        raise no_run_for(where, runs.root)
    raise no_run_below(runs.root)


def find_book(word: str, root: str, having: Callable[[Book], bool] | None = None, what: str = "") -> Book:
    """The run that a word names; of several, the newest that has something to show.

    Args:
      having: whether a run has what the command shows, such as checkpoints; `what` is the name of that.
    Raises:
      RunNotFound: nothing of that name. NotARun, NewerFormat: its run.json cannot be read.
    """
    from rollbook.book import Book

    word = _as_listed(word)
    if not is_address(word) and _is_run(word):
        return Book(os.path.abspath(word))
    runs = _meant(word, root)
    book = _newest(runs, having, what)
    if word != "last" and len(runs) > 1 and book.path == runs.last().path:
        remark(f"{len(runs):,} runs fit {clean(word)}; this is {_words(book)}, the newest")
    return book


def find_folder(word: str, root: str) -> str:
    """The folder of the run that a word names, even if its run.json is damaged or lost.

    Raises:
      RunNotFound: nothing of that name. ForeignManifest: the run.json belongs to another tool.
    """
    from rollbook.errors import RunNotFound

    if os.path.isdir(word) and (_is_run(word) or os.path.lexists(manifest.path_of(word))):
        if not manifest.holds_a_run(word):
            manifest.read(word)
        return os.path.abspath(word)
    try:
        return str(find_book(word, root).path)
    except RunNotFound:
        lost = list(_lost_runs(word, root))
        if len(lost) == 1:
            return lost[0]
        raise


def find_folders(word: str, root: str) -> list[str]:
    """The folders of all runs that a word names, also of those whose run.json is damaged or lost.

    Raises:
      RunNotFound: nothing of that name. ForeignManifest: the run.json belongs to another tool.
    """
    from rollbook.errors import RunNotFound

    word = _as_listed(word)
    if word == "last" or _is_run(word) or os.path.lexists(manifest.path_of(word)):
        return [find_folder(word, root)]
    nothing = None
    found: list[str] = []
    try:
        found = [str(row["path"]) for row in find_runs(word, root).rows()]
    except RunNotFound as err:
        nothing = err
    if is_address(word) or is_address(root):
        return found
    folders = tuple(os.path.join(os.path.abspath(folder), "") for folder in (word, root))
    own = [path for path in found if path.startswith(folders)]  # not the copies of what other tools wrote
    if os.path.isdir(word) and all(path.startswith(folders[0]) for path in own):
        lost = list(_written_below(word))
    else:
        lost = list(_lost_runs(word, root))
    if len(own) < len(found):
        what = amount(len(found) - len(own), "run")
        remark(f"passed over: {what} of other tools. rollbook ls {shlex.quote(word)} names what is damaged in them")
    if nothing is not None and not lost:
        raise nothing
    return list(dict.fromkeys([*own, *lost]))


def _meant(
    word: str, root: str, where: str | None = None, may_be_none: bool = False, newest: int | None = None
) -> RunSet:
    """The runs that a word names; for "last", all candidates."""
    from rollbook.errors import RunNotFound

    chosen = _looked_up(word, root, _MOST_TRIED if word == "last" and not where else newest, where)
    if len(chosen) or may_be_none:
        return chosen
    runs = _looked_up(word, root, 0) if where else chosen
    if not len(runs) + runs.unread:
        raise RunNotFound(add_what_is_there(str(no_run_below(runs.root or word or root)), runs))
    if where:
        raise no_run_for(where, runs.root)
    return chosen


def _looked_up(word: str, root: str, newest: int | None, where: str | None = None) -> RunSet:
    from rollbook.errors import RunNotFound
    from rollbook.formats.opening import open as open_runs

    is_folder = _is_folder(word)
    if _is_path(word) or (is_folder and not os.path.isdir(root)):
        return open_runs(word, newest=newest, where=where)
    runs = _below(root, newest if word in ("", "last") else None, None if word else where)
    if not word:
        return runs
    try:
        is_last = word == "last" and not any(map(_is_called_last, runs.rows()))
        named = runs if is_last else runs.named(word)
        return named.where(where) if where and len(named) else named
    except RunNotFound:
        if is_folder:
            return open_runs(word, newest=newest, where=where)
        if not len(runs):
            raise RunNotFound(add_what_is_there(str(no_run_below(runs.root or root)), runs)) from None
        raise no_run_called(word, runs.rows(), runs.root) from None


def _as_listed(word: str) -> str:
    """A word; of a run in a remote that is named by its `path` in listings, and not in the cache yet, the address."""
    if not is_view(word) or os.path.isdir(word):
        return word
    from rollbook.remote.views import address_of

    with tolerating(NotARun):
        return "/".join(address_of(word))
    return word


def _is_folder(word: str) -> bool:
    return not is_address(word) and os.path.isdir(word)


def _is_path(word: str) -> bool:
    """Whether a word is an address or the path of a folder, and so no name of a run."""
    return is_address(word) or (_is_folder(word) and (os.sep in word or word in (os.curdir, os.pardir)))


def _below(root: str, newest: int | None, where: str | None) -> RunSet:
    from rollbook.errors import RunNotFound
    from rollbook.formats.opening import open as open_runs

    if not is_address(root) and not os.path.isdir(root):
        raise RunNotFound(add_what_is_there(f"there is no folder {root!r} here", looks_here=not os.path.isabs(root)))
    return open_runs(root, newest=newest, where=where)


def _is_last(word: str, runs: RunSet) -> bool:
    """Whether a word asks for the newest of some runs, and is not itself a run's name."""
    return word == "last" and len(runs) > 0 and not all(map(_is_called_last, runs.rows()))


def _is_called_last(row: dict[str, Any]) -> bool:
    return "last" in (row["id"], row["name"])


def _is_run(path: str) -> bool:
    """Whether a folder is a run, or was one before its run.json was lost."""
    if not os.path.isdir(path):
        return False
    return manifest.holds_a_run(path) or bool(manifest.look(path).id)


def _newest(runs: RunSet, having: Callable[[Book], bool] | None, what: str) -> Book:
    from rollbook.errors import RollbookError

    newest = runs.last()
    if having is None or len(runs) == 1:
        return newest
    for book in runs.newest(_MOST_TRIED):
        try:
            if not having(book):
                continue
        except (RollbookError, OSError):
            continue
        if book.path != newest.path:
            remark(f"{_words(newest)} has no {what}; this is {_words(book)}, the newest run that has")
        return book
    return newest


def _words(book: Book) -> str:
    return clean(f"{book.project}/{book.name} {book.id}")


def _lost_runs(word: str, root: str) -> Iterator[str]:
    """Folders of that name or project below `root` that rollbook wrote, with or without a readable run.json."""
    if is_address(root):
        return
    parts = word.split("/")
    for folder in _written_below(root):
        project, name = os.path.basename(os.path.dirname(folder)), os.path.basename(folder)
        begin, _, identity = name.rpartition("-")
        if word == project or (parts[-1] in (name, begin, identity) and parts[:-1] in ([], [project])):
            yield folder


def _written_below(folder: str, depth: int = _DEEPEST) -> Iterator[str]:
    """Folders of runs that rollbook wrote, with or without a readable run.json."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if not entry.is_dir(follow_symlinks=False):
            continue
        if manifest.holds_a_run(entry.path):
            yield os.path.abspath(entry.path)
        elif depth > 1:
            yield from _written_below(entry.path, depth - 1)


# -- what to do where there are no runs


def add_what_is_there(what: str, runs: RunSet | None = None, *, looks_here: bool = False) -> str:
    """Explain why there are no runs, and what to do: look at other tools' runs, or record a run.

    Args:
      runs: the empty set: it has the runs of other tools, too, and its problems name the files that no importer reads.
      looks_here: look for runs of other tools in the working folder, not deep.
    """
    from rollbook.runs.removing import binned_below

    if looks_here and runs is None and (formats := _formats_here()):
        what += (
            f"; other tools left results here ({', '.join(formats)}). Look at them as they are: rollbook ls .\n"
            "Or bring them into a folder of runs: rollbook import ."
        )
    elif removed := [] if runs is None else binned_below(runs.folders):
        what += f"; {amount(len(removed), 'run')} {'is' if len(removed) == 1 else 'are'} in the bin. List them with: "
        what += f"rollbook rm --bin --dir {pasted(os.path.dirname(removed[0][0].folder))}"
    else:
        what = _NO_RUNS.format(what=what)
    problems = [] if runs is None else runs.problems
    more = [f"and {len(problems) - 3:,} more"] if len(problems) > 3 else []
    return "\n".join([what, *map(clean, problems[:3]), *more])


def _formats_here() -> list[str]:
    """The formats of runs of other tools in the working folder, looked for in it and one level below."""
    from pathlib import Path

    from rollbook.formats.importers import Walk, found

    sources = found(os.curdir, deepest=_DEEPEST_HERE)
    walk = Walk(Path(os.path.abspath(os.curdir)), sources=sources)
    return [name for name in sources if any(one.format_name == name for one in walk.runs)]
