"""A random search on CartPole that goes to a book and to Neptune's client, in its offline mode.

    pip install 'rollbook[gym,neptune]'
    python examples/neptune_offline.py

The book is the record; Neptune is one of its sinks, so a run can also be sent later (`rollbook forward RUN --to
neptune`). A logger of the RL-logging article's shape writes into the same Neptune run, under a prefix of its own.
"""

from __future__ import annotations

import argparse

import gymnasium
import neptune
import numpy as np

import rollbook
from rollbook.sinks.neptune import Neptune, NeptuneLogger


def play(env: gymnasium.Env, weights: np.ndarray) -> float:
    """The return of one episode in which the sign of a weighted sum decides."""
    (observation, _), total, over = env.reset(), 0.0, False
    while not over:
        observation, reward, terminated, truncated, _ = env.step(int(weights @ observation > 0))
        total, over = total + float(reward), terminated or truncated
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description="Random search on CartPole-v1, told to Neptune")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--episodes", type=int, default=40)
    args = parser.parse_args()

    experiment = neptune.init_run(mode="offline", capture_hardware_metrics=False, source_files=[], git_ref=False)
    best_of = NeptuneLogger(experiment, prefix="search", index_name="episode")  # the article's logger
    rng, env = np.random.default_rng(args.seed), gymnasium.make("CartPole-v1")
    env.reset(seed=args.seed)
    sinks = ["terminal", Neptune(experiment)]
    with rollbook.init("CartPole-v1", "random-search", seed=args.seed, config=args, sinks=sinks) as run:
        best, best_weights = -np.inf, np.zeros(4)
        for episode in range(args.episodes):
            weights = best_weights + rng.normal(size=4)
            score = play(env, weights)
            if score > best:
                best, best_weights = score, weights
            run.log({"train/return": score}, episode=episode)
            best_of.write({"best": best, "episode": episode})
    experiment.stop()

    book = rollbook.open("runs").one(id=run.id)
    returns = book.series("train/return", x="episode")
    print(f"best of {len(returns)} episodes: {returns.max.max():.0f}; Neptune's offline data is in .neptune/offline")


if __name__ == "__main__":
    main()
