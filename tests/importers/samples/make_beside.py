"""Writes small runs with what stands beside their rows: event files of torch, `.hydra` of Hydra, tags of PyYAML.

python make_beside.py FOLDER     torch 2.13.0, tensorboard 2.21.0, hydra-core 1.3.8, PyYAML 6.0.3
"""

from __future__ import annotations

import collections
import os
import sys
from pathlib import Path

import hydra
import yaml
from torch.utils.tensorboard import SummaryWriter

root = Path(sys.argv.pop(1)).resolve()


def cleanrl(seed: int) -> None:
    """The lines of CleanRL's ppo.py that write."""
    args = {
        "exp_name": "ppo",
        "seed": seed,
        "torch_deterministic": True,
        "env_id": "CartPole-v1",
        "learning_rate": 2.5e-4,
        "target_kl": None,
    }
    writer = SummaryWriter(f"{root}/cleanrl/CartPole-v1__ppo__{seed}__179000000{seed}")
    writer.add_text(
        "hyperparameters",
        "|param|value|\n|-|-|\n%s" % ("\n".join([f"|{key}|{value}|" for key, value in args.items()])),  # noqa: UP031
    )
    for n in range(8):
        writer.add_scalar("charts/episodic_return", 10.0 * n + seed, 128 * n)
    writer.close()


def with_hparams() -> None:
    """What `SummaryWriter.add_hparams` leaves: a folder of its own below that of the rows."""
    writer = SummaryWriter(f"{root}/hparams/sac")
    for n in range(8):
        writer.add_scalar("loss", 1 / (n + 1), n)
    writer.add_hparams({"lr": 3e-4, "seed": 11, "net": "mlp", "tuned": True}, {"hparam/return": 99.5})
    writer.close()


class Sensor:
    """What a configuration of Isaac Lab holds beside numbers."""


def isaac() -> None:
    """`params/` as Isaac Lab's dump_yaml writes them: yaml.dump of what a configuration is, tags included."""
    folder = root / "isaac" / "cartpole" / "2026-11-20_10-00-00"
    (folder / "params").mkdir(parents=True)
    env = {
        "sim": {"dt": 0.01, "device": "cuda:0", "gravity": (0.0, 0.0, -9.81)},
        "seed": 42,
        "only": slice(None),
        "class_type": Sensor,
        "sensor": Sensor(),
        "scale": {"names": ("a", "b"), "func": os.path.join},
    }
    agent = {"seed": 42, "experiment_name": "cartpole_direct", "policy": {"actor_hidden_dims": [32, 32]}}
    for name, said in (("env", env), ("agent", agent)):
        (folder / "params" / f"{name}.yaml").write_text(yaml.dump(said, default_flow_style=False, sort_keys=False))
    writer = SummaryWriter(str(folder / "summaries"))
    for n in range(8):
        writer.add_scalar("Train/mean_reward", n / 2, n)
    writer.close()


def zoo() -> None:
    """The two files of RL Zoo: `yaml.dump` of ordered dicts, in exp_manager.py."""
    folder = root / "zoo" / "CartPole-v1_1"
    (folder / "CartPole-v1").mkdir(parents=True)
    args = collections.OrderedDict([("algo", "ppo"), ("env", "CartPole-v1"), ("seed", 5), ("vec_env", "dummy")])
    hyperparams = collections.OrderedDict([("batch_size", 256), ("ent_coef", 0.0), ("n_timesteps", 1e5)])
    for name, said in (("args", args), ("config", hyperparams)):
        (folder / "CartPole-v1" / f"{name}.yml").write_text(yaml.dump(said))
    (folder / "progress.csv").write_text("time/total_timesteps,train/loss\n2048,0.5\n4096,0.25\n6144,0.125\n")


(root / "conf").mkdir(parents=True, exist_ok=True)
(root / "conf" / "config.yaml").write_text("algo: {name: sac, lr: 0.0003}\nseed: 1\nexperiment: reach\n")


@hydra.main(version_base=None, config_path=str(root / "conf"), config_name="config")
def train(config: object) -> None:
    """A job of Hydra with event files."""
    writer = SummaryWriter("tb")
    for n in range(8):
        writer.add_scalar("loss", 1 / (n + 1), n)
    writer.close()


for number in (1, 2):
    cleanrl(number)
with_hparams()
isaac()
zoo()
sys.argv += ["seed=4", "algo.lr=0.1", f"hydra.run.dir={root}/hydra/10-00-00", "hydra.job.chdir=true"]
train()
