"""Tune's older logger interface: a class with `_init`, `on_result` and `close`, instantiated once per trial.

    class MyLogger(Logger):
        def _init(self): self.options = self.config.get("logger_config")
        def on_result(self, result): ...
        def close(self): ...

Tune itself no longer accepts such classes; use `OldLoggers(MyLogger)` as one of its callbacks.
"""

from __future__ import annotations

import os

from rollbook.adapters.rllib.identity import RunOptions, names_of, open_run, plain_config
from rollbook.adapters.rllib.walk import Walker
from rollbook.errors import BadInput
from rollbook.system.bill import Bill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any


class Logger:
    """The former `ray.tune.logger.Logger`: the base of loggers that are made once per trial.

    Attributes:
      config: the trial's configuration, a dict.
      logdir: the trial's folder.
      trial: Tune's trial, or None.
    """

    def __init__(self, config: dict[str, object], logdir: str | os.PathLike[str], trial: object = None) -> None:
        self.config, self.logdir, self.trial = config, os.fspath(logdir), trial
        self._init()

    def _init(self) -> None:
        """Initialisation of subclasses."""

    def on_result(self, result: dict[str, object]) -> None:
        """Take one result.

        Raises:
          TypeError: a subclass does not define it.
        """
        raise TypeError(f"{type(self).__name__} has no on_result(self, result): a logger of Tune needs one")

    def update_config(self, config: dict[str, object]) -> None:
        """The trial's configuration has changed."""

    def close(self) -> None:
        """The trial has ended."""

    def flush(self) -> None:
        """Write buffered data."""


def dict_multiple_get(dict_: Mapping[Any, object], indices: object) -> Mapping[Any, Any]:
    """The dict at a path of keys (and list indices) in a nested dict.

    A path to a value gives {last key: value}; a path to nothing gives {}.
    """
    value: Any = dict_
    index: Any = None
    for index in indices if isinstance(indices, (list, tuple)) else [indices]:
        try:
            value = value[index]
        except (KeyError, IndexError, TypeError):
            return {}
    return value if hasattr(value, "items") else {index: value}


def walk_paths(result: Mapping[Any, object], paths: Sequence[object]) -> Iterator[tuple[str, object]]:
    """("a/b/key", value) of the direct values at each path of a result; values that are dicts need their own path."""
    for path in paths:
        prefix = [str(index) for index in (path if isinstance(path, (list, tuple)) else [path])]
        metrics = dict_multiple_get(result, path)
        if prefix and len(metrics) == 1 and not hasattr(_at(result, path), "items"):
            prefix.pop()  # the path leads to the value itself; its last part is the key
        for key, value in metrics.items():
            if not hasattr(value, "items") and (prefix or key != "config"):
                yield "/".join([*prefix, str(key)]), value


def _at(result: Any, path: object) -> object:
    for index in path if isinstance(path, (list, tuple)) else [path]:
        try:
            result = result[index]
        except (KeyError, IndexError, TypeError):
            return None
    return result


class RollbookLogger(Logger):
    """A run per trial, with the older interface.

    `config["logger_config"]` may have: `dir`, `project` and `name` of the run; `paths`: a list of paths into the result
    whose direct values are logged (default: everything); `include` and `exclude`; and further arguments of
    `rollbook.init`. The run's name is the trial's.

    Raises:
      BadInput: `logger_config` is not a dict, or has unusable entries.
    """

    def _init(self) -> None:
        given = self.config.get("logger_config") or {}
        if not hasattr(given, "items"):
            raise BadInput(f"config['logger_config']={given!r:.200}: give a dict, such as {{'project': 'plant'}}")
        options = {str(key): value for key, value in given.items()}
        self._paths = options.pop("paths", None)
        self._walker = Walker(options.pop("include", None), options.pop("exclude", None))
        settings = RunOptions(
            options.pop("dir", None), options.pop("project", None), options.pop("name", None), options
        )
        trial = self.trial
        experiment, folder = names_of(getattr(trial, "storage", None))
        self.run = open_run(
            settings,
            experiment=experiment,
            trial=folder,
            trial_name=str(trial) if trial is not None else "",
            config=plain_config(self.config),
            user=self,
        )
        self._count = Bill(to=self.run)

    def on_result(self, result: dict[str, object]) -> None:
        """Log one result.

        Args:
          result: Tune's result of one iteration: nested dicts of numbers.
        """
        more = walk_paths(result, self._paths) if self._paths is not None else None
        self._count.guard("rllib/result", "recording a result", lambda: self._walker.log(self.run, result, more))

    def close(self) -> None:
        """Finish the run."""
        self.run.finish()
