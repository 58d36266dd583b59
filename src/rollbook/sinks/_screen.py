"""A block of lines at the bottom of a terminal, redrawn in place while other output of the process scrolls past.

The block is ordinary text: the cursor is below it and stays visible, so a killed process leaves the terminal in order.
While a screen is in use, `sys.stdout` and `sys.stderr` are wrapped if they lead to the same terminal: the block is
removed before other output is printed, and drawn again after it. Output that bypasses them (of C libraries, or of
handlers that kept the stream) is not noticed, and leaves a copy of the block above it.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from typing import Any, ClassVar

from rollbook.sinks._plain import wide
from rollbook.system.guard import tolerating
from rollbook.system.tuning import TUNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO


def is_terminal(stream: Any) -> bool:
    """Whether the stream is a terminal that can redraw lines in place."""
    with tolerating(AttributeError, ValueError, OSError):
        return bool(stream.isatty()) and os.environ.get("TERM", "") != "dumb"
    return False


def say(stream: Any, text: str) -> None:
    """Write past what has wrapped a text stream's `write`, to keep what the program says: this is rollbook's own."""
    write = getattr(type(stream), "write", None)
    if write is None:
        stream.write(text)
    else:
        write(stream, text)


class Screen:
    """The bottom of one terminal. All runs of the process that draw there share it; each has its own lines.

    Threads: any may draw or print. Printing waits at most 0.2 s for a drawing in progress.
    """

    _all: ClassVar[list[Screen]] = []

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.RLock()
        self._blocks: dict[object, Sequence[tuple[str, int]]] = {}
        self._drawn: list[int] = []  # columns of each line on the terminal now
        self._column = 0  # the column where other output stopped
        self._shown = 0.0
        self._process = os.getpid()
        self._wrapped: list[tuple[str, _Passing]] = []

    @classmethod
    def shared(cls, stream: TextIO) -> Screen:
        """The screen that draws to `stream` in this process."""
        if isinstance(stream, _Passing):
            stream = stream.stream
        cls._all = [screen for screen in cls._all if screen._process == os.getpid()]
        for screen in cls._all:
            if screen._stream is stream:
                return screen
        if os.name == "nt":
            os.system("")  # makes the console understand escape sequences
        cls._all.append(cls(stream))
        return cls._all[-1]

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        size = shutil.get_terminal_size()
        with tolerating(AttributeError, ValueError, OSError):
            size = os.get_terminal_size(self._stream.fileno())
        return (size.columns or 80), (size.lines or 24)

    @property
    def owners(self) -> int:
        """How many runs share it."""
        return len(self._blocks)

    def join(self, owner: object) -> None:
        """Begin to use the screen."""
        with self._lock:
            if not self._blocks:
                self._wrap()
            self._blocks.setdefault(owner, [])

    def draw(self, owner: object, lines: Sequence[str], above: Sequence[str] = ()) -> None:
        """Replace the owner's lines, and print `above` so that it stays, above all blocks. No line may wrap."""
        with self._lock:
            if owner not in self._blocks:
                return
            self._blocks[owner] = [(line, wide(_unpainted(line))) for line in lines]
            self._show(above)

    def leave(self, owner: object) -> None:
        """Stop using the screen. The owner's lines stay on the terminal, above those of the others."""
        with self._lock:
            block = self._blocks.pop(owner, None)
            if block is None:
                return
            self._show([line for line, _ in block])
            if not self._blocks:
                self._drawn = []
                self._unwrap()

    def _show(self, above: Sequence[str]) -> None:
        _, rows = self.size
        block = [line for lines in self._blocks.values() for line in lines][-(rows - 1) :]
        out = [self._back_to_start()]
        if self._column and not self._drawn and (above or block):
            out.append("\n")  # other output stopped within a line: begin below it
        out += [f"{line}\x1b[K\n" for line in above]
        out += [f"{line}\x1b[K\n" for line, _ in block]
        out.append("\x1b[J")
        if above:
            self._column = 0
        self._drawn = [used for _, used in block]
        self._shown = time.monotonic()
        self._send("".join(out))

    def _back_to_start(self) -> str:
        """Moves the cursor to where the block begins."""
        columns, _ = self.size
        up = sum(max(1, -(-used // columns)) for used in self._drawn)  # a window made narrower wraps old lines
        return f"\r\x1b[{up}A" if up else ""

    def _send(self, text: str) -> None:
        with tolerating(UnicodeEncodeError) as missed:
            say(self._stream, text)
        if missed:
            say(self._stream, text.encode("ascii", "replace").decode())
        self._stream.flush()

    def pass_on(self, text: str, stream: TextIO) -> int:
        """Print other output: remove the block, continue where that output stopped, print, redraw the block."""
        if os.getpid() != self._process or not self._lock.acquire(timeout=TUNING.screen_wait_seconds):
            return stream.write(text)
        try:
            if self._drawn:
                out = self._back_to_start()
                if self._column:
                    out += f"\x1b[1A\x1b[{self._column}C"
                self._drawn = []
                self._send(out + "\x1b[J")
            written = stream.write(text)
            tail = text.rpartition("\n")[2]
            start = 0 if "\n" in text or "\r" in tail else self._column
            columns, _ = self.size
            self._column = (start + wide(_unpainted(tail.rpartition("\r")[2]))) % max(1, columns)
            # A bar that returns to the start of its line is drawn above the block; an unfinished line is not.
            if (not self._column or "\r" in text) and time.monotonic() - self._shown > TUNING.screen_rest_seconds:
                stream.flush()
                self._show(())
            return written
        finally:
            self._lock.release()

    def _wrap(self) -> None:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name, None)
            if stream is not None and is_terminal(stream):
                passing = _Passing(stream, self)
                setattr(sys, name, passing)
                self._wrapped.append((name, passing))

    def _unwrap(self) -> None:
        for name, passing in self._wrapped:
            if getattr(sys, name, None) is passing:  # code that redirected it will restore it
                setattr(sys, name, passing.stream)
            passing.screen = None
        self._wrapped = []
        if self in Screen._all:
            Screen._all.remove(self)


class _Passing:
    """A text stream that notifies the screen before it prints; otherwise it behaves as the stream."""

    def __init__(self, stream: TextIO, screen: Screen | None) -> None:
        self.stream, self.screen = stream, screen

    def write(self, text: str) -> int:
        if self.screen is not None and text:
            return self.screen.pass_on(text, self.stream)
        return self.stream.write(text)

    def writelines(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def __iter__(self) -> Any:
        return iter(self.stream)


def _unpainted(text: str) -> str:
    """The text without its escape sequences, for measuring its width."""
    if "\x1b" not in text:
        return text
    import re

    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
