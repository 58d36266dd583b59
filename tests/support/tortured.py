"""A training process that is going to be killed: it logs from threads, forks, spawned children and a signal handler.

    python tortured.py FOLDER SEED PROGRESS

Each logger counts in a slot of the shared file PROGRESS *after* its `log` has returned; whatever is counted there must
be found in the book.
"""

from __future__ import annotations

import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

SLOTS = 64


class Progress:
    """How many rows of each logger have been acknowledged: one word per logger, shared between processes."""

    def __init__(self, path: str) -> None:
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), 8 * SLOTS)

    def done(self, slot: int, n: int) -> None:
        """Logger `slot` has had n calls return."""
        struct.pack_into("<q", self._map, 8 * slot, n)

    def all(self) -> list[int]:
        """The counts."""
        return list(struct.unpack_from(f"<{SLOTS}q", self._map, 0))


def tiny_segments(streams: bool = True) -> None:
    """Segments of a few dozen rows, so that rolling, sealing, renaming and recycling never stop."""
    from rollbook.journal.writer import Writer

    Writer.first_segment_bytes = Writer.largest_segment_bytes = 4096
    Writer.frame_file_bytes = 16 * 1024
    Writer.rows_before_stream = 3


def work(log: Any, progress: Progress, slot: int, limit: int = 10**9, pause: float = 0.001) -> None:
    """Log rows of four shapes for ever; count those that returned."""
    rng = random.Random(slot)
    for i in range(limit):
        shape = rng.randrange(10)
        if shape < 6:
            log({"slot": slot, "i": i, "x": slot * 1e9 + i}, env_step=i)
        elif shape < 9:
            log({"slot": slot, "i": i, "x": slot * 1e9 + i, f"extra{shape}": 0.5, "flag": True}, env_step=i)
        else:
            log({"slot": slot, "i": i, "x": slot * 1e9 + i, f"rare{i % 97}": i}, env_step=i)
        progress.done(slot, i + 1)
        time.sleep(pause)


def die_with_parent() -> None:
    """Whoever started us is the test, or a process that is killed: do not outlive it (Linux)."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)


def main() -> None:
    """The parent process."""
    die_with_parent()
    folder, seed, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    tiny_segments()
    import rollbook

    progress = Progress(path)
    if folder.endswith("run.json"):  # a spawned child
        run = rollbook.attach(os.path.dirname(folder))
        work(run.log, progress, seed)
        return
    rng = random.Random(seed)
    run = rollbook.init("torture", "run", dir=folder, sinks=["jsonl"], seed=seed)
    Path(folder, "where").write_text(str(run.folder))
    for n in range(3):
        threading.Thread(target=work, args=(run.log, progress, n), daemon=True).start()

    handled, busy = 0, False

    def on_alarm(_number: int, _frame: Any) -> None:
        nonlocal handled, busy
        if busy:  # a handler can be interrupted by the next signal; two rows of one number would then be logged
            return
        busy = True
        run.log({"slot": 3, "i": handled, "x": 3e9 + handled}, env_step=handled)
        handled += 1
        progress.done(3, handled)
        busy = False

    signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    spawned = subprocess.Popen([sys.executable, __file__, os.path.join(run.folder, "run.json"), "4", path])
    slot = 5
    while True:
        if slot < 12 and rng.random() < 0.03:
            pid = os.fork()
            if pid == 0:
                signal.setitimer(signal.ITIMER_REAL, 0)
                work(run.log, progress, slot, limit=rng.randrange(5, 400))
                os._exit(0)
            slot += 1
        time.sleep(0.003)
        if spawned.poll() is not None:
            spawned = subprocess.Popen(["true"])


if __name__ == "__main__":
    main()
