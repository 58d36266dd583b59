"""LoggerFactory: for Tianshou's high-level experiments.

    experiment = DQNExperimentBuilder(...).with_logger_factory(LoggerFactory("cartpole")).build()

An experiment's folder points to its run: `RollbookLogger.restore_logged_data` accepts either.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rollbook.adapters._run import clean_name, is_opened_for
from rollbook.adapters.tianshou.book import RollbookLogger
from rollbook.adapters.tianshou.restore import POINTER


class LoggerFactory:
    """Opens a run per experiment and makes its logger. It holds plain data only, so it is pickled with the experiment.

    Args:
      project: of the runs. Default: the experiment's name.
      tensorboard: also write Tianshou's own event file into the experiment's folder.
      save_interval: epochs between checkpoints.
      run_options: further arguments of `rollbook.init`, e.g. {"dir": "runs", "tags": ["sweep"]}; `init` is its older
        name.
      init: the older name of `run_options`.
      options: further arguments of RollbookLogger: the intervals, exclude_arrays.
    """

    def __init__(
        self,
        project: str | None = None,
        *,
        tensorboard: bool = False,
        save_interval: int | None = 1,
        run_options: Mapping[str, object] | None = None,
        init: Mapping[str, object] | None = None,
        **options: Any,
    ) -> None:
        self.project, self.tensorboard, self.save_interval = project, tensorboard, save_interval
        self.init, self.options = {**(init or {}), **(run_options or {})}, options

    def create_logger(
        self,
        log_dir: str,
        experiment_name: str,
        run_id: str | None = None,
        config_dict: dict[str, Any] | None = None,
    ) -> RollbookLogger:
        """The logger of an experiment.

        Args:
          log_dir: Tianshou's folder for it; a small file there points to the run.
          experiment_name: the run's name; characters that are not allowed in folder names become "-".
          run_id: continue the run with this id, or make one with it.
          config_dict: the run's configuration.
        """
        from rollbook import init

        name = clean_name(experiment_name, "experiment")
        arguments: dict[str, Any] = {
            "project": self.project or name,
            "name": name,
            "config": config_dict,
            "seed": _seed_of(log_dir, config_dict),
            "run_id": run_id,
            "resume": "never" if run_id is None else "allow",
            **self.init,
        }
        run = init(**arguments)
        os.makedirs(log_dir, exist_ok=True)
        where = os.path.relpath(run.folder, log_dir)
        Path(log_dir, POINTER).write_text(json.dumps({"folder": where, "id": run.id}) + "\n", encoding="utf-8")
        writer = self._writer(log_dir) if self.tensorboard else None
        logger = RollbookLogger(run, save_interval=self.save_interval, writer=writer, finish=True, **self.options)
        is_opened_for(run, logger, "tianshou.LoggerFactory", "tianshou", arguments=arguments)
        return logger

    def get_logger_class(self) -> type[RollbookLogger]:
        """RollbookLogger."""
        return RollbookLogger

    @staticmethod
    def _writer(log_dir: str) -> Any:
        from rollbook.system.optional import need

        why = "Tianshou's event file"
        need("tensorboard", extra="tensorboard", why=why)  # torch's writer needs only this package
        return need("torch.utils.tensorboard", extra="tensorboard", why=why, also="torch").SummaryWriter(log_dir)

    def __repr__(self) -> str:
        inside = {"project": self.project, "save_interval": self.save_interval, "tensorboard": self.tensorboard}
        return f"LoggerFactory({', '.join(f'{k}={v!r}' for k, v in {**inside, **self.options}.items())})"


def _seed_of(log_dir: str, config: Mapping[str, Any] | None) -> int | None:
    """The experiment's seed: from its configuration, or from the name of its folder, `exp_seed=42`."""
    seed = (config or {}).get("experiment_config", {}).get("seed") if config else None
    if isinstance(seed, int):
        return seed
    tail = os.path.basename(os.path.normpath(log_dir)).rpartition("seed=")[2]
    return int(tail) if tail.isdigit() else None
