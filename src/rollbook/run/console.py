"""What the program prints, kept in `log/console.log` of the run while it is printed: stdout and stderr, with the time.

    2026-11-29 03:10:22Z epoch 3, loss 0.25          a line of stdout
    2026-11-29 03:10:22Z! UserWarning: …             a line of stderr

`write` of the two text streams is wrapped; the file descriptors are left alone. So a terminal stays a terminal, no pipe
can fill up and no second process has to live. What other processes and C libraries write to the descriptors is not
seen here.

Printing never waits for a lock: a text is put into a queue, and the thread whose turn it is writes what is in the
queue. So a signal handler, or another thread that prints meanwhile, returns at once. A line is written to the file as
soon as it is complete, and from then on survives the process. An incomplete line, a progress bar for example, is
written within a second by the run's own thread (`settle`). If a line is drawn again and again (carriage returns, and
the cursor movements of nested bars), only its last form is kept. Colours and other control characters are left out,
credentials hidden.

The size of the file is limited: if more is printed, its beginning and its end are kept. Standard library only.
"""

from __future__ import annotations

import os
import re
import sys
import time
from _thread import allocate_lock
from collections import deque

from rollbook.run.current import interactive
from rollbook.run.origin.secrets import without_secrets
from rollbook.system.files import pread
from rollbook.system.guard import ours, tolerating
from rollbook.system.tuning import TUNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

CONSOLE = os.path.join("log", "console.log")
"""The file, below the run's folder."""

_OUT, _ERR = "", "!"
_LONGEST_LINE = 4_000
_ROWS = 16
"""Number of last lines that may still be redrawn: nested progress bars move the cursor this far up."""
_WAITING = 10_000
_LAST_ERRORS = 20
LAST_OUTPUTS = 200
_LEFT_OUT = re.compile(rb"\xe2\x80\xa6 ([\d,]+) bytes left out \xe2\x80\xa6\n")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TOKEN = re.compile(
    r"\r\n|[\n\r\x08]|\x1b\[([0-9;?]*)[ -/]*([@-~])|\x1b[\]P_^X][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?"
    r"|[\x00-\x07\x0b-\x1f\x7f-\x9f]"
)
_LONG_WORD = re.compile(r"[!-~]{16}")

_kept: tuple[Console, ...] = ()
"""The consoles of the runs that are open in this process."""
_owner = 0
_wrapped: dict[int, tuple[Any, Callable[[str], Any], Callable[[str], Any], bool]] = {}
"""By the id of a stream: (stream, our `write`, the one before, whether that was an attribute of the stream's own)."""


def wanted(asked: bool | None) -> bool:
    """Whether to keep what is printed: the argument, else $ROLLBOOK_CONSOLE, else yes except at a prompt."""
    if asked is not None:
        return asked
    setting = os.environ.get("ROLLBOOK_CONSOLE", "")
    return setting != "0" if setting else not interactive()


def keep(run_folder: str, attempt: int) -> Console:
    """Begin to keep what this process prints, in a run's folder. The file is made by the first line."""
    global _kept, _owner
    if _owner != os.getpid():  # a forked child does not print its parent's lines again
        _kept, _owner = (), os.getpid()
    console = Console(run_folder, attempt)
    _kept = (*_kept, console)
    for name, mark in (("stdout", _OUT), ("stderr", _ERR)):
        stream = getattr(sys, name, None)
        if type(stream).__name__ != "TextIOWrapper":  # a program's own object (a tee) writes to the interpreter's
            stream = getattr(sys, f"__{name}__", None)
        if stream is not None and id(stream) not in _wrapped:
            _wrap(stream, mark)
    return console


def last_errors() -> str:
    """The last lines of stderr of this process, while a run keeps them."""
    return "\n".join(_kept[0].errors) if _kept and _owner == os.getpid() else ""


def last_outputs() -> frozenset[str]:
    """The last `LAST_OUTPUTS` lines of stdout of this process, while a run keeps them."""
    return frozenset(_kept[0].outputs) if _kept and _owner == os.getpid() else frozenset()


def _wrap(stream: Any, mark: str) -> None:
    before = getattr(stream, "write", None)
    if before is None:
        return
    is_own = "write" in getattr(stream, "__dict__", ())

    def write(text: str) -> Any:
        if _kept and os.getpid() == _owner:
            for console in _kept:
                console.take(mark, text)
        return before(text)

    try:
        stream.write = write
    except ours(AttributeError, TypeError):  # it takes no attributes
        return
    _wrapped[id(stream)] = (stream, write, before, is_own)


def _let_go(console: Console) -> None:
    global _kept
    _kept = tuple(other for other in _kept if other is not console)
    if _kept:
        return
    for stream, own, before, is_own in list(_wrapped.values()):
        # If somebody has wrapped it again, ours stays and passes everything on.
        if getattr(stream, "__dict__", {}).get("write") is own:
            if is_own:
                stream.write = before
            else:
                del stream.write
            del _wrapped[id(stream)]


class Console:
    """What a process prints, for one run.

    Args:
      run_folder: the run's folder.
      attempt: a later one continues the file, below a line with its number; 0 for no such line.
    Attributes:
      trouble: why the last text could not be kept; "" for none.
      errors, outputs: the last lines of stderr, and of stdout.
      is_due: whether `settle` has something to do.
    """

    def __init__(self, run_folder: str, attempt: int) -> None:
        self.trouble = ""
        self.errors: deque[str] = deque(maxlen=_LAST_ERRORS)
        self.outputs: deque[str] = deque(maxlen=LAST_OUTPUTS)
        self._path, self._attempt = os.path.join(run_folder, CONSOLE), attempt
        self._waiting: deque[tuple[str, str]] = deque(maxlen=_WAITING)
        self._turn, self._is_over = allocate_lock(), False
        self._file = -1
        self._end = self._shown = 0  # bytes of finished lines; of unfinished ones after them
        self._left_out = 0
        self._second, self._stamp = 0, ""
        self._streams = {_OUT: _DrawnLines(), _ERR: _DrawnLines()}
        self.is_due = False

    def take(self, mark: str, text: str) -> None:
        """Keep a text. Never waits, and raises nothing of its own."""
        try:
            if text and isinstance(text, str) and not self._is_over:
                self._waiting.append((mark, text))
                self.is_due = True
                self._work()
        except ours(Exception) as err:
            self.trouble = f"{type(err).__name__}: {err}"

    def settle(self) -> None:
        """Write the incomplete lines, for readers; later text replaces them."""
        if self._is_over:
            return
        self.is_due = any(stream.rows for stream in self._streams.values())
        self._work()
        if self._turn.acquire(False):
            try:
                for mark, stream in self._streams.items():
                    self._commit(mark, stream.end_drawing())
                self._show()
            finally:
                self._turn.release()
            self._work()

    def close(self, traceback: str = "") -> None:
        """Write everything, and end.

        Args:
          traceback: of what ended the run, if the program has not printed it yet.
        """
        _let_go(self)
        if traceback and traceback.rstrip().rpartition("\n")[2] not in self.errors:
            self.take(_ERR, f"{traceback}\n")
        self._work()
        if not self._turn.acquire(timeout=1.0):
            return
        try:
            for mark, stream in self._streams.items():
                self._commit(mark, [text for text in stream.unfinished() if text.rstrip()])
        finally:
            self._is_over = True
            if self._file >= 0:
                os.close(self._file)
                self._file = -1
            self._turn.release()

    def _work(self) -> None:
        while self._waiting and self._turn.acquire(False):
            try:
                while self._waiting:
                    mark, text = self._waiting.popleft()
                    self._commit(mark, self._streams[mark].put(text))
            finally:
                self._turn.release()

    # -- the file

    def _commit(self, mark: str, lines: Sequence[str]) -> None:
        """Write lines that have ended."""
        if not lines:
            return
        if mark == _ERR:
            self.errors.extend(_shown(text) for text in lines[-_LAST_ERRORS:] if text.strip())
        else:
            self.outputs.extend(text.rstrip() for text in lines[-LAST_OUTPUTS:])
        if self._is_open():
            data = self._bytes(mark, lines) + b"\n"
            self._over(data)
            self._end, self._shown = self._end + len(data), 0
            if self._end > TUNING.console_bytes:
                self._shorten()

    def _show(self) -> None:
        """Write the incomplete lines as one line without a line end: complete lines never change for readers."""
        lines = [
            (mark, text.strip())
            for mark, stream in self._streams.items()
            for text in stream.unfinished()
            if text.strip()
        ]
        if (lines or self._shown) and self._is_open():
            data = self._bytes(lines[-1][0], ["  ".join(text for _, text in lines)]) if lines else b""
            self._over(data)
            self._shown = len(data)

    def _bytes(self, mark: str, lines: Sequence[str]) -> bytes:
        now = int(time.time())
        if now != self._second:
            self._second, self._stamp = now, time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(now))
        text = "\n".join([f"{self._stamp}{mark} {_shown(line)}" for line in lines])
        return text.encode("utf-8", "backslashreplace")

    def _over(self, data: bytes) -> None:
        """Write bytes after the complete lines, over the incomplete ones."""
        shown, self._shown = self._shown, max(self._shown, len(data))
        self._write_at(self._end, data)
        if shown > len(data):
            os.ftruncate(self._file, self._end + len(data))

    def _write_at(self, position: int, data: bytes) -> None:
        os.lseek(self._file, position, os.SEEK_SET)
        written = os.write(self._file, data)
        while written < len(data):
            written += os.write(self._file, data[written:])

    def _is_open(self) -> bool:
        if self._file >= 0:
            return True
        folder = os.path.dirname(self._path)
        with tolerating(FileExistsError):
            os.mkdir(folder)  # never the run's folder, which may have been removed
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | os.O_CLOEXEC, 0o666)
        self._end = os.lseek(self._file, 0, os.SEEK_END)
        if self._end:
            begins = b"" if pread(self._file, 1, self._end - 1) == b"\n" else b"\n"  # it was killed within a line
            if self._attempt:
                begins += self._bytes(_OUT, [f"— attempt {self._attempt} —"]) + b"\n"
            before = begins
            self._write_at(self._end, before)
            self._end += len(before)
            found = _LEFT_OUT.search(
                pread(self._file, 2 * _LONGEST_LINE, max(0, TUNING.console_bytes // 4 - _LONGEST_LINE))
            )
            self._left_out = int(found[1].replace(b",", b"")) if found else 0
        return True

    def _shorten(self) -> None:
        """Remove the middle of the file: the first quarter of the limit stays, and the newest half.

        If the process is killed before the file is cut, some lines are in it twice.
        """
        room = TUNING.console_bytes
        head = pread(self._file, room // 4, 0)
        tail = pread(self._file, room // 2, self._end - room // 2)
        head, tail = head[: head.rfind(b"\n") + 1], tail[tail.find(b"\n") + 1 :]
        noted = len(_left_out(self._left_out)) if self._left_out else 0
        self._left_out += self._end - len(head) - len(tail) - noted
        rest = _left_out(self._left_out) + tail
        self._write_at(len(head), rest)
        self._end = len(head) + len(rest)
        os.ftruncate(self._file, self._end)


class _DrawnLines:
    """The lines of one stream that are incomplete, or may still be redrawn.

    Attributes:
      rows: the lines that are being redrawn; empty while there is only plain text, whose last line is the rest.
    """

    __slots__ = ("_column", "_is_drawn", "_rest", "_row", "rows")

    def __init__(self) -> None:
        self._rest = ""
        self.rows: list[str] = []
        self._row = self._column = 0
        self._is_drawn = False  # since the last `end_drawing`

    def put(self, text: str) -> list[str]:
        """Take a text; the lines that have ended with it."""
        if self.rows or (not text.isprintable() and _CONTROL.search(text)):
            return self._draw(text)
        if "\n" in text:
            *lines, self._rest = (self._rest + text).split("\n")
            return lines
        self._rest += text
        if len(self._rest) <= _LONGEST_LINE:
            return []
        line, self._rest = self._rest, ""
        return [line]

    def unfinished(self) -> list[str]:
        """The incomplete lines."""
        return self.rows or [self._rest]

    def end_drawing(self) -> list[str]:
        """Return to plain text if the cursor was not moved lately and is in the last line."""
        drawn, self._is_drawn = self._is_drawn, False
        if not self.rows or drawn or self._row < len(self.rows) - 1:
            return []
        *lines, rest = self.rows
        if rest.strip() and self._column < len(rest):
            return []
        self._rest, self.rows = rest if rest.strip() else "", []
        return lines

    def _draw(self, text: str) -> list[str]:
        """Follow the cursor through a text."""
        if not self.rows:
            self.rows, self._row, self._column, self._rest = [self._rest], 0, len(self._rest), ""
        typed = 0
        for token in _TOKEN.finditer(text):
            self._type(text[typed : token.start()])
            typed = token.end()
            self._control(token)
        self._type(text[typed:])
        over = max(0, min(len(self.rows) - _ROWS, self._row))
        lines = self.rows[:over]
        del self.rows[:over]
        self._row -= over
        return lines

    def _type(self, text: str) -> None:
        if text:
            row, end = self.rows[self._row], self._column + len(text)
            self.rows[self._row] = (row[: self._column].ljust(self._column) + text + row[end:])[: 4 * _LONGEST_LINE]
            self._column = min(end, 4 * _LONGEST_LINE)

    def _control(self, token: re.Match[str]) -> None:
        if token[0] in ("\n", "\r\n"):
            self._row, self._column = self._row + 1, 0
            if self._row == len(self.rows):
                self.rows.append("")
        elif token[0] == "\r":
            self._column, self._is_drawn = 0, True
        elif token[0] == "\x08":
            self._column = max(0, self._column - 1)
        elif token[2] and token[2] in "ABCDK":
            self._is_drawn = True
            self._move(token[2], token[1])

    def _move(self, letter: str, number: str) -> None:
        count = int(number) if number.isdigit() and len(number) < 5 else 1
        if letter == "A":
            self._row = max(0, self._row - count)
        elif letter == "B":
            self._row = min(len(self.rows) - 1, self._row + count)
        elif letter == "C":
            self._column = min(self._column + count, _LONGEST_LINE)
        elif letter == "D":
            self._column = max(0, self._column - count)
        else:
            row = self.rows[self._row]
            self.rows[self._row] = "" if number == "2" else row[: self._column]


def _left_out(count: int) -> bytes:
    return f"… {count:,} bytes left out …\n".encode()


def _shown(line: str) -> str:
    """A line as it is kept."""
    line = line.rstrip()
    if len(line) > _LONGEST_LINE:
        line = f"{line[:_LONGEST_LINE]} … {len(line) - _LONGEST_LINE:,} characters left out …"
    return without_secrets(line) if _may_hold_secret(line) else line


def _may_hold_secret(line: str) -> bool:
    """A check of one microsecond that spares one of fifteen: credentials are long words, except for three forms."""
    return bool(_LONG_WORD.search(line)) or "earer " in line or "asic " in line or "assword" in line or "wd=" in line
