"""`wandb.integration.sb3.WandbCallback`: hyper-parameters, saved models and gradients of Stable-Baselines3."""

from __future__ import annotations

import os

from rollbook.adapters.wandb._current import Error, current, termlog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    _Base: Any = object
else:
    from stable_baselines3.common.callbacks import BaseCallback as _Base


class WandbCallback(_Base):  # type: ignore[misc]
    """Arguments as in `wandb.integration.sb3.WandbCallback`.

    Raises:
      Error: `wandb.init` was not called, or a frequency of saving without a folder.
    """

    def __init__(
        self,
        verbose: int = 0,
        model_save_path: str | None = None,
        model_save_freq: int = 0,
        gradient_save_freq: int = 0,
        log: str | None = "all",
    ) -> None:
        super().__init__(verbose)
        if current() is None:
            raise Error("You must call wandb.init() before WandbCallback()")
        if model_save_path is None and model_save_freq:
            raise Error("WandbCallback(model_save_freq=…) needs model_save_path, the folder of the models")
        if log not in ("gradients", "parameters", "all", None):
            termlog(f"WandbCallback(log={log!r}): there are gradients, parameters, all and None; all is taken")
            log = "all"
        self.model_save_path, self.model_save_freq = model_save_path, model_save_freq
        self.gradient_save_freq, self.log = gradient_save_freq, log

    def _init_callback(self) -> None:
        run = current()
        settings = {"algo": type(self.model).__name__}
        for name, value in vars(self.model).items():
            settings[name] = value if type(value) in (float, int, str) else str(value)
        run.config.setdefaults(settings)
        if self.gradient_save_freq > 0:
            run.watch(self.model.policy, log=self.log, log_freq=self.gradient_save_freq)

    def _on_step(self) -> bool:
        if self.model_save_freq > 0 and self.n_calls % self.model_save_freq == 0:
            self.save_model()
        return True

    def _on_training_end(self) -> None:
        if self.model_save_path is not None:
            self.save_model()

    def save_model(self) -> None:
        """Save the model into its folder and copy it into the run."""
        assert self.model_save_path is not None
        path = os.path.join(self.model_save_path, "model.zip")
        os.makedirs(self.model_save_path, exist_ok=True)
        self.model.save(path)
        run = current()
        if run is not None:
            run.save(path, base_path=self.model_save_path)
