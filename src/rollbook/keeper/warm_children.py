"""Sealing children that are used again: loading numpy and pyarrow costs seven times what sealing a small run does.

A keeper of many runs has up to as many as it may seal runs at once. They end with it, or when no work came for a while.
"""

from __future__ import annotations

import json
import os
import subprocess
import time

from rollbook.system.guard import is_foreign, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_IDLE_SECONDS = 5.0
"""How long one waits for the next run: it holds some 80 MiB."""
_MOST_RUNS = 50
"""After this many runs another takes its place: this limits the memory that its packages have kept."""
_END_SECONDS = 2.0


class WarmChildren:
    """The warm children of one keeper.

    Args:
      command: what starts one; `--serve` is appended.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = [*command, "--serve"]
        self._idle: list[tuple[float, int, subprocess.Popen[bytes]]] = []  # idle since, how many runs it has had

    def take(self, words: Sequence[str], log: str) -> WarmChild:
        """Give one its next run.

        Args:
          words: the arguments, as `sys.argv[1:]` of a separate child.
          log: the file for its stderr during this run, and while it starts for it.
        Raises:
          OSError: none can be started.
        """
        # Byte for byte, as in `argv`: the two processes may read paths by different encodings.
        asked = json.dumps([os.fsencode(word).decode("latin-1") for word in (log, *words)]).encode() + b"\n"
        while True:
            is_new = not self._idle
            _, runs, process = (0.0, 0, self._start(log)) if is_new else self._idle.pop()
            try:
                pipe: Any = process.stdin
                pipe.write(asked)
                pipe.flush()
            except OSError as raised:
                if is_foreign(raised):
                    self._end(process)
                    raise
                if not is_new:  # it was killed while it was idle
                    self._end(process)
                    continue
            return WarmChild(self, process, runs + 1)

    def give_back(self, process: subprocess.Popen[bytes], runs: int) -> None:
        """It has answered: keep it for the next run."""
        if runs >= _MOST_RUNS:
            self._end(process)
        else:
            self._idle.append((time.monotonic(), runs, process))

    def trim(self, idle_seconds: float = _IDLE_SECONDS) -> None:
        """End those that have been idle too long."""
        before = time.monotonic() - idle_seconds
        for entry in [entry for entry in self._idle if entry[0] <= before]:
            with tolerating(ValueError):  # another thread was faster
                self._idle.remove(entry)
                self._end(entry[2])

    def _start(self, log: str) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        with open(log, "ab") as words:
            return subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=words, cwd=os.sep, process_group=0)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with tolerating(OSError):
                    pipe.close()  # its stdin closes, which ends it
        with tolerating(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)
            return
        process.kill()


class WarmChild:
    """One run's turn, with the part of `subprocess.Popen` that `Child` needs.

    Attributes:
      pid: of the process, and of its group.
    """

    def __init__(self, home: WarmChildren, process: subprocess.Popen[bytes], runs: int) -> None:
        self._home, self._process, self._runs = home, process, runs
        self._status: int | None = None
        self.pid = process.pid

    def fileno(self) -> int:
        """Becomes readable when the run is done, or the process has ended."""
        pipe: Any = self._process.stdout
        return int(pipe.fileno())

    def poll(self) -> int | None:
        """The status, or None while it is at work."""
        with tolerating(subprocess.TimeoutExpired):
            return self.wait(0.0)
        return None

    def wait(self, timeout: float) -> int:
        """Wait for its end.

        Raises:
          subprocess.TimeoutExpired: it is still at work.
        """
        if self._status is None:
            import select

            poller = select.poll()
            poller.register(self.fileno(), select.POLLIN)
            if not poller.poll(timeout * 1000):
                raise subprocess.TimeoutExpired("sealing", timeout)
            answer = os.read(self.fileno(), 64)
            if answer:
                self._status = int(answer)
                self._home.give_back(self._process, self._runs)
            else:
                self._status = self._process.wait(_END_SECONDS)
        return self._status

    def terminate(self) -> None:
        """Ask the process to end."""
        self._process.terminate()

    def kill(self) -> None:
        """End it."""
        self._process.kill()
