"""Shared by all parts of the server: settings, the catalogue of runs, open books, newest values and cached answers."""

from __future__ import annotations

import functools
import operator
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rollbook.book import Book
from rollbook.errors import RollbookError
from rollbook.runs.measures import extreme_of, measure_of, measured
from rollbook.schema import source
from rollbook.schema.run_files import MANIFEST_FILE, RunFile, heartbeat_path
from rollbook.server.settings import ServerSettings
from rollbook.server.shared.catalogue import Catalogue, RunRow
from rollbook.server.shared.shapes import Refused
from rollbook.storage import Pieces
from rollbook.system import files
from rollbook.system.liveness import is_alive

_SEAT_SECONDS = 60.0
"""How long a request waits for others about the same run; answers also have deadlines."""

Stamp = tuple[object, ...]


class _Seat:
    """One book, and whether it is in use."""

    __slots__ = ("book", "lock", "users")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.book: Book | None = None
        self.users = 0


class Readers:
    """Books by folder. Any thread may use it; each book is lent to one at a time.

    Args:
      most: how many stay open in addition to those in use.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._seats: OrderedDict[str, _Seat] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._seats)

    @contextmanager
    def book(self, folder: str) -> Iterator[Book]:
        """The book of a run's folder, for the duration of the block.

        Raises:
          NotARun, NewerFormat: see `Book`. Refused: others have used it for a minute.
        """
        with self._lock:
            seat = self._seats.get(folder)
            if seat is None:
                seat = self._seats[folder] = _Seat()
            self._seats.move_to_end(folder)
            seat.users += 1
        try:
            if not seat.lock.acquire(timeout=_SEAT_SECONDS):
                raise Refused(
                    "timeout", f"this run has been read by others for {_SEAT_SECONDS:g} s", "Ask again later."
                )
            try:
                if seat.book is None:
                    seat.book = Book(folder)
                yield seat.book
            finally:
                seat.lock.release()
        finally:
            with self._lock:
                seat.users -= 1
                if seat.book is None and not seat.users:
                    self._seats.pop(folder, None)
                self._shrink()

    def forget(self, folder: str) -> None:
        """Close an unused book; its folder is gone."""
        with self._lock:
            seat = self._seats.get(folder)
            if seat is not None and not seat.users:
                del self._seats[folder]

    def _shrink(self) -> None:
        while len(self._seats) > self._most:
            idle = next((folder for folder, seat in self._seats.items() if not seat.users), None)
            if idle is None:
                return
            del self._seats[idle]


_LOOK_SECONDS, _LOOK_SELDOM_SECONDS = 10.0, 60.0
"""How old the copy of a run of a store may be while somebody looks at it: a live one, and one that has ended."""
_looked: OrderedDict[str, float] = OrderedDict()
_MOST_REMEMBERED = 20_000
"""Runs and writers that are remembered; the oldest are looked at again."""


def look_again(folder: str, *, is_live: bool) -> None:
    """Bring a run of a store up to date, some seconds after the last time; costs nothing for other folders."""
    if not source.is_view(folder):
        return
    wait = _LOOK_SECONDS if is_live else _LOOK_SELDOM_SECONDS
    if time.monotonic() - _looked.get(folder, -wait) >= wait:
        _looked[folder] = time.monotonic()
        _looked.move_to_end(folder)
        while len(_looked) > _MOST_REMEMBERED:
            _looked.popitem(last=False)
        with suppress(RollbookError):  # what is in the cache is shown; the list of runs says that the store is away
            source.freshen(folder)


def stamp_of(folder: str) -> Stamp:
    """A stamp that changes when a run has new data. It takes a few stat calls and reads nothing.

    A mapped store raises no file event: while a run is written, its keeper's heartbeat shows new rows. A run whose
    writer may live and whose keeper was not heard of counts as new each second.
    """
    data = os.path.join(folder, "data")
    page, heart = _time_of(os.path.join(folder, MANIFEST_FILE)), _time_of(heartbeat_path(folder))
    journal: list[tuple[str, int, int, bool]] = []
    tables: list[object] = []
    try:
        with os.scandir(data) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name == "journal":
                    journal = _journal(entry.path)
                elif entry.name != "keeper" and entry.is_dir():
                    tables.append((entry.name, entry.stat().st_mtime_ns))
    except OSError:
        pass
    unheard = bool(journal) and (heart is None or time.time_ns() - heart > 3_000_000_000)
    writing = unheard and any(
        not closed and not _is_dead(os.path.join(data, "journal", w)) for w, _, _, closed in journal
    )
    return (page, heart, tuple(journal), tuple(tables), int(time.time()) if writing else 0)


class Stamps(dict[str, Stamp]):
    """The stamps of runs by folder. Each is taken when it is first asked for, and then stays: whatever is answered
    meanwhile is of one moment of that run."""

    def __missing__(self, folder: str) -> Stamp:
        stamp = self[folder] = stamp_of(folder)
        return stamp


_DEAD: dict[str, None] = {}
"""Writers, by folder, whose process has gone; it does not come back."""


def _is_dead(writer: str) -> bool:
    if writer not in _DEAD and is_alive(files.read_json(os.path.join(writer, RunFile.WRITER))) is False:
        _DEAD[writer] = None
        while len(_DEAD) > _MOST_REMEMBERED:
            _DEAD.pop(next(iter(_DEAD)), None)
    return writer in _DEAD


def _journal(path: str) -> list[tuple[str, int, int, bool]]:
    """(writer, sizes of its files, whether it closed) of each writer."""
    growth: list[tuple[str, int, int, bool]] = []
    try:
        writers = sorted(os.listdir(path))
    except OSError:
        return growth
    for writer in writers:
        total, names, closed = 0, 0, False
        try:
            with os.scandir(os.path.join(path, writer)) as entries:
                for entry in entries:
                    closed |= entry.name == RunFile.CLOSED
                    total += entry.stat().st_size
                    names += 1
        except OSError:
            continue
        growth.append((writer, total, names, closed))
    return growth


def _time_of(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


_MOST_WAITING = 20_000
_LASTING_SECONDS = 1.0
_REST = 14
"""After reading a run's facts for which no request waits, the background thread rests this many times as long. Many
live runs, or thousands of old ones outside the screen, cost 1/15 of a core."""
_AT_ONCE = 500
"""This many runs for which no request waits are read without a rest: all runs of most folders, and the newest of
others."""
_LONGEST_REST = 0.1
_FIRST_CURVES_SECONDS = 0.6
"""Before more than `_AT_ONCE` runs are read: the first curves, which need the interpreter as much, are asked for
meanwhile. As long as they are made nothing is read, for at most `_DRAWING_SECONDS`."""
_DRAWING_SECONDS = 10.0
_OFTEN, _SELDOM = 0.5, 5.0
"""Seconds between two reports of newer numbers: the first ones that a request waits for; the others. In between, the
pause doubles with each report: the page asks for the whole table after each."""


@dataclass(slots=True)
class Facts:
    """What was read of one run.

    Attributes:
      stamp: of the run when it was read; looked_at: when its stamp was checked (monotonic seconds).
      keys: of metrics, sorted; canonical: key -> its canonical name. Runs of equal keys share both.
      rows: how many rows of metrics there are.
      latest: key -> newest value; clocks: the highest known reading of each clock.
      heard: unix seconds of the newest row.
      numbers: column such as `max("loss")` -> its number, for the columns requested so far; None: the run has none.
      damage: why files of metrics could not be read, a sentence each.
    """

    stamp: object
    looked_at: float
    keys: Sequence[str] = ()
    canonical: Mapping[str, str] = field(default_factory=dict)
    rows: int = 0
    latest: dict[str, object] = field(default_factory=dict)
    clocks: dict[str, int] = field(default_factory=dict)
    heard: float | None = None
    numbers: dict[str, float | None] = field(default_factory=dict)
    damage: tuple[str, ...] = ()


class FactsCache:
    """Facts by run. Any thread may use it; a background thread reads facts for which no request should wait.

    Args:
      readers: the open books.
      changed: called when requested facts have been read.
      wait: returns once no first curves are being made, or after so many seconds.
    """

    def __init__(
        self,
        readers: Readers,
        changed: Callable[[], None],
        *,
        at_once: int = _AT_ONCE,
        rest: Callable[[float], object] = time.sleep,
        wait: Callable[[float], object] = lambda seconds: None,
    ) -> None:
        self._at_once, self._sleep, self._wait = at_once, rest, wait
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

    def now(self, row: RunRow, columns: Iterable[str] = ()) -> Facts:
        """The facts of a run, read in this thread if they are not known; with these numbers."""
        facts = self._facts.get(row.folder)
        if facts is None or time.monotonic() - facts.looked_at > _LASTING_SECONDS:
            look_again(row.folder, is_live=row.is_live)
            stamp = stamp_of(row.folder)
            if facts is None or facts.stamp != stamp:
                facts = self._read(row, stamp)
            else:
                facts.looked_at = time.monotonic()
        missing = [column for column in columns if column not in facts.numbers]
        if missing:
            with self._readers.book(row.folder) as book:
                for column in missing:
                    facts.numbers[column] = _number(book, column)
        return facts

    def at(self, row: RunRow, stamp: object) -> Facts:
        """The facts of a run with this stamp, read in this thread if they are not known."""
        facts = self._facts.get(row.folder)
        return facts if facts is not None and facts.stamp == stamp else self._read(row, stamp)

    @property
    def is_reading(self) -> bool:
        """Whether facts that a request waits for are being read in the background."""
        return bool(self._waiting)

    def is_fresh(self, row: RunRow, columns: Iterable[str] = ()) -> bool:
        """Whether a run's facts need no reading now."""
        facts = self._facts.get(row.folder)
        if facts is None or any(column not in facts.numbers for column in columns):
            return False
        return not row.is_live or time.monotonic() - facts.looked_at <= _LASTING_SECONDS

    def fetch(self, rows: Iterable[RunRow], columns: Iterable[str] = (), *, hurry: bool = True) -> int:
        """Have facts read in the background. Returns how many are still to be read.

        Args:
          hurry: whether a request waits for them. The others are read after those; if they are many, with rests in
            between.
        """
        keys = [*columns] or [""]
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
            self._wait(_DRAWING_SECONDS)
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
                self._announce()
            if known or at_pace:
                self._sleep(min(_LONGEST_REST, _REST * (time.perf_counter() - began)))
        self._announce()

    def _announce(self) -> None:
        self.version += 1
        self._changed()

    def _read(self, row: RunRow, stamp: object) -> Facts:
        facts = Facts(stamp, time.monotonic())
        with self._readers.book(row.folder) as book:
            latest = book.files.read(["metrics"], lambda pieces: _take_keys(facts, book, pieces["metrics"]))
            facts.latest = {key: value for key, (value, _, _) in latest.items()}
            facts.heard = max(map(operator.itemgetter(2), latest.values()), default=None)
            rows = {id(clocks): clocks for _, clocks, _ in latest.values()}  # keys of one row share them
            for clock, reading in (entry for clocks in rows.values() for entry in clocks.items()):
                facts.clocks[clock] = max(reading, facts.clocks.get(clock, reading))
            facts.damage = tuple(book.files.damage.values())
        with self._lock:
            known = self._facts.get(row.folder)
            if known is not None and known.stamp == stamp:  # another thread was first, and its numbers may be in use
                return known
            self._facts[row.folder] = facts
        return facts


def _take_keys(facts: Facts, book: Book, pieces: Pieces) -> Mapping[str, tuple[Any, Mapping[str, int], float]]:
    """Give facts the keys and the number of rows of a run; returns the newest values. One look at the files."""
    canonical = tuple((key, name) for name, key in book.canonical().items())
    facts.keys, facts.canonical = _shared(tuple(book.keys()), canonical)
    facts.rows = sum(piece.rows for piece in pieces)
    return book.latest()


@functools.lru_cache(maxsize=256)
def _shared(keys: tuple[str, ...], canonical: tuple[tuple[str, str], ...]) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The first of equal ones: thousands of runs have the same thousands of keys."""
    return keys, dict(canonical)


def _number(book: Book, column: str) -> float | None:
    """A number of a key; the smallest and the largest come from few points, of which each knows its own."""
    measure = measure_of(column)
    try:
        if measure is None:
            return None
        how = extreme_of(measure)
        series = book.series(measure.key, points=None if how is None else 1)
    except RollbookError:
        return None
    if how is None:
        return measured(series.x, series.mean, measure.how, measure.key)
    values = (series.min if how == "min" else series.max)[series.count > 0]
    return float(values.min() if how == "min" else values.max()) if len(values) else None


Made = TypeVar("Made")


class AnswerCache:
    """A cache of finished answers by request; the least recently used go first. Any thread may use it.

    An answer belongs to a stamp of its source. A newer answer replaces it, so that no unusable answers pile up while
    runs are written.

    Args:
      most_bytes: how much is kept.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most, self._size = most_bytes, 0
        self._items: OrderedDict[object, tuple[object, int, object]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes kept."""
        return self._size

    def get(self, key: object, stamp: object) -> Any:
        """The cached value of a key for that stamp; None if there is none."""
        with self._lock:
            item = self._items.get(key)
            if item is None or item[2] != stamp:
                return None
            self._items.move_to_end(key)
            return item[0]

    def holds(self, key: object) -> bool:
        """Whether there is a value of a key, for whatever stamp."""
        return key in self._items

    def put(self, key: object, stamp: object, value: object, size: int) -> None:
        """Keep a value of this many bytes, in place of one with an older stamp."""
        with self._lock:
            old = self._items.pop(key, None)
            self._size -= old[1] if old is not None else 0
            if size > self._most // 8:
                return
            self._size += size
            self._items[key] = (value, size, stamp)
            while self._size > self._most:
                _, (_, freed, _) = self._items.popitem(last=False)
                self._size -= freed


class Drawing:
    """Whether first curves of many runs are being made: what fills the table waits for them. Any thread may use it."""

    def __init__(self) -> None:
        self._many, self._changed = 0, threading.Condition()

    def __enter__(self) -> None:
        with self._changed:
            self._many += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._many -= 1
            self._changed.notify_all()

    def __bool__(self) -> bool:
        return self._many > 0

    def wait(self, seconds: float) -> None:
        """Return once nothing is drawn, or after this time."""
        with self._changed:
            self._changed.wait_for(lambda: not self._many, seconds)


class Progress:
    """How far the answers have come that read many runs. Any thread may use it."""

    def __init__(self) -> None:
        self._at: dict[object, tuple[int, int]] = {}

    def over(self, rows: Sequence[RunRow]) -> Iterator[RunRow]:
        """These runs, one by one, counted."""
        name = object()
        try:
            for done, row in enumerate(rows):
                self._at[name] = done, len(rows)
                yield row
        finally:
            self._at.pop(name, None)

    def now(self) -> tuple[int, int]:
        """(runs read, of how many) of the answer that has most left; (0, 0) where none reads."""
        return max([*self._at.values()], key=lambda at: at[1] - at[0], default=(0, 0))


class ServerContext:
    """The server's shared state.

    Args:
      settings: how it was started.
    Attributes:
      identity: different for each server, so that a page notices a new one.
      asked_at: when the last request came (monotonic seconds).
      catalogue, readers, facts, answers: the runs, the books, their newest values, the finished answers.
      group_rows: the rows behind curves and comparisons of groups (`curves/memory.py`).
      drawing: held while first curves are made.
      progress: of answers that read many runs.
      reading_many: held while the rows of many runs are read, so that two requests do not read the same runs.
      listeners: called, in any thread, when requested numbers of the table have been read.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self.settings, self.limits = settings, settings.limits
        self.identity = secrets.token_hex(6)
        self.asked_at = time.monotonic()
        self.catalogue = Catalogue(settings.roots, waits=settings.waits)
        self.readers = Readers(self.limits.open_books)
        self.answers, self.group_rows = AnswerCache(self.limits.cache_bytes), AnswerCache(self.limits.group_bytes)
        self.drawing, self.progress, self.reading_many = Drawing(), Progress(), threading.Lock()
        self.listeners: list[Callable[[], None]] = []
        self.facts = FactsCache(self.readers, self._facts_came, wait=self.drawing.wait)

    def _facts_came(self) -> None:
        for listener in list(self.listeners):
            listener()

    @property
    def title(self) -> str:
        """A short name for the location of the runs."""
        if self.settings.title:
            return self.settings.title
        home = os.path.expanduser("~")
        words = [
            root.replace(home, "~", 1) if root.startswith(home + os.sep) else root for root in self.catalogue.roots
        ]
        return words[0] + (f" and {len(words) - 1} more" if len(words) > 1 else "")

    @property
    def only(self) -> str | None:
        """The run that the server was started for, if it was started for one."""
        roots = self.catalogue.roots
        if len(roots) != 1 or not os.path.isfile(os.path.join(roots[0], MANIFEST_FILE)):
            return None
        return next(iter(self.catalogue.snapshot(5.0).rows), None)

    def row(self, run: str) -> RunRow:
        """The run of that name in the API."""
        return self.catalogue.row(run)

    def rows(self, runs: Sequence[str]) -> list[RunRow]:
        """Several of them.

        Raises:
          Refused: more than one request may ask for, or an unknown one.
        """
        if len(runs) > self.limits.runs:
            raise Refused(
                "too_large", f"{len(runs):,} runs were asked for; at most {self.limits.runs:,} at once", "Choose fewer."
            )
        return [self.row(run) for run in dict.fromkeys(runs)]

    @contextmanager
    def book(self, row: RunRow) -> Iterator[Book]:
        """The book of a run, lent to this thread alone."""
        with self.readers.book(row.folder) as book:
            yield book

    def remembered(
        self,
        what: object,
        row: RunRow,
        make: Callable[[Book], Made],
        size: Callable[[Made], int] | int = 1_000,
        stamp: object = None,
    ) -> Made:
        """The result of `make` for a run's book, kept until the run has new data.

        Args:
          size: in bytes; stamp: of the run, where the caller has it already.
        """
        key, stamp = (what, row.folder), stamp_of(row.folder) if stamp is None else stamp
        answer: Made | None = self.answers.get(key, stamp)
        if answer is None:
            with self.book(row) as book:
                answer = make(book)
            self.answers.put(key, stamp, answer, size(answer) if callable(size) else size)
        return answer
