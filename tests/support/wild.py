"""Small folders in the layouts of many tools, each value of which is known: for tests of any folder of results."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from rollbook.sinks.event_files import Messages

Put = Callable[[Path, "Iterator[float]"], "list[float]"]
"""Writes a run of a tool into a folder. Takes new values, and returns those that it wrote."""


def events(folder: Path, values: dict[str, list[float]], name: str = "events.out.tfevents.1.host") -> None:
    """An event file with scalars at the steps 0, 10, 20 …"""
    folder.mkdir(parents=True, exist_ok=True)
    messages = Messages("the tests")
    with open(folder / name, "wb") as out:
        out.write(messages.framed(messages.version(1.7e9)))
        for tag, numbers in values.items():
            for n, number in enumerate(numbers):
                out.write(messages.framed(messages.event(1.7e9 + n, 10 * n, [messages.scalar(tag, number)])))


def layout(folder: Path, charts: dict[str, list[tuple[str, str, list[str]]]]) -> None:
    """An event file as `add_custom_scalars` writes it: category -> (title, "Multiline" or "Margin", tags)."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.plugins.custom_scalar.layout_pb2 import Layout

    made, event = Layout(), Event(wall_time=1.7e9)
    for name, all_charts in charts.items():
        category = made.category.add(title=name)
        for title, kind, tags in all_charts:
            chart = category.chart.add(title=title)
            if kind == "Multiline":
                chart.multiline.tag.extend(tags)
            else:
                chart.margin.series.add(value=tags[0], lower=tags[1], upper=tags[2])
    value = event.summary.value.add(tag="custom_scalars__config__")
    value.metadata.plugin_data.plugin_name = "custom_scalars"
    value.tensor.dtype = 7  # of texts
    value.tensor.string_val.append(made.SerializeToString())
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "events.out.tfevents.1.layout", "wb") as out:
        out.write(Messages("the tests").framed(event))


def table(file: Path, columns: dict[str, list[float]], separator: str = ",") -> None:
    """A table with a header."""
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = zip(*columns.values(), strict=True)
    lines = [separator.join(columns), *(separator.join(map(str, row)) for row in rows)]
    file.write_text("\n".join(lines) + "\n")


def monitor(file: Path, returns: list[float], lengths: list[int], start: float = 1.7e9, env: str = "Hopper-v4") -> None:
    """A Monitor file whose episodes end a second apart."""
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = [f"{r},{n},{t + 1.0}" for t, (r, n) in enumerate(zip(returns, lengths, strict=True))]
    file.write_text("\n".join([f"#{json.dumps({'t_start': start, 'env_id': env})}", "r,l,t", *rows]) + "\n")


def _three(new: Iterator[float]) -> list[float]:
    return [next(new) for _ in range(3)]


def put_sb3_tensorboard(folder: Path, new: Iterator[float]) -> list[float]:
    """Event files of Stable-Baselines3."""
    values = _three(new)
    events(folder, {"rollout/ep_rew_mean": values})
    return values


def put_sb3_progress(folder: Path, new: Iterator[float]) -> list[float]:
    """progress.csv of Stable-Baselines3."""
    values = _three(new)
    table(folder / "progress.csv", {"time/total_timesteps": [1, 2, 3], "rollout/ep_rew_mean": values})
    return values


def put_evaluations(folder: Path, new: Iterator[float]) -> list[float]:
    """evaluations.npz of EvalCallback."""
    values = _three(new)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "evaluations.npz", timesteps=np.array([1, 2, 3]), results=np.array(values)[:, None])
    return values


def put_monitor(folder: Path, new: Iterator[float]) -> list[float]:
    """A Monitor file."""
    values = _three(new)
    monitor(folder / "0.monitor.csv", values, [5, 5, 5])
    return values


def put_spinningup(folder: Path, new: Iterator[float]) -> list[float]:
    """progress.txt of Spinning Up."""
    values = _three(new)
    table(folder / "progress.txt", {"Epoch": [0, 1, 2], "AverageEpRet": values}, "\t")
    (folder / "config.json").write_text(json.dumps({"exp_name": folder.name}))
    return values


def put_jsonl(folder: Path, new: Iterator[float]) -> list[float]:
    """metrics.jsonl."""
    values = _three(new)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(f'{{"step": {n}, "score": {v}}}\n' for n, v in enumerate(values)))
    return values


def put_any_table(folder: Path, new: Iterator[float]) -> list[float]:
    """A table of somebody's own."""
    values = _three(new)
    table(folder / "training_log.csv", {"episode": [0, 1, 2], "total_reward": values})
    return values


def put_d3rlpy(folder: Path, new: Iterator[float]) -> list[float]:
    """A folder of d3rlpy."""
    values = _three(new)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "params.json").write_text('{"gamma": 0.99}')
    (folder / "time_step.csv").write_text("")
    (folder / "loss.csv").write_text("".join(f"{n},{10 * n},{v}\n" for n, v in enumerate(values)))
    return values


def put_mlflow(folder: Path, new: Iterator[float]) -> list[float]:
    """A run of MLflow's file store."""
    values = _three(new)
    run = folder / "mlruns" / "1" / "0123456789abcdef0123456789abcdef"
    for part in ("metrics", "params", "tags"):
        (run / part).mkdir(parents=True)
    (run / "meta.yaml").write_text(f"run_id: {run.name}\nrun_name: {folder.name}\nstatus: 3\nlifecycle_stage: active\n")
    (run / "metrics" / "return").write_text("".join(f"1700000000000 {v} {n}\n" for n, v in enumerate(values)))
    return values


def put_trackio(folder: Path, new: Iterator[float]) -> list[float]:
    """A database of Trackio."""
    values = _three(new)
    folder.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(folder / "study.db") as base:
        base.execute(
            "create table metrics (id integer primary key, timestamp text, run_name text, step integer, metrics text)"
        )
        base.execute("create table configs (run_name text, config text, created_at text)")
        for n, value in enumerate(values):
            base.execute(
                "insert into metrics (timestamp, run_name, step, metrics) values (?, ?, ?, ?)",
                (f"2026-01-01T00:00:0{n}+00:00", "one", n, json.dumps({"return": value})),
            )
    base.close()
    return values


def put_acme(folder: Path, new: Iterator[float]) -> list[float]:
    """Logs of Acme."""
    values = _three(new)
    table(folder / "logs" / "learner" / "logs.csv", {"learner_steps": [1, 2, 3], "critic_loss": values})
    return values


TOOLS: dict[str, Put] = {
    "tensorboard": put_sb3_tensorboard,
    "progress": put_sb3_progress,
    "evaluations": put_evaluations,
    "monitor": put_monitor,
    "spinningup": put_spinningup,
    "jsonl": put_jsonl,
    "table": put_any_table,
    "d3rlpy": put_d3rlpy,
    "mlflow": put_mlflow,
    "trackio": put_trackio,
    "acme": put_acme,
}
