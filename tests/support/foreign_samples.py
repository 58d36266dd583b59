"""For each format a small source: what its tool wrote, or the same bytes by a writer here."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from rollbook.sinks.event_files import Messages
from rollout_dumps import nemo_batches, prime_traces, slime_dumps, tinker_summaries, verl_dumps

WRITTEN = Path(__file__).parents[1] / "importers" / "samples"
"""What the tools themselves wrote: the make_*.py there say how."""


def slime_with_torch(folder: Path) -> Path:
    pytest.importorskip("torch")
    return slime_dumps(folder)


def aim_with_rocks(folder: Path) -> Path:
    """A repository as Aim wrote it, without the files that say only who opened it."""
    pytest.importorskip("aimrocks")
    return Path(shutil.copytree(WRITTEN / "aim", folder / "aim"))


def event_files(folder: Path) -> Path:
    """A folder with one event file of scalars."""
    messages = Messages("the tests")
    made = folder / "tb"
    made.mkdir()
    with open(made / "events.out.tfevents.1.host", "wb") as file:
        file.write(messages.framed(messages.version(1.7e9)))
        for n in range(40):
            file.write(messages.framed(messages.event(1.7e9 + n, 10 * n, [messages.scalar("loss", 1 / (n + 1))])))
    return made


def progress_csv(folder: Path) -> Path:
    """A progress.csv as Stable-Baselines3 writes it."""
    path = folder / "progress.csv"
    lines = ["time/total_timesteps,time/time_elapsed,train/loss,rollout/ep_rew_mean"]
    lines += [f"{2048 * n},{3 * n},{1 / (n + 1)!r},{'' if n < 2 else 20 + n}" for n in range(40)]
    path.write_text("\n".join(lines) + "\n")
    return path


def wandb_run(folder: Path) -> Path:
    """An offline run as wandb wrote it."""
    made = folder / "offline-run-20261123_000000-k3v9x2ab"
    made.mkdir()
    shutil.copy(WRITTEN / "run-k3v9x2ab.wandb", made)
    return made


def mlflow_store(folder: Path) -> Path:
    """A file store as MLflow wrote it."""
    shutil.copytree(WRITTEN / "mlruns", folder / "mlruns")
    return folder / "mlruns"


def json_lines(folder: Path) -> Path:
    """A metrics.jsonl as the Dreamer family writes it."""
    path = folder / "metrics.jsonl"
    path.write_text("".join(f'{{"step": {128 * n}, "train/return": {n / 2}}}\n' for n in range(40)))
    return path


SQL = {"optuna": "optuna/study.db", "trackio": "study.db", "goodseed": "projects/study/runs/rapid-heron.sqlite"}


def of_database(name: str) -> Callable[[Path], Path]:
    """A database that a tool wrote, from its dump."""

    def make(folder: Path) -> Path:
        path = folder / SQL[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(sqlite3.connect(path)) as made:
            made.executescript((WRITTEN / f"{name}.sql").read_text())
        return path

    return make


def copied(name: str) -> Callable[[Path], Path]:
    """A file or folder as a tool wrote it."""
    copy = shutil.copytree if (WRITTEN / name).is_dir() else shutil.copyfile
    return lambda folder: Path(copy(WRITTEN / name, folder / Path(name).name))


def sacred_run(folder: Path) -> Path:
    """A run as Sacred 0.8.7 writes it, shortened; tests/importers/test_any_folder.py has what it says."""
    run = folder / "1"
    run.mkdir()
    about = {
        "experiment": {"name": "qmix", "sources": [], "dependencies": []},
        "command": "main",
        "status": "FAILED",
        "start_time": "2026-11-28T20:00:00.000001",
        "stop_time": "2026-11-28T20:01:00.000001",
        "result": None,
        "fail_trace": ["Traceback (most recent call last):\n", "ValueError: boom\n"],
    }
    metrics = {
        "return_mean": {
            "steps": [0, 100, 200],
            "values": [0.5, 1.5, 2.5],
            "timestamps": [f"2026-11-28T20:00:0{n}.500000" for n in range(3)],
        }
    }
    info = {"test_return_mean": [1.0, 2.0], "test_return_mean_T": [100, 200]}
    files = {"run": about, "config": {"seed": 3, "lr": 0.01, "env": "2s3z"}, "metrics": metrics, "info": info}
    for name, content in files.items():
        (run / f"{name}.json").write_text(json.dumps(content, indent=2))
    return run


def ml_agents_run(folder: Path) -> Path:
    """The parts of ML-Agents' timers.json (1.2.0) that say something of a training, in the places it has them."""
    logs = folder / "walker-1" / "run_logs"
    logs.mkdir(parents=True)
    last = {"Step": 199984.0, "Environment.CumulativeReward": 25.5, "Policy.LearningRate": 8e-06, "IsTraining": 1.0}
    gauges = {
        f"Walker.{name}.{kind}": {"value": value * times, "min": 0.0, "max": value, "count": 20}
        for name, value in last.items()
        for kind, times in (("mean", 1), ("sum", 44))
    }
    metadata = {
        "timer_format_version": "0.1.0",
        "start_time_seconds": "1733778427",
        "end_time_seconds": "1733779051",
        "command_line_arguments": "mlagents-learn config.yaml --run-id=walker-1",
        "mlagents_version": "1.2.0.dev0",
    }
    (logs / "timers.json").write_text(
        json.dumps({"name": "root", "gauges": gauges, "metadata": metadata, "total": 623.6})
    )
    settings = "behaviors:\n  Walker: {trainer_type: ppo}\nenv_settings: {seed: 7}\n"
    (logs.parent / "configuration.yaml").write_text(settings)
    return logs


def score_list(folder: Path) -> Path:
    """A list of returns."""
    path = folder / "rewards.json"
    path.write_text("[1.5, 2.5, 3.5, 4.5]")
    return path


def printed_lines(folder: Path) -> Path:
    """A log of a training."""
    path = folder / "train.log"
    lines = [f"2026-01-01 10:00:{n:02d} INFO Episode {n}/30 | Reward: {n}.5 | Loss: 0.{n}" for n in range(30)]
    path.write_text("\n".join(["Learning rate: 0.1", *lines]) + "\n")
    return path


SAMPLES: dict[str, Callable[[Path], Path]] = {
    "acme": copied("acme"),
    "aim": aim_with_rocks,
    "clearml": copied("clearml.zip"),
    "comet": copied("comet.zip"),
    "csv": progress_csv,
    "dvclive": copied("dvclive"),
    "goodseed": of_database("goodseed"),
    "ml_agents": ml_agents_run,
    "marl_eval": copied("marl_eval/metrics.json"),
    "neptune": copied("neptune"),
    "sacred": sacred_run,
    "sb3": copied("sb3"),
    "scores": score_list,
    "optuna": of_database("optuna"),
    "printed": printed_lines,
    "scalar_files": copied("torchrl"),
    "swanlab": copied("swanlab"),
    "trackio": of_database("trackio"),
    "trl": copied("trl/completions"),
    "trainer_state": copied("trainer"),
    "jsonl": json_lines,
    "mlflow": mlflow_store,
    "tensorboard": event_files,
    "wandb": wandb_run,
    "nemo_rl": nemo_batches,
    "prime_rl": prime_traces,
    "slime": slime_with_torch,
    "tinker": tinker_summaries,
    "verl_rollouts": verl_dumps,
}
