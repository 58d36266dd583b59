"""What an environment says of itself, recorded through RLlib: running and final numbers, and the trace of a part.

    pip install 'rollbook[rllib]'
    python examples/rllib_env_data.py

The environment returns its data in `info`; no callback has to be written. A plain `algo.train()` loop, without Tune.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import ray
from ray.rllib.algorithms.ppo import PPOConfig

import rollbook
from rollbook.adapters import rllib


class Plant(gymnasium.Env):  # type: ignore[misc,name-defined]
    """A part moves along a line of ten stations; each step costs energy, and arriving pays."""

    def __init__(self, config: Any = None) -> None:
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(3)
        self.station = self.t = 0
        self.energy = 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """The part is at the first station."""
        super().reset(seed=seed)
        self.station, self.t, self.energy = 0, 0, 0.0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Move by 0, 1 or 2 stations."""
        moved = int(action)
        self.t += 1
        self.station = min(9, self.station + moved)
        self.energy += moved**2
        arrived = self.station == 9
        reward = 10.0 * arrived - 0.1 * moved**2
        info = {
            "data": {
                "running": {"speed": float(moved)},  # kept step by step; average and sum per episode
                "final": {"energy": self.energy, "arrived": arrived},  # the last value counts
            },
            "media": {"trace": [self.t, self.station]},  # anything; kept step by step
            "reward_components": {"arrival": 10.0 * arrived, "energy": -0.1 * moved**2},
        }
        return self._seen(), reward, arrived, self.t >= 30, info

    def _seen(self) -> Any:
        return np.array([self.station / 9, self.t / 30], np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description="environment data through RLlib")
    parser.add_argument("--iterations", type=int, default=5)
    args = parser.parse_args()

    ray.init(num_cpus=2, include_dashboard=False)
    record = rllib.callbacks("runs", project="plant", name="ppo", episode_data=True)
    config = (
        PPOConfig().environment(Plant).env_runners(num_env_runners=1).training(train_batch_size=1000).callbacks(record)
    )
    algorithm = config.build_algo()
    for _ in range(args.iterations):
        result = algorithm.train()
        custom = result["env_runners"]["custom_metrics"]  # RLlib's own metrics, and so its TensorBoard, have it too
        print(f"speed {custom['speed_avg_mean']:.2f}, energy {custom['energy_mean']:.1f}")
    files = sorted(Path(algorithm.logdir, "episode_data").iterdir())
    identity = algorithm.callbacks[0].run.id
    algorithm.stop()  # ends the run
    ray.shutdown()

    book = rollbook.open("runs").one(identity)
    episode = book.episodes().to_pylist()[-1]
    print(f"last episode: return {episode['return']:.1f}, energy {episode['final/energy']:.0f}")
    print(book.sql("select component, avg(sum) as mean from rewards where component != '' group by 1 order by 1"))
    print(f"{len(files)} files of episode data; the first trace: {json.loads(files[0].read_text())[0]['trace'][:3]} …")


if __name__ == "__main__":
    main()
