"""MRL: its log, callbacks and a small environment, over a rollbook run.

    from rollbook.adapters.mrl import *         # instead of: from mrl.train.log import *

    env = Environment(agent, rewards=[...], log=Log(run))         # MRL's own Environment takes this Log, too
    env.fit(200, 90, 50, 4)

Works with MRL 0.1.5 and without it; torch, pandas and matplotlib are needed only by what uses them.
"""

from __future__ import annotations

from typing import Any

from rollbook.adapters import _versions
from rollbook.adapters.mrl.batch_state import BatchState, SettrDict
from rollbook.adapters.mrl.callback import Callback
from rollbook.adapters.mrl.environment import Environment
from rollbook.adapters.mrl.events import Event, Events
from rollbook.adapters.mrl.log import Log, log_to_df
from rollbook.adapters.mrl.stats import (
    MaxCallback,
    MeanCallback,
    MinCallback,
    PercentileCallback,
    SaveLogDF,
    StatsCallback,
)
from rollbook.adapters.mrl.tensors import HAS_TORCH, to_device

SUPPORTED = ">=0.1,<0.2"
"""The versions of mrl-pypi whose Environment calls a log as this log expects it."""

_installed = _versions.installed("mrl-pypi")
if _installed is not None:
    _versions.check("mrl-pypi", _installed, SUPPORTED)

__all__ = [
    "BatchState",
    "Callback",
    "Environment",
    "Event",
    "Events",
    "Log",
    "MaxCallback",
    "MeanCallback",
    "MinCallback",
    "PercentileCallback",
    "SaveLogDF",
    "SettrDict",
    "StatsCallback",
    "log_to_df",
    "to_device",
]

if HAS_TORCH:  # MRL's modules bring torch along, and its examples rely on it
    __all__ += ["torch"]


def __getattr__(name: str) -> Any:
    if name == "torch":
        from rollbook._optional import need

        return need("torch", extra="mrl", why="this example of MRL", also="torch")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
