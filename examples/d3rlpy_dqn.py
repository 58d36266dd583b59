"""Offline DQN of d3rlpy on steps of a random CartPole policy, recorded by a logger adapter.

pip install 'rollbook[d3rlpy]'
python examples/d3rlpy_dqn.py
"""

from __future__ import annotations

import argparse
from typing import Any

import d3rlpy
import gymnasium
import numpy as np

import rollbook
from rollbook.adapters.d3rlpy import RollbookAdapterFactory


def steps(number: int, seed: int) -> Any:
    """A data set of a random policy."""
    env = gymnasium.make("CartPole-v1")
    env.action_space.seed(seed)
    observation, _ = env.reset(seed=seed)
    rows: list[tuple[Any, int, float, bool, bool]] = []
    for _ in range(number):
        action = env.action_space.sample()
        following, reward, terminated, truncated, _ = env.step(action)
        rows.append((observation, int(action), float(reward), terminated, truncated))
        observation = env.reset()[0] if terminated or truncated else following
    observations, actions, rewards, ends, cuts = (np.array(column) for column in zip(*rows, strict=True))
    if not ends[-1]:
        cuts[-1] = True
    return d3rlpy.dataset.MDPDataset(observations, actions, rewards, ends, cuts)


def train(number: int, seed: int, factory: Any) -> None:
    """Train for that many gradient steps, in epochs of fifty."""
    d3rlpy.seed(seed)
    dqn = d3rlpy.algos.DQNConfig(batch_size=32).create(device="cpu:0")
    options = {"n_steps": number, "n_steps_per_epoch": 50, "experiment_name": "dqn", "show_progress": False}
    dqn.fit(steps(500, seed), logger_adapter=factory, **options)


def main() -> None:
    parser = argparse.ArgumentParser(description="DQN of d3rlpy on random CartPole steps")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1_000)
    args = parser.parse_args()

    train(args.steps, args.seed, RollbookAdapterFactory(project="cartpole", seed=args.seed))

    book = rollbook.open("runs").one("cartpole", seed=args.seed)
    loss = book.series("update/loss/total", x="step")
    print(f"loss: {loss.mean[0]:.3f} after {loss.x[0]:.0f} steps, {loss.mean[-1]:.3f} after {loss.x[-1]:.0f}")


if __name__ == "__main__":
    main()
