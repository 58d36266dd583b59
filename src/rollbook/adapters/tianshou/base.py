"""The interface that a Tianshou trainer expects of a logger: `BaseLogger`, and `LazyLogger`, which does nothing.

The names of the documented API (`log_train_data`, `train_interval`) and those of Tianshou 2 (`log_training_data`,
`training_interval`) mean the same here.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from enum import StrEnum, nonmember
from typing import Any, TypeAlias

from rollbook.errors import BadInput

__all__ = ["BaseLogger", "DataScope", "LazyLogger", "SaveFn", "generation"]

SaveFn: TypeAlias = Callable[[int, int, int], str]
"""save_checkpoint_fn(epoch, env_step, gradient_step) -> path of the saved file."""


class DataScope(StrEnum):
    """The four kinds of data. `TRAINING` is Tianshou 2's name for the first of them."""

    TRAIN = "train"
    TEST = "test"
    UPDATE = "update"
    INFO = "info"
    TRAINING = nonmember("training")


def generation() -> int:
    """The major version of Tianshou imported in this process; without one, 1 (the documented one)."""
    tianshou = sys.modules.get("tianshou")
    major = str(getattr(tianshou, "__version__", "1")).partition(".")[0]
    return int(major) if major.isdigit() else 1


class BaseLogger(ABC):
    """The base class of loggers: thins the data by four intervals and passes the rest to `write`.

    Arguments as in `tianshou.utils.BaseLogger`, by the names of version 1 and of version 2.

    A call is due if its step is at least the interval after that of the last due call. The first "last step" is -1:
    with an interval of 1,000 the first due step is 999; with 1 every new step is due once.

    Args:
      train_interval, training_interval, test_interval: in environment steps; the first two are names of the same
        interval.
      update_interval: in update steps of the trainer.
      info_interval: in epochs.
      exclude_arrays: leave arrays out.
      save_interval: in epochs; None never saves.
    Raises:
      BadInput: an interval is not a whole number from 0 on.
    """

    def __init__(
        self,
        train_interval: int = 1000,
        test_interval: int = 1,
        update_interval: int = 1000,
        info_interval: int = 1,
        exclude_arrays: bool = True,
        save_interval: int | None = None,
        *,
        training_interval: int | None = None,
    ) -> None:
        if not isinstance(exclude_arrays, bool):  # positional as in Tianshou 2: save_interval, exclude_arrays
            given: object = save_interval
            exclude_arrays, save_interval = (True if given is None else bool(given)), exclude_arrays
        self.train_interval = train_interval if training_interval is None else training_interval
        self.test_interval, self.update_interval, self.info_interval = test_interval, update_interval, info_interval
        self.exclude_arrays, self.save_interval = exclude_arrays, save_interval
        for name in ("train_interval", "test_interval", "update_interval", "info_interval"):
            interval = getattr(self, name)
            if not isinstance(interval, int) or interval < 0:
                raise BadInput(f"{name}={interval!r}: an interval is a whole number of steps, 0 or more")
        self.last_log_train_step = -1
        self.last_log_test_step = -1
        self.last_log_update_step = -1
        self.last_log_info_step = -1
        self.last_save_step = -1
        _register_with_tianshou()

    training_interval = property(lambda self: self.train_interval, lambda self, n: setattr(self, "train_interval", n))
    last_log_training_step = property(
        lambda self: self.last_log_train_step, lambda self, step: setattr(self, "last_log_train_step", step)
    )

    @abstractmethod
    def write(self, step_type: str, step: int, data: Mapping[str, object]) -> None:
        """Write `data` at `step`; `step_type` is "<scope>/<what the step counts>", e.g. "train/env_step"."""

    @abstractmethod
    def prepare_dict_for_logging(self, log_data: Mapping[str, object]) -> Mapping[str, object]:
        """Convert `log_data` for `write`: flat, and without values that cannot be written."""

    @abstractmethod
    def finalize(self) -> None:
        """Close open files."""

    @abstractmethod
    def save_data(
        self,
        epoch: int,
        env_step: int,
        gradient_step: int = 0,
        save_checkpoint_fn: SaveFn | None = None,
        *,
        update_step: int | None = None,
    ) -> None:
        """Save a checkpoint with `save_checkpoint_fn` if it is due, and record the position of the training.

        `update_step` is Tianshou 2's name of the third argument.
        """

    @abstractmethod
    def restore_data(self) -> tuple[int, int, int]:
        """The position at the last checkpoint: epoch, env_step, gradient_step; (0, 0, 0) if there is none."""

    @staticmethod
    @abstractmethod
    def restore_logged_data(log_path: str) -> dict[str, Any]:
        """The data logged under `log_path`, as nested dicts of arrays."""

    def log_train_data(self, log_data: Mapping[str, object], step: int) -> None:
        """Log a collector's data about training, at `step` environment steps (the documented name)."""
        self._log(DataScope.TRAIN, "env_step", log_data, step, "train")

    def log_training_data(self, log_data: Mapping[str, object], step: int) -> None:
        """Log a collector's data about training, at `step` environment steps (Tianshou 2's name)."""
        self._log(DataScope.TRAINING, "env_step", log_data, step, "train")

    def log_test_data(self, log_data: Mapping[str, object], step: int) -> None:
        """Log a collector's data about an evaluation, at `step` environment steps."""
        self._log(DataScope.TEST, "env_step", log_data, step, "test")

    def log_update_data(self, log_data: Mapping[str, object], step: int) -> None:
        """Log the data of an update, at `step` (gradient steps; in Tianshou 2, update steps of the trainer)."""
        self._log(DataScope.UPDATE, "gradient_step" if generation() < 2 else "update_step", log_data, step, "update")

    def log_info_data(self, log_data: Mapping[str, object], step: int) -> None:
        """Log the global statistics of an epoch."""
        self._log(DataScope.INFO, "epoch", log_data, step, "info")

    def _log(self, scope: str, step_name: str, log_data: Mapping[str, object], step: int, kind: str) -> None:
        if self._is_due(kind, step):
            self.write(f"{scope}/{step_name}", step, self.prepare_dict_for_logging(log_data))

    def _is_due(self, kind: str, step: int) -> bool:
        """Whether a call is due. If so, it becomes the last due call."""
        last = f"last_log_{kind}_step"
        if step - getattr(self, last) < getattr(self, f"{kind}_interval"):
            return False
        setattr(self, last, step)
        return True


class LazyLogger(BaseLogger):
    """Does nothing; used if no logger was given. Accepts the documented arguments, or none."""

    def prepare_dict_for_logging(self, log_data: Mapping[str, object]) -> Mapping[str, object]:
        """`log_data` unchanged."""
        return log_data

    def write(self, step_type: str, step: int, data: Mapping[str, object]) -> None:
        """Do nothing."""

    def finalize(self) -> None:
        """Do nothing."""

    def save_data(
        self,
        epoch: int,
        env_step: int,
        gradient_step: int = 0,
        save_checkpoint_fn: SaveFn | None = None,
        *,
        update_step: int | None = None,
    ) -> None:
        """Do nothing."""

    def restore_data(self) -> tuple[int, int, int]:
        """(0, 0, 0)."""
        return 0, 0, 0

    @staticmethod
    def restore_logged_data(log_path: str) -> dict[str, Any]:
        """{}."""
        del log_path
        return {}


def _register_with_tianshou() -> None:
    """Make `isinstance(logger, tianshou.utils.BaseLogger)` true if Tianshou is imported."""
    for module in ("tianshou.utils.logger.logger_base", "tianshou.utils.logger.base"):
        theirs = getattr(sys.modules.get(module), "BaseLogger", None)
        if theirs is not None and not issubclass(BaseLogger, theirs):
            theirs.register(BaseLogger)
