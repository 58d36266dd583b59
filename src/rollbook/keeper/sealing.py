"""The child that seals: started when enough waits, one at a time, so that the keeper itself never loads pyarrow."""

from __future__ import annotations

import os
import sys

from rollbook.foreign import is_foreign
from rollbook.keeper.ballast import Ballast
from rollbook.keeper.places import keeper_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, BinaryIO

__all__ = ["Sealing"]

SEAL_BYTES = 4 * 1024 * 1024
SEAL_SECONDS = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 300.0

most_children = 1_000_000
"""How many sealing children this process may have at once, over all its runs; a keeper of many allows itself two."""
_children = 0

# The child may have to look for its packages where the trainer found them.
_CHILD = (
    "import os, runpy, sys; "
    "sys.path += [p for p in os.environ.get('ROLLBOOK_KEEPER_PATH', '').split(os.pathsep) if p and p not in sys.path]; "
    "runpy.run_module('rollbook.keeper.sealing_child', run_name='__main__', alter_sys=True)"
)


class Sealing:
    """Runs `python -m rollbook.keeper.sealing_child RUN [--final]` when it is due.

    Args:
      run_folder: the run's folder.
      ballast: given up when the disk is full, so that sealing can free the rest.
      clock: seconds, monotonic.
      command: what to run instead of the sealing module, for a keeper inside the training process and for tests.
    Attributes:
      failures: how many children in a row have failed.
      successes: how many have ended well.
      was_final: whether the last child was asked to finish the book.
    """

    def __init__(
        self,
        run_folder: str,
        ballast: Ballast,
        clock: Callable[[], float],
        say: Callable[[str, str], None],
        command: Sequence[str] | None = None,
    ) -> None:
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        start = _CHILD.replace("import os,", f"import sys; sys.path.append({package!r}); import os,", 1)
        self._command = list(command) if command is not None else [sys.executable, "-c", start]
        self._run_folder, self._ballast, self._clock, self._say = run_folder, ballast, clock, say
        self._child: Any = None
        self.was_final = False
        self._first_seen: dict[str, float] = {}
        self._not_before = -1e9
        self.failures = self.successes = 0

    @property
    def busy(self) -> bool:
        """A child is at work."""
        return self._child is not None

    def step(self, waiting: Sequence[tuple[str, int]]) -> None:
        """Take the child back if it has ended; start one if 4 MiB wait, or something has waited for 60 s.

        Args:
          waiting: (path, bytes) of the journal files that can be sealed.
        """
        self.poll()
        now = self._clock()
        paths = {path for path, _ in waiting}
        self._first_seen = {path: self._first_seen.get(path, now) for path in paths}
        if self._child is not None or not waiting or now < self._not_before:
            return
        oldest = min(self._first_seen.values())
        if sum(size for _, size in waiting) >= SEAL_BYTES or now - oldest >= SEAL_SECONDS or self._ballast.tight():
            self._start(final=False)

    def begin(self, *, final: bool) -> bool:
        """Start a child now, whatever waits; False if one is at work or the last one failed a moment ago."""
        self.poll()
        if self._child is not None or self._clock() < self._not_before:
            return False
        self._start(final=final)
        return self._child is not None

    def poll(self) -> bool | None:
        """None: no child has ended since the last call; else whether it succeeded."""
        if self._child is None or self._child.poll() is None:
            return None
        code, self._child = self._child.returncode, None
        _count_child(-1)
        if code == 0:
            self.failures = 0
            self.successes += 1
            return True
        self._failed(f"sealing ended with status {code}; its words are above. What is not sealed stays in the journal")
        return False

    def stop(self) -> None:
        """End the child; what it has renamed into place stays, the rest is swept by the next one."""
        if self._child is not None:
            self._child.terminate()
            self._child.wait()
            self._child = None
            _count_child(-1)

    def _start(self, *, final: bool) -> None:
        if _children >= most_children:  # its turn comes
            return
        self._ballast.give_up_if_tight()
        words = [self._run_folder, *(["--final"] if final else [])]
        try:
            with open(os.path.join(keeper_folder(self._run_folder), "log"), "ab") as log:
                self._child = start_child(self._command, words, log)
        except OSError as err:
            if is_foreign(err):
                raise
            self._failed(f"the sealing process cannot be started: {err}")
            return
        _count_child(1)
        self.was_final = final
        if not final:  # somebody may be waiting for the last one
            _lower_priority(self._child.pid)

    def _failed(self, words: str) -> None:
        self.failures += 1
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(self.failures - 1, 20))
        self._not_before = self._clock() + pause
        self._say("seal", words)


def start_child(command: Sequence[str], words: Sequence[str], log: BinaryIO) -> Any:
    """A process in a group of its own, for Ctrl-C is none of its business; what it says goes into the keeper's log."""
    import subprocess

    group: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
    null = subprocess.DEVNULL
    return subprocess.Popen([*command, *words], stdin=null, stdout=null, stderr=log, **group)


def _count_child(n: int) -> None:
    global _children
    _children += n


def _lower_priority(pid: int) -> None:
    """Sealing can wait; training cannot."""
    try:
        os.setpriority(os.PRIO_PROCESS, pid, 10)
    except (OSError, AttributeError) as raised:
        if is_foreign(raised):
            raise
        return
