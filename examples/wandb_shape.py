"""A program that logs to wandb, recorded by rollbook: one import is another.

python examples/wandb_shape.py
"""

from __future__ import annotations

import random

import rollbook.wandb as wandb

import rollbook


def main() -> None:
    run = wandb.init(project="bandit", name="epsilon-greedy", config={"epsilon": 0.1, "arms": 5, "seed": 3})
    source = random.Random(wandb.config.seed)
    means = [source.random() for _ in range(wandb.config.arms)]
    values, counts = [0.0] * len(means), [0] * len(means)
    for step in range(500):
        explores = source.random() < wandb.config.epsilon
        arm = source.randrange(len(means)) if explores else max(range(len(means)), key=values.__getitem__)
        reward = source.gauss(means[arm], 0.1)
        counts[arm] += 1
        values[arm] += (reward - values[arm]) / counts[arm]
        wandb.log({"train/reward": reward, "best_arm": arm == means.index(max(means)), "global_step": step})
    wandb.summary["pulls"] = max(counts)
    folder = run.rollbook.folder
    wandb.finish()
    rewards = rollbook.Book(folder).metrics(["train/reward"], x="env_step")["train/reward"].to_pylist()
    print(f"{len(rewards)} rewards, mean {sum(rewards) / len(rewards):.3f}, in {folder.name}")


if __name__ == "__main__":
    main()
