from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest

from rollbook import testing
from rollbook.protocols import Row, RunInfo
from rollbook.sinks import Terminal, _screen


@pytest.fixture
def run(tmp_path: Path) -> RunInfo:
    (tmp_path / "run").mkdir()
    return testing.some_run(tmp_path / "run")


@pytest.fixture
def write(run):
    """write(sink, {key: value}, ..., scope="train", env_step=1): rows through a sink that is then closed."""

    def write(sink, *values, scope="", **clocks):
        sink.open(run)
        sink.write([Row(1_700_000_000.25 + i, clocks, value, scope, "w", 0, i + 1) for i, value in enumerate(values)])
        sink.close()
        return run.folder

    return write


_PIECES = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|([\r\n])|([^\x1b\r\n]+)")


class SmallTerminal(io.StringIO):
    """A stream that is a terminal. `screen` is what stands on it, scrolled-off lines included."""

    encoding = "utf-8"

    def __init__(self, columns: int = 60, lines: int = 20) -> None:
        super().__init__()
        self.columns, self.lines = columns, lines
        self.rows: list[str] = [""]
        self.row = self.column = 0
        self.written: list[str] = []

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError("no file")

    def write(self, text: str) -> int:
        self.written.append(text)
        for piece in _PIECES.finditer(text):
            number, code, control, plain = piece.groups()
            if plain:
                for char in plain:
                    if self.column >= self.columns:
                        self.row, self.column = self.row + 1, 0
                    self._reach()
                    line = self.rows[self.row].ljust(self.column)
                    self.rows[self.row] = line[: self.column] + char + line[self.column + 1 :]
                    self.column += 1
            elif control == "\r":
                self.column = 0
            elif control == "\n":
                self.row, self.column = self.row + 1, 0
                self._reach()
            elif code == "A":
                self.row = max(0, len(self.rows) - self.lines, self.row - int(number or 1))
            elif code == "C":
                self.column += int(number or 1)
            elif code == "K":
                self.rows[self.row] = self.rows[self.row][: self.column]
            elif code == "J":
                del self.rows[self.row + 1 :]
                self.rows[self.row] = self.rows[self.row][: self.column]
            elif code != "m":
                raise AssertionError(f"an escape sequence this terminal does not know: {piece[0]!r}")
        if "\x1b" in _PIECES.sub("", text):
            raise AssertionError(f"a broken escape sequence in {text!r}")
        return len(text)

    def _reach(self) -> None:
        while len(self.rows) <= self.row:
            self.rows.append("")

    @property
    def screen(self) -> list[str]:
        rows = [row.rstrip() for row in self.rows]
        while rows and not rows[-1]:
            rows.pop()
        return rows


@pytest.fixture
def terminal(monkeypatch, tuned) -> SmallTerminal:
    """A terminal. `opened` makes both standard streams lead to it."""
    stream = SmallTerminal()
    monkeypatch.setenv("TERM", "xterm")
    tuned(screen_rest_seconds=-1.0)
    monkeypatch.setattr(_screen.Screen, "size", property(lambda self: (self._stream.columns, self._stream.lines)))
    yield stream
    _screen.Screen._all.clear()


@pytest.fixture
def opened(run, terminal, monkeypatch):
    """opened(clock): a terminal sink that is open, in a process whose standard streams are the terminal.

    To be called in the test itself: pytest puts its own streams in place between a fixture and its test.
    """

    def opened(clock):
        if getattr(sys.stdout, "stream", sys.stdout) is not terminal:
            monkeypatch.setattr(sys, "stdout", terminal)
            monkeypatch.setattr(sys, "stderr", terminal)
        sink = Terminal(clock=clock)
        sink.open(run)
        return sink

    return opened
