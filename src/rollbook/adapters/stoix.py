"""Stoix and Mava with a rollbook run: a logger, named in the configuration.

# configs/logger/…yaml, below `loggers:`
rollbook:
  _target_: rollbook.adapters.stoix.RollbookLogger
  enabled: true
  project: cartpole
"""

from __future__ import annotations

import os

from rollbook.adapters._run import JoinedRun, harmless
from rollbook.values import flatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["RollbookLogger"]


class RollbookLogger:
    """The methods that Stoix and Mava call on a logger; writes to a run.

    Args:
      base_exp_path, unique_token, system_name: Stoix's. `system_name` names a run that is opened here. Mava passes its
        configuration and `unique_token` instead.
      run: a run or a scope of a run. None uses the current run, or opens one.
      run_options: arguments of `rollbook.init`. If any is given, a new run is opened instead of using the current one.
        Default of project: the last part of `base_exp_path`.
    """

    def __init__(
        self,
        base_exp_path: Any = "stoix",
        unique_token: str = "",
        system_name: str = "run",
        run: object = None,
        **run_options: Any,
    ) -> None:
        run_options.pop("enabled", None)
        is_path = isinstance(base_exp_path, (str, os.PathLike))
        project = os.path.basename(os.path.normpath(base_exp_path)) if is_path else "mava"
        if not is_path and hasattr(base_exp_path, "keys"):
            system_name = str(_inside(base_exp_path, "logger", "system_name") or system_name)
        self._joined = JoinedRun("RollbookLogger", run, project, system_name, run_options, host="stoix")
        self.run = self._joined.run
        if not is_path and hasattr(base_exp_path, "keys"):
            self.log_config(base_exp_path)

    def log_config(self, config: Any) -> None:
        """Add the configuration to the run's. The seed that it names, such as `arch.seed`, becomes the run's seed.

        Args:
          config: Stoix's or Mava's configuration: a dict, or an OmegaConf mapping.
        """
        self._joined.keep("config", "keeping the configuration", self._config, config)

    def _config(self, config: Any) -> None:
        self._joined.settings({str(name): config[name] for name in config})

    @harmless
    def log_stat(self, key: str, value: float, step: int, eval_step: int, event: Any) -> None:
        """Log one number.

        Args:
          key: the native key.
          value: the number.
          step: environment steps so far; the clock `env_step`.
          eval_step: evaluations so far; the clock `epoch`.
          event: the `LogEvent`, or its word, which precedes the key.
        """
        self.log_dict({key: value}, step, eval_step, event)

    @harmless
    def log_dict(self, data: Mapping[str, object], step: int, eval_step: int, event: Any) -> None:
        """Log one row as `<event>/<key>`.

        Args:
          data: native key -> number; nested dicts are joined with "/".
          step: environment steps so far; the clock `env_step`.
          eval_step: evaluations so far; the clock `epoch`.
          event: the `LogEvent`, or its word: actor, trainer, evaluator, absolute, misc.
        """
        scope = getattr(event, "value", event)
        row = {f"{scope}/{key}": value for key, value in flatten(data)}
        self._joined.log(row, env_step=int(step), epoch=int(eval_step))

    def stop(self) -> None:
        """Finish the run if it was opened here."""
        self._joined.finish()


def _inside(config: Any, part: str, name: str) -> Any:
    """`config.<part>.<name>`; None if it is not there."""
    inner = config.get(part)
    return inner.get(name) if hasattr(inner, "get") else None
