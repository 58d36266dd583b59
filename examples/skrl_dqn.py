"""DQN of skrl on CartPole, recorded by one line between agent and trainer.

pip install 'rollbook[skrl]' gymnasium
python examples/skrl_dqn.py
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium
import torch
from skrl.agents.torch.dqn import DQN, DQN_CFG
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, Model
from skrl.trainers.torch import SequentialTrainer, SequentialTrainerCfg
from skrl.utils import set_seed

import rollbook
from rollbook.adapters.skrl import attach


class QNetwork(DeterministicMixin, Model):
    """Two layers of 64."""

    def __init__(self, observation_space: Any, action_space: Any) -> None:
        Model.__init__(self, observation_space=observation_space, action_space=action_space, device="cpu")
        DeterministicMixin.__init__(self)
        self.net = torch.nn.Sequential(
            torch.nn.Linear(self.num_observations, 64),
            torch.nn.ReLU(),
            torch.nn.Linear(64, 64),
            torch.nn.ReLU(),
            torch.nn.Linear(64, self.num_actions),
        )

    def compute(self, inputs: dict[str, Any], role: str = "") -> tuple[torch.Tensor, dict[str, Any]]:
        """The value of each action."""
        return self.net(inputs["observations"]), {}


def trainer(timesteps: int, seed: int) -> SequentialTrainer:
    """An agent, its environment and what trains it."""
    set_seed(seed)
    env = wrap_env(gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync"))
    spaces = env.observation_space, env.action_space
    models = {"q_network": QNetwork(*spaces), "target_q_network": QNetwork(*spaces)}
    cfg = DQN_CFG(learning_starts=50, random_timesteps=50)
    cfg.experiment.directory, cfg.experiment.experiment_name = "skrl_logs/cartpole", "dqn"
    cfg.experiment.write_interval, cfg.experiment.checkpoint_interval = timesteps // 10, timesteps // 2
    memory = RandomMemory(memory_size=2_000, num_envs=env.num_envs, device="cpu")
    agent = DQN(
        models=models, memory=memory, observation_space=spaces[0], action_space=spaces[1], device="cpu", cfg=cfg
    )
    attach(agent, project="cartpole", name="dqn", seed=seed)
    about = SequentialTrainerCfg(timesteps=timesteps, headless=True, disable_progressbar=True)
    return SequentialTrainer(env=env, agents=agent, cfg=about)


def main() -> None:
    parser = argparse.ArgumentParser(description="DQN of skrl on CartPole")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timesteps", type=int, default=4_000)
    args = parser.parse_args()

    trainer(args.timesteps, args.seed).train()
    rollbook.finish()

    book = rollbook.open("runs").one("cartpole/dqn", seed=args.seed)
    returns = book.series("train/return", x="env_step")
    print(f"return: {returns.mean[0]:.1f} after {returns.x[0]:.0f} steps, {returns.mean[-1]:.1f} at the end")


if __name__ == "__main__":
    main()
