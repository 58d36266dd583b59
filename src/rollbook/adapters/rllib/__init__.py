"""RLlib and Ray Tune: episodes with the environment's own data, every result, one run per trial.

    from rollbook.adapters import rllib

    config = PPOConfig().environment(Env).callbacks(rllib.callbacks(dir="runs"))       # inside the trial
    tune.Tuner("PPO", param_space=config, run_config=tune.RunConfig(callbacks=[rllib.RollbookTune(dir="runs")])).fit()

A plain `algo.train()` loop only needs the first line. Works with the new API stack of Ray 2.60. Ray is imported, and
its version checked, at the first use of a name that needs it.
"""

from __future__ import annotations

from rollbook.adapters.rllib.legacy import Logger, RollbookLogger, dict_multiple_get
from rollbook.adapters.rllib.walk import Walker, flatten_result
from rollbook.system.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.adapters.rllib.callback import RollbookCallback, callbacks
    from rollbook.adapters.rllib.tune import OldLoggers, RollbookTune

__all__ = [
    "Logger",
    "OldLoggers",
    "RollbookCallback",
    "RollbookLogger",
    "RollbookTune",
    "Walker",
    "callbacks",
    "dict_multiple_get",
    "flatten_result",
]

SUPPORTED = ">=2.60,<2.61"
"""The releases of Ray that this adapter supports and is tested with."""


def _needs_ray(name: str) -> None:
    """Raise MissingExtra (with the pip command) if Ray is not installed, UnsupportedVersion for another version."""
    from rollbook.adapters._versions import require

    require("ray", SUPPORTED, extra="rllib", why=f"rollbook.adapters.rllib.{name}")


__getattr__, __dir__ = attach(
    __name__,
    {f"{__name__}.callback": ("RollbookCallback", "callbacks"), f"{__name__}.tune": ("OldLoggers", "RollbookTune")},
    before=_needs_ray,
)
