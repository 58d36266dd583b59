"""rsl_rl with a rollbook run: a log writer, named in the training's configuration.

    train_cfg["logger"] = {
        "class_name": "rollbook.adapters.rsl_rl:RollbookWriter",
        "project": "anymal",
        "seed": 1,
    }
    OnPolicyRunner(env, train_cfg, log_dir="logs").learn(1500)

rsl_rl has this hook since 5.4. It also serves the projects built on rsl_rl: Isaac Lab, MuJoCo Playground, mjlab.
"""

from __future__ import annotations

import os

from rollbook.adapters._run import JoinedRun, harmless
from rollbook.system.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    class _Base:
        pass
else:
    _Base = need("rsl_rl.utils.log_writer", extra="rsl_rl", why="RollbookWriter").LogWriter

__all__ = ["RollbookWriter"]

_SECONDS = "/time"
"""How rsl_rl ends the tags of numbers that it writes a second time, with seconds as their step."""


class RollbookWriter(_Base):
    """A log writer of rsl_rl that writes to a run. rsl_rl makes one in the process of rank 0 only.

    Args:
      log_dir: rsl_rl's own folder. Defaults: its parent's name is the project, its own name the run's.
      run: a run or a scope of a run. None uses the current run, or opens one.
      run_options: arguments of `rollbook.init`. If any is given, a new run is opened instead of using the current one.
    Raises:
      BadInput: `run` has another type, or `rollbook.init` has no such option.
    """

    def __init__(self, log_dir: str | os.PathLike[str], run: object = None, **run_options: Any) -> None:
        super().__init__()
        folder = os.path.abspath(os.fspath(log_dir))
        parent, name = os.path.split(folder)
        self._joined = JoinedRun("RollbookWriter", run, os.path.basename(parent), name, run_options, host="rsl_rl")
        self.run = self._joined.run

    @harmless
    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        """Log one number under its native tag, with rsl_rl's iteration as the clock `step`.

        A tag that ends with "/time" is rsl_rl's second copy of a number, at seconds instead of the iteration. Every row
        already has its time, so the copy is left out.

        Args:
          tag: the native key.
          scalar_value: a number or a tensor of one element.
          global_step: rsl_rl's iteration; seconds for tags that end with "/time".
        """
        if not tag.endswith(_SECONDS):
            self._joined.log({tag: scalar_value}, step=global_step)

    @harmless
    def store_config(self, env_cfg: Any, train_cfg: Mapping[str, object]) -> None:
        """Store both configurations in the run's config, as `env` and `train`.

        Args:
          env_cfg: the environment's configuration: a dict, or an object with `to_dict`. None is left out.
          train_cfg: the training's configuration; its `seed` becomes the seed of a run that was opened here without
            one.
        """
        env = env_cfg.to_dict() if callable(getattr(env_cfg, "to_dict", None)) else env_cfg
        settings = {"env": env, "train": train_cfg}
        seed = train_cfg.get("seed") if isinstance(train_cfg, dict) else None
        self._joined.settings({name: value for name, value in settings.items() if value is not None}, seed)

    @harmless
    def save_model(self, model_path: str, it: int) -> None:
        """Register the checkpoint without moving it.

        Args:
          model_path: the file that rsl_rl saved. A missing file is ignored.
          it: rsl_rl's iteration; the clock `step`.
        """
        self._joined.checkpoint(model_path, step=it)

    @harmless
    def stop(self) -> None:
        """Finish the run if it was opened here. rsl_rl calls this when `learn` ends."""
        self._joined.finish()
