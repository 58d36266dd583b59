"""PPO of rsl_rl on 64 points that learn to move to the origin, recorded by a log writer.

    pip install 'rollbook[rsl_rl]'
    python examples/rsl_rl_ppo.py

The only line about rollbook in the training is the entry "logger" of the configuration.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict

import rollbook


class Points(VecEnv):
    """Points of the plane: the action is a step of at most 0.1 a side, the reward minus the distance to the origin."""

    def __init__(self, num_envs: int = 64) -> None:
        self.num_envs, self.num_actions, self.max_episode_length = num_envs, 2, 20
        self.device, self.cfg = "cpu", {"task": "points", "num_envs": num_envs}
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        self.position = torch.rand(num_envs, 2) * 2 - 1

    def get_observations(self) -> TensorDict:
        """The positions, [points, 2]."""
        return TensorDict({"policy": self.position.clone()}, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Move all points; an episode has twenty steps."""
        self.position = self.position + actions.clamp(-1, 1) * 0.1
        reward = -self.position.norm(dim=1)
        self.episode_length_buf += 1
        done = self.episode_length_buf >= self.max_episode_length
        self.episode_length_buf[done] = 0
        self.position[done] = torch.rand(int(done.sum()), 2) * 2 - 1
        return self.get_observations(), reward, done.long(), {"time_outs": done}


def main() -> None:
    parser = argparse.ArgumentParser(description="PPO of rsl_rl on points of the plane")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=40)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    network = {"class_name": "MLPModel", "hidden_dims": [32, 32], "activation": "elu"}
    configuration = {
        "seed": args.seed,
        "num_steps_per_env": 20,
        "save_interval": 20,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**network, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 0.5}},
        "critic": dict(network),
        "algorithm": {"class_name": "PPO", "learning_rate": 1e-3, "num_learning_epochs": 5, "num_mini_batches": 4},
        "logger": {"class_name": "rollbook.adapters.rsl_rl:RollbookWriter", "project": "points", "name": "ppo"},
    }
    OnPolicyRunner(Points(), configuration, log_dir="rsl_rl_logs").learn(args.iterations)

    book = rollbook.open("runs").one("points/ppo", seed=args.seed)
    returns = book.series("train/return")
    print(f"return: {returns.mean[0]:.2f} in iteration {returns.x[0]:.0f}, {returns.mean[-1]:.2f} at the end")


if __name__ == "__main__":
    main()
