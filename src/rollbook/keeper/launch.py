"""Starts the keeper from the training process, and waits for it: a few milliseconds, never a fork of the trainer.

launch(run.folder)                  # returns at once; the keeper has no parent among our processes
...
wait_done(run.folder, timeout=10)    # after closed.json was written
"""

from __future__ import annotations

import os
import sys
import time

from rollbook.keeper.own_files import Lock, keeper_folder, state_path
from rollbook.keeper.shared_keeper_files import may_share, shared_keeper
from rollbook.schema.finished import former_writers
from rollbook.schema.run_files import RunFile, journal_folder
from rollbook.system.files import exists, is_file, make_folders, names_in, read_json
from rollbook.system.guard import ours, tolerating
from rollbook.system.liveness import is_alive, shares_pids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

__all__ = ["PATH_VARIABLE", "closed_writers", "is_kept", "launch", "may_share", "wait_done", "wake"]

PATH_VARIABLE = "ROLLBOOK_KEEPER_PATH"
"""Passes the trainer's module path to the keeper, which starts without `site`."""

_START_SECONDS = 5.0
"""How long `wait_done` gives a keeper started by this process to take its lock."""

_started: dict[str, float] = {}  # run folder -> until when its keeper may still be starting (monotonic seconds)

# The shell starts the keeper in the background and ends. The system gives the keeper another parent before we could
# wait for it.
_SCRIPT = "trap '' HUP INT; \"$@\" &"


def launch(run_folder: str | os.PathLike[str], python: str = sys.executable) -> bool:
    """Start the keeper of a run, unless one is already at work here.

    It has a separate session, none of our descriptors, and writes to data/keeper/log.

    Args:
      run_folder: the run's folder; its writer.json should exist, because a keeper without living writers ends.
      python: the interpreter to start.
    Returns:
      True if a keeper was started, False if one is at work.
    Raises:
      OSError: it cannot be started: no interpreter (a frozen program), no permission, no processes left.
    """
    folder = keeper_folder(os.fspath(run_folder))
    make_folders(folder, inside=run_folder)
    shared = shared_keeper() if may_share(os.fspath(run_folder)) else None
    if Lock(os.fspath(run_folder)).taken() and (shared is not None or not _leaves_for_one_of_its_own(run_folder)):
        return False
    if not python or getattr(sys, "frozen", False):
        raise OSError("this program has no Python interpreter of its own to start a keeper with; use keeper='thread'")
    _started[os.path.abspath(run_folder)] = time.monotonic() + _START_SECONDS
    if shared is not None:
        shared.announce(os.fspath(run_folder))
        if shared.keeper() is None and shared.may_start():
            _start(_command(python, "--many", shared.folder), _environment(), os.path.join(shared.folder, "log"))
        return True
    _start(_command(python, os.path.abspath(run_folder)), _environment(), os.path.join(folder, "log"))
    return True


def is_kept(run_folder: str | os.PathLike[str]) -> bool:
    """Whether a keeper on this host is at work in a run, or has just been started."""
    folder = os.path.abspath(run_folder)
    return time.monotonic() < _started.get(folder, 0.0) or Lock(folder).taken()


def _leaves_for_one_of_its_own(run_folder: str | os.PathLike[str]) -> bool:
    """Whether the shared keeper has let go of a run that got other sinks and now needs a separate keeper."""
    entry = read_json(state_path(os.fspath(run_folder))).get("entry")
    if not isinstance(entry, str):
        return False
    try:
        os.unlink(entry)
    except OSError:
        return False
    lock, until = Lock(os.fspath(run_folder)), time.monotonic() + _START_SECONDS
    _wake(read_json(state_path(os.fspath(run_folder))))
    while lock.taken() and time.monotonic() < until:
        time.sleep(0.01)
    return not lock.taken()


def _command(python: str, *arguments: str) -> list[str]:
    return [python, "-I", "-S", *_program(), "--background", *arguments]


def _environment() -> dict[str, str]:
    environment = dict(os.environ)
    environment[PATH_VARIABLE] = os.pathsep.join(os.path.abspath(p) for p in sys.path if isinstance(p, str))
    return environment


def _program() -> list[str]:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    program = os.path.join(package, "keeper", "__main__.py")
    if is_file(program):
        return [program]  # so that `ps` shows a telling name
    parent = os.path.dirname(package)
    return ["-c", f"import sys; sys.path.append({parent!r}); from rollbook.keeper.process import main; main()"]


def _start(command: list[str], environment: dict[str, str], log: str) -> None:
    spawn: Any = getattr(os, "posix_spawn", None)
    if spawn is None:
        _start_with_subprocess(command, environment, log)
        return
    import signal

    options: dict[str, Any] = {
        "file_actions": [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_RDWR, 0),
            (os.POSIX_SPAWN_OPEN, 2, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666),
        ],
        # The trainer's signal settings must not reach the keeper.
        "setsigmask": (),
        "setsigdef": (signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1, signal.SIGALRM),
        "setsid": True,
    }
    through_shell = ["/bin/sh", "-c", _SCRIPT, "rollbook-keeper", *command]
    # Without a shell the new process forks once more: the same effect, but Python has to start first.
    for argv in (through_shell, [*command, "--detach"]):
        for _ in range(2):
            try:
                pid = spawn(argv[0], argv, environment, **options)
                break
            except ours(NotImplementedError):  # no setsid here: the keeper calls it
                options.pop("setsid", None)
            except ours(FileNotFoundError):
                if argv is not through_shell:
                    raise
                pid = 0
                break
        if pid:
            _await(pid)
            return


def _await(pid: int) -> None:
    """Wait for the shell, which ends at once; one that is stopped is abandoned."""
    until, pause = time.monotonic() + _START_SECONDS, 0.0005
    with tolerating(ChildProcessError):  # the trainer ignores SIGCHLD, or another thread waits for all children
        while os.waitpid(pid, os.WNOHANG)[0] == 0 and time.monotonic() < until:
            time.sleep(pause)
            pause = min(2 * pause, 0.02)


def _start_with_subprocess(command: list[str], environment: dict[str, str], log: str) -> None:
    import subprocess

    options: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
        # A job object may end all its processes with the trainer; leaving it is not always allowed.
        attempts = [{"creationflags": flags | subprocess.CREATE_BREAKAWAY_FROM_JOB}, {"creationflags": flags}]
    else:
        attempts = [options]
        command = [*command, "--detach"]
    with open(log, "ab") as file:
        for n, how in enumerate(attempts):
            try:
                process = subprocess.Popen(
                    command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=file,
                    close_fds=True,
                    **how,  # type: ignore[arg-type,unused-ignore]
                )
                break
            except ours(PermissionError):
                if n + 1 == len(attempts):
                    raise
    if sys.platform == "win32":
        process.returncode = 0  # it is meant to outlive this process: no ResourceWarning
    else:
        with tolerating(subprocess.TimeoutExpired):
            process.wait(_START_SECONDS)


def wait_done(run_folder: str | os.PathLike[str], timeout: float, writers: Collection[str] | None = None) -> bool:
    """Wait until the keeper on this host has delivered the rows of every closed writer to sinks and Parquet.

    Call it after closed.json was written. Blocks up to `timeout` seconds and changes nothing in the run folder.

    Args:
      writers: those that had closed when the caller looked. None: those that are found now, which are none if the
        keeper has removed the journal and is about to ship the rest.
    Returns:
      True when it has; False when time ran out, or no keeper is at work (it died, or was never started).
    """
    folder = os.fspath(run_folder)
    lock, path = Lock(folder), state_path(folder)
    wanted = closed_writers(folder) if writers is None else set(writers)
    began = time.monotonic()
    # A keeper that has just been started has no lock yet.
    starting_until = _started.get(os.path.abspath(folder), began - 1.0)
    woken: object = None
    while True:
        at_work = lock.taken()  # before the state: a keeper first reports "done", then releases the lock
        state = read_json(path)
        if wanted.issubset(_names(state.get("complete"))):
            return True
        if not state and wanted <= former_writers(folder).keys():  # swept: all was done
            return True
        if at_work and woken != state.get("pid") and _wake(state):
            woken = state.get("pid")
        now = time.monotonic()
        if now - began >= timeout or (not at_work and now > starting_until):
            return False
        time.sleep(min(0.01 if now - began < 1.0 else 0.05, max(0.0, began + timeout - now)))


def wake(run_folder: str | os.PathLike[str]) -> bool:
    """Let the run's keeper look now, such as after closed.json was written. False if there is none to wake."""
    return _wake(read_json(state_path(os.fspath(run_folder))))


def closed_writers(run_folder: str) -> set[str]:
    """The writers on this host that have closed."""
    journal = journal_folder(run_folder)
    return {
        name
        for name in names_in(journal)
        if exists(os.path.join(journal, name, RunFile.CLOSED))
        and shares_pids(read_json(os.path.join(journal, name, RunFile.WRITER)))
    }


def _names(value: object) -> set[object]:
    return {name for name in value if isinstance(name, str)} if isinstance(value, list) else set()


def _wake(state: dict[str, Any]) -> bool:
    """Wake a keeper, which otherwise looks again within a second."""
    if state.get("signal") != "USR1" or state.get("pid") == os.getpid() or is_alive(state) is not True:
        return False
    import signal

    with tolerating(OSError, AttributeError):
        if isinstance(state.get("entry"), str) and exists(state["entry"]):
            os.utime(state["entry"])  # of many runs, look at this one
        os.kill(state["pid"], signal.SIGUSR1)
        return True
    return False
