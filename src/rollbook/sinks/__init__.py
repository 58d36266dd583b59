"""Sinks: destinations for rows, one file each. `make("csv")` builds one from its name and plain options."""

from __future__ import annotations

from rollbook.sinks._registry import (
    _SINKS,
    DEFAULT,
    LIVE,
    are_files,
    check,
    make,
    names,
    needs_no_service,
    without_live,
)
from rollbook.system.lazy import attach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.sinks._jsonl import Jsonl
    from rollbook.sinks.csv import Csv
    from rollbook.sinks.memory import Memory
    from rollbook.sinks.mlflow import Mlflow
    from rollbook.sinks.neptune import Neptune
    from rollbook.sinks.tensorboard import TensorBoard
    from rollbook.sinks.terminal import Terminal
    from rollbook.sinks.text import Text
    from rollbook.sinks.trackio import Trackio
    from rollbook.sinks.wandb import Wandb

__all__ = [
    "DEFAULT",
    "LIVE",
    "Csv",
    "Jsonl",
    "Memory",
    "Mlflow",
    "Neptune",
    "TensorBoard",
    "Terminal",
    "Text",
    "Trackio",
    "Wandb",
    "are_files",
    "check",
    "make",
    "names",
    "needs_no_service",
    "without_live",
]

_HOMES = [path.split(":") for path in _SINKS.values()]
__getattr__, __dir__ = attach(__name__, {f"{__name__}.{module}": (name,) for module, name in _HOMES})
