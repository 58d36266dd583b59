"""PPO of RLlib on CartPole, tuned over two learning rates: one run per trial.

    pip install 'rollbook[rllib]'
    python examples/rllib_ppo.py

Each run holds every result under RLlib's own names, every episode of every env runner, the evaluations apart, the
checkpoints and the configuration.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import ray
from ray import tune
from ray.rllib.algorithms.ppo import PPO, PPOConfig

import rollbook
from rollbook.adapters import rllib


def main() -> None:
    parser = argparse.ArgumentParser(description="PPO on CartPole-v1 with RLlib and Tune")
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--batch", type=int, default=2000, help="environment steps per iteration")
    args = parser.parse_args()

    ray.init(num_cpus=2, include_dashboard=False)
    config = (
        PPOConfig()
        .environment("CartPole-v1")
        .env_runners(num_env_runners=1)
        .training(lr=tune.grid_search([3e-4, 1e-3]), train_batch_size=args.batch)
        .evaluation(evaluation_interval=args.iterations, evaluation_duration=5)
        .callbacks(rllib.callbacks("runs", project="CartPole-v1"))  # inside the trial: episodes
    )
    tuner = tune.Tuner(
        PPO,
        param_space=config,
        run_config=tune.RunConfig(
            name="cartpole-ppo",
            storage_path=str(Path("ray_results").absolute()),
            stop={"training_iteration": args.iterations},
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=True),
            callbacks=[rllib.RollbookTune()],  # in the driver: results, checkpoints, how each trial ended
            verbose=0,
        ),
    )
    tuner.fit()
    ray.shutdown()

    for book in rollbook.open("runs").where("group == 'cartpole-ppo'"):
        lengths = book.episodes()["length"].to_pylist()
        print(f"{book.name}: lr {book.config['lr']}, {len(lengths)} episodes, the last of {lengths[-1]} steps")


if __name__ == "__main__":
    main()
