"""MRL: its log and the related callbacks, over a rollbook run.

    from rollbook.adapters.mrl import *         # instead of: from mrl.train.log import *

    env = Environment(agent, rewards=[...], log=Log(run))         # MRL's own Environment
    env.fit(200, 90, 50, 4)

The star imports the same names as MRL's, so that only MRL's log is replaced. If MRL is not installed,
`from rollbook.adapters.mrl.environment import *` adds a small Environment, Callback, BatchState and `to_device`.
torch, pandas and matplotlib are needed only by the functions that use them.
"""

from __future__ import annotations

from rollbook.adapters import _versions
from rollbook.adapters.mrl.batch_state import BatchState as BatchState
from rollbook.adapters.mrl.batch_state import SettrDict as SettrDict
from rollbook.adapters.mrl.callback import Callback as Callback
from rollbook.adapters.mrl.environment import Environment as Environment
from rollbook.adapters.mrl.events import Event as Event
from rollbook.adapters.mrl.events import Events as Events
from rollbook.adapters.mrl.log import Log, log_to_df
from rollbook.adapters.mrl.stats import (
    MaxCallback,
    MeanCallback,
    MinCallback,
    PercentileCallback,
    SaveLogDF,
    StatsCallback,
)
from rollbook.adapters.mrl.tensors import to_device as to_device
from rollbook.system.lazy import attach

SUPPORTED = ">=0.1,<0.2"
"""The versions of mrl-pypi whose Environment calls a log in the way this log expects."""

_installed = _versions.installed("mrl-pypi")
if _installed is not None:
    _versions.check("mrl-pypi", _installed, SUPPORTED)

__all__ = [
    "Log",
    "MaxCallback",
    "MeanCallback",
    "MinCallback",
    "PercentileCallback",
    "SaveLogDF",
    "StatsCallback",
    "log_to_df",
]
"""The names of `from mrl.train.log import *`, so that ours replaces the log and nothing else of MRL."""


def _torch(name: str) -> object:
    from rollbook.system.optional import need

    return need(name, extra="mrl", why="this example of MRL", also="torch")


__getattr__, __dir__ = attach(__name__, {}, made={"torch": _torch})
