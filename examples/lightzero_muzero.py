"""MuZero of LightZero on CartPole, recorded: one import line is changed. About a minute and a half on one core.

    pip install LightZero 'rollbook[tensorboard]'
    python examples/lightzero_muzero.py

The run's folder is the experiment folder of LightZero's document: ckpt/, the five folders under log/ and the two
configuration files; the book has every iteration, every episode and every field beside.
"""

from __future__ import annotations

import argparse

from zoo.classic_control.cartpole.config.cartpole_muzero_config import create_config, main_config

import rollbook
from rollbook.adapters.lightzero import train_muzero  # instead of: from lzero.entry import train_muzero


def main() -> None:
    parser = argparse.ArgumentParser(description="MuZero on CartPole with LightZero")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--env-steps", type=int, default=400)
    args = parser.parse_args()

    main_config.env.update(collector_env_num=2, evaluator_env_num=2, n_evaluator_episode=2)
    main_config.env.manager = {"shared_memory": False}
    main_config.policy.update(
        collector_env_num=2,
        evaluator_env_num=2,
        n_episode=2,
        num_simulations=5,
        update_per_collect=10,
        batch_size=32,
        eval_freq=10,
        cuda=False,
    )
    create_config.env_manager.type = "base"
    # Without `run=`, the run would be called after the configuration's exp_name.
    with rollbook.init("CartPole-v0", "muzero", seed=args.seed, sinks=[]) as run:
        train_muzero([main_config, create_config], seed=args.seed, max_env_step=args.env_steps, run=run)

    book = rollbook.open("runs").one("CartPole-v0/muzero", id=run.id)
    returns = book.series("test/return", x="gradient_step")  # evaluator/reward_mean
    print(f"{book.path}: evaluated at iterations {[int(x) for x in returns.x]}")
    print(f"mean returns {[round(float(y), 1) for y in returns.mean]}; {book.episodes().num_rows} episodes kept")


if __name__ == "__main__":
    main()
