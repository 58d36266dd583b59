"""Keras with a rollbook run: a callback.

model.fit(x, y, epochs=10, callbacks=[RollbookCallback(project="digits", seed=1)])
"""

from __future__ import annotations

from rollbook.adapters._run import JoinedRun, harmless
from rollbook.system.guard import tolerating
from rollbook.system.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    class _Base:
        model: Any
        params: Any
else:
    _Base = need("keras", extra="keras", why="RollbookCallback").callbacks.Callback

__all__ = ["RollbookCallback"]


class RollbookCallback(_Base):
    """A callback of Keras 3 that writes to a run: a row per epoch and, with `every`, a row each `every` batches.

    Its hooks are called by Keras. Arguments as in `keras.callbacks.Callback`.

    Args:
      run: a run or a scope of a run. None uses the current run, or opens one when `fit` begins.
      every: also log the metrics of each n-th batch, as `batch/<name>`.
      run_options: arguments of `rollbook.init`. If any is given, a new run is opened instead of using the current one.
        Default of `project`: "keras"; of `name`: the model's.
    """

    def __init__(self, run: object = None, *, every: int | None = None, **run_options: Any) -> None:
        super().__init__()
        self.run: Any = None
        self._given, self._options, self._every = run, run_options, every
        self._joined: JoinedRun | None = None
        self._batches = self._fits = 0

    def on_train_begin(self, logs: Any = None) -> None:
        """Find or open the run; a second `fit` continues it. Keeps the arguments of `fit` and of the optimizer."""
        if self._joined is None:
            name = "fit"
            with tolerating(Exception):
                name = str(self.model.name or name)
            self._joined = JoinedRun(
                "RollbookCallback", self._given, "keras", name, self._options, host="keras", has_end=True
            )
        self._joined.go_on()
        self.run = self._joined.run
        self._joined.keep("config", "keeping the configuration", self._keep)

    def on_train_end(self, logs: Any = None) -> None:
        """Finish the run if it was opened here. One that a second `fit` continued stays open until the callback is
        gone: a program may call `fit` thousands of times.
        """
        self._fits += 1
        if self._joined is not None and self._fits == 1:
            self._joined.finish()

    def _keep(self) -> None:
        assert self._joined is not None
        optimizer = getattr(self.model, "optimizer", None)
        settings: dict[str, object] = {"fit": dict(self.params or {})}
        if optimizer is not None:
            settings["optimizer"] = optimizer.get_config()
        self._joined.settings(settings)

    @harmless
    def on_train_batch_end(self, batch: int, logs: Mapping[str, object] | None = None) -> None:
        """Count the batch: Keras' own number restarts with each epoch."""
        self._batches += 1
        if self._joined is not None and self._every and self._batches % self._every == 0:
            self._joined.log({f"batch/{name}": value for name, value in (logs or {}).items()}, step=self._batches)

    @harmless
    def on_epoch_end(self, epoch: int, logs: Mapping[str, object] | None = None) -> None:
        """Log one row under the native names, with the clocks `epoch` (from 1) and `step` (batches so far)."""
        if self._joined is not None:
            self._joined.log(dict(logs or {}), epoch=epoch + 1, step=self._batches)
