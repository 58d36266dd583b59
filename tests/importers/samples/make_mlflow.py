"""Writes the same runs with MLflow itself into a file store and into a database.

MLFLOW_ALLOW_FILE_STORE=true python make_mlflow.py FOLDER
"""

from __future__ import annotations

import os
import sys

import mlflow
from mlflow.entities import Metric, Param, RunTag


def write(address: str) -> None:
    client = mlflow.MlflowClient(tracking_uri=address)
    experiment = client.create_experiment("cartpole", artifact_location="s3://bucket/cartpole")
    run = client.create_run(experiment, start_time=1_700_000_000_000, run_name="ppo-3")
    points = []
    for n in range(40):
        values = {
            "train/return": n * 1.5,
            "loss": (float("nan"), float("inf"), float("-inf"))[n - 5] if 5 <= n < 8 else 1 / (n + 1),
        }
        points += [Metric(key, value, 1_700_000_000_000 + 1000 * n, 10 * n) for key, value in values.items()]
    params = [Param("lr", "0.0003"), Param("seed", "3"), Param("algo", "ppo"), Param("anneal", "True")]
    tags = [RunTag("mlflow.note.content", "hello"), RunTag("lab", "east")]
    client.log_batch(run.info.run_id, points, params, tags)
    client.set_terminated(run.info.run_id, "FINISHED", 1_700_000_040_000)
    failed = client.create_run(experiment, start_time=1_700_000_100_000, run_name="ppo-3")
    client.log_metric(failed.info.run_id, "loss", 2.5, timestamp=1_700_000_101_000, step=1)
    client.set_terminated(failed.info.run_id, "FAILED", 1_700_000_102_000)
    gone = client.create_run(experiment, start_time=1_700_000_200_000, run_name="deleted")
    client.delete_run(gone.info.run_id)


folder = os.path.abspath(sys.argv[1])
os.makedirs(folder, exist_ok=True)
write(f"file://{folder}/mlruns")
write(f"sqlite:///{folder}/mlflow.db")
