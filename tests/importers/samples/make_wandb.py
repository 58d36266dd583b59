"""Writes the sample of a W&B offline run with wandb itself: WANDB_MODE=offline python make_wandb.py FOLDER."""

from __future__ import annotations

import sys

import numpy as np
import wandb

CONFIG = {"lr": 3e-4, "seed": 7, "net": {"size": 64, "act": "tanh"}}


def main(folder: str) -> None:
    settings = wandb.Settings(x_disable_stats=True, console="off", disable_git=True, x_disable_meta=True)
    wandb.init(
        project="study", name="ppo-7", group="ppo", job_type="train", tags=["a", "b"], notes="hello", config=CONFIG,
        dir=folder, mode="offline", id="k3v9x2ab", settings=settings,
    )  # fmt: skip
    for n in range(60):
        row: dict[str, object] = {
            "global_step": n * 128,
            "charts/episodic_return": n * 1.5,
            "losses/value": 1 / (n + 1),
        }
        if n in (3, 4, 5):
            row["losses/value"] = (float("nan"), float("inf"), float("-inf"))[n - 3]
        if n % 20 == 0:
            row |= {"h": wandb.Histogram(np_histogram=np.histogram(np.arange(10.0), 5)), "note": f"text {n}"}
            row |= {"nested": {"x": {"y": n}, "z": 2.5}, "flag": True, "list": [1, 2]}
        wandb.log(row)
    wandb.log({"part/a": 1.0}, commit=False)
    wandb.log({"part/b": 2.5})
    wandb.config.update({"late": "yes"})
    wandb.finish()


main(sys.argv[1])
