"""A program that starts another one whenever it takes a lock; tests/run/test_forks.py runs it in its own interpreter.

    python copied_locks.py FOLDER

Until the new process runs its program it has copies of all descriptors. Here that takes until this program ends, as it
may on a busy machine where another thread calls `git`. Prints, as JSON, each file that was locked, how often, and those
that are still locked although what locked them has returned.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import rollbook
from rollbook.formats.foreign import laid_out
from rollbook.keeper.own_files import Lock
from rollbook.keeper.shared_keeper_files import shared_keeper
from rollbook.remote.push import push
from rollbook.run.origin import provenance
from rollbook.runs.colours import keep
from rollbook.storage.sealing.folder import seal

C = ctypes.PyDLL(None)  # keeps the interpreter's lock over a fork: in the child nobody could release it
taken: Counter[str] = Counter()
ENDS_OF_CHILDREN, END = os.pipe()


def copying(event: str, arguments: tuple[Any, ...]) -> None:
    """Fork as `fcntl.flock` is about to be called: without Python's hooks, which a starting program does not run."""
    if event != "fcntl.flock" or arguments[1] == fcntl.LOCK_UN:
        return
    taken[os.readlink(f"/proc/self/fd/{arguments[0]}")] += 1
    if C.fork() == 0:
        C.close(END)
        C.read(ENDS_OF_CHILDREN, ctypes.create_string_buffer(1), 1)
        C._exit(0)


def still_locked() -> list[str]:
    """Files that nobody can lock now."""
    found = []
    for path in list(taken):
        if not os.path.exists(path):
            continue
        with open(path, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                found.append(path)
            else:
                fcntl.flock(file, fcntl.LOCK_UN)
    return found


def use_every_lock(folder: Path) -> None:
    """The operations of rollbook that lock something for as long as they last."""
    store = f"file://{folder}/store"
    run = rollbook.init("p", "r", dir=folder / "runs", sinks=[], keeper="inline")
    run.log({"a": 1.0}, env_step=1)
    run.internals.write_about()
    for _ in range(2):
        assert push(run.folder, store, final=False).done, "it was left to another process that ships the folder"
    seal(run.folder)
    run.finish()
    keep(rollbook.open(folder / "runs").rows(), {}, {run.id: 2})
    other = folder / "other"
    other.mkdir()
    (other / "progress.csv").write_text("step,a\n1,2.0\n")
    assert laid_out(other)[0]
    own = Lock(str(run.folder))
    assert own.acquire()
    assert own.taken()
    own.release()
    shared = shared_keeper()
    assert shared is not None
    assert shared.acquire()
    shared.release()
    assert shared.keeper() is None


if __name__ == "__main__":
    # A child in which another thread had asked for Python's lock would wait for a thread it does not have: nobody asks.
    sys.setswitchinterval(3600.0)
    provenance._git = lambda *_: None  # nor is git asked: a child that has copies of its pipes keeps them open
    sys.addaudithook(copying)
    root = Path(sys.argv[1])
    use_every_lock(root)
    taken_then = dict(taken)
    told = {"taken": {os.path.basename(p): n for p, n in taken_then.items()}, "locked": still_locked()}
    print(json.dumps(told), flush=True)
    os._exit(0)
