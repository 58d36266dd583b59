"""LoggerFactory: the logger of every component of an experiment, over one run."""

from __future__ import annotations

from typing import Any

from rollbook.adapters.acme.aggregators import Dispatcher
from rollbook.adapters.acme.base import Logger, to_numpy
from rollbook.adapters.acme.book import BookFirst, RollbookLogger
from rollbook.adapters.acme.csv import CSVLogger
from rollbook.adapters.acme.filters import NoneFilter, TimeFilter
from rollbook.adapters.acme.terminal import TerminalLogger

__all__ = ["LoggerFactory"]


class LoggerFactory:
    """What Acme calls a logger factory: a callable `(label, steps_key=None, instance=None) -> Logger`.

        config = experiments.ExperimentConfig(..., logger_factory=LoggerFactory(run))

    Pickled into another process, its loggers write to the same run from there.

    Args:
      run: a Run.
      time_delta: seconds between lines on the terminal; None shows nothing.
      save_data: also write Acme's CSV files.
    """

    def __init__(self, run: Any, *, time_delta: float | None = 1.0, save_data: bool = False) -> None:
        self._run, self._time_delta, self._save_data = run, time_delta, save_data

    def __call__(self, label: str, steps_key: str | None = None, instance: int | None = None) -> Logger:
        """The logger of `label`."""
        if self._time_delta is None and not self._save_data:
            return RollbookLogger(self._run, label, steps_key=steps_key, instance=instance)
        ends: list[Logger] = []
        if self._time_delta is not None:
            ends.append(TimeFilter(TerminalLogger(label), self._time_delta))
        if self._save_data:
            ends.append(CSVLogger(label=label))
        book = RollbookLogger(self._run, label, steps_key=steps_key, instance=instance)
        return BookFirst(book).in_front_of(NoneFilter(Dispatcher(ends, to_numpy)))
