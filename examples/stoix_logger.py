"""Hill climbing on CartPole that logs as Stoix and Mava do: actor and evaluator events with two counters.

    pip install rollbook gymnasium
    python examples/stoix_logger.py

In Stoix itself the logger is named by the configuration, and no line of Python changes: docs/adapters/stoix.md.
"""

from __future__ import annotations

import argparse

import gymnasium
import numpy as np

import rollbook
from rollbook.adapters.stoix import RollbookLogger


def play(env: gymnasium.Env, weights: np.ndarray, seed: int) -> float:
    """The return of one episode."""
    observation, _ = env.reset(seed=seed)
    score, is_over = 0.0, False
    while not is_over:
        observation, reward, terminated, truncated, _ = env.step(int(observation @ weights > 0))
        score, is_over = score + float(reward), terminated or truncated
    return score


def main() -> None:
    parser = argparse.ArgumentParser(description="hill climbing on CartPole")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()

    logger = RollbookLogger("results/cartpole", "", "climber", seed=args.seed)
    logger.log_config({"arch": {"seed": args.seed, "rounds": args.rounds}})
    env, rng = gymnasium.make("CartPole-v1"), np.random.default_rng(args.seed)
    best, weights, steps = -1.0, np.zeros(4), 0
    for round_ in range(1, args.rounds + 1):
        scores = []
        for _ in range(8):
            tried = weights + rng.normal(0, 0.5, 4)
            scores.append(play(env, tried, args.seed + steps))
            steps += int(scores[-1])
            if scores[-1] >= best:
                best, weights = scores[-1], tried
        described = {"mean": float(np.mean(scores)), "std": float(np.std(scores)), "max": max(scores)}
        logger.log_dict({"episode_return": described}, steps, round_, "actor")
        logger.log_dict({"episode_return": {"mean": play(env, weights, 10_000)}}, steps, round_, "evaluator")
    logger.stop()

    book = rollbook.open("runs").one("cartpole/climber", seed=args.seed)
    print(f"last evaluation: {book.series('test/return', x='env_step').mean[-1]:.0f} of 500")


if __name__ == "__main__":
    main()
