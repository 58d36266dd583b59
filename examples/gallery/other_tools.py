"""A folder of three tools.

One study, half of which was logged with TensorBoard and W&B before anybody knew of rollbook. The folders are opened
as they are, beside runs of rollbook; one table, one picture, one verdict. Nothing in them is changed.
"""

import random
import shutil
from pathlib import Path

from tensorboard.summary import Writer

import rollbook

for seed in range(5):
    random.seed(seed)
    with rollbook.init("study", "new", seed=seed, config={"algo": "new"}) as run:
        for step in range(0, 2000, 20):
            run.log({"rollout/ep_rew_mean": step / 10 + random.gauss(0, 5)}, env_step=step)
    writer = Writer(f"runs/tensorboard/old-{seed}")
    for step in range(0, 2000, 20):
        writer.add_scalar("rollout/ep_rew_mean", step / 14 + random.gauss(0, 5), step)
    writer.close()

sample = Path(__file__).parents[2] / "tests" / "importers" / "samples" / "run-k3v9x2ab.wandb"
folder = Path("runs/wandb/offline-run-20260101_000000-k3v9x2ab")
folder.mkdir(parents=True, exist_ok=True)
shutil.copy(sample, folder)
