"""Tianshou: a run as the `logger=` of its trainers, low-level and high-level.

    from rollbook.adapters.tianshou import RollbookLogger

    params = OffPolicyTrainerParams(..., logger=RollbookLogger(run), save_checkpoint_fn=save, resume_from_log=True)

Works with the trainers of Tianshou 1 and 2. `BaseLogger`, `LazyLogger` and `DataScope` have the documented interface,
for custom loggers. Tianshou itself is not imported.
"""

from __future__ import annotations

from rollbook.adapters import _versions
from rollbook.adapters.tianshou.base import BaseLogger, DataScope, LazyLogger
from rollbook.adapters.tianshou.book import RollbookLogger
from rollbook.adapters.tianshou.factory import LoggerFactory
from rollbook.adapters.tianshou.restore import restore_logged_data
from rollbook.adapters.tianshou.tensorboard import TensorboardLogger

SUPPORTED = ">=0.5,<3"
"""The versions of Tianshou whose trainers call a logger in the way these loggers expect."""

_installed = _versions.installed("tianshou")
if _installed is not None:
    _versions.check("tianshou", _installed, SUPPORTED)

__all__ = [
    "BaseLogger",
    "DataScope",
    "LazyLogger",
    "LoggerFactory",
    "RollbookLogger",
    "TensorboardLogger",
    "restore_logged_data",
]
