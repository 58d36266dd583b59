"""What every reading function has to know about a run beside its rows."""

from __future__ import annotations

from dataclasses import dataclass

from rollbook.storage.history import Attempts, History

__all__ = ["Context"]


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
    """

    path: str
    clocks: tuple[str, ...]
    history: History
    attempts: Attempts
    main_writers: frozenset[str]
    x: str = ""
