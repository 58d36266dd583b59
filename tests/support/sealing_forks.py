"""Sealing children that need not import anything: forked from a process that has loaded what they use.

Hundreds of tests finish a run in their own process, and each of them starts a child that seals. Almost all that such a
child does is to load pyarrow. Here one process a worker has it loaded and forks the children; what a child gets (words,
environment, folder, umask, log) and what it gives back (a process id, a status, its rows in Parquet) is the same.
Keepers in processes of their own start theirs as they always do.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import Any

__all__ = ["SealingForks"]

LOADED = (
    "rollbook.keeper.sealing_child", "pyarrow.parquet", "pyarrow.compute", "rollbook.journal.reader",
    "rollbook.seal.abandoned", "rollbook.seal.columns_files", "rollbook.seal.frames", "rollbook.seal.segments",
)  # fmt: skip


class SealingForks:
    """Starts sealing children; the process that forks them is started with the first."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None
        self._door: socket.socket | None = None
        self._lock = threading.Lock()

    def start(self, words: list[str], log: Any) -> Child:
        """A child that seals; `words` are those of `sys.argv[1:]`."""
        with self._lock:
            if self._door is None:
                self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                command = [sys.executable, os.path.abspath(__file__), str(theirs.fileno())]
                self._server = subprocess.Popen(
                    command,
                    pass_fds=[theirs.fileno()],
                    env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
                theirs.close()
        umask = os.umask(0)
        os.umask(umask)
        asked = {"words": words, "environment": dict(os.environ), "folder": os.getcwd(), "umask": umask}
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(self._door, [json.dumps(asked).encode()], [theirs.fileno(), log.fileno()])
        return Child(ours)

    def close(self) -> None:
        """End the process that forks; children that are at work end by themselves."""
        if self._door is not None and self._server is not None:
            self._door.close()
            self._server.wait(60)


class Child:
    """As much of a `subprocess.Popen` as a keeper needs."""

    def __init__(self, answers: socket.socket) -> None:
        self.returncode: int | None = None
        self._answers = answers
        self.pid = int(answers.recv(64) or b"0")
        if not self.pid:
            raise OSError("the process that forks sealing children is gone")

    def poll(self) -> int | None:
        """The status, or None while it works."""
        return self._hear(socket.MSG_DONTWAIT)

    def wait(self) -> int | None:
        """Wait for its end."""
        return self._hear(0)

    def terminate(self) -> None:
        """Ask it to end."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)

    def _hear(self, flags: int) -> int | None:
        if self.returncode is None:
            try:
                said = self._answers.recv(64, flags)
            except BlockingIOError:
                return None
            self.returncode = int(said or b"-9")
            self._answers.close()
        return self.returncode


def serve(door: socket.socket) -> None:
    """Fork a child for each message, and tell its number and in the end its status."""
    import importlib
    import selectors

    for name in LOADED:
        importlib.import_module(name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended, wakeup = socket.socketpair()
    for end in (ended, wakeup):
        end.setblocking(False)
    signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    waiting: dict[int, socket.socket] = {}
    selector = selectors.DefaultSelector()
    selector.register(door, selectors.EVENT_READ)
    selector.register(ended, selectors.EVENT_READ)
    while True:
        ready = {key.fileobj for key, _ in selector.select()}
        if ended in ready:
            ended.recv(4096)
            while waiting:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                with waiting.pop(pid) as answers:
                    tell(answers, os.waitstatus_to_exitcode(status))
        if door in ready:
            message, descriptors, _flags, _address = socket.recv_fds(door, 1 << 20, 2)
            if not message:
                return
            answers, log = socket.socket(fileno=descriptors[0]), descriptors[1]
            pid = os.fork()
            if not pid:
                be_child(json.loads(message), log)
            os.close(log)
            waiting[pid] = answers
            tell(answers, pid)


def tell(answers: socket.socket, number: int) -> None:
    """A number to a process that may be gone by now."""
    try:
        answers.send(str(number).encode())
    except OSError:
        return


def be_child(asked: dict[str, Any], log: int) -> None:
    """Become what `python -m rollbook.keeper.sealing_child` is, and end."""
    from rollbook.keeper import sealing_child

    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.setpgid(0, 0)
        os.umask(asked["umask"])
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(log, 2)
        sys.argv[1:] = asked["words"]
        status = sealing_child.main(asked["words"])
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
