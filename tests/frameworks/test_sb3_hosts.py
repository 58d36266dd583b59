"""Environments that may not be asked: the training with the callback goes on as without it."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GROUPS = ("main",)

gymnasium = pytest.importorskip("gymnasium")
sb3 = pytest.importorskip("stable_baselines3")

from stable_baselines3.common.env_util import make_vec_env  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor, VecNormalize  # noqa: E402

from rollbook.adapters.sb3 import RollbookCallback  # noqa: E402
from rollbook.errors import RollbookWarning  # noqa: E402

Box = gymnasium.spaces.Box


class Three(gymnasium.Env):  # type: ignore[misc, name-defined]
    """Episodes of three steps, of reward 1 each."""

    observation_space, action_space = Box(-1, 1, (2,), np.float32), Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.t = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        return np.zeros(2, np.float32), 1.0, self.t == 3, False, {}


class Holds(Three):
    """What cannot be pickled."""

    def __init__(self) -> None:
        self.lock, self.more = threading.Lock(), (x for x in ())


class Refuses(Three):
    """Every question beyond those of the framework is an error."""

    @property
    def spec(self) -> Any:
        raise OSError("the simulator is gone")

    @property
    def env(self) -> Any:
        raise KeyError("env")

    @property
    def episode_returns(self) -> Any:
        raise ZeroDivisionError

    def __str__(self) -> str:
        raise ValueError("no name")

    __repr__ = __str__


class Ends(Three):
    """The process ends when it is asked."""

    @property
    def spec(self) -> Any:
        import os

        os._exit(3)


def lambda_inside() -> Any:
    return gymnasium.wrappers.TransformReward(gymnasium.make("Pendulum-v1"), lambda reward: reward / 10)


def strange_spec() -> Any:
    env = Three()
    env.spec = gymnasium.envs.registration.EnvSpec("Three-v0", kwargs={"lock": threading.Lock()})
    return env


def local() -> Any:
    class Inside(Three):
        pass

    return Inside()


def train(env: Any, project: str | None = None) -> Any:
    model = sb3.PPO("MlpPolicy", env, n_steps=6, batch_size=6, n_epochs=1, seed=1)
    callback = RollbookCallback(project=project, run_options={"keeper": "inline", "sinks": ()})
    model.learn(12, callback=callback)
    callback.close()
    return callback.run.book


@pytest.mark.core
@pytest.mark.parametrize("make", [Holds, Refuses, Ends, lambda_inside, strange_spec, local])
def test_no_environment_in_a_worker_is_asked(own_place: Path, make: Any) -> None:
    env = SubprocVecEnv([make, make], start_method="fork")
    book = train(env)
    env.close()
    assert book.metrics(["time/fps"]).num_rows == 1
    if make is not lambda_inside:
        assert book.episodes().column("return").to_pylist() == [3.0] * 4


@pytest.mark.parametrize("make", [Holds, Refuses, strange_spec, local])
def test_no_environment_in_this_process_is_asked(own_place: Path, make: Any) -> None:
    book = train(DummyVecEnv([make]))
    assert book.episodes().column("return").to_pylist() == [3.0] * 4


@pytest.mark.parametrize(
    ("vector", "name"),
    [
        (lambda: make_vec_env("Pendulum-v1", 1, vec_env_cls=SubprocVecEnv, vec_env_kwargs=FORK), "Pendulum-v1"),
        (lambda: make_vec_env("Pendulum-v1", 1), "Pendulum-v1"),
        (lambda: make_vec_env(Three, 1, vec_env_cls=SubprocVecEnv, vec_env_kwargs=FORK), "Three"),
        (lambda: SubprocVecEnv([partial(gymnasium.make, "Pendulum-v1")], **FORK), "Pendulum-v1"),
        (lambda: SubprocVecEnv([lambda: gymnasium.make("Pendulum-v1")], **FORK), "Pendulum-v1"),
        (lambda: SubprocVecEnv([lambda: Holds()], **FORK), "Holds"),
        (lambda: SubprocVecEnv([strange_spec], **FORK), "Three"),
        (lambda: SubprocVecEnv([lambda: gymnasium.make(["Pendulum-v1", "CartPole-v1"][0])], **FORK), "environment"),
        (lambda: DummyVecEnv([strange_spec]), "Three-v0"),
        (lambda: DummyVecEnv([Holds]), "Holds"),
    ],
)
def test_the_run_has_the_name_that_this_process_knows(own_place: Path, vector: Any, name: str) -> None:
    env = vector()
    book = train(env)
    env.close()
    assert book.project == name
    assert book.config["env"] == (None if name == "environment" else name)


FORK: dict[str, Any] = {"start_method": "fork"}


def test_a_monitor_outside_of_the_normalisation_is_remarked_and_the_return_is_that_of_the_environment(
    own_place: Path,
) -> None:
    with pytest.warns(RollbookWarning, match="VecMonitor stands outside of VecNormalize"):
        book = train(VecMonitor(VecNormalize(DummyVecEnv([Three]))))
    episodes = book.episodes()
    assert episodes.column("return").to_pylist() == [3.0] * 4
    assert all(value != 3.0 for value in episodes.column("monitor_return").to_pylist())
