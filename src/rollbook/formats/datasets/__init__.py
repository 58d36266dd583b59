"""Recorded episodes and transitions as data sets of other tools, and back: Minari, RLlib, JSON lines, LeRobot folders.

    from rollbook.formats import datasets

    datasets.to_minari(book, "cartpole/ppo-v0")         datasets.from_minari("cartpole/ppo-v0", run)
    datasets.to_rllib(book, "offline/")                 datasets.from_rllib("offline/", run)
    datasets.to_jsonl(book, "steps.jsonl.gz")           datasets.from_jsonl("steps.jsonl.gz", run)
    datasets.to_lerobot(book, "folder")                 datasets.from_lerobot("folder", run)

An export needs memory for one episode, whatever its total size.
"""

from __future__ import annotations

from rollbook.formats.datasets._source import StepSource, Trajectory
from rollbook.formats.datasets.jsonl import from_jsonl, to_jsonl
from rollbook.formats.datasets.lerobot import from_lerobot, to_lerobot
from rollbook.formats.datasets.minari import from_minari, to_minari
from rollbook.formats.datasets.rllib import from_rllib, to_rllib

__all__ = [
    "StepSource",
    "Trajectory",
    "from_jsonl",
    "from_lerobot",
    "from_minari",
    "from_rllib",
    "to_jsonl",
    "to_lerobot",
    "to_minari",
    "to_rllib",
]
