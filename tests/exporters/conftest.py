"""Runs to export: a study of two algorithms with three seeds each, and a run with recorded episodes of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import rollbook
from rollbook.capture.gym import RecordEpisodes


class Camera(gymnasium.Env[Any, Any]):
    """A picture and numbers as observation; episodes of three steps."""

    observation_space = gymnasium.spaces.Dict(
        {
            "camera": gymnasium.spaces.Box(0, 255, (9, 10, 3), np.uint8),
            "joints": gymnasium.spaces.Box(-1, 1, (2,), np.float64),
        }
    )
    action_space = gymnasium.spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self.observation_space.sample(), 0.5 * self.steps, self.steps == 3, False, {"word": "go"}


@pytest.fixture(scope="package")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a project `study` of six runs with evaluations, and of `arm` with one run of two episodes."""
    root = tmp_path_factory.mktemp("exports") / "runs"
    for algo in ("ppo", "dqn"):
        for seed in range(3):
            run = rollbook.init("study", algo, config={"algo": algo}, seed=seed, dir=root, sinks=[], keeper="import")
            for n in range(4):
                returns = [10.0 * n + seed, 10.0 * n + seed + 4.0]
                for number, value in enumerate(returns):
                    row = {"episode_id": [f"{n}-{number}"], "return": [value], "length": [3]}
                    run.scope("test").record("episodes", row, env_step=100 * n)
                run.log(
                    {"test/return": sum(returns) / 2 + (5.0 if algo == "ppo" else 0.0) * (n == 3)}, env_step=100 * n
                )
            run.finish()
    run = rollbook.init("arm", "reach", seed=7, config={"lr": 0.1}, dir=root, sinks=[], keeper="import")
    env = RecordEpisodes(Camera(), run.scope("train"), steps=True)
    for episode in range(2):
        env.reset(seed=episode)
        for action in range(3):
            env.step(action)
    env.close()
    run.finish()
    return root
