"""LoggerFactory: the logger of every component of an experiment, over one run."""

from __future__ import annotations

from collections.abc import Mapping

from rollbook.adapters.acme.aggregators import Dispatcher
from rollbook.adapters.acme.base import Logger, to_numpy
from rollbook.adapters.acme.book import BookFirst, RollbookLogger
from rollbook.adapters.acme.csv import CSVLogger
from rollbook.adapters.acme.filters import NoneFilter, TimeFilter
from rollbook.adapters.acme.terminal import TerminalLogger


class LoggerFactory:
    """What Acme calls a logger factory: a callable `(label, steps_key=None, instance=None) -> Logger`.

        config = experiments.ExperimentConfig(..., logger_factory=LoggerFactory(run))

    If it is pickled into another process, its loggers write to the same run from there.

    Args:
      run: a run. None uses the current run, or opens one for the first logger.
      time_delta: seconds between lines on the terminal; None prints nothing.
      save_data: also write Acme's CSV files.
      project, run_options: of a run that is opened here; arguments of `rollbook.init`.
    """

    def __init__(
        self,
        run: object = None,
        *,
        time_delta: float | None = 1.0,
        save_data: bool = False,
        project: str | None = None,
        run_options: Mapping[str, object] | None = None,
    ) -> None:
        self._run, self._time_delta, self._save_data = run, time_delta, save_data
        self._project, self._run_options = project, run_options

    def __call__(self, label: str, steps_key: str | None = None, instance: int | None = None) -> Logger:
        """The logger of one component.

        Args:
          label: the component.
          steps_key: the entry that counts its steps. None: found by the rules of `RollbookLogger`.
          instance: its number, if several components have the label.
        """
        book = RollbookLogger(
            self._run,
            label,
            steps_key=steps_key,
            instance=instance,
            project=self._project,
            run_options=self._run_options,
        )
        self._run = book.run  # the next logger writes to the same one
        if self._time_delta is None and not self._save_data:
            return book
        ends: list[Logger] = []
        if self._time_delta is not None:
            ends.append(TimeFilter(TerminalLogger(label), self._time_delta))
        if self._save_data:
            ends.append(CSVLogger(label=label))
        return BookFirst(book).in_front_of(NoneFilter(Dispatcher(ends, to_numpy)))
