"""Terminal: a live view of the run during training.

On a terminal, a block of lines is redrawn in place below the program's other output. Anywhere else (a file, a pipe, a
job's log) it prints one line per report: after 1, 2, 4 and 8 seconds, then every ten, then less often, down to one a
minute after an hour; and at once when the run is rewound or ends.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from rollbook.errors import BadInput
from rollbook.schema import manifest
from rollbook.sinks._plain import plain
from rollbook.sinks._screen import Screen, is_terminal, say
from rollbook.sinks._view import compact, lines
from rollbook.sinks.board import Board

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TextIO

    from rollbook.protocols import Row, RunInfo

__all__ = ["Board", "Terminal", "compact", "lines"]

MOST_NOTES = 5
USUAL_REPORT_SECONDS = 10.0
SLOWEST_REPORT_SECONDS = 60.0


class Terminal:
    """Shows progress against the total, speed, time left, the latest values by scope and the share of time per stage.

    Numbers marked "~" are means of the last ten seconds, for keys that come as often as the view is drawn. Notes of the
    run are printed above the view and stay. It runs in the training process, in a thread of rollbook.

    Args:
      every_seconds: draw at most once in this many seconds.
      total: clock -> where training is to end, for the bar and the time left; by default from run.json, even if it is
        set later.
      telemetry: also show rollbook's own metrics (`rollbook/…`: rows, seconds spent, lag of the sinks).
      stream: where to; by default standard error (in a notebook, standard output).
      clock: seconds, for tests.
    Raises:
      BadInput: `every_seconds` is below 0.
    """

    is_live = True
    accepts: frozenset[type] = frozenset({float, int, bool, str})

    def __init__(
        self,
        *,
        every_seconds: float = 1.0,
        total: Mapping[str, int] | None = None,
        telemetry: bool = False,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not every_seconds >= 0:
            raise BadInput(f"the terminal sink was given every_seconds={every_seconds!r}; it has to be 0 or more")
        self._every = float(every_seconds)
        self._total = dict(total or {})
        self._telemetry = bool(telemetry)
        self._page = ""
        self._page_seen = 0
        self._given_stream = stream
        self._clock = clock
        self._stream: Any = None
        self._screen: Screen | None = None
        self._unicode = self._colour = False
        self._notes: list[tuple[str, str]] = []  # (rule of an alert or "", words)
        self._begun = self._due = self._spoken = 0.0
        self._changed = False
        self.board = Board()

    def open(self, run: RunInfo) -> None:
        """Find out whether the output is a terminal. Nothing is printed before the first row."""
        title = f"{run.project}/{run.name}" if run.name else run.project
        self.board = Board(
            f"{title}  {run.id}" if run.id else title, total=self._total, x=run.x, telemetry=self._telemetry
        )
        self._page, self._page_seen = manifest.path_of(run.folder), 0
        stream = self._given_stream or _default_stream()
        self._stream = stream
        self._unicode = _holds_unicode(stream)
        self._colour = "NO_COLOR" not in os.environ
        self._screen = None
        if is_terminal(stream):
            self._screen = Screen.shared(stream)
            self._screen.join(self)
        self._begun = self._spoken = self._clock()
        self._due = self._begun + (0.0 if self._screen is not None else self._every)
        self._changed = False

    def write(self, rows: Sequence[Row]) -> None:
        """Take these rows; draw if it is time. An empty call draws if it is time, too."""
        for row in rows:
            news = self.board.take(row)
            for key, value in row.values.items():
                if isinstance(value, str) and (key.rpartition("/")[2] == "note" or key.startswith("alert/")):
                    self._notes.append((key.rpartition("/")[2] if key.startswith("alert/") else "", value))
                    news = True
            if self._screen is None and (row.mark in ("rewind", "final") or self._notes):
                self._due = min(self._due, self._spoken + self._every)  # important: report soon, whatever the interval
            self._changed = self._changed or news
        if self._changed and self._clock() >= self._due:
            self._report()

    def end(self, status: str) -> None:
        """Show from now on how the run ended; of a run that another process writes.

        Args:
          status: finished, killed or crashed.
        """
        self.board.status = status
        self._changed = True

    def close(self) -> None:
        """Draw a last time. The view stays where it is, and later output goes below it."""
        if self._stream is None:
            return
        if self._changed:
            self._report()
        if self._screen is not None:
            self._screen.leave(self)
        self._stream = self._screen = None

    def _report(self) -> None:
        now = self._clock()
        notes, self._notes = _note_lines(self._notes), []
        self._changed = False
        self._look_at_total()
        if self._screen is not None:
            self._due = now + self._every
            columns, rows = self._screen.size
            if self._screen.owners > 1:  # several runs train in this process: one line each
                block = [compact(self.board, width=columns - 1, now=time.time())]
            else:
                block = lines(
                    self.board,
                    width=min(columns - 1, 160),
                    height=rows - 2,
                    now=time.time(),
                    unicode=self._unicode,
                    colour=self._colour,
                )
            self._screen.draw(self, block, above=_at_width(notes, columns - 1))
        else:
            self._spoken, elapsed = now, now - self._begun
            pause = min(SLOWEST_REPORT_SECONDS, max(min(elapsed, USUAL_REPORT_SECONDS), elapsed / 60))
            self._due = now + max(self._every, pause)
            text = "".join(f"{line}\n" for line in [*notes, compact(self.board)])
            say(self._stream, text if self._unicode else text.encode("ascii", "backslashreplace").decode())
            self._stream.flush()
        self.board.drawn()

    def _look_at_total(self) -> None:
        """Use the run's total from run.json: at its start, or when it is set later (`fill_in`)."""
        if self._total:
            return
        try:
            seen = os.stat(self._page).st_mtime_ns
        except OSError:
            return
        if seen != self._page_seen:
            self._page_seen = seen
            self.board.aim_at(manifest.look(os.path.dirname(self._page)).total)


def _note_lines(notes: Sequence[tuple[str, str]]) -> list[str]:
    """Notes and alerts as lines, not too many at once."""
    shown = [
        f"{plain(rule)}, {line}" if rule else f"note: {line}"
        for rule, words in notes
        for line in plain(words, newlines=True).split("\n")
    ]
    more = len(shown) - MOST_NOTES
    return [*shown[:MOST_NOTES], f"note: and {more} lines more"] if more > 1 else shown


def _at_width(notes: Sequence[str], width: int) -> list[str]:
    """Lines of whole words: a terminal would cut an alert within one."""
    if all(len(line) <= width for line in notes):
        return list(notes)
    from textwrap import wrap

    return [part for line in notes for part in wrap(line, max(20, width), subsequent_indent="  ") or [line]]


def _holds_unicode(stream: object) -> bool:
    encoding = str(getattr(stream, "encoding", None) or "ascii").lower().replace("-", "").replace("_", "")
    return encoding.startswith("utf")


def _default_stream() -> Any:
    """Standard error, so that results on standard output stay clean, unless only standard output is visible."""
    if type(sys.stderr).__module__.startswith("ipykernel"):  # a notebook shows standard error in red
        return sys.stdout
    return sys.stdout if is_terminal(sys.stdout) and not is_terminal(sys.stderr) else sys.stderr
