"""Sub-environments that record themselves inside the vectors of Stable-Baselines3 and Tianshou, which are their own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from rollbook.capture.gym import RecordEpisodes, record_envs

GROUPS = ("main",)


class Lines:
    """Writes rows as JSON lines, from whatever process."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name, self.path = folder, "train", folder / "rows.jsonl"

    def record(self, table: str, columns: dict[str, Any], n: int = 1, **_: Any) -> int:
        rows = [{name: c[i] if isinstance(c, list) else c for name, c in columns.items()} for i in range(n)]
        with self.path.open("a") as file:
            for row in rows:
                file.write(json.dumps({"table": table, "pid": os.getpid(), **row}, default=str) + "\n")
        return 1

    def log(self, values: Any, **_: Any) -> None:
        pass

    def clocks_now(self) -> dict[str, int]:
        return {}

    def count(self, cause: str, n: int = 1, message: str = "") -> None:
        self.record("counts", {"cause": cause, "message": message})

    def read(self, table: str) -> list[dict[str, Any]]:
        rows = map(json.loads, self.path.read_text().splitlines()) if self.path.exists() else []
        return [row for row in rows if row["table"] == table]


def make() -> Any:
    return gymnasium.make("CartPole-v1", max_episode_steps=6)


@pytest.mark.parametrize("kind", ["DummyVecEnv", "SubprocVecEnv"])
def test_vectors_of_stable_baselines3(tmp_path: Path, kind: str) -> None:
    from stable_baselines3.common import vec_env

    book = Lines(tmp_path)
    envs = getattr(vec_env, kind)(record_envs([make] * 3, book))
    envs.seed(4)
    envs.reset()
    for _ in range(12):
        envs.step(np.array([0, 1, 0]) if _ % 2 else np.array([1, 0, 1]))
    envs.close()
    rows = [row for row in book.read("episodes") if row["complete"]]
    assert sorted((row["env_index"], row["length"]) for row in rows) == [(i, 6) for i in (0, 0, 1, 1, 2, 2)]
    assert all(row["truncated"] and not row["terminated"] for row in rows)
    assert {row["seed"] for row in rows if row["seed"] is not None} == {4, 5, 6}
    assert (os.getpid() in {row["pid"] for row in rows}) == (kind == "DummyVecEnv")
    assert book.read("counts") == []


@pytest.mark.parametrize("kind", ["DummyVectorEnv", "SubprocVectorEnv"])
def test_vectors_of_tianshou(tmp_path: Path, kind: str) -> None:
    from tianshou import env as tianshou_env

    book = Lines(tmp_path)
    envs = getattr(tianshou_env, kind)(record_envs([make] * 2, book))
    envs.reset()
    for step in range(6):
        _, _, terminated, truncated, _ = envs.step(np.array([step % 2, step % 2]))
    over = np.flatnonzero(np.logical_or(terminated, truncated))
    envs.reset(over)
    envs.close()
    rows = [row for row in book.read("episodes") if row["complete"]]
    assert sorted((row["env_index"], row["length"], row["return"]) for row in rows) == [(0, 6, 6.0), (1, 6, 6.0)]


def test_the_monitor_of_stable_baselines3_is_checked(tmp_path: Path) -> None:
    from stable_baselines3.common.monitor import Monitor

    book = Lines(tmp_path)
    env = RecordEpisodes(Monitor(make()), book)
    for late in (False, True):
        env.reset(seed=1)
        if late:
            env.env.rewards.append(5.0)  # what a forgotten reset would leave behind
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(0)
            over = terminated or truncated
    (alert,) = book.read("alerts")
    assert (alert["source"], json.loads(alert["evidence"])["wrong"]) == ("Monitor", "off by one")


def test_a_ppo_of_stable_baselines3_learns_the_same_with_and_without_recording(tmp_path: Path) -> None:
    import torch
    from stable_baselines3 import PPO

    weights = []
    for recorded in (False, True):
        env = gymnasium.make("CartPole-v1")
        if recorded:
            env = RecordEpisodes(env, Lines(tmp_path), steps="first, best")
        model = PPO("MlpPolicy", env, n_steps=128, batch_size=64, n_epochs=2, seed=3, device="cpu")
        model.learn(512)
        weights.append([p.detach().clone() for p in model.policy.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))
