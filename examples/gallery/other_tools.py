"""One study, logged with three tools.

Five seeds were logged with TensorBoard and five with W&B, offline, before anybody knew of rollbook; five are new. The
folders are opened as they are, and nothing in them is changed. Group by "group": one table, one picture, one verdict.
"""

import random

import wandb
from tensorboard.summary import Writer

import rollbook


def score(step: int, gain: float) -> float:
    return step * gain + random.gauss(0, 5)


for seed in range(5):
    random.seed(seed)
    with rollbook.init("study", "new", seed=seed, group="new", config={"algo": "new"}) as run:
        for step in range(0, 2000, 20):
            run.log({"rollout/ep_rew_mean": score(step, 0.1)}, env_step=step)

    writer = Writer(f"logs/older_s{seed}")
    for step in range(0, 2000, 20):
        writer.add_scalar("rollout/ep_rew_mean", score(step, 0.07), step)
    writer.close()

    settings = wandb.Settings(mode="offline", x_disable_stats=True, console="off")
    config = {"algo": "old", "seed": seed}
    theirs = wandb.init(project="study", name="old", group="old", dir="logs", config=config, settings=settings)
    for step in range(0, 2000, 20):
        theirs.log({"rollout/ep_rew_mean": score(step, 0.05), "global_step": step})
    theirs.finish()
