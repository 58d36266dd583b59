"""Acme: its loggers, filters and counter, over a rollbook run.

    from rollbook.adapters import acme as acme_loggers      # instead of: from acme.utils import loggers as acme_loggers

    loop = acme.EnvironmentLoop(environment, agent, counter=counter, logger=acme_loggers.make_logger(run, "train_loop"))

Names and submodules are those of Acme, with its faults corrected (docs/adapters/acme.md has the list). Acme itself is
not imported: the loggers work in any program that calls `write(dict)`.
"""

from __future__ import annotations

from rollbook.adapters import _versions
from rollbook.adapters.acme import (
    aggregators,
    asynchronous,
    auto_close,
    base,
    constant,
    counting,
    csv,
    dataframe,
    default,
    filters,
    flatten,
    observers,
    paths,
    terminal,
    timestamp,
)
from rollbook.adapters.acme.aggregators import Dispatcher
from rollbook.adapters.acme.asynchronous import AsyncLogger
from rollbook.adapters.acme.auto_close import AutoCloseLogger
from rollbook.adapters.acme.base import (
    Logger,
    LoggerLabel,
    LoggerStepsKey,
    LoggingData,
    NoOpLogger,
    TaskInstance,
    to_numpy,
)
from rollbook.adapters.acme.book import RollbookLogger
from rollbook.adapters.acme.constant import ConstantLogger
from rollbook.adapters.acme.counting import Counter
from rollbook.adapters.acme.csv import CSVLogger
from rollbook.adapters.acme.dataframe import InMemoryLogger
from rollbook.adapters.acme.default import make_default_logger, make_logger
from rollbook.adapters.acme.factory import LoggerFactory
from rollbook.adapters.acme.filters import (
    AggregateFilter,
    GatedFilter,
    KeyFilter,
    NoneFilter,
    SmoothingFilter,
    TimeFilter,
)
from rollbook.adapters.acme.flatten import FlattenDictLogger
from rollbook.adapters.acme.observers import EpisodeObserver
from rollbook.adapters.acme.terminal import TerminalLogger, serialize
from rollbook.adapters.acme.timestamp import TimestampLogger

SUPPORTED = ">=0.2,<0.5"
"""The versions of dm-acme that these were tested with."""

_installed = _versions.installed("dm-acme")
if _installed is not None:
    _versions.check("dm-acme", _installed, SUPPORTED)

__all__ = [
    "AggregateFilter",
    "AsyncLogger",
    "AutoCloseLogger",
    "CSVLogger",
    "ConstantLogger",
    "Counter",
    "Dispatcher",
    "EpisodeObserver",
    "FlattenDictLogger",
    "GatedFilter",
    "InMemoryLogger",
    "KeyFilter",
    "Logger",
    "LoggerFactory",
    "LoggerLabel",
    "LoggerStepsKey",
    "LoggingData",
    "NoOpLogger",
    "NoneFilter",
    "RollbookLogger",
    "SmoothingFilter",
    "TaskInstance",
    "TerminalLogger",
    "TimeFilter",
    "TimestampLogger",
    "aggregators",
    "asynchronous",
    "auto_close",
    "base",
    "constant",
    "counting",
    "csv",
    "dataframe",
    "default",
    "filters",
    "flatten",
    "make_default_logger",
    "make_logger",
    "observers",
    "paths",
    "serialize",
    "terminal",
    "timestamp",
    "to_numpy",
]
