"""One interpreter for many small programs, each in a fork of it: starting Python and importing rollbook takes longer
than most of them do, and a fork can be killed as any process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

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
