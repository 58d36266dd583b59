"""The newest values of runs for the table: read once per change; for many runs, read in advance."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from rollbook.book import Book
from rollbook.errors import RollbookError
from rollbook.server.catalogue import RunRow
from rollbook.server.readers import Readers, look_again, stamp_of

__all__ = ["Facts", "FactsShelf"]

_MOST_WAITING = 20_000
_LASTING_SECONDS = 1.0
_REST = 14
"""After reading a run's facts for which no request waits, the background thread rests this many times as long. So many
live runs, or thousands of old ones outside the screen, cost 1/15 of a core."""
_AT_ONCE = 500
"""This many runs for which no request waits are read without a rest: all runs of most folders, and the newest of
others."""
_LONGEST_REST = 0.1
_FIRST_CURVES_SECONDS = 0.6
"""Before more than `_AT_ONCE` runs are read: the first curves, which need the interpreter as much, come before them."""
_OFTEN, _SELDOM = 0.5, 5.0
"""Seconds between two reports of newer numbers: the first ones that a request waits for; the others. In between, the
pause doubles with each report: the page asks for the whole table after each."""


@dataclass(slots=True)
class Facts:
    """What was read of one run.

    Attributes:
      stamp: of the run when it was read; looked_at: when its stamp was checked (monotonic seconds).
      latest: key -> newest value; clocks: the highest known reading of each clock.
      heard: unix seconds of the newest row.
      extremes: key -> (smallest, largest), for the keys requested so far.
      damage: why files of metrics could not be read, a sentence each.
    """

    stamp: object
    looked_at: float
    latest: dict[str, object] = field(default_factory=dict)
    clocks: dict[str, int] = field(default_factory=dict)
    heard: float | None = None
    extremes: dict[str, tuple[float, float]] = field(default_factory=dict)
    damage: tuple[str, ...] = ()


class FactsShelf:
    """Facts by run. Any thread may use it; a background thread reads facts for which no request should wait.

    Args:
      readers: the open books.
      changed: called when requested facts have been read.
    """

    def __init__(
        self,
        readers: Readers,
        changed: Callable[[], None],
        *,
        at_once: int = _AT_ONCE,
        rest: Callable[[float], object] = time.sleep,
    ) -> None:
        self._at_once, self._sleep = at_once, rest
        self._readers, self._changed = readers, changed
        self._facts: dict[str, Facts] = {}
        self._waiting: OrderedDict[tuple[str, str], RunRow] = OrderedDict()
        self._later: OrderedDict[tuple[str, str], RunRow] = OrderedDict()
        self._lock = threading.Condition()
        self._thread: threading.Thread | None = None
        self.version = 0

    def known(self, row: RunRow) -> Facts | None:
        """The known facts of a run, possibly a moment old; None if nothing was read yet."""
        return self._facts.get(row.folder)

    def now(self, row: RunRow, extremes: Iterable[str] = ()) -> Facts:
        """The facts of a run, read in this thread if they are not known."""
        facts = self._facts.get(row.folder)
        if facts is None or time.monotonic() - facts.looked_at > _LASTING_SECONDS:
            look_again(row.folder, is_live=row.is_live)
            stamp = stamp_of(row.folder)
            if facts is None or facts.stamp != stamp:
                facts = self._read(row, stamp)
            else:
                facts.looked_at = time.monotonic()
        missing = [key for key in extremes if key not in facts.extremes and key in facts.latest]
        if missing:
            with self._readers.book(row.folder) as book:
                for key in missing:
                    facts.extremes[key] = _extremes(book, key)
        return facts

    @property
    def is_reading(self) -> bool:
        """Whether facts that a request waits for are being read in the background."""
        return bool(self._waiting)

    def is_fresh(self, row: RunRow, extremes: Iterable[str] = ()) -> bool:
        """Whether a run's facts need no reading now."""
        facts = self._facts.get(row.folder)
        if facts is None or any(key in facts.latest and key not in facts.extremes for key in extremes):
            return False
        return not row.is_live or time.monotonic() - facts.looked_at <= _LASTING_SECONDS

    def fetch(self, rows: Iterable[RunRow], extremes: Iterable[str] = (), *, hurry: bool = True) -> int:
        """Have facts read in the background. Returns how many are still to be read.

        Args:
          hurry: whether a request waits for them. The others are read after those; if they are many, with rests in
            between.
        """
        keys = [*extremes] or [""]
        with self._lock:
            for row in rows:
                for key in keys:
                    name = (row.folder, key)
                    if hurry:
                        self._later.pop(name, None)
                    if len(self._waiting) + len(self._later) < _MOST_WAITING and name not in self._waiting:
                        (self._waiting if hurry else self._later).setdefault(name, row)
            if (self._waiting or self._later) and self._thread is None:
                self._thread = threading.Thread(target=self._work, name="rollbook-facts", daemon=True)
                self._thread.start()
            return len(self._waiting) + len(self._later)

    def _work(self) -> None:
        announced, pause = time.monotonic(), _OFTEN
        if len(self._waiting) > _AT_ONCE and len(self._facts) < _AT_ONCE:
            time.sleep(_FIRST_CURVES_SECONDS)
        while True:
            with self._lock:
                if not self._waiting and not self._later:
                    self._thread = None
                    break
                at_pace = not self._waiting and len(self._facts) >= self._at_once
                (_, key), row = (self._waiting or self._later).popitem(last=False)
            known, began = row.folder in self._facts, time.perf_counter()
            try:
                self.now(row, [key] if key else [])
            except (RollbookError, OSError) as err:
                self._facts.setdefault(row.folder, Facts(None, time.monotonic(), damage=(str(err),)))
            if time.monotonic() - announced > (_SELDOM if at_pace else pause):
                announced, pause = time.monotonic(), min(2 * pause, _SELDOM)
                self._tell()
            if known or at_pace:
                self._sleep(min(_LONGEST_REST, _REST * (time.perf_counter() - began)))
        self._tell()

    def _tell(self) -> None:
        self.version += 1
        self._changed()

    def _read(self, row: RunRow, stamp: object) -> Facts:
        facts = Facts(stamp, time.monotonic())
        with self._readers.book(row.folder) as book:
            for key, (value, clocks, heard) in book.latest().items():
                facts.latest[key] = value
                facts.heard = max(heard, facts.heard or heard)
                for clock, reading in clocks.items():
                    facts.clocks[clock] = max(reading, facts.clocks.get(clock, reading))
            facts.damage = tuple(book.files.damage.values())
        self._facts[row.folder] = facts
        return facts


def _extremes(book: Book, key: str) -> tuple[float, float]:
    try:
        series = book.series(key, points=1)
    except RollbookError:
        return (float("nan"), float("nan"))
    finite = series.count > 0
    if not finite.any():
        return (float("nan"), float("nan"))
    return float(series.min[finite].min()), float(series.max[finite].max())
