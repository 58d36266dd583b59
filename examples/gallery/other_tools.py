"""One study, logged with four tools, in one folder.

Five seeds each were logged with TensorBoard, W&B (offline) and MLflow, before anybody knew of rollbook; five are new.
`rollbook ui study` opens the folder as it is, and changes nothing in it. Group by "group": one table, one picture, one
verdict.
"""

import os
import random

import mlflow
import wandb
from tensorboard.summary import Writer

import rollbook

KEY = "rollout/ep_rew_mean"


def scores(gain: float) -> list[tuple[int, float]]:
    return [(step, step * gain + random.gauss(0, 5)) for step in range(0, 2000, 20)]


os.makedirs("study", exist_ok=True)
mlflow.set_tracking_uri("sqlite:///study/mlflow.db")
for seed in range(5):
    random.seed(seed)
    with rollbook.init("study", "new", seed=seed, group="new", dir="study", clocks=["step"]) as run:
        for step, score in scores(0.1):
            run.log({KEY: score}, step=step)

    writer = Writer(f"study/tensorboard/tuned_s{seed}")
    for step, score in scores(0.07):
        writer.add_scalar(KEY, score, step)
    writer.close()

    settings = wandb.Settings(mode="offline", x_disable_stats=True, console="off")
    config = {"algo": "old", "seed": seed}
    theirs = wandb.init(project="study", name="old", group="old", dir="study", config=config, settings=settings)
    for step, score in scores(0.05):
        theirs.log({KEY: score}, step=step)
    theirs.finish()

    mlflow.set_experiment("study")
    with mlflow.start_run(run_name=f"first_s{seed}"):
        mlflow.log_params({"algo": "first", "group": "first", "seed": seed})
        for step, score in scores(0.04):
            mlflow.log_metric(KEY, score, step=step)
