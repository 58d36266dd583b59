"""Functions that build complete loggers: Acme's default logger, and the article's stack of filters.

    agent = dqn.DQN(..., logger=make_logger(run, prefix="learner"))
    train_loop = acme.EnvironmentLoop(environment, agent, logger=make_logger(run, "train", smoothing_regex="return"))
    eval_logger = make_logger(run, "eval", aggregate_regex="return")
    eval_loop.run(num_episodes=5); eval_logger.dump()

Keep the result of `make_logger`: only the outermost logger has `dump`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rollbook.adapters._trackers import offers
from rollbook.adapters.acme.aggregators import Dispatcher
from rollbook.adapters.acme.asynchronous import AsyncLogger
from rollbook.adapters.acme.base import Logger, LoggingData, to_numpy
from rollbook.adapters.acme.book import BookFirst, RollbookLogger, is_run
from rollbook.adapters.acme.csv import CSVLogger
from rollbook.adapters.acme.filters import AggregateFilter, NoneFilter, SmoothingFilter, TimeFilter
from rollbook.adapters.acme.terminal import TerminalLogger
from rollbook.errors import BadInput


def make_logger(
    experiment: object,
    prefix: str | None = None,
    time_delta: float = 1.0,
    aggregate_regex: str | None = None,
    smoothing_regex: str | None = None,
    smoothing_coeff: float = 0.99,
    *,
    compat: bool = False,
    print_fn: Callable[[str], object] = print,
    run_options: Mapping[str, object] | None = None,
) -> object:
    """The stack AggregateFilter -> NoneFilter -> SmoothingFilter -> TimeFilter -> terminal and tracker.

    Averages cover every record; the TimeFilter only thins the output to the terminal and to an external tracker. With a
    rollbook run, the book comes first: it has every raw record, and also the averages and aggregates.

    Args:
      experiment: a rollbook Run or Scope; or a Neptune experiment or run, old or new; None for the terminal only.
      prefix: prefix of keys and lines.
      time_delta: minimum seconds between records. The last one is always written.
      aggregate_regex: keys to aggregate; if given, nothing is written until `dump()` is called on the returned logger.
      smoothing_regex: keys to smooth.
      smoothing_coeff: how strongly, in [0, 1).
      compat: the order of the article: TimeFilter -> NoneFilter -> SmoothingFilter. Only records that passed the
        TimeFilter are averaged, and the others are dropped.
      print_fn: called with the lines for the terminal.
      run_options: with experiment=None: open a run with these arguments of `rollbook.init` ({} for defaults).
    Returns:
      The outermost logger, which has `dump()`.
    """
    front = None
    if is_run(experiment) or (experiment is None and run_options is not None):
        front = BookFirst(RollbookLogger(experiment, prefix, run_options=run_options))
    ends: list[Any] = [TerminalLogger(prefix, print_fn)]
    if experiment is not None and front is None:
        ends.insert(0, _tracker(experiment, prefix))
    logger: Logger = Dispatcher(ends)
    if not compat:
        logger = TimeFilter(logger, time_delta)
    if front is not None:
        logger = Dispatcher([front.derived, logger])  # the book gets every average, also those that are not shown
    if smoothing_regex:
        logger = SmoothingFilter(logger, smoothing_regex, smoothing_coeff)
    logger = NoneFilter(logger)
    if compat:
        logger = TimeFilter(logger, time_delta, compat=True)
    if aggregate_regex:
        logger = AggregateFilter(logger, aggregate_regex)
    return logger if front is None else front.in_front_of(logger)


def _tracker(experiment: object, prefix: str | None) -> object:
    if not offers(experiment, "log_metric") and not hasattr(experiment, "__getitem__"):
        raise BadInput(
            f"make_logger() was given a {type(experiment).__name__} as its experiment, which is neither a rollbook run "
            "nor something with log_metric(); pass what rollbook.init() returned"
        )
    from rollbook.sinks.neptune import NeptuneLogger

    return NeptuneLogger(experiment, prefix, index_name="epoch")


def make_default_logger(
    label: str,
    save_data: bool = True,
    time_delta: float = 1.0,
    asynchronous: bool = False,
    print_fn: Callable[[str], object] | None = None,
    serialize_fn: Callable[[LoggingData], object] | None = to_numpy,
    steps_key: str | None = None,
    *,
    run: object = None,
    instance: int | None = None,
    run_options: Mapping[str, object] | None = None,
) -> Logger:
    """The logger that Acme's components make by default: terminal and CSV file, once every `time_delta` seconds.

    Args:
      label: the component.
      save_data: write `~/acme/<unique id>/logs/<label>/logs.csv`.
      time_delta: minimum seconds between records; the last one is always written.
      asynchronous: write from a thread.
      print_fn: called with the lines; None prints.
      serialize_fn: applied to records first.
      steps_key: the entry that counts the component's steps.
      run: a run that also gets every record. With None and no `run_options`, no run is used.
      instance: the number of the component; see `RollbookLogger`.
      run_options: open a run with these arguments of `rollbook.init`, or join the open one.
    """
    ends: list[Logger] = [TerminalLogger(label, print_fn or print)]
    if save_data:
        ends.append(CSVLogger(label=label))
    logger: Logger = NoneFilter(Dispatcher(ends, serialize_fn))
    if asynchronous:
        logger = AsyncLogger(logger)
    logger = TimeFilter(logger, time_delta)
    if run is None and run_options is None:
        return logger
    book = RollbookLogger(run, label, steps_key=steps_key, instance=instance, run_options=run_options)
    return BookFirst(book).in_front_of(logger)
