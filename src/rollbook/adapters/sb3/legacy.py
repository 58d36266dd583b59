"""The names of the older Stable-Baselines' logger module, over Stable-Baselines3's logger.

    from rollbook.adapters.sb3 import legacy as logger        # was: from stable_baselines import logger

    logger.Logger.CURRENT.output_formats.append(logger.RollbookOutputFormat(run))
    logger.logkv("loss", 0.5)
    logger.dumpkvs()

If the program uses that library itself, append a `RollbookOutputFormat` to its own `Logger.CURRENT` instead.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
import time
from contextlib import AbstractContextManager
from datetime import datetime

from rollbook.adapters.sb3 import _host
from rollbook.adapters.sb3._host import DEBUG, DISABLED, ERROR, INFO, WARN
from rollbook.adapters.sb3.output import RollbookOutputFormat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, ClassVar, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

_host.require("rollbook.adapters.sb3.legacy")

from stable_baselines3.common.logger import HumanOutputFormat, make_output_format  # noqa: E402  # after the check
from stable_baselines3.common.logger import Logger as _Logger  # noqa: E402

__all__ = ["DEBUG", "DISABLED", "ERROR", "INFO", "WARN"]
__all__ += ["KVWriter", "Logger", "ProfileKV", "RollbookOutputFormat", "ScopedConfigure", "SeqWriter", "configure"]
__all__ += ["debug", "dump_tabular", "dumpkvs", "error", "get_dir", "get_level", "getkvs", "info", "log", "logkv"]
__all__ += ["logkv_mean", "logkvs", "profile", "record_tabular", "reset", "set_level", "warn"]


class KVWriter(_host.KVWriter):
    """Writes rows: override `writekvs`. Arguments as in `stable_baselines.logger.KVWriter`."""

    def write(self, key_values: dict[str, Any], key_excluded: object, step: int = 0) -> None:
        """Write one row of Stable-Baselines3's logger."""
        self.writekvs(dict(key_values))

    def writekvs(self, kvs: Mapping[str, object]) -> None:
        """Write one row. `kvs` is the writer's own copy.

        Raises:
          NotImplementedError: a subclass does not override it.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is open."""


class SeqWriter(_host.SeqWriter):
    """Writes texts: override `writeseq`. Arguments as in `stable_baselines.logger.SeqWriter`."""

    def write_sequence(self, sequence: list[str]) -> None:
        """Write one line of Stable-Baselines3's logger."""
        self.writeseq(list(sequence))

    def writeseq(self, seq: list[str]) -> None:
        """Write one line.

        Raises:
          NotImplementedError: a subclass does not override it.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is open."""


class Logger(_Logger):  # type: ignore[misc]
    """The logger under its older names. Arguments as in `stable_baselines.logger.Logger`.

    Attributes:
      name_to_value, name_to_count, level, dir, output_formats: as in Stable-Baselines3.
      CURRENT: the logger that the functions of this module use.
      DEFAULT: the one that `reset` goes back to.
    """

    name_to_value: dict[str, Any]
    name_to_count: dict[str, int]
    level: int
    dir: str | None
    CURRENT: ClassVar[Logger]
    DEFAULT: ClassVar[Logger]

    def logkv(self, key: str, val: object) -> None:
        """Set a value of the row.

        Args:
          key: the key.
          val: its value; a later one replaces it.
        """
        self.record(key, val)

    def logkv_mean(self, key: str, val: object) -> None:
        """Make the row's value a mean; None is ignored.

        Args:
          key: the key.
          val: one of the numbers whose mean is logged. None is ignored.
        """
        self.record_mean(key, val)

    def dumpkvs(self) -> None:
        """Send the row to all outputs and begin a new one."""
        total = next(
            (self.name_to_value[k] for k in ("total_timesteps", "total timesteps") if k in self.name_to_value), 0
        )
        try:
            step = int(total)
        except (TypeError, ValueError):
            step = 0
        self.dump(step)

    @property
    def name2val(self) -> dict[str, Any]:
        """The row being made."""
        return self.name_to_value

    @property
    def name2cnt(self) -> dict[str, int]:
        """The number of values in each mean."""
        return self.name_to_count


Logger.DEFAULT = Logger.CURRENT = Logger(folder=None, output_formats=[HumanOutputFormat(sys.stdout)])


def logkv(key: str, val: object) -> None:
    """Set a value of the current logger's row.

    Args:
      key: the key.
      val: its value; a later one replaces it.
    """
    Logger.CURRENT.logkv(key, val)


def logkv_mean(key: str, val: object) -> None:
    """Make a value in the current logger's row a mean.

    Args:
      key: the key.
      val: one of the numbers whose mean is logged. None is ignored.
    """
    Logger.CURRENT.logkv_mean(key, val)


def logkvs(key_values: Mapping[str, object]) -> None:
    """Set several values.

    Args:
      key_values: key -> value.
    """
    for key, value in key_values.items():
        logkv(key, value)


def dumpkvs() -> None:
    """Write the current logger's row."""
    Logger.CURRENT.dumpkvs()


def getkvs() -> dict[str, Any]:
    """The current logger's row."""
    return Logger.CURRENT.name_to_value


def log(*args: object, level: int = INFO) -> None:
    """Write a line of text.

    Args:
      args: joined with spaces.
      level: it is written if this is at least the logger's level.
    """
    Logger.CURRENT.log(*args, level=level)


def debug(*args: object) -> None:
    """Write a line of level DEBUG.

    Args:
      args: joined with spaces.
    """
    log(*args, level=DEBUG)


def info(*args: object) -> None:
    """Write a line of level INFO.

    Args:
      args: joined with spaces.
    """
    log(*args, level=INFO)


def warn(*args: object) -> None:
    """Write a line of level WARN.

    Args:
      args: joined with spaces.
    """
    log(*args, level=WARN)


def error(*args: object) -> None:
    """Write a line of level ERROR.

    Args:
      args: joined with spaces.
    """
    log(*args, level=ERROR)


def set_level(level: int) -> None:
    """Set the current logger's level.

    Args:
      level: DEBUG, INFO, WARN, ERROR or DISABLED. Lower lines are not written; DISABLED also drops rows.
    """
    Logger.CURRENT.set_level(level)


def get_level() -> int:
    """The current logger's level."""
    return Logger.CURRENT.level


def get_dir() -> str | None:
    """The folder of the current logger's files."""
    return Logger.CURRENT.dir


record_tabular = logkv
dump_tabular = dumpkvs


def configure(folder: str | None = None, format_strs: Iterable[str] | None = None) -> None:
    """Make a new current logger. Outputs other than files (trackers, runs) move to it.

    Args:
      folder: default $OPENAI_LOGDIR, else a new temporary folder.
      format_strs: default $OPENAI_LOG_FORMAT (for ranks above 0 $OPENAI_LOG_FORMAT_MPI), else stdout, log, csv.
    """
    stamp = datetime.now().strftime("openai-%Y-%m-%d-%H-%M-%S-%f")
    log_folder = folder or os.environ.get("OPENAI_LOGDIR") or os.path.join(tempfile.gettempdir(), stamp)
    rank = next((int(v) for n in ("PMI_RANK", "OMPI_COMM_WORLD_RANK") if (v := os.environ.get(n, "")).isdigit()), 0)
    suffix = f"-rank{rank:03d}" if rank else ""
    if format_strs is None:
        name, default = ("OPENAI_LOG_FORMAT_MPI", "log") if rank else ("OPENAI_LOG_FORMAT", "stdout,log,csv")
        format_strs = os.environ.get(name, default).split(",")
    outputs: list[object] = []
    for name in filter(None, format_strs):
        where = os.path.join(log_folder, f"tb{suffix}") if name == "tensorboard" else log_folder
        outputs.append(make_output_format(name, where, suffix))
    of_user = [output for output in Logger.CURRENT.output_formats if _is_users(output)]
    Logger.CURRENT = Logger(folder=log_folder, output_formats=[*outputs, *of_user])
    log(f"Logging to {log_folder}")


def reset() -> None:
    """Close the current logger and go back to the default one."""
    if Logger.CURRENT is not Logger.DEFAULT:
        Logger.CURRENT.close()
        Logger.CURRENT = Logger.DEFAULT
        log("Reset logger")


class ScopedConfigure(AbstractContextManager["ScopedConfigure"]):
    """A logger for the duration of a with-block.

    Args:
      folder, format_strs: as in `configure`.
    """

    def __init__(self, folder: str | None = None, format_strs: Iterable[str] | None = None) -> None:
        self.folder, self.format_strs = folder, format_strs

    def __enter__(self) -> ScopedConfigure:
        self._before = Logger.CURRENT
        configure(self.folder, self.format_strs)
        return self

    def __exit__(self, *exc: object) -> None:
        shared = self._before.output_formats
        mine = [
            output
            for output in Logger.CURRENT.output_formats
            if not any(output is shared_output for shared_output in shared)
        ]
        Logger(None, mine).close()
        Logger.CURRENT = self._before


class ProfileKV(AbstractContextManager[None]):
    """Adds the seconds of a with-block to the value `wait_<name>`.

    Args:
      name: the value's name is `wait_<name>`.
    """

    def __init__(self, name: str) -> None:
        self.name = f"wait_{name}"

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *exc: object) -> None:
        seconds = time.perf_counter() - self._start
        logger = Logger.CURRENT
        logger.record(self.name, logger.name_to_value[self.name] + seconds)


def profile(name: str) -> Callable[[F], F]:
    """A decorator that adds the seconds of each call to the value `wait_<name>`.

    Args:
      name: the value's name is `wait_<name>`.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def timed(*args: object, **kwargs: object) -> object:
            with ProfileKV(name):
                return function(*args, **kwargs)

        return timed  # type: ignore[return-value]

    return decorate


def _is_users(output: object) -> bool:
    return not type(output).__module__.startswith(("rollbook.adapters.sb3.", "stable_baselines")) or isinstance(
        output, RollbookOutputFormat
    )


def read_json(fname: str) -> Iterator[dict[str, Any]]:
    """The rows of a progress.json."""
    import json

    with open(fname, encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)
