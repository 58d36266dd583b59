"""OpenRLHF with a rollbook run: a tracker with the methods of its `WandbLogger` and `TensorboardLogger`.

    trainer = PPOTrainer(...)             # or PPOTrainerAsync: the object that holds wandb_logger
    rollbook.adapters.openrlhf.join(trainer)
    trainer.fit()

Written against OpenRLHF 0.11.2 (openrlhf/utils/logging_utils.py, openrlhf/trainer/ppo_trainer.py). The trainer is a Ray
actor, so call `join` in its process. OpenRLHF hands one generated sample a step to its trackers; the others are not
seen here.
"""

from __future__ import annotations

from rollbook.adapters._run import JoinedRun, harmless
from rollbook.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["RollbookLogger", "join"]


class RollbookLogger:
    """`log_train`, `log_eval` and `close`, as OpenRLHF calls them; writes to a run.

    Args:
      args: OpenRLHF's arguments; the configuration of the run. Its `logger.wandb` names a run that is opened here.
      run: a run or a scope of a run. None uses the current run, or opens one.
      also: another tracker, which gets every call first.
      run_options: arguments of `rollbook.init`.
    """

    def __init__(self, args: Any = None, run: object = None, *, also: Any = None, **run_options: object) -> None:
        named = getattr(getattr(args, "logger", None), "wandb", None)
        project, name = getattr(named, "project", None), getattr(named, "run_name", None)
        self._joined = JoinedRun(
            "RollbookLogger", run, str(project or "openrlhf"), str(name or "train"), run_options, host="openrlhf"
        )
        self.run, self._also = self._joined.run, also
        if args is not None:
            self._joined.keep("config", "keeping the configuration", self._config, args)

    def _config(self, args: Any) -> None:
        self._joined.settings(_plain(args), getattr(args, "seed", None))

    def log_train(self, global_step: int, logs_dict: Mapping[str, Any]) -> None:
        """One row under `train/<key>`; `generated_samples` (text, reward) is a rollout.

        Args:
          global_step: OpenRLHF's step; the clocks `step` and `gradient_step`.
          logs_dict: native key -> number. None is left out.
        """
        if self._also is not None:
            self._also.log_train(global_step, logs_dict)
        self._train(global_step, logs_dict)

    @harmless
    def _train(self, global_step: int, logs_dict: Mapping[str, Any]) -> None:
        numbers = dict(logs_dict)
        sample = numbers.pop("generated_samples", None)
        if sample:
            self._joined.keep("openrlhf_sample", "keeping a generated sample", self._sample, int(global_step), sample)
        self._log("train", global_step, numbers)

    def log_eval(self, global_step: int, logs_dict: Mapping[str, Any]) -> None:
        """One row under `eval/<key>`.

        Args:
          global_step: OpenRLHF's step; the clocks `step` and `gradient_step`.
          logs_dict: native key -> number. None is left out.
        """
        if self._also is not None:
            self._also.log_eval(global_step, logs_dict)
        self._log("eval", global_step, logs_dict)

    def close(self) -> None:
        """End the other tracker, and the run if it was opened here."""
        if self._also is not None:
            self._also.close()
        self._joined.finish()

    @harmless
    def _log(self, scope: str, step: int, numbers: Mapping[str, Any]) -> None:
        row = {f"{scope}/{name}": value for name, value in numbers.items() if value is not None}
        self._joined.log(row, step=int(step), gradient_step=int(step))

    def _sample(self, step: int, sample: Any) -> None:
        text, reward = sample
        self._joined.run.run.rollouts.log_many(
            completions=[text], reward=[float(reward)], mode="train", gradient_step=step, step=step
        )


def join(trainer: Any, run: object = None, **run_options: object) -> RollbookLogger:
    """Let a trainer of OpenRLHF log to a run, too. Its own trackers keep getting every call.

    Args:
      trainer: an object with `wandb_logger` and `tensorboard_logger`.
      run, run_options: see `RollbookLogger`.
    Raises:
      BadInput: the trainer has no such attribute.
    """
    if not hasattr(trainer, "wandb_logger"):
        raise BadInput(
            f"join({type(trainer).__name__}): it has no attribute wandb_logger, which the trainers of OpenRLHF have. "
            "Call join in the process of the trainer, with the object itself and not with its Ray handle"
        )
    own = RollbookLogger(getattr(trainer, "args", None), run, also=trainer.wandb_logger, **run_options)
    trainer.wandb_logger = own
    return own


def _plain(value: Any) -> Any:
    """Arguments as plain data: nested namespaces become dicts."""
    held = value if isinstance(value, dict) else getattr(value, "__dict__", None)
    return {str(name): _plain(cell) for name, cell in held.items()} if isinstance(held, dict) else value
