"""PufferLib with a rollbook run: a logger for `train` and `PuffeRL`.

pufferl.train("puffer_breakout", args=args, logger=RollbookLogger(project="breakout", config=args))
"""

from __future__ import annotations

from rollbook.adapters._run import JoinedRun, harmless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["RollbookLogger"]


class RollbookLogger:
    """A logger with the methods that PufferLib uses: `run_id`, `log`, `close`, `download`.

    Args:
      run: a run or a scope of a run. None uses the current run, or opens one.
      config: the result of `load_config`; its seed becomes the run's.
      run_options: arguments of `rollbook.init`. If any is given, a new run is opened instead of using the current one.
        Default of `project`: "pufferlib"; of `name`: the environment's.
    """

    def __init__(self, run: object = None, config: Mapping[str, Any] | None = None, **run_options: Any) -> None:
        about = dict(config or {})
        self._joined = JoinedRun(
            "RollbookLogger", run, "pufferlib", str(about.get("env_name", "puffer")), run_options, host="pufferlib"
        )
        self.run = self._joined.run
        self.run_id = str(self.run.run.id) if self.run is not None else "none"
        self._last: str | None = None
        if about:
            train: Any = about.get("train")
            self._joined.settings(about, train.get("seed") if hasattr(train, "get") else about.get("seed"))

    @harmless
    def log(self, logs: Mapping[str, object], step: int) -> None:
        """Log one row under the native keys. `step` counts the steps of all agents and is kept as `env_step`.

        Args:
          logs: native key -> number. A whole `epoch` becomes the clock of that name, too.
          step: steps of all agents so far.
        """
        epoch = logs.get("epoch")
        self._joined.log(dict(logs), env_step=int(step), epoch=epoch if isinstance(epoch, int) else None)

    @harmless
    def close(self, model_path: str | None = None) -> None:
        """Register the model, and finish the run if it was opened here.

        Args:
          model_path: the model's file, which stays where it is. None: no model.
        """
        if model_path:
            self._last = str(model_path)
            self._joined.checkpoint(self._last, through="env_step")
        self._joined.finish()

    def download(self) -> str | None:
        """The path of the run's model. Nothing is downloaded: it was never uploaded."""
        return self._last
