"""What every reading function has to know about a run beside its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from rollbook.book.hosts import Host
from rollbook.ground.array_types import NDArray
from rollbook.ground.manifest import Attempts
from rollbook.storage import History, Piece

__all__ = ["Context", "Timelines", "counts"]

Timelines = dict[object, dict[int, tuple[NDArray, NDArray, str]]]
"""{what was asked: {attempt: times (unix ns), readings, their writer}}; see `axis.timelines`."""


@dataclass(frozen=True, slots=True)
class Context:
    """A run as one call sees it.

    Attributes:
      path: its folder, for messages.
      clocks: all clocks that a row may have.
      history: its attempts and cuts.
      attempts: which of them are read.
      main_writers: the writers that opened the run; they own its clocks.
      x: the clock that a plot of the run should use, "" if nobody said.
      hosts: gives where each writer was; asked only when rows are placed by time.
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


def counts(piece: Piece, run: Context) -> bool | None:
    """Whether all rows of a piece are chosen, none of them, or (None) some."""
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
