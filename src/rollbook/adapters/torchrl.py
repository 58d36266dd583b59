"""TorchRL with a rollbook run: a logger. After `register()`, `get_logger` and BenchMARL know it by name.

logger = RollbookLogger("ppo", project="cartpole", seed=1)
logger.log_metrics({"train/reward": 1.0}, step=1_000)

register()                                             # BenchMARL: ExperimentConfig(loggers=["rollbook"])
"""

from __future__ import annotations

import os
import sys

from rollbook.adapters._run import JoinedRun, harmless
from rollbook.system.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    class _Base:
        def __init__(self, exp_name: str, log_dir: str) -> None: ...
else:
    _Base = need("torchrl.record.loggers.common", extra="torchrl", why="RollbookLogger").Logger

__all__ = ["RollbookLogger", "register"]


class RollbookLogger(_Base):
    """A logger of TorchRL that writes to a run; `logger.experiment` is the run.

    Args:
      exp_name: names a run that is opened here.
      log_dir: its last part is the default project; nothing is written there.
      run: a run or a scope of a run. None uses the current run, or opens one.
      run_options: arguments of `rollbook.init`. If any is given, a new run is opened instead of using the current one.
    """

    def __init__(
        self, exp_name: str, log_dir: str | os.PathLike[str] | None = None, run: object = None, **run_options: Any
    ) -> None:
        folder = os.path.abspath(os.fspath(log_dir)) if log_dir else os.getcwd()
        self._joined = JoinedRun(
            "RollbookLogger", run, os.path.basename(folder) or "torchrl", exp_name, run_options, host="torchrl"
        )
        self.run = self._joined.run
        super().__init__(exp_name=exp_name, log_dir=folder)

    def _create_experiment(self) -> Any:
        return self.run

    @harmless
    def log_scalar(self, name: str, value: float, step: int | None = None) -> None:
        """Log one number, with the clock `step`.

        Args:
          name: the native key.
          value: the number.
          step: TorchRL's step; the clock `step`. None: it keeps its reading.
        """
        self._joined.log({name: value}, step=step)

    def log_metrics(self, metrics: Any, step: int | None = None, *, keys_sep: str = "/") -> dict[str, Any]:
        """Log one row under the native keys.

        Args:
          metrics: a dict, or a TensorDict, whose nested keys are joined.
          step: as in `log_scalar`.
          keys_sep: between the parts of a nested key.
        Returns:
          The numbers, as TorchRL's own loggers do; {} if they cannot be read.
        """
        row: dict[str, Any] = {}
        self._joined.bill.guard("row", "keeping metrics", self._metrics, metrics, step, keys_sep, row)
        return row

    def _metrics(self, metrics: Any, step: int | None, keys_sep: str, row: dict[str, Any]) -> None:
        if hasattr(metrics, "flatten_keys"):
            metrics = metrics.detach().to("cpu").flatten_keys(keys_sep).to_dict()
        row.update({str(name): _plain(value) for name, value in metrics.items()})
        self._joined.log(row, step=step)

    @harmless
    def log_video(self, name: str, video: Any, step: int | None = None, **kwargs: Any) -> None:
        """Log the first video of a batch.

        Args:
          name: the native key.
          video: a tensor [batch, frames, channels, height, width], or one without the batch.
          step: as in `log_scalar`.
          kwargs: `fps`, frames per second, default 6; others are not used.
        """
        at = {} if step is None else {"step": int(step)}
        self._joined.keep("video", "keeping a video", self._video, name, video, float(kwargs.get("fps", 6)), at)

    def _video(self, name: str, video: Any, fps: float, at: dict[str, int]) -> None:
        frames = video[0] if video.ndim == 5 else video
        from rollbook.adapters._pixels import as_uint8

        self.run.log_video(name, as_uint8(frames.permute(0, 2, 3, 1).cpu().numpy()), fps=fps, **at)

    @harmless
    def log_hparams(self, cfg: Any) -> None:
        """Add a dict or an OmegaConf configuration to the run's config. Its seed goes to a run that has none.

        Args:
          cfg: the configuration; `seed` at its top level is the seed.
        """
        self._joined.keep("config", "keeping hyperparameters", self._hparams, cfg)

    def _hparams(self, cfg: Any) -> None:
        if type(cfg).__module__.startswith("omegaconf"):
            from omegaconf import OmegaConf

            cfg = OmegaConf.to_container(cfg, resolve=True)
        self._joined.settings(dict(cfg))

    @harmless
    def log_histogram(self, name: str, data: Sequence[float], **kwargs: Any) -> None:
        """Log a distribution.

        Args:
          name: the native key.
          data: the raw values.
          kwargs: `step`, as in `log_scalar`; others are not used.
        """
        at = {"step": int(kwargs["step"])} if kwargs.get("step") is not None else {}
        self._joined.keep("histogram", "keeping a histogram", lambda: self.run.log_histogram(name, data, **at))

    @harmless
    def log_str(self, name: str, value: str, step: int | None = None) -> None:
        """Log a text.

        Args:
          name: the native key.
          value: the text.
          step: as in `log_scalar`.
        """
        at = {} if step is None else {"step": int(step)}
        self._joined.keep("text", "keeping a text", lambda: self.run.log_text(name, str(value), **at))

    def flush(self, timeout: float | None = None) -> None:
        """Does nothing: nothing is buffered here.

        Args:
          timeout: not used.
        """

    def shutdown(self, timeout: float | None = None) -> None:
        """Finish the run if it was opened here.

        Args:
          timeout: not used.
        """
        self._joined.finish()

    close = shutdown

    def __repr__(self) -> str:
        return f"RollbookLogger({getattr(getattr(self.run, 'run', None), 'id', None)!r})"


def _plain(value: Any) -> Any:
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        return value.item() if value.numel() == 1 else value.tolist()
    return value


def register() -> None:
    """Add "rollbook" as a name for `torchrl.record.loggers.get_logger`, also in modules that imported it already."""
    from torchrl.record.loggers import utils

    theirs = utils.get_logger
    if getattr(theirs, "of_rollbook", False):
        return

    def get_logger(logger_type: str, logger_name: str, experiment_name: str, **kwargs: Any) -> Any:
        """TorchRL's own function with one more name. Reads project and group from `rollbook_kwargs`, else
        `wandb_kwargs`.
        """
        if logger_type != "rollbook":
            return theirs(logger_type, logger_name, experiment_name, **kwargs)
        about = kwargs.get("rollbook_kwargs")
        if about is None:
            given = kwargs.get("wandb_kwargs", {})
            about = {name: given[name] for name in ("project", "group") if given.get(name)}
        return RollbookLogger(experiment_name, logger_name, **about)

    get_logger.of_rollbook = True  # type: ignore[attr-defined]
    for module in list(sys.modules.values()):
        if isinstance(names := getattr(module, "__dict__", None), dict) and names.get("get_logger") is theirs:
            module.get_logger = get_logger  # type: ignore[attr-defined]
