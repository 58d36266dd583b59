"""PPO of rl_games on sixteen carts and poles, recorded by an observer.

pip install 'rollbook[rl_games]' gymnasium
python examples/rl_games_ppo.py
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium
import numpy as np
from rl_games.common import env_configurations, vecenv
from rl_games.torch_runner import Runner

import rollbook
from rollbook.adapters.rl_games import RollbookObserver


class Carts(vecenv.IVecEnv):
    """A vector of gymnasium, as rl_games asks for one."""

    def __init__(self, _name: str, number: int, **_options: Any) -> None:
        self.env = gymnasium.make_vec("CartPole-v1", num_envs=number, vectorization_mode="sync")

    def step(self, actions: Any) -> Any:
        """One step of all: observations, rewards, ends, remarks."""
        observations, rewards, terminated, truncated, _ = self.env.step(np.asarray(actions))
        return observations.astype(np.float32), rewards.astype(np.float32), terminated | truncated, {}

    def reset(self) -> Any:
        """The first observations."""
        return self.env.reset()[0].astype(np.float32)

    def get_number_of_agents(self) -> int:
        """One an environment."""
        return 1

    def get_env_info(self) -> dict[str, Any]:
        """The spaces."""
        return {
            "observation_space": self.env.single_observation_space,
            "action_space": self.env.single_action_space,
            "value_size": 1,
            "agents": 1,
        }


def train(epochs: int, seed: int, observer: Any) -> None:
    """Train for that many epochs of 16 x 32 steps."""
    vecenv.register("carts", lambda name, number, **options: Carts(name, number, **options))
    env_configurations.register("CartPole", {"vecenv_type": "carts", "env_creator": lambda **_: None})
    network = {
        "name": "actor_critic",
        "separate": True,
        "space": {"discrete": {}},
        "mlp": {"units": [32, 32], "activation": "relu", "initializer": {"name": "default"}},
    }
    config = {
        "name": "carts",
        "env_name": "CartPole",
        "max_epochs": epochs,
        "device": "cpu",
        "device_name": "cpu",
        "reward_shaper": {"scale_value": 0.1},
        "normalize_advantage": True,
        "gamma": 0.99,
        "tau": 0.9,
        "learning_rate": 2e-3,
        "score_to_win": 500,
        "grad_norm": 1.0,
        "entropy_coef": 0.01,
        "truncate_grads": True,
        "e_clip": 0.2,
        "clip_value": True,
        "num_actors": 16,
        "horizon_length": 32,
        "minibatch_size": 128,
        "mini_epochs": 4,
        "critic_coef": 1,
        "lr_schedule": None,
        "kl_threshold": 0.008,
        "normalize_input": False,
        "save_best_after": 10,
        "multi_gpu": False,
        "print_stats": False,
        "seed": seed,
    }
    runner = Runner(algo_observer=observer)
    runner.load(
        {
            "params": {
                "seed": seed,
                "algo": {"name": "a2c_discrete"},
                "model": {"name": "discrete_a2c"},
                "network": network,
                "load_checkpoint": False,
                "config": config,
            }
        }
    )
    runner.run({"train": True})


def main() -> None:
    parser = argparse.ArgumentParser(description="PPO of rl_games on CartPole")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()

    train(args.epochs, args.seed, RollbookObserver(project="carts", name="ppo", seed=args.seed))
    rollbook.finish()

    book = rollbook.open("runs/carts").one(seed=args.seed)
    returns = book.series("train/return", x="env_step")
    print(f"return: {returns.mean[0]:.1f} after {returns.x[0]:.0f} steps, {returns.mean[-1]:.1f} at the end")


if __name__ == "__main__":
    main()
