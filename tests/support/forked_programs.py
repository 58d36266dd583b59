"""One interpreter for many small programs, each in a fork of it: starting Python and importing rollbook takes longer
than most of them do, and a fork can be killed as any process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import rollbook
from sealing_forks import python_path
from waiting import PATIENCE

_FORKS = """
import json, os, sys
exec(sys.argv[1])
program = compile(sys.argv[2], "<program>", "exec")
for line in sys.stdin:
    if not (pid := os.fork()):
        status = 1
        try:
            sys.argv[1:] = json.loads(line)
            exec(program, {"__name__": "__main__"})
            status = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


@contextmanager
def forked(program: str, imports: str = "import rollbook") -> Iterator[Callable[..., int]]:
    """Gives a function: the words of a program's `sys.argv[1:]` -> its exit status, as `subprocess` tells it.

    Args:
      program: what each fork runs. Nothing runs at its end but the program itself (no `atexit`).
      imports: what all of them have loaded.
    """
    environment = {**os.environ, "PYTHONPATH": python_path(Path(rollbook.__file__).parent.parent)}
    command = [sys.executable, "-c", _FORKS, imports, program]
    server = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin is not None
    assert server.stdout is not None
    tell, told = server.stdin, server.stdout

    def run(*words: object) -> int:
        tell.write(json.dumps([str(word) for word in words]) + "\n")
        tell.flush()
        return int(told.readline())

    try:
        yield run
    finally:
        server.communicate(timeout=PATIENCE)


_PROGRAMS = """
import gc, json, os, signal, socket, sys
import rollbook, rollbook.run.session
from rollbook.run.needed import import_needed
import_needed(None, "process")
exec(sys.argv.pop(2))
gc.freeze()
channel = socket.socket(fileno=int(sys.argv.pop(1)))
while True:
    message, descriptors, _, _ = socket.recv_fds(channel, 1 << 20, 3)
    if not message:
        sys.exit()
    asked = json.loads(message)
    if "wait" in asked:
        channel.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1]))
    elif pid := os.fork():
        for descriptor in descriptors:
            os.close(descriptor)
        channel.send(b"%d" % pid)
    else:
        break
channel.close()
for number, descriptor in enumerate(descriptors):
    os.dup2(descriptor, number)
    os.close(descriptor)
os.environ.clear()
os.environ.update(asked["environment"])
os.chdir(asked["folder"])
sys.argv[1:] = asked["words"]
names = {"__name__": "__main__"}
exec(compile(asked["code"], "<string>", "exec"), names)
"""


class Interpreter:
    """A process that has imported what `rollbook.init` needs. Its forks run programs, and end as programs do: what is
    registered for the end of a process runs, and their standard streams, words and environment are their own.

    Args:
      imports: what all of them have loaded besides.
    """

    def __init__(self, imports: str = "") -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._server = subprocess.Popen(
            [sys.executable, "-c", _PROGRAMS, str(theirs.fileno()), imports],
            env={**os.environ, "PYTHONPATH": python_path(Path(rollbook.__file__).parent.parent)},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()

    def start(self, code: str, *words: object, env: Mapping[str, str], stderr: int | None = None) -> Program:
        """A program that runs beside the test, which writes to its stdin and reads from its stdout.

        Args:
          stderr: a descriptor; None for that of the tests.
        """
        (input_end, stdin), (stdout, output_end) = os.pipe(), os.pipe()
        pid = self.fork(code, words, env, [input_end, output_end, 2 if stderr is None else stderr])
        for end in (input_end, output_end):
            os.close(end)
        return Program(self, pid, os.fdopen(stdin, "w"), os.fdopen(stdout))

    def run(self, code: str, *words: object, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """A program that runs to its end, as `subprocess.run` tells of it."""
        with (
            open(os.devnull, "rb") as nothing,
            tempfile.TemporaryFile("w+") as stdout,
            tempfile.TemporaryFile("w+") as stderr,
        ):
            status = self.wait(self.fork(code, words, env, [each.fileno() for each in (nothing, stdout, stderr)]))
            for file in (stdout, stderr):
                file.seek(0)
            return subprocess.CompletedProcess(words, status, stdout.read(), stderr.read())

    def fork(self, code: str, words: tuple[object, ...], env: Mapping[str, str], streams: list[int]) -> int:
        """The number of a new process with these standard streams."""
        asked = {"code": code, "words": [str(word) for word in words], "environment": dict(env), "folder": os.getcwd()}
        socket.send_fds(self._channel, [json.dumps(asked).encode()], streams)
        return int(self._channel.recv(64))

    def wait(self, pid: int) -> int:
        """The status of a process that ends by itself or was killed."""
        self._channel.send(json.dumps({"wait": pid}).encode())
        return int(self._channel.recv(64))

    def end(self) -> None:
        """End the interpreter."""
        self._channel.close()
        self._server.wait(PATIENCE)


class Program:
    """A program that runs: as much of a `subprocess.Popen` as tests need."""

    def __init__(self, interpreter: Interpreter, pid: int, stdin: IO[str], stdout: IO[str]) -> None:
        self.pid, self.stdin, self.stdout, self._interpreter = pid, stdin, stdout, interpreter
        self.returncode: int | None = None

    def kill(self) -> None:
        """End it with SIGKILL."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self, _seconds: float = 0) -> int:
        """Its status, once it has ended."""
        if self.returncode is None:
            self.returncode = self._interpreter.wait(self.pid)
        return self.returncode
