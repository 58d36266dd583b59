"""Stable-Baselines3 with a rollbook run.

    from rollbook.adapters.sb3 import RollbookCallback

    model.learn(100_000, callback=RollbookCallback())

or, for the logger only:

    from rollbook.adapters.sb3 import configure        # was: from stable_baselines3.common.logger import configure

    model.set_logger(configure("logs", ["stdout", "csv", "tensorboard"]))
"""

from __future__ import annotations

from rollbook.adapters import _versions
from rollbook.system.lazy import attach

SUPPORTED = ">=2.3,<3"
"""The versions whose logger and callbacks this adapter supports."""

_installed = _versions.installed("stable-baselines3")
if _installed is not None:
    _versions.check("stable-baselines3", _installed, SUPPORTED)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.adapters.sb3.callback import RollbookCallback
    from rollbook.adapters.sb3.monitor import write_monitor
    from rollbook.adapters.sb3.output import RollbookOutputFormat, configure

__getattr__, __dir__ = attach(
    __name__,
    {
        f"{__name__}.callback": ("RollbookCallback",),
        f"{__name__}.monitor": ("write_monitor",),
        f"{__name__}.output": ("RollbookOutputFormat", "configure"),
    },
)

__all__ = ["SUPPORTED", "RollbookCallback", "RollbookOutputFormat", "configure", "write_monitor"]
