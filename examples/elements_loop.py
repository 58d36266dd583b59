"""Hill climbing on CartPole that logs by DreamerV3's logger, recorded by one more output.

pip install rollbook elements gymnasium
python examples/elements_loop.py
"""

from __future__ import annotations

import argparse

import elements
import gymnasium
import numpy as np

import rollbook
from rollbook.adapters.elements import RollbookOutput


def main() -> None:
    parser = argparse.ArgumentParser(description="hill climbing on CartPole")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--episodes", type=int, default=100)
    args = parser.parse_args()

    step = elements.Counter()
    logger = elements.Logger(step, [RollbookOutput(project="cartpole", name="climber", seed=args.seed)])
    env, rng = gymnasium.make("CartPole-v1"), np.random.default_rng(args.seed)
    best, weights = -1.0, np.zeros(4)
    for episode in range(args.episodes):
        tried = weights + rng.normal(0, 0.5, 4)
        observation, _ = env.reset(seed=args.seed + episode)
        score, length, is_over = 0.0, 0, False
        while not is_over:
            observation, reward, terminated, truncated, _ = env.step(int(observation @ tried > 0))
            score, length, is_over = score + float(reward), length + 1, terminated or truncated
        step.increment(length)
        if score >= best:
            best, weights = score, tried
        logger.add({"score": score, "length": length}, prefix="episode")
        logger.write()
    logger.close()

    book = rollbook.open("runs").one("cartpole/climber", seed=args.seed)
    print(f"best return: {book.series('train/return').mean.max():.0f} of 500")


if __name__ == "__main__":
    main()
