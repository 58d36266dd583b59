"""The episode tests of the ordinary suite, under older releases of gymnasium and under the current one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

import rollbook
from rollbook.capture.gym import RecordEpisodes, record_envs

GROUPS = ("gym100", "gym110", "gym122", "data")
EPISODES = Path(__file__).parents[1] / "episodes"
MODES: list[Any] = list(getattr(gymnasium.vector, "AutoresetMode", [None]))
"""The modes of vectors. Gymnasium 1.0 has one, the next step, and no name for it."""
FILES = [
    "test_single.py",
    "test_trajectories.py",
    *(["test_vector.py", "test_auditor.py"] if None not in MODES else []),
]
EXPECTED = {"gym100": "1.0.0", "gym110": "1.1.1", "gym122": "1.2.2"}


def test_this_is_the_release_it_should_be() -> None:
    group = os.environ["ROLLBOOK_FRAMEWORK_GROUP"]
    assert gymnasium.__version__ == EXPECTED.get(group, gymnasium.__version__)
    assert gymnasium.__version__ >= "1.4" or group in EXPECTED


@pytest.mark.core
@pytest.mark.parametrize("file", FILES)
def test_episodes_are_recorded_rightly_in_this_release(file: str) -> None:
    # From the root, so that a spawned sub-process finds the tests' own recorder by its module name.
    options = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-c", os.devnull, "--rootdir", "."]
    path = os.pathsep.join([str(EPISODES.parent / "support"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(EPISODES / file)],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=EPISODES.parents[1],
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout[-4000:]


def test_an_environment_of_pixels_is_filmed_and_kept_while_its_twin_sees_the_same(tmp_path: Path) -> None:
    def make() -> Any:
        env = gymnasium.make("CartPole-v1", render_mode="rgb_array", max_episode_steps=12)
        small = gymnasium.spaces.Box(0, 255, (40, 60, 3), np.uint8)
        pictures = gymnasium.wrappers.AddRenderObservation(env)
        return gymnasium.wrappers.TransformObservation(pictures, lambda obs: obs[::10, ::10].copy(), small)

    run = rollbook.init("pixels", "twin", dir=tmp_path, sinks=[], keeper="inline", strict=True)
    plain, recorded = make(), RecordEpisodes(make(), run.scope("train"), steps="first", video="first, best")
    for seed in range(3):
        np.testing.assert_array_equal(plain.reset(seed=seed)[0], recorded.reset(seed=seed)[0])
        over, seen = False, 1
        while not over:
            mine, theirs = recorded.step(seed % 2), plain.step(seed % 2)
            np.testing.assert_array_equal(mine[0], theirs[0])
            assert mine[1:] == theirs[1:]
            over, seen = mine[2] or mine[3], seen + 1
        if seed == 0:
            first = seen
    recorded.close()
    book = run.book
    episode = book.episodes().to_pylist()[0]
    films = book.media("video").to_pylist()
    assert (films[0]["episode_id"], films[0]["frames"]) == (episode["episode_id"], first)
    steps = [row for row in book.steps(episode["episode_id"]).to_pylist() if row["obs"] is not None]
    assert len(steps) == first
    assert {row["shape/obs"] for row in steps} == {"40,60,3"}
    run.finish()
    assert (run.folder / run.book.media("video").to_pylist()[0]["path"]).stat().st_size > 1000


CLASSIC = ["CartPole-v1", "Acrobot-v1", "MountainCar-v0", "Pendulum-v1", "MountainCarContinuous-v0"]


@pytest.mark.parametrize("name", CLASSIC)
def test_classic_control_is_recorded_as_it_was_played(name: str, tmp_path: Path) -> None:
    run = rollbook.init("classic", name, dir=tmp_path, sinks=[], keeper="inline", strict=True)
    env = RecordEpisodes(
        gymnasium.make(name, max_episode_steps=40), run.scope("train"), steps="first", clock="env_step"
    )
    env.action_space.seed(1)
    told, first = [], []
    for seed in range(3):
        obs, _ = env.reset(seed=seed)
        total, length, over = 0.0, 0, False
        while not over:
            if seed == 0:
                first.append(obs.copy())
            obs, reward, terminated, truncated, _ = env.step(env.action_space.sample())
            total, length, over = total + float(reward), length + 1, terminated or truncated
        told.append((seed, length, terminated, truncated, total))
    env.close()
    run.finish()
    rows = run.book.episodes().to_pylist()
    names = ("seed", "length", "terminated", "truncated")
    assert [tuple(row[name] for name in names) for row in rows] == [each[:4] for each in told]
    np.testing.assert_allclose([row["return"] for row in rows], [each[4] for each in told], rtol=1e-12)
    steps = run.book.episode("first").steps()
    np.testing.assert_array_equal(np.array(steps["obs"].to_pylist()[: len(first)], np.float32), np.array(first))
    assert run.book.series("train/return", x="env_step").x.tolist() == list(np.cumsum([each[1] for each in told]))


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("mode", MODES)
def test_sixteen_cartpoles_are_recorded_in_every_autoreset_mode(kind: str, mode: Any, tmp_path: Path) -> None:
    run = rollbook.init("sixteen", kind, dir=tmp_path, sinks=[], keeper="inline", strict=True)
    scope = run.scope("train")
    makers = [lambda: gymnasium.make("CartPole-v1", max_episode_steps=30)] * 16
    named = {} if mode is None else {"autoreset_mode": mode}
    if kind == "async":
        inner: Any = AsyncVectorEnv(record_envs(makers, scope), **named)
    else:
        inner = SyncVectorEnv(makers, **named)
    envs = RecordEpisodes(inner, scope)
    envs.reset(seed=list(range(16)))
    envs.action_space.seed(1)
    total, played, waiting = np.zeros(16), [], np.zeros(16, bool)
    for step in range(1, 81):
        run.clock(env_step=16 * step)
        _, rewards, terminated, truncated, _ = envs.step(envs.action_space.sample())
        over = terminated | truncated
        total += np.where(waiting, 0.0, rewards)
        over &= ~waiting
        played += [(i, total[i], bool(terminated[i])) for i in np.flatnonzero(over)]
        total[over] = 0.0
        name = "NEXT_STEP" if mode is None else mode.name
        waiting = over if name == "NEXT_STEP" else np.zeros(16, bool)
        if name == "DISABLED" and over.any():
            envs.reset(options={"reset_mask": over})
    envs.close()
    run.finish()
    rows = [row for row in run.book.episodes().to_pylist() if row["complete"]]
    assert len(rows) > 20
    assert sorted((row["env_index"], row["return"], row["terminated"]) for row in rows) == sorted(played)
    assert all(row["length"] == row["return"] and row["env_step"] % 16 == 0 for row in rows)
    assert run.book.alerts().num_rows == 0
