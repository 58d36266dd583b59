"""Sealing that need not import anything: in the test's own process, or forked from one that has loaded what it uses.

Hundreds of tests finish a run, and each of those starts a child that seals. Almost all that such a child does is to
load pyarrow. The process of the tests has it loaded: what `finish()` and a keeper's `run_to_end` wait for anyway is
sealed there. Elsewhere one process has it loaded for all tests of a worker and forks the children; what a child gets
(words, environment, folder, umask, log) and what it gives back (a process id, a status, its rows in Parquet) is the
same. The fixture `sealing_in_a_child` is for tests that interrupt, count or replace what happens in their process.

Python processes that tests start do so too: `started/sitecustomize.py` is on their path, and keepers, which look at no
such path, are `started/keeper.py`. The fixture `real_sealing_children` is for tests in which the child itself matters.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from waiting import PATIENCE

__all__ = ["VARIABLE", "forking", "keeper_program", "python_path", "sealing_here", "started_server"]

VARIABLE = "SEALING_FORKS"
"""Names the socket of the process that forks, to all processes of a test."""

MODULES = ("rollbook.keeper.sealing_child", "rollbook.runs.recalling")
"""What children run: they seal, or tell health rules after a rewind what they would remember."""

LOADED = (
    "rollbook.keeper.sealing_child", "pyarrow.parquet", "pyarrow.compute", "rollbook.journal.reader", "argparse",
    "rollbook.storage.sealing.abandoned", "rollbook.storage.sealing.columns_files", "rollbook.storage.sealing.frames",
    "rollbook.storage.sealing.segments",
    "rollbook.storage.sealing.merge", "rollbook.storage.sealing.writers_file", "rollbook.book.book",
    "rollbook.book.results", "msgspec", "numpy.ma",
)  # fmt: skip


@contextlib.contextmanager
def started_server() -> Iterator[dict[str, str]]:
    """A process that forks sealing children; the variables that tell other processes of it."""
    with tempfile.TemporaryDirectory(prefix="forks-") as folder:
        path = os.path.join(folder, "listener")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(path)
        listener.listen(128)
        server = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), str(listener.fileno())],
            pass_fds=[listener.fileno()],
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        listener.close()
        support = os.path.dirname(os.path.abspath(__file__))
        paths = [os.path.join(support, "started"), support, os.environ.get("PYTHONPATH", "")]
        yield {VARIABLE: path, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        server.communicate(timeout=PATIENCE)  # it ends as its stdin does


def python_path(*places: object) -> str:
    """$PYTHONPATH of a program that has these places on it, and starts its sealing children like all others here."""
    return os.pathsep.join(filter(None, [*map(str, places), os.environ.get("PYTHONPATH", "")]))


def forking(start_child: Callable[..., Any]) -> Callable[..., Any]:
    """`rollbook.keeper.child.start_child`, but forked where somebody here does so."""

    def start(command: list[str], words: list[str], log: Any) -> Any:
        module = next((name for name in MODULES if f"'{name}'" in command[-1]), "")
        if VARIABLE in os.environ and module:
            try:
                return start_forked(module, list(words), log)
            except OSError:  # the tests are over, this process is not
                pass
        return start_child(command, words, log)

    return start


def sealing_here(run_to_end: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """`rollbook.keeper.main.Keeper.run_to_end`, but in this process it also seals here."""
    pid = os.getpid()  # not in forks of it: what threads of its packages hold would be held for ever there

    @functools.wraps(run_to_end)
    def run(keeper: Any) -> bool:
        if os.getpid() == pid and VARIABLE in os.environ and not keeper._sealing._has_own_command:
            keeper._sealing.is_here = True
        return run_to_end(keeper)

    return run


def keeper_program(program: Callable[[], list[str]]) -> Callable[[], list[str]]:
    """`rollbook.keeper.launch._program`, but of a keeper whose sealing children are forked where somebody does so."""
    of_tests = os.path.join(os.path.dirname(os.path.abspath(__file__)), "started", "keeper.py")
    return lambda: [of_tests] if VARIABLE in os.environ else program()


def start_forked(module: str, words: list[str], log: Any) -> Child:
    """A child that runs one of MODULES; `words` are those of its `sys.argv[1:]`.

    Raises:
      OSError: there is nobody here who forks them.
    """
    umask = os.umask(0)
    os.umask(umask)
    asked = {"module": module, "words": words, "environment": dict(os.environ), "folder": os.getcwd(), "umask": umask}
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.connect(os.environ.get(VARIABLE, ""))
        socket.send_fds(connection, [json.dumps(asked).encode()], [log.fileno()])
        return Child(connection)
    except OSError:
        connection.close()
        raise


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
        return self._status(socket.MSG_DONTWAIT)

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for its end."""
        if self.returncode is None and timeout is not None:
            import select

            if not select.select([self._answers], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        return self._status(0)

    def terminate(self) -> None:
        """Ask it to end."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _status(self, flags: int) -> int | None:
        if self.returncode is None:
            try:
                said = self._answers.recv(64, flags)
            except BlockingIOError:
                return None
            self.returncode = int(said or b"-9")
            self._answers.close()
        return self.returncode


def serve(listener: socket.socket) -> None:
    """Fork a child for each connection, and tell its number and in the end its status; until stdin ends."""
    import selectors

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended, wakeup = socket.socketpair()
    for end in (ended, wakeup):
        end.setblocking(False)
    signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    waiting: dict[int, socket.socket] = {}
    selector = selectors.DefaultSelector()
    for source in (sys.stdin, ended, listener):
        selector.register(source, selectors.EVENT_READ)
    while True:
        ready = {key.fileobj for key, _ in selector.select()}
        if sys.stdin in ready:
            return
        if ended in ready:
            ended.recv(4096)
            while waiting:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                with waiting.pop(pid) as answers:
                    tell(answers, os.waitstatus_to_exitcode(status))
        if listener in ready:
            answers, _address = listener.accept()
            answers.settimeout(10)  # somebody may have been killed in between
            with contextlib.suppress(OSError):
                message, descriptors, _flags, _address = socket.recv_fds(answers, 1 << 20, 1)
                if message:
                    waiting[fork(json.loads(message), descriptors[0])] = answers
                    tell(answers, list(waiting)[-1])


def fork(asked: dict[str, Any], log: int) -> int:
    """Fork a child; its number."""
    import gc
    import importlib

    if LOADED[-1] not in sys.modules:
        for name in LOADED:
            importlib.import_module(name)
        gc.collect()
        gc.freeze()  # else the first collection of each child copies all of that
    pid = os.fork()
    if not pid:
        be_child(asked, log)
    os.close(log)
    return pid


def tell(answers: socket.socket, number: int) -> None:
    """A number to a process that may be gone by now."""
    try:
        answers.send(str(number).encode())
    except OSError:
        return


def be_child(asked: dict[str, Any], log: int) -> None:
    """Become what `python -m` and the module are, and end."""
    import runpy

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
        os.fsync = lambda _fd: None  # no test cuts the power, and disks are slow
        sys.argv[1:] = asked["words"]
        if asked["module"] == MODULES[0]:
            status = sys.modules[MODULES[0]].main(asked["words"])
        else:
            runpy.run_module(asked["module"], run_name="__main__", alter_sys=True)
            status = 0
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
