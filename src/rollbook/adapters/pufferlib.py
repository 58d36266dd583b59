"""PufferLib with a rollbook run: the logger that `train` and `PuffeRL` take.

pufferl.train("puffer_breakout", args=args, logger=RollbookLogger(project="breakout", config=args))
"""

from __future__ import annotations

from rollbook.adapters._door import Door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["RollbookLogger"]


class RollbookLogger:
    """What PufferLib asks of a logger: `run_id`, `log`, `close`, `download`.

    Args:
      run: a run or a scope of it; None takes the current run, or opens one.
      config: what `load_config` gave; its seed is the run's.
      run_options: arguments of `rollbook.init` for a run that is opened here; with any of them the current run is not
        taken. Default of project: "pufferlib", of name: the environment's.
    """

    def __init__(self, run: object = None, config: Mapping[str, Any] | None = None, **run_options: Any) -> None:
        about = dict(config or {})
        self._door = Door("RollbookLogger", run, "pufferlib", str(about.get("env_name", "puffer")), run_options)
        self.run = self._door.run
        self.run_id = str(self.run.run.id) if self.run is not None else "none"
        self._last: str | None = None
        if about:
            train: Any = about.get("train")
            self._door.settings(about, train.get("seed") if hasattr(train, "get") else about.get("seed"))

    def log(self, logs: Mapping[str, object], step: int) -> None:
        """One row under the native keys; `step` counts the steps of all agents, kept as `env_step`."""
        epoch = logs.get("epoch")
        self._door.log(dict(logs), env_step=int(step), epoch=epoch if isinstance(epoch, int) else None)

    def close(self, model_path: str | None = None) -> None:
        """Register the model and end the run if it was opened here."""
        if model_path:
            self._last = str(model_path)
            self._door.checkpoint(self._last, through="env_step")
        self._door.finish()

    def download(self) -> str | None:
        """Where the model of the run lies: nothing was sent anywhere."""
        return self._last
