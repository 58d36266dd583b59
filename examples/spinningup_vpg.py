"""A policy gradient in the style of Spinning Up (store, log_tabular, dump_tabular), with our logger for theirs.

    pip install 'rollbook[gym]'
    python examples/spinningup_vpg.py

The agent is a linear softmax policy in plain numpy, so that this needs neither torch nor MPI. progress.txt and
config.json stand in data/vpg/vpg_s<seed>, as Spinning Up's plotter reads them.
"""

from __future__ import annotations

import argparse
import time

import gymnasium
import numpy as np

# was: from spinup.utils.logx import EpochLogger; from spinup.utils.run_utils import setup_logger_kwargs
from rollbook.adapters.spinningup import EpochLogger, setup_logger_kwargs


def vpg(env_name: str, seed: int, epochs: int, steps_per_epoch: int, logger_kwargs: dict[str, object]) -> None:
    logger = EpochLogger(**logger_kwargs)
    logger.save_config(locals())
    rng = np.random.default_rng(seed)
    env = gymnasium.make(env_name)
    n_actions = env.action_space.n
    weights = np.zeros((n_actions, env.observation_space.shape[0] + 1))

    start, (o, _) = time.time(), env.reset(seed=seed)
    for epoch in range(epochs):
        episodes, path = [], []
        for t in range(steps_per_epoch):
            features = np.append(o, 1.0)
            logits = weights @ features
            p = np.exp(logits - logits.max())
            p /= p.sum()
            a = rng.choice(n_actions, p=p)
            o, r, terminated, truncated, _ = env.step(a)
            path.append((features, a, p, r))
            logger.store(Entropy=-float(p @ np.log(p + 1e-12)))
            if terminated or truncated:
                logger.store(EpRet=sum(step[3] for step in path), EpLen=len(path))
            if terminated or truncated or t == steps_per_epoch - 1:
                episodes.append(path)
                o, path = env.reset()[0], []

        returns_to_go = [np.cumsum([step[3] for step in path][::-1])[::-1] for path in episodes]
        advantages = np.concatenate(returns_to_go)
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        gradient = np.zeros_like(weights)
        for (features, a, p, _), advantage in zip((s for path in episodes for s in path), advantages, strict=True):
            gradient += advantage * np.outer(np.eye(n_actions)[a] - p, features)
        weights += 0.5 * gradient / steps_per_epoch

        logger.save_state({"weights": weights})
        logger.log_tabular("Epoch", epoch)
        logger.log_tabular("EpRet", with_min_and_max=True)
        logger.log_tabular("EpLen", average_only=True)
        logger.log_tabular("Entropy", average_only=True)
        logger.log_tabular("TotalEnvInteracts", (epoch + 1) * steps_per_epoch)
        logger.log_tabular("Time", time.time() - start)
        logger.dump_tabular()
    logger.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A linear policy gradient on CartPole-v1")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=1000)
    args = parser.parse_args()
    vpg("CartPole-v1", args.seed, args.epochs, args.steps, setup_logger_kwargs("vpg", args.seed))
