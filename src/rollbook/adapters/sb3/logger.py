"""`Logger` and `configure`: Stable-Baselines3's, with a rollbook run among the outputs.

from rollbook.adapters.sb3 import configure        # was: from stable_baselines3.common.logger import configure

model.set_logger(configure("logs/ppo", ["stdout", "csv", "tensorboard"]))
"""

from __future__ import annotations

import os
import sys
import tempfile
from datetime import datetime

from rollbook.adapters.sb3 import _host
from rollbook.adapters.sb3._host import DISABLED, INFO, KVWriter, SeqWriter, excluded_from
from rollbook.errors import UnknownOption, did_you_mean
from rollbook.system.bill import Bill
from rollbook.system.guard import is_foreign, ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

if TYPE_CHECKING or _host.VERSION is None:
    _Base = object
else:
    from stable_baselines3.common.logger import Logger as _Base

FORMATS = ("stdout", "log", "json", "csv", "tensorboard", "rollbook")


class _Values(dict):  # type: ignore[type-arg]
    """The values of the current row. Reading a missing key gives 0.0 and does not add it."""

    def __missing__(self, key: str) -> float:
        return 0.0


class Logger(_Base):
    """Collects a row of named values and sends it to outputs. Each output gets every row once, even if others fail.

    Arguments as in `stable_baselines3.common.logger.Logger`.

    Args:
      folder: where files go, or None.
      output_formats: the outputs: objects with `write` and Stable-Baselines' base class, or with the older `writekvs`.

    An exception from an output is counted and reported once; the others get the row, and the next row begins empty. In
    a strict run it is raised after the others have the row. An output with `compat=True` raises the same way for values
    that it cannot hold.

    Attributes:
      name_to_value, name_to_count, name_to_excluded, level, dir, output_formats: as in Stable-Baselines3.
    """

    def __init__(self, folder: str | None, output_formats: list[Any]) -> None:
        self.name_to_value: dict[str, Any] = _Values()
        self.name_to_count: dict[str, int] = _Counts()
        self.name_to_excluded: dict[str, tuple[str, ...]] = {}
        self.level = INFO
        self.dir = folder
        self.output_formats = output_formats
        self._counter: Bill | None = None

    @staticmethod
    def to_tuple(string_or_tuple: str | Iterable[str] | None) -> tuple[str, ...]:
        """An exclusion as a tuple: None becomes ("",); one name or any collection of names becomes a tuple of names."""
        if string_or_tuple is None:
            return ("",)
        return (string_or_tuple,) if isinstance(string_or_tuple, str) else tuple(string_or_tuple)

    def record(self, key: str, value: object, exclude: str | Iterable[str] | None = None) -> None:
        """Set a value of the row. It replaces an earlier value of the key, and what `record_mean` collected for it."""
        self.name_to_value[key] = value
        self.name_to_count.pop(key, None)
        self.name_to_excluded[key] = self.to_tuple(exclude)

    def record_mean(self, key: str, value: Any, exclude: str | Iterable[str] | None = None) -> None:
        """Make the row's value the mean of all values given here since the last dump; None is ignored."""
        if value is None:
            return
        count = self.name_to_count[key]
        old = self.name_to_value[key] if count else 0.0
        self.name_to_value[key] = old * count / (count + 1) + value / (count + 1)
        self.name_to_count[key] = count + 1
        self.name_to_excluded[key] = self.to_tuple(exclude)

    def dump(self, step: int = 0) -> None:
        """Send the row to all outputs and begin a new one. At level DISABLED the row is dropped."""
        values = dict(self.name_to_value)
        excluded = {key: self.name_to_excluded.get(key, ("",)) for key in values}
        self.name_to_value.clear()
        self.name_to_count.clear()
        self.name_to_excluded.clear()
        if self.level == DISABLED:
            return
        failed: list[tuple[object, Exception]] = []
        for output in list(self.output_formats):
            try:
                if isinstance(output, KVWriter):
                    output.write(dict(values), dict(excluded), step)
                elif callable(getattr(output, "writekvs", None)):
                    output.writekvs(dict(values))
            except ours(Exception) as err:
                failed.append((output, err))
        for output, error in failed:
            if isinstance(error, (_host.FormatUnsupportedError, ValueError)) and getattr(output, "compat", False):
                raise error
            self._failed("write", output, error)

    def log(self, *args: object, level: int = INFO) -> None:
        """Write a line of text to the outputs that accept text, if `level` is at least the logger's."""
        if self.level <= level and self.level != DISABLED:
            self._do_log(args)

    def debug(self, *args: object) -> None:
        """Write a line of level DEBUG."""
        self.log(*args, level=_host.DEBUG)

    def info(self, *args: object) -> None:
        """Write a line of level INFO."""
        self.log(*args, level=_host.INFO)

    def warn(self, *args: object) -> None:
        """Write a line of level WARN."""
        self.log(*args, level=_host.WARN)

    def error(self, *args: object) -> None:
        """Write a line of level ERROR."""
        self.log(*args, level=_host.ERROR)

    def set_level(self, level: int) -> None:
        """Lines below `level` are not written; DISABLED also drops rows."""
        self.level = level

    def get_dir(self) -> str | None:
        """Where files go."""
        return self.dir

    def close(self) -> None:
        """Close every output that has `close`."""
        for output in self.output_formats:
            try:
                output.close()
            except (AttributeError, NotImplementedError):
                continue  # close is optional
            except Exception as err:
                self._failed("close", output, err)

    def _do_log(self, args: tuple[object, ...]) -> None:
        parts = [str(arg) for arg in args]
        for output in self.output_formats:
            try:
                if isinstance(output, SeqWriter):
                    output.write_sequence(list(parts))
                elif callable(getattr(output, "writeseq", None)):
                    output.writeseq(list(parts))
            except Exception as err:
                self._failed("write_sequence", output, err)

    def _failed(self, verb: str, output: object, err: Exception) -> None:
        from rollbook.errors import LoggingFailed

        if isinstance(err, LoggingFailed) or is_foreign(err):
            raise err
        if self._counter is None:
            runs = [run for o in self.output_formats if (run := getattr(o, "run", None)) is not None]
            self._counter = Bill(to=runs[0] if runs and callable(getattr(runs[0], "count", None)) else None)
        name = type(output).__name__
        self._counter(f"output_{name}", message=f"{name}.{verb}() of the logger failed: {type(err).__name__}: {err}")


class _Counts(dict):  # type: ignore[type-arg]
    def __missing__(self, key: str) -> int:
        return 0


def filter_excluded_keys(
    key_values: Mapping[str, object], key_excluded: Mapping[str, object], _format: str
) -> dict[str, Any]:
    """The values that are not excluded from a format.

    Args:
      key_values: the row: key -> value.
      key_excluded: key -> names of the formats that do not get it.
      _format: name of the format.
    """
    return {key: value for key, value in key_values.items() if not excluded_from(key_excluded.get(key), _format)}


def make_output_format(
    _format: str, log_dir: str | os.PathLike[str], log_suffix: str = "", *, compat: bool = False, **options: Any
) -> KVWriter:
    """One output by name.

    Args:
      _format: stdout, log, json, csv, tensorboard or rollbook.
      log_dir: where files go; created if missing.
      log_suffix: inserted before the extension of file names.
      compat: raise FormatUnsupportedError for values that the format cannot hold, as Stable-Baselines3 does; see each
        output.
      options: for "rollbook": run, project, run_options.
    Raises:
      UnknownOption (a ValueError): there is no such format.
    """
    folder = os.fspath(log_dir)
    if _format not in FORMATS:
        raise UnknownOption(f"Unknown format specified: {_format!r}.{did_you_mean(str(_format), list(FORMATS))}")
    if _format == "rollbook":
        from rollbook.adapters.sb3.output import RollbookOutputFormat

        return RollbookOutputFormat(**options)
    if _format == "stdout":
        from rollbook.adapters.sb3.human import HumanOutputFormat

        return HumanOutputFormat(sys.stdout, compat=compat)
    os.makedirs(folder, exist_ok=True)
    if _format == "tensorboard":
        from rollbook.adapters.sb3.events import TensorBoardOutputFormat

        return TensorBoardOutputFormat(folder, compat=compat)
    if _format == "log":
        from rollbook.adapters.sb3.human import HumanOutputFormat

        return HumanOutputFormat(os.path.join(folder, f"log{log_suffix}.txt"), compat=compat)
    from rollbook.adapters.sb3.files import CSVOutputFormat, JSONOutputFormat

    kind = CSVOutputFormat if _format == "csv" else JSONOutputFormat
    return kind(os.path.join(folder, f"progress{log_suffix}.{_format}"), compat=compat)


def configure(
    folder: str | os.PathLike[str] | None = None,
    format_strings: Sequence[str] | str | None = None,
    *,
    run: object = None,
    project: str | None = None,
    run_options: Mapping[str, object] | None = None,
    compat: bool = False,
) -> Any:
    """A logger for `model.set_logger`, with the run as an additional output.

    Args:
      folder: where files go; default $SB3_LOGDIR, else a new temporary folder. Existing files are continued.
      format_strings: names of `FORMATS`; default $SB3_LOG_FORMAT, else stdout, log, csv.
      run: the run. None uses the current one or opens one named after the folder; False records nothing.
      project, run_options: of a run that is opened here.
      compat: use Stable-Baselines3's own logger and outputs, including their faults, together with the run.
    Raises:
      UnknownOption: an unknown format.
    """
    if folder is None:
        stamp = datetime.now().strftime("SB3-%Y-%m-%d-%H-%M-%S-%f")
        folder = os.environ.get("SB3_LOGDIR") or os.path.join(tempfile.gettempdir(), stamp)
    place = os.fspath(folder)
    if format_strings is None:
        format_strings = os.environ.get("SB3_LOG_FORMAT", "stdout,log,csv")
    if isinstance(format_strings, str):
        format_strings = format_strings.split(",")
    names = [name.strip() for name in format_strings if name.strip()]
    for name in names:
        if name not in FORMATS:
            raise UnknownOption(f"Unknown format specified: {name!r}.{did_you_mean(name, list(FORMATS))}")
    native = [name for name in names if name != "rollbook"]
    outputs: list[object]
    if compat:
        _host.require("configure(compat=True)")
        from stable_baselines3.common import logger as theirs

        logger = theirs.configure(place, native)
        outputs = logger.output_formats
    else:
        outputs = [make_output_format(name, place) for name in native]
        logger = Logger(place, outputs)
    if run is not False:
        from rollbook.adapters.sb3.output import RollbookOutputFormat

        outputs.append(RollbookOutputFormat(run, project=project, run_options=run_options, folder=place))
    if native and native != ["stdout"] and not compat:
        logger.log(f"Logging to {place}")
    return logger
