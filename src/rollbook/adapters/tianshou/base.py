"""What a Tianshou trainer expects of a logger: `BaseLogger`, and `LazyLogger`, which keeps nothing.

The names of the documented API (`log_train_data`, `train_interval`) and those of Tianshou 2 (`log_training_data`,
`training_interval`) are the same things here.
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
"""save_checkpoint_fn(epoch, env_step, gradient_step) -> path of what it saved."""


class DataScope(StrEnum):
    """The four kinds of data. `TRAINING` is what Tianshou 2 calls the first of them."""

    TRAIN = "train"
    TEST = "test"
    UPDATE = "update"
    INFO = "info"
    TRAINING = nonmember("training")


def generation() -> int:
    """The major version of the Tianshou this process has imported; 1, the documented one, if it has none."""
    tianshou = sys.modules.get("tianshou")
    major = str(getattr(tianshou, "__version__", "1")).partition(".")[0]
    return int(major) if major.isdigit() else 1


class BaseLogger(ABC):
    """The base class of loggers: thins what it is given by four intervals and hands the rest to `write`.

    A call is due if its step is at least the interval away from that of the last one that was; the last step is -1 at
    first. So with an interval of 1,000 the first due step is 999, and with 1 every new step is due once.

    Args:
      train_interval, training_interval, test_interval: in environment steps; the first two are one by two names.
      update_interval: in update steps of the trainer.
      info_interval: in epochs.
      exclude_arrays: leave arrays out of what is logged.
      save_interval: in epochs; None never saves.
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
        if not isinstance(exclude_arrays, bool):  # by position, as in Tianshou 2: save_interval, exclude_arrays
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
        """`log_data` as `write` takes it: flat, and without what cannot be written."""

    @abstractmethod
    def finalize(self) -> None:
        """Close what is open."""

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
        """Save a checkpoint with `save_checkpoint_fn`, if it is time, and keep where the training stands.

        `update_step` is Tianshou 2's name of the third argument.
        """

    @abstractmethod
    def restore_data(self) -> tuple[int, int, int]:
        """Where training stood at the last checkpoint: epoch, env_step, gradient_step; (0, 0, 0) if there is none."""

    @staticmethod
    @abstractmethod
    def restore_logged_data(log_path: str) -> dict[str, Any]:
        """What was logged under `log_path`, as nested dicts of arrays."""

    def log_train_data(self, log_data: Mapping[str, object], step: int) -> None:
        """Log what a collector reported about training, at `step` environment steps (the documented name)."""
        self._log(DataScope.TRAIN, "env_step", log_data, step, "train")

    def log_training_data(self, log_data: Mapping[str, object], step: int) -> None:
        """Log what a collector reported about training, at `step` environment steps (Tianshou 2's name)."""
        self._log(DataScope.TRAINING, "env_step", log_data, step, "train")

    def log_test_data(self, log_data: Mapping[str, object], step: int) -> None:
        """Log what a collector reported about an evaluation, at `step` environment steps."""
        self._log(DataScope.TEST, "env_step", log_data, step, "test")

    def log_update_data(self, log_data: Mapping[str, object], step: int) -> None:
        """Log what an update reported, at `step` (gradient steps; in Tianshou 2, update steps of the trainer)."""
        self._log(DataScope.UPDATE, "gradient_step" if generation() < 2 else "update_step", log_data, step, "update")

    def log_info_data(self, log_data: Mapping[str, object], step: int) -> None:
        """Log the global statistics of an epoch."""
        self._log(DataScope.INFO, "epoch", log_data, step, "info")

    def _log(self, scope: str, step_name: str, log_data: Mapping[str, object], step: int, kind: str) -> None:
        if self._is_due(kind, step):
            self.write(f"{scope}/{step_name}", step, self.prepare_dict_for_logging(log_data))

    def _is_due(self, kind: str, step: int) -> bool:
        """Whether a call is due; if so, it is the last one from now on."""
        last = f"last_log_{kind}_step"
        if step - getattr(self, last) < getattr(self, f"{kind}_interval"):
            return False
        setattr(self, last, step)
        return True


class LazyLogger(BaseLogger):
    """Keeps nothing; stands where no logger was given. Takes the documented arguments, or none."""

    def prepare_dict_for_logging(self, log_data: Mapping[str, object]) -> Mapping[str, object]:
        """`log_data` as it is."""
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
    """Let `isinstance(logger, tianshou.utils.BaseLogger)` hold where Tianshou is imported."""
    for module in ("tianshou.utils.logger.logger_base", "tianshou.utils.logger.base"):
        theirs = getattr(sys.modules.get(module), "BaseLogger", None)
        if theirs is not None and not issubclass(BaseLogger, theirs):
            theirs.register(BaseLogger)
