"""A job of Hydra: which one it is, and its configuration.

Read only if the program has loaded Hydra itself. The facts are those of hydra-core 1.3, hydra/core/hydra_config.py and
hydra/conf/__init__.py. Hydra writes `.hydra/config.yaml` before it calls the program.
"""

from __future__ import annotations

import os
import sys

from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def hydra_job() -> dict[str, object] | None:
    """The Hydra job that this process runs; None outside of one.

    Returns:
      job (its name), overrides (those of the task), run_dir, and for a job of a multirun `num` and `sweep_dir`.
    """
    config = _hydra_config()
    if config is None:
        return None
    from rollbook.run.origin.provenance import command_line

    with tolerating(Exception):  # another version of Hydra
        facts: dict[str, object] = {
            "job": str(config.job.name),
            "overrides": command_line(list(config.overrides.task)),
            "run_dir": str(config.runtime.output_dir),
        }
        if str(config.mode).endswith("MULTIRUN"):
            facts |= {"num": int(config.job.num), "sweep_dir": str(config.sweep.dir)}
        return facts
    return None


def hydra_config() -> object:
    """The configuration of that job, as Hydra saved it, with its interpolations resolved; None without one."""
    config = _hydra_config()
    if config is None:
        return None
    for resolved in (True, False):  # a resolver of the program may need more than the configuration
        with tolerating(Exception):  # output_subdir=null: nothing was saved
            from omegaconf import OmegaConf

            file = os.path.join(str(config.runtime.output_dir), str(config.output_subdir), "config.yaml")
            return OmegaConf.to_container(OmegaConf.load(file), resolve=resolved)
    return None


def _hydra_config() -> Any:
    module: Any = sys.modules.get("hydra.core.hydra_config")
    with tolerating(Exception):
        if module is not None and module.HydraConfig.initialized():
            return module.HydraConfig.get()
    return None
