"""What every reading function needs to know about a run besides its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from rollbook.book.hosts import Host
from rollbook.schema.manifest import Attempts
from rollbook.storage import History, Piece
from rollbook.values.array_types import NDArray

Timelines = dict[object, dict[int, tuple[NDArray, NDArray, str]]]
"""{request: {attempt: times (unix ns), readings, their writer}}; see `axis.timelines`."""


@dataclass(frozen=True, slots=True)
class Context:
    """A run as seen by one call.

    Attributes:
      path: its folder, for messages.
      clocks: all clocks that a row may have.
      history: its attempts and cuts.
      attempts: the attempts to read.
      main_writers: the writers that opened the run; they own its clocks.
      x: the default clock for plots of the run; "" if none is set.
      hosts: returns the host of each writer; called only when rows are placed by time.
      timelines: what placing by time has read of the axis in this call; see `axis.place`.
    """

    path: str
    clocks: tuple[str, ...]
    history: History
    attempts: Attempts
    main_writers: frozenset[str]
    x: str = ""
    hosts: Callable[[], Mapping[str, Host]] = field(default=dict)
    timelines: Timelines = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AxisRange:
    """What is asked of an axis: `start` <= x < `stop`, in at most `points` points; see `Book.series`."""

    x: str | None = None
    points: int | None = None
    start: float | None = None
    stop: float | None = None

    @property
    def is_whole(self) -> bool:
        """Whether neither end is limited."""
        return self.start is None and self.stop is None


def are_chosen(piece: Piece, run: Context) -> bool | None:
    """Whether all rows of a piece are chosen (True), none (False), or some (None)."""
    if run.history.chooses_all(run.attempts):
        return True
    meta = piece.meta
    if any(meta.get(name) is None for name in ("attempt", "writer", "lane", "at")):
        return None
    if not piece.is_whole:
        return None
    ends = np.array([meta["first_seq"], meta["last_seq"]]), np.array([meta["first_time"], meta["last_time"]])
    mask = run.history.mask(run.attempts, meta["attempt"], meta["writer"], meta["lane"], *ends, meta["at"])
    return True if mask is None or mask.all() else None if mask.any() else False
