"""PPO of Brax on its smallest environment, recorded by the functions that `train` calls.

pip install rollbook brax
python examples/brax_ppo.py
"""

from __future__ import annotations

import argparse

from brax import envs
from brax.training.agents.ppo import train as ppo

import rollbook
from rollbook.adapters.brax import checkpoints, progress


def main() -> None:
    parser = argparse.ArgumentParser(description="PPO of Brax")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timesteps", type=int, default=4_096)
    args = parser.parse_args()

    with rollbook.init("fast", "ppo", seed=args.seed) as run:
        ppo.train(
            envs.get_environment("fast"),
            num_timesteps=args.timesteps,
            episode_length=16,
            num_envs=16,
            num_eval_envs=8,
            unroll_length=4,
            batch_size=16,
            num_minibatches=1,
            num_updates_per_batch=1,
            num_evals=4,
            seed=args.seed,
            log_training_metrics=True,
            training_metrics_steps=args.timesteps // 4,
            progress_fn=progress(run),
            policy_params_fn=checkpoints(run),
        )

    book = rollbook.open("runs").one("fast/ppo", seed=args.seed)
    print(f"evaluation: {book.series('test/return', x='env_step').mean[-1]:.2f}")


if __name__ == "__main__":
    main()
