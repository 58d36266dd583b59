"""Tabular Q-learning on FrozenLake with a SummaryWriter, as CleanRL's programs use it; the run is written as well.

    pip install 'rollbook[gym,tensorboard]'
    python examples/tensorboard_writer.py

With events=False no event file is written and the tensorboard package is not needed.
"""

from __future__ import annotations

import argparse
import time

import gymnasium
import numpy as np

import rollbook

# was: from torch.utils.tensorboard import SummaryWriter
from rollbook.adapters.tensorboard import SummaryWriter


def main() -> None:
    parser = argparse.ArgumentParser(description="Q-learning on FrozenLake-v1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--total-timesteps", type=int, default=20_000)
    parser.add_argument("--learning-rate", type=float, default=0.2)
    parser.add_argument("--gamma", type=float, default=0.99)
    args = parser.parse_args()

    writer = SummaryWriter(f"runs/FrozenLake-v1__q_learning__{args.seed}__{int(time.time())}", project="FrozenLake-v1")
    rows = "\n".join(f"|{key}|{value}|" for key, value in vars(args).items())
    writer.add_text("hyperparameters", f"|param|value|\n|-|-|\n{rows}")  # becomes the run's configuration, too

    rng = np.random.default_rng(args.seed)
    env = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make("FrozenLake-v1", is_slippery=False))
    q = np.zeros((env.observation_space.n, env.action_space.n))
    state, _ = env.reset(seed=args.seed)
    start = time.time()
    for global_step in range(args.total_timesteps):
        epsilon = max(0.05, 1.0 - 2 * global_step / args.total_timesteps)
        greedy = np.flatnonzero(q[state] == q[state].max())
        action = rng.integers(env.action_space.n) if rng.random() < epsilon else rng.choice(greedy)
        after, reward, terminated, truncated, info = env.step(int(action))
        error = reward + args.gamma * q[after].max() * (not terminated) - q[state, action]
        q[state, action] += args.learning_rate * error
        state = after
        if terminated or truncated:
            writer.add_scalar("charts/episodic_return", info["episode"]["r"], global_step)
            writer.add_scalar("charts/episodic_length", info["episode"]["l"], global_step)
            state, _ = env.reset()
        if global_step % 100 == 0:
            writer.add_scalar("losses/td_loss", error**2, global_step)
            writer.add_scalar("charts/epsilon", epsilon, global_step)
            writer.add_scalar("charts/SPS", int(global_step / (time.time() - start + 1e-9)), global_step)
    writer.close()

    book = rollbook.open("runs").one(id=writer.run.id)
    returns = book.series("train/return", x="env_step").mean  # CleanRL calls it charts/episodic_return
    print(f"return of the first 50 episodes {returns[:50].mean():.2f}, of the last 50 {returns[-50:].mean():.2f}")
    print(f"event files in {writer.log_dir}, the book in {book.path}")


if __name__ == "__main__":
    main()
