"""Becoming a further writer of an existing run: by `attach`, or by unpickling a run, a scope, or the `log` of one."""

from __future__ import annotations

import copyreg
import os

from rollbook.errors import NotARun, RunNotFound, suggesting
from rollbook.journal import Writer
from rollbook.run.current import opened
from rollbook.run.failure import status_of
from rollbook.run.needed import import_needed
from rollbook.run.ranks import own_rank, whereabouts
from rollbook.run.run import Run
from rollbook.run.scope import LOGS, Scope
from rollbook.run.start_and_finish import start, undo
from rollbook.schema import manifest
from rollbook.schema.clocks import STANDARD
from rollbook.schema.run_files import MANIFEST_FILE
from rollbook.system import liveness
from rollbook.system.bill import Bill
from rollbook.system.files import exists, is_file, is_folder, pasted
from rollbook.system.guard import ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


@suggesting
def attach(
    id_or_path: str | os.PathLike[str], *, dir: str | os.PathLike[str] | None = None, strict: bool = False
) -> Run:
    """Become a further writer of an existing run, from this process, on this host or another that sees its folder.

    Args:
      id_or_path: the run's folder, or its id.
      dir: root folder of all runs, to look up an id. Default: $ROLLBOOK_DIR, or "runs".
      strict: raise at once instead of counting and warning; for tests.
    Raises:
      RunNotFound: there is no such run. NotARun, NewerFormat: its run.json cannot be used.
    """
    import_needed(None, "process")
    folder = _locate(os.fspath(id_or_path), dir)
    about = manifest.read(folder, to_continue=True)
    writer = Writer(
        folder,
        attempt=manifest.newest(about).n or 1,
        clocks=tuple(about.clocks or STANDARD),
        nonce=about.nonce,
        bill=Bill(strict),
        rank=own_rank(),
        whereabouts=whereabouts(),
    )
    try:
        return start(folder, about, writer, None, "process")
    except BaseException as err:
        undo(writer, False, status_of(type(err)))
        raise


def _locate(id_or_path: str, dir: str | os.PathLike[str] | None) -> str:
    if is_file(os.path.join(id_or_path, MANIFEST_FILE)):
        return os.path.abspath(id_or_path)
    root = os.path.abspath(os.fspath(dir) if dir is not None else os.environ.get("ROLLBOOK_DIR") or "runs")
    folders = []
    for project in os.scandir(root) if is_folder(root) else ():
        if project.is_dir():
            folders += [e.path for e in os.scandir(project.path) if e.name.endswith(f"-{id_or_path}") and e.is_dir()]
    if len(folders) == 1:
        return folders[0]
    if os.sep in id_or_path or exists(id_or_path):
        manifest.read(id_or_path)  # raises with what was found there
    raise RunNotFound(
        f"attach({id_or_path!r}): {len(folders)} runs of that id under {root}. Pass the run's folder, or dir="
    )


def _pickled_run(run: Run) -> tuple[Any, ...]:
    return unpickle_run, run._address()


def _pickled_scope(scope: Scope) -> tuple[Any, ...]:
    folder, nonce, extract = scope.run._address()
    return unpickle_scope, (folder, nonce, scope._channel.scope, scope._channel.at, extract)


def unpickle_run(folder: str, nonce: str, extract: Mapping[str, object] | None = None) -> Run:
    """A writer of the same run in this process. One per process, however often the run is unpickled.

    The nonce identifies the run. A host that does not see its folder keeps a part of the run in its own root folder.

    Args:
      folder, nonce, extract: the result of `Run.address`.
    Raises:
      NotARun: the run was opened on this host, and its folder is gone or holds another run; or there is no `extract`.
    """
    run: Run
    for run in opened:
        same = run._about.nonce == nonce if nonce else str(run.folder) == folder
        if same and run._writer.pid == os.getpid():
            return run
    about = manifest.look(folder)
    if not about.is_empty and nonce in ("", about.nonce):
        return attach(folder)
    from rollbook.run.local_part import folder_here, home_is_here

    if not extract or home_is_here(extract):
        raise NotARun(
            f"a run was handed to this process as {folder}, and that folder is gone or belongs to another run now. "
            "Open the run again and hand over that, or call init() in this process"
        )
    try:
        own, is_part = folder_here(folder, nonce, extract)
        run = attach(own)
    except ours(Exception) as err:  # problems of this host must not stop the work that was sent to it
        return _without_folder(folder, extract, err)
    if is_part:
        _report_where_the_part_is(run, folder, extract)
    return run


def unpickle_scope(folder: str, nonce: str, name: str, at: str, extract: Mapping[str, object] | None = None) -> Scope:
    """See `unpickle_run`."""
    return unpickle_run(folder, nonce, extract)._open_scope(name, at or None)


def __getattr__(name: str) -> Any:
    """The `log` of this name. Pickle, and what is built on it, passes functions by module and name alone."""
    if not name.startswith("log("):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if (log := LOGS.get(name)) is not None:  # it is being pickled, or has come back
        return log
    import ast

    folder, nonce, scope, at, _ = ast.literal_eval(name.removeprefix("log"))
    return (unpickle_scope(folder, nonce, scope, at) if scope else unpickle_run(folder, nonce)).log


def _report_where_the_part_is(run: Run, folder: str, extract: Mapping[str, object]) -> None:
    remote = extract.get("remote")
    if remote:
        return  # its keeper ships it, and readers see one run
    run.count(
        "local_part",
        message=f"this host ({liveness.host_name()}) does not see the run's folder {folder}: what is logged here is "
        f"kept as a part of the run in {run.folder}. Join it to the run with: rollbook join {pasted(run.folder)} RUN. "
        "Or give init() a dir= that all hosts see, or remote=",
    )


def _without_folder(folder: str, extract: Mapping[str, Any], err: Exception) -> Run:
    """A run that stores nothing and reports that: no folder here can be written."""
    about = manifest.RunJson.of(extract)
    about.attempts = about.attempts or [manifest.Attempt(n=1)]
    nowhere = os.path.join(os.devnull, "no-place")  # a path that cannot be created
    writer = Writer(nowhere, attempt=about.attempts[-1].n, clocks=tuple(about.clocks or STANDARD))
    writer.bill.count(
        "no_place",
        message=f"this host ({liveness.host_name()}) sees neither the run's folder {folder} nor a folder of its own "
        f"to keep a part of the run in ({type(err).__name__}: {err}). What is logged here is counted and lost. Set "
        "ROLLBOOK_DIR to a folder that can be written",
    )
    return start(nowhere, about, writer, None, "inline")


# A pickled run or scope becomes a further writer of the same run where it is unpickled.
copyreg.pickle(Run, _pickled_run)
copyreg.pickle(Scope, _pickled_scope)
