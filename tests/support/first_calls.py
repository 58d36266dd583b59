"""A program whose forked children are interrupted in their first calls; tests/crash/test_interrupts.py runs it.

    python first_calls.py KIND FOLDER CHILDREN

It prints what became of the exceptions, as JSON: came out, eaten, hung, other; and the numbers of the rows whose calls
returned.
"""

from __future__ import annotations

import builtins
import json
import os
import random
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

import rollbook

CHILD_SECONDS = 60
"""After which a child is said to hang: a guard, no measure of speed."""

VERBS = (
    lambda run, i: run.log({"i": i, "x": 0.5}, env_step=i),
    lambda run, i: run.log({"i": i, "words": "some", "many": [1.0, 2.0], "deep": {"er": 1.0}}),
    lambda run, i: run.log_text("words", f"<{i}>"),
    lambda run, i: run.log_episode(i=i, return_=1.0, length=3),
    lambda run, i: run.log_samples([f"prompt {i}"], i=[i]),
    lambda run, i: run.record("own", {"i": [i]}),
    lambda run, i: run.log_many({"i": [i]}),
    lambda run, i: (run.save_checkpoint({"w": [1.0]}), run.log({"i": i})),
    lambda run, i: run.note(f"<{i}>"),
)


def child(run: Any, number: int, kind: type[Exception], told: Path) -> str:
    """What became of the exception that struck in this child's first calls."""
    chance, heard = random.Random(number), []
    sys.unraisablehook = lambda unraisable: heard.append(repr(unraisable.exc_value))
    error = kind("raised by a handler")

    places: list[str] = []

    def handler(_number: int, frame: FrameType | None) -> None:
        places.extend(traceback.format_stack(frame)[-4:])
        raise error

    signal.signal(signal.SIGALRM, handler)
    begun, struck, acknowledged = number * 10_000_000, 0, []
    verbs = list(VERBS)
    chance.shuffle(verbs)
    try:
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(5e-5, 6e-3))
        for verb in verbs:
            begun += 1
            verb(run, begun)
            acknowledged.append(begun)
        while signal.getitimer(signal.ITIMER_REAL)[0]:
            begun += 1
            run.log({"i": begun})
            acknowledged.append(begun)
        for _ in range(3):  # the timer has ended: Python hears its signal here, and not behind the `try`
            time.sleep(0)
    except kind as raised:
        struck += raised is error
    for verb in verbs:  # and the next calls work
        begun += 1
        verb(run, begun)
        acknowledged.append(begun)
    run.finish()
    told.write_text(json.dumps(acknowledged))
    if not struck and not heard:
        sys.stderr.write("eaten at\n" + "".join(places))
    # What strikes in a callback of the garbage collector or of weak references, Python itself keeps to itself.
    return "came out" if struck else "unheard" if heard else "eaten"


def main(kind: str, folder: str, children: int) -> None:
    """See the top of this file."""
    warnings.simplefilter("ignore")
    run: Any = rollbook.init("p", "r", dir=folder, sinks=[], keeper="inline")
    ends = ("came out", "unheard", "eaten", "other", "hung")
    told: dict[str, Any] = {**dict.fromkeys(ends, 0), "acknowledged": [], "folder": str(run.folder)}
    for number in range(1, children + 1):
        file = Path(folder) / f"{number}.json"
        pid = os.fork()
        if pid == 0:
            end = "other"
            try:
                end = child(run, number, getattr(builtins, kind), file)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(ends.index(end))
        until = time.monotonic() + CHILD_SECONDS
        while (ended := os.waitpid(pid, os.WNOHANG))[0] == 0:
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.001)
        status = os.waitstatus_to_exitcode(ended[1])
        told["acknowledged"] += json.loads(file.read_text()) if file.exists() else []
        told[ends[status] if 0 <= status < len(ends) else "hung"] += 1
    sys.stdout.write("\n" + json.dumps(told) + "\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
