"""What ended a run early, as plain data: the exception with its traceback, or the signal.

    {"type": "torch.OutOfMemoryError", "message": "CUDA out of memory", "traceback": "Traceback …", "stderr": "…"}

Stored with the attempt in run.json; `book.failure` reads it. Texts are bounded, and credentials in them are hidden.
`stderr` has the last lines that this process wrote to its error output. If the error output is a file that only this
process writes (a batch system, nohup), the lines are read from the file, so they include those of C libraries; lines of
an earlier attempt are left out, and so are lines that Python printed to stdout, if both go into one file. If other
processes write to the file as well, or it is a terminal or a pipe, which cannot be read back, the lines are those that
passed through Python (`run/console.py`).
"""

from __future__ import annotations

import os
import stat
import sys
import time

from rollbook.run.console import LAST_OUTPUTS, last_errors, last_outputs
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol

    from rollbook.run.open_run import OpenRun

    class _Records(Protocol):
        """The needed part of a run: writing rows of a table."""

        def record(self, table: str, columns: Mapping[str, object]) -> int: ...


_CANCELLED = ("CancelledError", "Cancelled", "TrialPruned")
"""What asyncio and trio raise in a task that is stopped, and Optuna in a trial that is stopped early."""
_LONGEST_MESSAGE = 2_000
_LONGEST_TRACE = 16_000
_STDERR_BYTES = 4_000
_STDERR_LINES = 20
_MIXED_BYTES = 16_000  # of a file that has stdout, too
_MOST_THREADS = 100
_threads_reported = 0


def status_of(kind: type[BaseException] | None) -> str:
    """The status for an exception, or for none."""
    if kind is None or issubclass(kind, GeneratorExit):  # a generator that was closed early: that is no failure
        return "finished"
    if issubclass(kind, KeyboardInterrupt) or kind.__name__ in _CANCELLED:
        return "killed"
    if issubclass(kind, SystemExit):
        error = sys.exc_info()[1]
        return "finished" if getattr(error, "code", None) in (None, 0) else "crashed"
    return "crashed"


def describe(error: BaseException | None) -> dict[str, Any] | None:
    """An exception as data; None for none, for `SystemExit` with status 0, and a closed generator. Never raises."""
    if error is None or isinstance(error, GeneratorExit) or (isinstance(error, SystemExit) and error.code in (None, 0)):
        return None
    kind = type(error)
    module = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
    failure: dict[str, Any] = {"type": f"{module}{kind.__qualname__}", "message": "", "traceback": ""}
    with tolerating(Exception):  # str() of an exception may run any code
        failure["message"] = _bounded(_message(error), _LONGEST_MESSAGE)
    with tolerating(Exception):
        failure["traceback"] = _bounded(_trace(error), _LONGEST_TRACE)
    with tolerating(Exception):
        if lines := _end_of_stderr(_trace(error)):
            failure["stderr"] = lines
    return failure


def leave_by(run: OpenRun, error: BaseException | None) -> None:
    """Let the run end by this exception, unless the program writes to it afterwards."""
    run._parts.left_by = run._program_rows(), status_of(None if error is None else type(error)), describe(error)


def report_in_alerts(run: _Records, message: str, failure: dict[str, Any]) -> None:
    """Store as an alert what ended a thread or a further writer. The run itself may continue."""
    import json

    words = (
        f"{message}: {failure['type']}: {failure['message']}" if failure["message"] else f"{message}: {failure['type']}"
    )
    row = {"rule": "exception", "level": "error", "message": words[:_LONGEST_MESSAGE], "evidence": json.dumps(failure)}
    run.record("alerts", {**row, "source": "process", "key": ""})


def report_thread(runs: Sequence[_Records], arguments: Any) -> None:
    """The same for a thread, called by `threading.excepthook`. Never raises."""
    global _threads_reported
    failure = describe(arguments.exc_value) if _threads_reported < _MOST_THREADS else None
    if failure is None:
        return
    _threads_reported += 1
    name = getattr(arguments.thread, "name", None) or "unknown"
    for run in runs:
        with tolerating(Exception):
            report_in_alerts(run, f"thread {name} ended by an exception", failure)


def _message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"exit status {error.code}" if isinstance(error.code, int) else str(error.code)
    return str(error)


def _trace(error: BaseException) -> str:
    import traceback

    return "".join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip("\n")


def _bounded(text: str, most: int) -> str:
    """A text without credentials. A long one keeps its beginning and more of its end, where the error was raised."""
    from rollbook.run.origin.secrets import without_secrets

    if len(text) > most:
        begin = most // 4
        text = f"{text[:begin]}\n… {len(text) - most:,} characters left out …\n{text[begin - most :]}"
    text = text.encode("utf-8", "backslashreplace").decode()
    return "\n".join(without_secrets(line) for line in text.splitlines())


def _size_of_stderr(descriptor: int = 2) -> tuple[tuple[int, int], int]:
    """The file that the error output goes to, and its size; ((0, 0), 0) if it is no file."""
    with tolerating(OSError, ValueError):
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            return (status.st_dev, status.st_ino), status.st_size
    return (0, 0), 0


_began_at = _size_of_stderr()
"""When the first run of this process was opened, which imports this module."""


def look_for_others() -> None:
    """Note whether other processes write to the same error output now: they may have gone when something fails.

    Where thousands of processes run, that takes many milliseconds: a loop of short runs looks every few seconds.
    """
    global _is_shared, _looked
    if _is_shared:
        return
    here, now = (os.getpid(), _size_of_stderr()[0]), time.monotonic()
    if _looked[0] != here or now - _looked[1] >= _LOOK_SECONDS:
        _looked = here, now
        _is_shared = _others_write_there()


_is_shared = False
_LOOK_SECONDS = 10.0
_looked: tuple[object, float] = (None, 0.0)
"""Which process last looked at which file, and when."""


def _others_write_there() -> bool:
    """Whether a process that is neither an ancestor nor a descendant of this one writes its errors to the same file."""
    own_file = _size_of_stderr()[0]
    if own_file == (0, 0):
        return False
    above, here = {os.getpid()}, os.getpid()
    while (here := _parent(here)) > 1:
        above.add(here)
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) in above:
            continue
        for number in (2, 1):
            with tolerating(OSError):
                status = os.stat(f"/proc/{name}/fd/{number}")
                if (status.st_dev, status.st_ino) == own_file and not _is_below(int(name)):
                    return True
    return False


def _parent(pid: int) -> int:
    with tolerating(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])
    return 0


def _is_below(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = _parent(pid)
    return False


def _end_of_stderr(trace: str) -> str:
    """The last lines of the error output since this process began, without `trace` that the interpreter may print."""
    with tolerating(Exception):
        sys.stderr.flush()
    with tolerating(OSError):
        look_for_others()
    file_now, size = _size_of_stderr()
    is_mixed = _size_of_stderr(1)[0] == file_now
    began = _began_at[1] if file_now == _began_at[0] and _began_at[1] <= size else 0
    if _is_shared or file_now == (0, 0):
        text = f"{last_errors()}\n"
    elif size == began:
        return ""
    else:
        most = (_MIXED_BYTES if is_mixed else _STDERR_BYTES) + len(trace.encode("utf-8", "replace"))
        with open("/proc/self/fd/2", "rb") as file:
            file.seek(max(began, size - most))
            text = file.read(most).decode("utf-8", "replace")
    before, printed, after = text.rpartition(trace)
    if printed:
        text = before + after
    if is_mixed and (printed_lines := last_outputs()):
        text = "\n".join(line for line in text.splitlines()[-LAST_OUTPUTS:] if line.rstrip() not in printed_lines)
    return _bounded("\n".join(text.splitlines()[-_STDERR_LINES:]), _STDERR_BYTES)
