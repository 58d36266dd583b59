"""Several processes seal one run if much is waiting: each takes some of its writers.

The process that holds the run's lock starts the helpers, waits for them, and seals the rest itself. A killed helper
costs time but no rows. A helper inherits the lock's descriptor, so no other process seals while a helper works; and it
ends with the process that started it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from heapq import heapreplace

from rollbook.journal import Segment, list_writers
from rollbook.schema.run_files import parse_name
from rollbook.storage.sealed_so_far import StreamName
from rollbook.storage.sealing.merge import SIZES, merge
from rollbook.storage.sealing.one_pass import SealReport, frame_files_in
from rollbook.storage.sealing.writers import may_seal, seal_writers
from rollbook.system.files import names_in
from rollbook.system.guard import ours, tolerating

_MAIN = "rollbook.storage.sealing.helpers"
_MOST_SECONDS = 1800.0
"""Time limit of a helper; one that hangs is killed, and its writers are sealed here."""

_KILLED_SECONDS = 10.0
"""How long to wait for a killed helper; it takes milliseconds unless a disk hangs."""

_PROGRAM = f"import sys; sys.path[:] = {{path!r}}; from {_MAIN} import main; sys.exit(main(sys.argv[1:]))"


def most_processes(sealings: int = 1) -> int:
    """How many processes may seal a run: half of the available cores, divided by concurrent sealings; at least 1."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // 2 // sealings)


def seal_by_helpers(
    run: str,
    lock: int,
    processes: int,
    report: SealReport,
    *,
    take_over: bool,
    final: bool,
    up_to: str = "",
    each: int = SIZES.helper_bytes,
) -> tuple[set[str], list[tuple[StreamName, int]]]:
    """Seal writers in helpers if it saves time, and merge their parts unless that is done at the end anyway.

    Args:
      lock: the descriptor that holds the run's lock; with -1 there are no helpers.
      processes: maximum number of helpers.
      report: their results are added to it.
      up_to: see `SealPass`.
      each: minimum journal bytes per helper.
    Returns:
      The finished writers, and how far their streams were sealed.
    """
    if processes < 2 or lock < 0:
        return set(), []
    shares = _shares(_waiting(run, take_over), processes, each)
    if len(shares) < 2:
        return set(), []
    flags = [*(["--take-over"] if take_over else []), *(["--final"] if final else []), f"--up-to={up_to}"]
    command = [sys.executable, "-c", _PROGRAM.format(path=sys.path)]
    helpers: list[subprocess.Popen[bytes]] = []
    done: set[str] = set()
    reached: list[tuple[StreamName, int]] = []
    watch = threading.Timer(_MOST_SECONDS, lambda: _kill(helpers))
    watch.daemon = True
    watch.start()
    try:
        with tolerating(OSError):  # too many processes: continue with fewer helpers, or none
            for share in shares:
                words, pipe = [*command, run, *flags, *share], subprocess.PIPE
                helpers.append(subprocess.Popen(words, stdin=pipe, stdout=pipe, pass_fds=[lock]))
        for helper, share in zip(helpers, shares, strict=False):
            assert helper.stdout is not None
            output = helper.stdout.read()  # stdin stays open: a helper ends with it
            if helper.wait(_KILLED_SECONDS) == 0:
                answer = json.loads(output)
                report.add(answer["report"])
                done.update(share)
                reached += [(tuple(stream), last) for stream, last in answer["reached"]]
    except ours(subprocess.TimeoutExpired):  # this process seals what the helper did not
        pass
    finally:
        watch.cancel()
        for helper in helpers:
            helper.kill()
            with tolerating(subprocess.TimeoutExpired):
                helper.wait(_KILLED_SECONDS)
            for stream in (helper.stdin, helper.stdout):
                if stream is not None:
                    stream.close()
    return done, reached


def _kill(helpers: Sequence[subprocess.Popen[bytes]]) -> None:
    for helper in helpers:
        helper.kill()


def _shares(waiting: dict[str, int], processes: int, each: int) -> list[list[str]]:
    """The writers of each helper, divided evenly."""
    n = min(processes, len(waiting), sum(waiting.values()) // each)
    shares: list[tuple[int, int, list[str]]] = [(0, number, []) for number in range(n)]
    if n:
        for id in sorted(waiting, key=lambda id: -waiting[id]):
            size, number, own = shares[0]
            heapreplace(shares, (size + waiting[id], number, [*own, id]))
    return [own for _, _, own in shares]


def _waiting(run: str, take_over: bool) -> dict[str, int]:
    """Writer -> bytes of its journal files that can be sealed, if it has any."""
    waiting = {}
    for info in list_writers(run):
        gone = may_seal(info, take_over)
        if gone is not None:
            names = names_in(info.folder)
            size = sum(_left_bytes(os.path.join(info.folder, name), gone) for name in names)
            logs = [path for _, _, path in frame_files_in(info.folder, names)]
            size += sum(map(_size, logs if gone else logs[:-1]))
            if size:
                waiting[info.id] = size
    return waiting


def _left_bytes(path: str, gone: bool) -> int:
    """The size of a segment that can be sealed, 0 for others."""
    parsed = parse_name(os.path.basename(path))
    if parsed is None or parsed[0] != "seg":
        return 0
    head = Segment.peek(path)
    waits = head is not None and (gone or not (head.is_sealed or head.is_active))
    return _size(path) if waits else 0


def _size(path: str) -> int:
    with tolerating(OSError):
        return os.stat(path).st_size
    return 0


def main(arguments: Sequence[str]) -> int:
    """Seal some writers: RUN [--take-over] [--final] [--up-to=FILE] WRITER…; writes the report to stdout as JSON."""
    run, *words = arguments
    writers = frozenset(word for word in words if not word.startswith("--"))
    up_to = next((word.removeprefix("--up-to=") for word in words if word.startswith("--up-to=")), "")
    threading.Thread(target=_end_with_parent, daemon=True).start()
    report = SealReport()
    try:
        sealed = seal_writers(run, report, take_over="--take-over" in words, only=writers, up_to=up_to)
        if "--final" not in words:
            report.merged = merge(run, final=False, problems=report.problems, writers=writers)
    except OSError as err:
        sys.stderr.write(f"rollbook: a process that helped to seal {run} stopped: {err}\n")
        return 1
    json.dump({"report": vars(report), "reached": sealed.reached()}, sys.stdout)
    return 0


def _end_with_parent() -> None:
    """End when stdin closes: the parent holds the other end and writes nothing."""
    os.read(0, 1)
    os._exit(1)
