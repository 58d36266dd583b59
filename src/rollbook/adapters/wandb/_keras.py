"""`wandb.integration.keras`: callbacks of Keras that log metrics, models and tables of predictions."""

from __future__ import annotations

import os

from rollbook.adapters.wandb._artifacts import Artifact
from rollbook.adapters.wandb._current import Error, current, termlog
from rollbook.adapters.wandb._data import Table
from rollbook.system.guard import handled_by
from rollbook.system.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    _Callback: Any = object
    _ModelCheckpoint: Any = object
else:
    _callbacks = need("keras", extra="keras", why="wandb.integration.keras").callbacks
    _Callback, _ModelCheckpoint = _callbacks.Callback, _callbacks.ModelCheckpoint


def _open(name: str) -> Any:
    """The current run.

    Raises:
      Error: there is none.
    """
    run = current()
    if run is None:
        raise Error(f"You must call wandb.init() before {name}()")
    return run


class WandbMetricsLogger(_Callback):  # type: ignore[misc]
    """Logs `epoch/<name>` at the end of each epoch, or `batch/<name>` of each n-th batch, with the learning rate.

    Its hooks are called by Keras. Arguments as in `wandb.integration.keras.WandbMetricsLogger`.

    Args:
      log_freq: "epoch", "batch", or the number of batches from one row to the next.
      initial_global_step: batches before this training, for a schedule of the learning rate.
    Raises:
      Error: `wandb.init` was not called.
    """

    def __init__(self, log_freq: str | int = "epoch", initial_global_step: int = 0) -> None:
        super().__init__()
        of, axis = ("epoch", "epoch/epoch") if log_freq == "epoch" else ("batch", "batch/batch_step")
        _open("WandbMetricsLogger").define_metric(f"{of}/*", step_metric=axis)
        self.log_freq = None if log_freq == "epoch" else 1 if log_freq == "batch" else int(log_freq)
        self.global_batch, self.global_step = 0, initial_global_step

    def _log(self, of: str, counter: str, at: int, logs: dict[str, Any] | None) -> None:
        row = {f"{of}/{name}": value for name, value in (logs or {}).items()}
        rate = self.model.optimizer.learning_rate
        with handled_by(
            lambda err: termlog(f"Unable to log learning rate: {err}", repeat=False)
        ):  # a program's schedule
            row[f"{of}/learning_rate"] = float(rate(self.global_step) if callable(rate) else rate)
        run = current()
        if run is not None:
            run.log({**row, f"{of}/{counter}": at})

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Log the epoch; as in wandb, also in addition to rows of batches."""
        self._log("epoch", "epoch", epoch, logs)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Log a batch, if batches are asked for."""
        self.global_step += 1
        if self.log_freq is not None and batch % self.log_freq == 0:
            self._log("batch", "batch_step", self.global_batch, logs)
            self.global_batch += self.log_freq


class WandbModelCheckpoint(_ModelCheckpoint):  # type: ignore[misc]
    """Keras' ModelCheckpoint; each saved model is a version of the artifact `run_<id>_model`.

    Arguments as in `wandb.integration.keras.WandbModelCheckpoint`.

    Raises:
      Error: `wandb.init` was not called.
    """

    def __init__(self, filepath: str | os.PathLike[str], **options: Any) -> None:
        _open("WandbModelCheckpoint")
        super().__init__(filepath=os.fspath(filepath), **options)

    def _save_model(self, epoch: int, batch: int | None, logs: Any) -> None:
        super()._save_model(epoch=epoch, batch=batch, logs=logs)
        path, run = self._get_file_path(epoch=epoch, batch=batch, logs=logs), current()
        if run is None or not os.path.exists(path):  # save_best_only, and this one is not
            return
        model = Artifact(f"run_{run.id}_model", type="model")
        (model.add_dir if os.path.isdir(path) else model.add_file)(path)
        run.log_artifact(model, aliases=["latest", f"epoch_{epoch}" + (f"_batch_{batch}" if batch is not None else "")])


class WandbEvalCallback(_Callback):  # type: ignore[misc]
    """Base of callbacks that log tables: `add_ground_truth` fills one at the start, `add_model_predictions` each epoch.

    Arguments as in `wandb.integration.keras.WandbEvalCallback`.

    Raises:
      Error: `wandb.init` was not called.
    """

    def __init__(self, data_table_columns: list[str], pred_table_columns: list[str]) -> None:
        super().__init__()
        _open("WandbEvalCallback")
        self.data_table_columns, self.pred_table_columns = data_table_columns, pred_table_columns

    def add_ground_truth(self, logs: dict[str, float] | None = None) -> None:
        """Add rows to `self.data_table`; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__}.add_ground_truth")

    def add_model_predictions(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Add rows to `self.pred_table`; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__}.add_model_predictions")

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        """Log the table of the data."""
        self.data_table = self.data_table_ref = Table(columns=self.data_table_columns)
        self.add_ground_truth(logs)
        self._log_table("val", "dataset", "val_data", self.data_table, ())

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Log the table of the predictions."""
        self.pred_table = Table(columns=self.pred_table_columns)
        self.add_model_predictions(epoch, logs)
        self._log_table(
            f"run_{_open(type(self).__name__).id}_pred", "evaluation", "eval_data", self.pred_table, ("latest",)
        )

    def _log_table(self, name: str, kind: str, table_name: str, table: Table, aliases: Iterable[str]) -> None:
        held = Artifact(name, type=kind)
        held.add(table, table_name)
        _open(type(self).__name__).log_artifact(held, aliases=list(aliases))
