"""Runs one of Spinning Up's own PyTorch algorithms, as its repository has it, for a few epochs.

    python spinup_program.py CHECKOUT native|rollbook|compat ALGORITHM FOLDER [JSON with the algorithm's arguments]

Spinning Up is from 2020: the names of the old `gym` are given to it on top of gymnasium, and its package is entered
without its `__init__`, which wants TensorFlow 1. "native" uses its own logger, "rollbook" ours, "compat" ours with
compat=True; nothing else differs.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import json
import sys
import types
from pathlib import Path
from typing import Any

import gymnasium


class OldEnv:
    """The interface of gym before 0.26: reset gives an observation, step four values."""

    def __init__(self, name: str, seed: int) -> None:
        self.env = gymnasium.make(name)
        self.observation_space, self.action_space = self.env.observation_space, self.env.action_space
        self._seed: int | None = seed
        self.action_space.seed(seed)

    def reset(self) -> Any:
        observation, _ = self.env.reset(seed=self._seed)
        self._seed = None
        return observation

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(reward), bool(terminated or truncated), info


def enter(checkout: Path) -> None:
    """Make `import spinup.algos…` and `import gym` work."""
    package = types.ModuleType("spinup")
    package.__path__ = [str(checkout / "spinup")]
    sys.modules["spinup"] = package
    gym = types.ModuleType("gym")
    gym.spaces, gym.make = gymnasium.spaces, gymnasium.make  # type: ignore[attr-defined]
    sys.modules["gym"], sys.modules["gym.spaces"] = gym, gymnasium.spaces
    tensorflow = types.ModuleType("tensorflow")  # its logger imports it, and torch asks whether it is there
    tensorflow.__spec__ = importlib.machinery.ModuleSpec("tensorflow", None)
    sys.modules["tensorflow"] = tensorflow


def main(checkout: Path, which: str, algorithm: str, folder: str, arguments: dict[str, Any]) -> None:
    enter(checkout)
    if which != "native":
        import rollbook.adapters.spinningup

        rollbook.adapters.spinningup.install()
    seed = arguments.setdefault("seed", 3)
    name = arguments.pop("env")
    train = getattr(importlib.import_module(f"spinup.algos.pytorch.{algorithm}.{algorithm}"), algorithm)
    made = iter(range(10))
    train(
        lambda: OldEnv(name, seed + next(made)),
        ac_kwargs={"hidden_sizes": [16]},
        logger_kwargs={"output_dir": folder, "exp_name": algorithm, **({"compat": True} if which == "compat" else {})},
        **arguments,
    )


if __name__ == "__main__":
    given = json.loads(sys.argv[5]) if len(sys.argv) > 5 else {}
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], given)
