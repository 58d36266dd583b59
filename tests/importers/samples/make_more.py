"""Writes small samples with the tools themselves, one function each.

python make_more.py FOLDER       the versions are in README.md beside this file
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

root = Path(sys.argv[1]).resolve()
root.mkdir(parents=True, exist_ok=True)
os.chdir(root)
TRACKIO = root / "trackio"
os.environ |= {"TRACKIO_DIR": str(TRACKIO), "GOODSEED_HOME": str(root / "goodseed")}


def sb3() -> None:
    from stable_baselines3 import A2C
    from stable_baselines3.common.callbacks import EvalCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.logger import configure

    folder = str(root / "sb3")
    train = make_vec_env("CartPole-v1", 2, seed=1, monitor_dir=folder)
    test = make_vec_env("CartPole-v1", 1, seed=2)
    model = A2C("MlpPolicy", train, seed=1, device="cpu")
    model.set_logger(configure(folder, ["csv", "json"]))
    model.learn(1000, callback=EvalCallback(test, n_eval_episodes=3, eval_freq=100, log_path=folder, verbose=0))


def trackio() -> None:
    import trackio as tool

    for seed in (1, 2):
        tool.init(project="study", name=f"ppo-{seed}", group="ppo", config={"lr": 3e-4, "seed": seed})
        for n in range(12):
            value = float("nan") if n == 3 else float("inf") if n == 4 else 1 / (n + 1)
            tool.log({"global_step": 128 * n, "loss": value, "nested": {"x": n}}, step=n)
        tool.finish()


def swanlab() -> None:
    import swanlab as tool

    tool.init(project="study", experiment_name="ppo-1", config={"lr": 3e-4, "seed": 1, "net": {"size": 8}},
              tags=["a", "b"], description="hello",
              mode="offline", logdir="swanlog", settings=tool.Settings(log_proxy_type="none"))  # fmt: skip
    for n in range(12):
        tool.log({"global_step": 128 * n, "loss": float("nan") if n == 3 else 1 / (n + 1)}, step=n)
    tool.finish()


def goodseed() -> None:
    import goodseed as tool

    run = tool.Run(name="ppo-1", project="study", tags=["a"], storage="local")
    run["lr"] = 3e-4
    run["seed"] = 1
    for n in range(12):
        run["train/loss"].log(1 / (n + 1), step=n)
    run.close()


def d3rlpy() -> None:
    import d3rlpy as tool
    import numpy as np

    rng = np.random.default_rng(0)
    n = 40
    data = tool.dataset.MDPDataset(
        rng.normal(size=(n, 3)).astype(np.float32), rng.integers(0, 2, n), rng.normal(size=n), np.arange(n) % 10 == 9
    )
    tool.seed(4)
    tool.algos.DQNConfig(batch_size=4).create().fit(
        data,
        n_steps=20,
        n_steps_per_epoch=5,
        experiment_name="DQN",
        with_timestamp=False,
        show_progress=False,
        logger_adapter=tool.logging.FileAdapterFactory(str(root / "d3rlpy")),
        save_interval=100,
    )


def marl_eval() -> None:
    from json_logger import JsonLogger  # marl_eval/json_tools on the path: the package itself asks for neptune

    for seed in (0, 1):
        logger = JsonLogger(str(root / "marl_eval"), "ippo", "3s5z", "smax", seed)
        for n in range(8):
            logger.write(1000 * n, "mean_episode_return", n / 2 + seed, n)
            logger.write(1000 * n, "win_rate", n / 8, n)
        logger.write(7000, "mean_episode_return", 9.5, 8, is_absolute_metric=True)


def torchrl() -> None:
    from torchrl.record.loggers.csv import CSVLogger

    logger = CSVLogger("dqn", log_dir=str(root / "torchrl"))
    logger.log_hparams({"lr": 3e-4, "seed": 5})
    for n in range(12):
        logger.log_scalar("train/loss", 1 / (n + 1), step=100 * n)
        if n % 3 == 0:
            logger.log_scalar("eval/reward", n / 2, step=100 * n)


def trainer() -> None:
    import torch
    from transformers import Trainer, TrainingArguments

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Linear(1, 1)

        def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"loss": ((self.line(x) - labels) ** 2).mean()}

    data = [{"x": torch.tensor([n / 8]), "labels": torch.tensor([n / 4])} for n in range(16)]
    arguments = TrainingArguments(
        str(root / "trainer"), max_steps=12, logging_steps=1, save_steps=4, eval_strategy="steps", eval_steps=4, seed=6,
        report_to=[], per_device_train_batch_size=4, use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    Trainer(Net(), arguments, train_dataset=data, eval_dataset=data).train()


def lightning() -> None:
    from lightning.pytorch.loggers import CSVLogger

    logger = CSVLogger(str(root), name="lightning")
    logger.log_hyperparams({"lr": 3e-4, "seed": 8})
    for n in range(12):
        logger.log_metrics({"train_loss": 1 / (n + 1), "epoch": n // 4}, step=n)
        if n % 4 == 3:
            logger.log_metrics({"val_loss": 2 / (n + 1), "epoch": n // 4}, step=n)
    logger.save()


def acme() -> None:
    import types

    sys.modules.setdefault("launchpad", types.ModuleType("launchpad"))  # its CSV logger does not use it
    from acme.utils.loggers.csv import CSVLogger

    for label, key in (("learner", "loss"), ("evaluator", "episode_return")):
        logger = CSVLogger(str(root / "acme"), label, add_uid=False)
        for n in range(12):
            logger.write({"learner_steps": 10 * n, key: n / 2, "walltime": 0.5 * n})
        logger.close()


def aim() -> None:
    """LOG, LOCK, OPTIONS, and what the server's index needs, are removed from the sample afterwards."""
    import aim as tool

    for seed in (1, 2):
        run = tool.Run(
            repo=str(root / "aim"), experiment="ppo", system_tracking_interval=None, capture_terminal_logs=False
        )
        run.name, run.description = f"ppo-{seed}", "hello"
        run.add_tag("a")
        run["hparams"] = {"lr": 3e-4, "seed": seed, "net": {"sizes": [64, 32]}}
        for n in range(12):
            value = float("nan") if n == 3 else float("inf") if n == 4 else 1 / (n + 1)
            run.track(value, name="loss", step=n, epoch=n // 4, context={"subset": "train"})
            run.track(128 * n, name="global_step", step=n)
        run.track(tool.Text("words"), name="notes", step=0)
        run.close()


def pictures_torch() -> None:
    import numpy as np
    import torch
    from torch.utils.tensorboard import SummaryWriter  # add_video asks for moviepy 1

    rng = np.random.default_rng(4)
    writer = SummaryWriter(str(root / "pictures" / "torch"))
    for n in range(3):
        writer.add_scalar("loss", 1 / (n + 1), 10 * n)
        writer.add_image("camera/front", rng.integers(0, 255, (3, 6, 8), dtype=np.uint8), 10 * n)
    writer.add_video("film", torch.tensor(rng.integers(0, 255, (1, 5, 3, 6, 8), dtype=np.uint8)), 20, fps=10)
    writer.close()


def pictures_tensorboardx() -> None:
    import numpy as np
    from tensorboardX import SummaryWriter

    rng = np.random.default_rng(4)
    writer = SummaryWriter(str(root / "pictures" / "tensorboardx"))
    for n in range(2):
        writer.add_image("camera/front", rng.integers(0, 255, (3, 6, 8), dtype=np.uint8), 10 * n)
    writer.close()


def pictures_tensorflow() -> None:
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(4)
    writer = tf.summary.create_file_writer(str(root / "pictures" / "tensorflow"))
    with writer.as_default():
        for n in range(3):
            tf.summary.scalar("loss", 1 / (n + 1), step=10 * n)
            tf.summary.image("camera/front", rng.integers(0, 255, (2, 6, 8, 3)).astype(np.uint8), step=10 * n)
    writer.close()


def neptune() -> None:
    """By the exporter's own writer and schema: the service that it asked is gone. Its `src` is on PYTHONPATH."""
    import datetime
    import decimal

    import pyarrow as pa
    from neptune_exporter.model import SCHEMA
    from neptune_exporter.storage.parquet_writer import ParquetWriter

    start = datetime.datetime(2026, 1, 5, tzinfo=datetime.UTC)
    writer = ParquetWriter(root / "neptune" / "data", target_part_size_bytes=1)  # a part for each batch
    for seed in (1, 2):
        own = {"project_id": "lab/study", "run_id": f"ppo-{seed}"}

        def at(path: str, kind: str, step: float, own: dict[str, str] = own, **value: object) -> dict[str, object]:
            moment = start + datetime.timedelta(seconds=step)
            place = {"attribute_path": path, "attribute_type": kind, "step": decimal.Decimal(step), "timestamp": moment}
            return {**own, **place, **value}

        single = {
            "sys/name": f"ppo-{seed}",
            "sys/id": f"STU-{seed}",
            "sys/description": "hello",
            "parameters/env": "ant",
        }
        rows = [
            {**own, "attribute_path": path, "attribute_type": "string", "string_value": value}
            for path, value in single.items()
        ]
        rows += [
            {**own, "attribute_path": "parameters/lr", "attribute_type": "float", "float_value": 3e-4},
            {**own, "attribute_path": "parameters/seed", "attribute_type": "int", "int_value": seed},
            {**own, "attribute_path": "sys/failed", "attribute_type": "bool", "bool_value": seed == 2},
            {**own, "attribute_path": "sys/tags", "attribute_type": "string_set", "string_set_value": ["a", "b"]},
            {**own, "attribute_path": "sys/group_tags", "attribute_type": "string_set", "string_set_value": ["ppo"]},
        ]
        for n in range(12):
            rows.append(at("train/loss", "float_series", n, float_value=float("nan") if n == 3 else 1 / (n + 1)))
        rows += [at("train/half", "float_series", n + 0.5, float_value=n / 2) for n in range(4)]
        more = [at("monitoring/8f3a/cpu", "float_series", n, float_value=10.0 * n) for n in range(3)]
        more += [at("notes", "string_series", n, string_value=f"line {n}") for n in range(2)]
        histogram = {"type": "COUNTING", "edges": [0.0, 1.0, 2.0], "values": [3.0, 4.0]}
        more += [at("weights", "histogram_series", 5, histogram_value=histogram)]
        more += [at("model", "file", 0, file_value={"path": "study/ppo/model.bin"})]
        with writer.run_writer("lab/study", f"ppo-{seed}") as run:
            run.save(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
            run.save(pa.RecordBatch.from_pylist(more, schema=SCHEMA))


def trl() -> None:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
    from trl import GRPOConfig, GRPOTrainer

    from datasets import Dataset

    torch.manual_seed(0)
    words = [f"{thing}{n}" for thing in ("cat", "dog") for n in range(5)]
    core = Tokenizer(models.WordLevel({w: n for n, w in enumerate(["<pad>", "<eos>", "<unk>", *words])}, "<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    tokens = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )
    net = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=13, n_positions=32, n_embd=8, n_layer=1, n_head=1, bos_token_id=1, eos_token_id=1, pad_token_id=0
        )
    )

    def short(completions: list[str], **_: object) -> list[float]:
        return [-float(len(text.split())) for text in completions]

    config = GRPOConfig(
        str(root / "trl"), per_device_train_batch_size=4, num_generations=2, max_completion_length=6, max_steps=3,
        logging_steps=1, save_strategy="no", beta=0.0, report_to=[], use_cpu=True, log_completions=True, seed=3,
    )  # fmt: skip
    data = Dataset.from_dict({"prompt": [" ".join(words[n : n + 3]) for n in range(8)]})
    GRPOTrainer(net, short, config, train_dataset=data, processing_class=tokens).train()


MAKERS = (
    sb3, trackio, swanlab, goodseed, d3rlpy, marl_eval, torchrl, trainer, lightning, acme, aim, pictures_torch,
    pictures_tensorboardx, pictures_tensorflow, neptune, trl,
)  # fmt: skip
for make in MAKERS:
    if len(sys.argv) < 3 or make.__name__ in sys.argv[2:]:
        try:
            make()
            print("ok", make.__name__, flush=True)
        except Exception as err:
            print("FAILED", make.__name__, type(err).__name__, str(err)[:300], flush=True)
