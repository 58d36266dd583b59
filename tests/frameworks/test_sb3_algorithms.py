"""Every algorithm of Stable-Baselines3 and of its contrib package: the book has the episodes that its Monitor has."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GROUPS = ("main",)

gymnasium = pytest.importorskip("gymnasium")
sb3 = pytest.importorskip("stable_baselines3")
contrib = pytest.importorskip("sb3_contrib")

from stable_baselines3.common.base_class import BaseAlgorithm  # noqa: E402
from stable_baselines3.common.monitor import Monitor, load_results  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters.sb3 import RollbookCallback  # noqa: E402

FOUND = {
    name: cls
    for package in (sb3, contrib)
    for name, cls in vars(package).items()
    if inspect.isclass(cls) and issubclass(cls, BaseAlgorithm)
}
ON_POLICY: dict[str, Any] = {"n_steps": 32}
OPTIONS: dict[str, dict[str, Any]] = {
    "A2C": ON_POLICY,
    "PPO": {**ON_POLICY, "batch_size": 32, "n_epochs": 1},
    "TRPO": {**ON_POLICY, "batch_size": 32},
    "MaskablePPO": {**ON_POLICY, "batch_size": 32, "n_epochs": 1},
    "RecurrentPPO": {**ON_POLICY, "batch_size": 32, "n_epochs": 1},
    "ARS": {"n_delta": 4},
}
OFF_POLICY: dict[str, Any] = {"learning_starts": 20, "train_freq": 16, "gradient_steps": 1, "batch_size": 16}


class Short(gymnasium.Env):  # type: ignore[misc,name-defined]
    """Episodes of 5 to 9 steps, whose rewards have many digits."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def __init__(self, continuous: bool) -> None:
        self.action_space = (
            gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32) if continuous else gymnasium.spaces.Discrete(2)
        )
        self._t = self._episodes = 0

    def action_masks(self) -> Any:
        return np.array([True, True])

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._t, self._episodes = 0, self._episodes + 1
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        self._t += 1
        done = self._t >= 5 + self._episodes % 5
        return np.full(2, self._t / 10, np.float32), 1 / (2 + self._t), done, False, {}


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("name", sorted(FOUND))
def test_the_book_has_the_episodes_of_the_monitor(name: str, n_envs: int, own_place: Path) -> None:
    run = rollbook.init("sb3", name, dir=own_place / "runs", sinks=(), keeper="inline")
    continuous = name in ("DDPG", "TD3", "SAC", "TQC", "CrossQ")

    def make(index: int) -> Any:
        return lambda: Monitor(Short(continuous), str(own_place / f"{index}"))

    policy = "LinearPolicy" if name == "ARS" else "MlpLstmPolicy" if name == "RecurrentPPO" else "MlpPolicy"
    model = FOUND[name](
        policy, DummyVecEnv([make(i) for i in range(n_envs)]), seed=1, device="cpu", **OPTIONS.get(name, OFF_POLICY)
    )
    callback = RollbookCallback(run)
    model.learn(200, callback=callback)
    model.learn(100, callback=RollbookCallback(run), reset_num_timesteps=False)
    theirs = load_results(str(own_place))
    ours = run.book.episodes().to_pylist()
    told = [(round(row["return"], 6), row["length"]) for row in ours]
    monitored = list(zip(theirs["r"].tolist(), theirs["l"].tolist(), strict=True))
    if name == "ARS":  # it plays a fixed number of episodes; with several environments it drops those over it
        assert len(told) == len({row["episode_id"] for row in ours}) >= 16
        assert n_envs > 1 or len(told) == len(monitored)
        for one in told:
            monitored.remove(one)
    else:
        assert sorted(told) == sorted(monitored)
    steps = [row["env_step"] for row in ours]
    assert steps == sorted(steps)
    assert 0 < steps[-1] <= model.num_timesteps
    run.finish()


def test_a_short_training_of_a2c_has_a_return_although_it_logs_none(own_place: Path) -> None:
    with rollbook.init("sb3", "short", dir=own_place / "runs", sinks=(), keeper="inline") as run:
        FOUND["A2C"]("MlpPolicy", Monitor(Short(False)), seed=1, device="cpu").learn(
            100, callback=RollbookCallback(run)
        )
    assert "rollout/ep_rew_mean" not in run.book.keys()  # noqa: SIM118 - of a book, not a dict
    episodes = run.book.episodes()
    assert run.book.series("train/return").mean.tolist() == episodes["return"].to_pylist()
    assert run.book.series("train/length").mean.tolist() == episodes["length"].to_pylist()
    assert run.book.summary["train/return.last"] == episodes["return"].to_pylist()[-1]
