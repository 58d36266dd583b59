"""Sinks: places rows go. One file each; `make("csv")` builds one from its name and plain options."""

from __future__ import annotations

from rollbook.sinks._registry import check, make, names, needs_no_service

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rollbook.sinks.csv import Csv
    from rollbook.sinks.jsonl import Jsonl
    from rollbook.sinks.memory import Memory
    from rollbook.sinks.mlflow import Mlflow
    from rollbook.sinks.neptune import Neptune
    from rollbook.sinks.tensorboard import TensorBoard
    from rollbook.sinks.terminal import Terminal
    from rollbook.sinks.text import Text
    from rollbook.sinks.trackio import Trackio
    from rollbook.sinks.wandb import Wandb

__all__ = [
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
    "check",
    "make",
    "names",
    "needs_no_service",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    from rollbook.sinks._registry import _SINKS

    for place in _SINKS.values():
        module, _, member = place.partition(":")
        if member == name:
            found = globals()[name] = getattr(import_module(f"rollbook.sinks.{module}"), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
