"""When all of a run is sealed, what a later attempt needs goes into finished.json, and the files of its keeper go.

A finished run of one row then has eight files instead of 21. Killed between any two steps, the run is whole: an
entry of finished.json is written before its file goes, and a file that is there counts more than its entry. The next
keeper sweeps again.
"""

from __future__ import annotations

import os

from rollbook.keeper.own_files import Lock, keeper_folder, state_path, troubles_path
from rollbook.schema.finished import FOLDED, finished_path, folded, write
from rollbook.schema.manifest import ManifestLock
from rollbook.schema.run_files import RunFile, heartbeat_path, journal_folder
from rollbook.system.files import names_in, read_json, remove
from rollbook.system.guard import tolerating


def sweep_finished(run_folder: str, own_lock: Lock) -> bool:
    """Leave one file of the keeper's. Call it with the keeper's lock held, when its work is done.

    Does nothing while the journal has a writer, or another keeper is at work: `init` opens the writer of an attempt
    under the lock of run.json, which is held here, before it writes the attempt's plan.json.

    Returns:
      Whether it was done.
    Raises:
      OSError: the disk is full, or the folder cannot be written. Then every file is still there.
    """
    folder = keeper_folder(run_folder)
    with ManifestLock(run_folder) as lock:
        if not lock.is_held or names_in(journal_folder(run_folder)) or _others_work(folder, own_lock):
            return False
        before, whole = read_json(finished_path(run_folder)), folded(run_folder)
        if not whole.get("writers"):  # nothing was sealed yet
            return False
        if whole != before:
            write(run_folder, whole)
        for name in FOLDED:
            remove(os.path.join(run_folder, name))
        for name in names_in(folder):  # of processes that were killed; it is only written under the lock held here
            if name.startswith(f"{RunFile.FINISHED}.") and name.endswith(".tmp"):
                remove(os.path.join(folder, name))
        remove(os.path.join(folder, RunFile.DURABLE))
        remove(heartbeat_path(run_folder))
        _remove_if_empty(os.path.join(folder, "log"), 0)
        _remove_if_empty(troubles_path(run_folder), len("{}"))
        remove(state_path(run_folder))  # last: `wait_done` takes its absence, with the writers noted, for the end
        for path in (os.path.join(folder, "cursors"), journal_folder(run_folder)):
            with tolerating(OSError):
                os.rmdir(path)
    return True


def _others_work(folder: str, own_lock: Lock) -> bool:
    own = os.path.basename(own_lock.path)
    return any(name.startswith("lock-") and name != own for name in names_in(folder))


def _remove_if_empty(path: str, size: int) -> None:
    with tolerating(OSError):
        if os.stat(path).st_size <= size:
            os.unlink(path)
