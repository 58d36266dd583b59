"""PPO of Stable-Baselines3 on CartPole, recorded by one callback.

    pip install 'rollbook[sb3]'
    python examples/sb3_ppo.py

The run holds what the logger dumps (native keys, native steps), every update at its own step, every episode, the
evaluations, timings, checkpoints and all hyper-parameters.
"""

from __future__ import annotations

import argparse

import gymnasium
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.monitor import Monitor

import rollbook
from rollbook.adapters.sb3 import RollbookCallback


def main() -> None:
    parser = argparse.ArgumentParser(description="PPO on CartPole-v1 with Stable-Baselines3")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--env-steps", type=int, default=20_000)
    args = parser.parse_args()

    torch.set_num_threads(1)  # a network this small gains nothing from more
    with rollbook.init("CartPole-v1", "ppo", seed=args.seed, config=args, total={"env_step": args.env_steps}) as run:
        model = PPO("MlpPolicy", "CartPole-v1", n_steps=512, seed=args.seed)
        record = RollbookCallback(run, checkpoint_every=5_000, keep=2)  # the one line
        evaluate = EvalCallback(Monitor(gymnasium.make("CartPole-v1")), eval_freq=2_500, verbose=0)
        model.learn(args.env_steps, callback=[record, evaluate])

    book = rollbook.open("runs").one("CartPole-v1/ppo", seed=args.seed, id=run.id)
    returns = book.series("train/return", x="env_step")  # the library calls it rollout/ep_rew_mean
    print(f"return at {returns.x[-1]:.0f} steps: {returns.mean[-1]:.1f}; {book.episodes().num_rows} episodes kept")


if __name__ == "__main__":
    main()
