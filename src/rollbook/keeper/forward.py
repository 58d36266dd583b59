"""Delivers rows to sinks. Each sink has a cursor that survives the keeper.

    forwarder = Forwarder(run_folder, Jsonl(), name="jsonl")
    forwarder.step()            # deliver what is new; never raises
    forwarder.close()

A file sink gets every row exactly once, over any number of kills. A sink without a position (a web service) gets every
row at least once; (writer, lane, seq) identifies repetitions. A failing sink is offered the same rows again after
growing pauses. Rows of abandoned attempts are forwarded too.
"""

from __future__ import annotations

import os
import time

from rollbook.keeper.cursors import SavedCursor, cursor_path
from rollbook.keeper.rewinds import acceptable, deliver
from rollbook.schema import manifest
from rollbook.system.files import is_folder
from rollbook.system.guard import handled_by, ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeGuard

    from rollbook.protocols import Row, RunInfo, Sink, Stateful, Truncatable

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
_STEP_SECONDS = 1.0
"""How long one step works on a backlog before others get their turn."""


class Forwarder:
    """Feeds one sink. Used by one thread at a time; `step` never raises.

    Args:
      run_folder: the run's folder.
      sink: the sink, with its filters in front; or a function that makes a new one. The function is called again after
        a
        failure of a file sink that may have written half of its rows.
      name: unique within the run; part of the cursor's file name. "" saves no cursor.
      every_seconds: deliver at most this often, and then only the newest row of each stream. None: every row.
      info: the run information for the sink; by default read from run.json at start.
      this_attempt: for a screen: leave out rows of earlier attempts. If only the newest rows are delivered, timings say
        what each stage took since the last delivery, so that shares of time can be shown.
      clock: seconds, monotonic.
      report: takes (cause, words) for the log; called once for each cause.
    Attributes:
      rows, refused, failures: rows delivered; values left out because the sink does not accept their kind; failed
        tries.
      failed_in_a_row, trouble: failed tries since the last success, and what went wrong at the last.
      is_cut_short: closing the sink failed.
      caught_up: no row was left at the last step.
      newest: unix time of the newest row delivered, 0.0 for none.
    """

    def __init__(
        self,
        run_folder: str | os.PathLike[str],
        sink: Sink | Callable[[], Sink],
        *,
        name: str = "",
        every_seconds: float | None = None,
        info: RunInfo | None = None,
        this_attempt: bool = False,
        clock: Callable[[], float] = time.monotonic,
        report: Callable[[str, str], None] = lambda cause, words: None,
    ) -> None:
        from rollbook.journal import JournalReader
        from rollbook.keeper.sealed import LazySealed

        self.name, self.every_seconds = name or type(sink).__name__, every_seconds
        self._folder = os.path.abspath(os.fspath(run_folder))
        self._path = cursor_path(self._folder, name) if name else None
        given: Any = sink
        is_sink = hasattr(sink, "write") and not isinstance(sink, type)
        self._make: Callable[[], Sink] | None = None if is_sink else given
        self._sink: Sink | None = given if is_sink else None
        self._info, self._this_attempt, self._clock, self._report = info, this_attempt, clock, report
        self._saved = SavedCursor(self._path)
        self._reader = JournalReader(self._folder, sealed=LazySealed(self._folder))
        self._batches: Iterator[tuple[list[Row], dict[str, dict[int, int]]]] | None = None
        self._started = self._closed = False
        self._not_before = self._due = -1e9
        self._pause = 0.0
        self.failures = self.failed_in_a_row = 0
        self.trouble = ""
        self.is_cut_short = False
        self.caught_up = False
        self.newest = 0.0

    @property
    def rows(self) -> int:
        """Rows delivered, over all keepers of the run."""
        return self._saved.rows

    @property
    def refused(self) -> int:
        """Values left out because the sink does not accept their kind."""
        return self._saved.refused

    @property
    def failing(self) -> bool:
        """The last try failed, and the next one waits for its time."""
        return self._pause > 0.0

    def is_file(self) -> bool:
        """Whether the sink writes files it can cut back: then it is quick enough to be fed in the keeper's thread."""
        return _can_go_back(self._ready_sink())

    def step(self, *, flush: bool = False) -> bool:
        """Deliver what is new, if it is time.

        Args:
          flush: now, regardless of `every_seconds`; a failing sink still has its pause.
        Returns:
          True when nothing is left to deliver, so far as this step could see.
        """
        now = self._clock()
        if self._closed or now < self._not_before or (now < self._due and not flush):
            return self.caught_up and not self.failing
        try:
            self._start()
            self.caught_up = self._deliver_newest() if self.every_seconds is not None else self._deliver_all()
        except ours(Exception) as err:
            self.fail(err)
            return False
        self._pause, self.failed_in_a_row = 0.0, 0
        self._due = now + (self.every_seconds or 0.0)
        return self.caught_up

    def end(self) -> None:
        """Tell the sink that nothing follows: a final mark for a run that could not write one. The cursor is not
        saved."""
        if not self._started or self._closed or self.failing:
            return
        with handled_by(self.fail):
            self._ready_sink().write([_final_mark("crashed")])

    def close(self) -> None:
        """Close the sink. The cursor stays unchanged: the next forwarder writes again what a filter still held back."""
        if self._closed:
            return
        self._closed = True
        self._reader.close()
        if self._started and self._sink is not None:
            if _can_go_back(self._sink) and not is_folder(self._folder):
                return  # the run was removed: filters must not write their rest and make its folder again
            try:
                self._sink.close()
            except ours(Exception) as err:
                self.fail(err)
                self.is_cut_short = True
                self.trouble = (
                    f"sink {self.name} could not be closed ({type(err).__name__}: {err}); what it still held is not "
                    "there, the book has it"
                )

    # -- below: the parts of a step; they may raise

    def _ready_sink(self) -> Sink:
        if self._sink is None:
            assert self._make is not None
            self._sink = self._make()
        return self._sink

    def _start(self) -> None:
        if self._started:
            return
        sink = self._ready_sink()
        self._info = self._info if self._info is not None else run_info(self._folder)
        sink.open(self._info.but(resumed=self._saved.is_old or self._info.resumed))
        if _can_go_back(sink):
            sink.truncate(self._saved.position or {})
        if self._saved.state is not None and _has_memory(sink):
            with self._reporting(f"state:{self.name}", "could not take up its memory"):
                sink.set_state(self._saved.state)  # fails if its options changed with a resume: start without it
        self._started = True

    def _deliver_all(self) -> bool:
        until = self._clock() + _STEP_SECONDS
        while True:
            is_new = self._batches is None  # older ones end where the journal ended when they were begun
            if self._batches is None:
                self._batches = self._reader.batches(self._saved.cursor)
            for rows, cursor in self._batches:
                self._write(rows, cursor)
                if self._clock() >= until:
                    return False  # the next step continues with these batches: a new search in Parquet is slow
            self._batches = None
            if is_new:
                return True

    def _deliver_newest(self) -> bool:
        cursor = {writer: dict(lanes) for writer, lanes in self._saved.cursor.items()}
        self._write(self._reader.newest_rows(cursor, sum_timings=self._this_attempt), cursor)
        return True

    def _write(self, rows: Sequence[Row], cursor: dict[str, dict[int, int]]) -> None:
        sink, saved = self._ready_sink(), self._saved
        if self._this_attempt and self._info is not None:
            rows = [row for row in rows if row.attempt >= self._info.attempt]
        sendable, refused = acceptable(rows, sink.accepts)
        if sendable:
            deliver(self._folder, sink, sendable)
            self.newest = max(self.newest, sendable[-1].time)
        elif cursor == saved.cursor:
            return
        if refused and not saved.refused and self._path is not None:  # a screen has no cursor
            taken = {kind.__name__ for kind in sink.accepts}
            kinds = sorted({type(v).__name__ for row in rows for v in row.values.values()} - taken)
            words = f"sink {self.name} does not take values of kind {', '.join(kinds)}; they are left out there"
            self._report(f"refused:{self.name}", f"{words}, and are in the book")
        saved.cursor, saved.rows, saved.refused = cursor, saved.rows + len(sendable), saved.refused + refused
        if _can_go_back(sink):
            saved.position = dict(sink.position())
        if _has_memory(sink):
            saved.state = sink.state()
        # Delivered, even if the cursor is not saved. Going on is right: only a kill before the next save could repeat
        # these rows in a sink without a position.
        with self._reporting("cursor", "has a cursor that cannot be saved", OSError):
            saved.save()

    def _reporting(self, cause: str, what: str, kinds: type[Exception] = Exception) -> handled_by:
        """Around work that may fail without harm to the rows."""
        return handled_by(lambda err: self._report(cause, f"sink {self.name} {what}: {err!r}"), kinds=kinds)

    def fail(self, err: BaseException) -> None:
        """Note what a try raised. The rows are offered again, after growing pauses."""
        self.failures += 1
        self.failed_in_a_row += 1
        self.trouble = f"sink {self.name} fails ({type(err).__name__}: {err}); its rows are kept and offered again"
        self.caught_up = False
        self._batches = None
        self._pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, self._pause * 2.0))
        self._not_before = self._clock() + self._pause
        self._report(
            f"sink:{self.name}",
            f"sink {self.name} failed ({type(err).__name__}: {err}); the rows are kept and offered again",
        )
        if self._make is not None and self._started and _can_go_back(self._ready_sink()):
            # A file sink may have written half of the rows: make it again, cut back to its last position.
            with self._reporting(f"close:{self.name}", "could not be closed either"):
                self._ready_sink().close()
            self._sink, self._started = None, False


def run_info(run_folder: str | os.PathLike[str], x: str = "") -> RunInfo:
    """The information for a sink about a run, from its run.json.

    Raises:
      NotARun: there is no run.json that can be read.
    """
    from rollbook.schema.records import RunInfo

    folder = os.path.abspath(os.fspath(run_folder))
    about = manifest.look(folder)
    if about.is_empty:
        about = manifest.read(folder)
    return RunInfo(
        folder=folder,
        project=about.project,
        name=about.name,
        id=about.id,
        attempt=manifest.newest(about).n or 1,
        clocks=tuple(about.clocks),
        config=about.config,
        seed=about.seed,
        group=about.group,
        tags=tuple(about.tags),
        notes=about.notes,
        x=x or about.x,
        resumed=False,
        total=about.total,
    )


def _final_mark(status: str = "finished") -> Row:
    from rollbook.schema.records import Row

    return Row(time.time(), {}, {}, mark="final", keys=(status,))


def _can_go_back(sink: object) -> TypeGuard[Truncatable]:
    return hasattr(sink, "position") and hasattr(sink, "truncate")  # to import `protocols` takes 1 MiB of each keeper


def _has_memory(sink: object) -> TypeGuard[Stateful]:
    return hasattr(sink, "state") and hasattr(sink, "set_state")
