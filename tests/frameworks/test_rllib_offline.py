"""RLlib trains offline, by MARWIL and by BC, on what rollbook recorded; and its own offline files come into a run."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import ray
from ray.rllib.algorithms.bc import BCConfig
from ray.rllib.algorithms.marwil import MARWILConfig

import rollbook
from rollbook.capture.gym import RecordEpisodes
from rollbook.errors import BadInput
from rollbook.formats.datasets import StepSource, from_rllib, to_rllib

GROUPS = ("rllib",)


@pytest.fixture(scope="module", autouse=True)
def small_ray() -> Iterator[None]:
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    path = os.pathsep.join([str(Path(rollbook.__file__).parents[1]), *filter(None, sys.path)])
    ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": path}}, log_to_driver=False)
    yield
    ray.shutdown()


def balance(obs: Any) -> int:
    """Keeps the pole up for hundreds of steps."""
    return int(obs[2] + 0.3 * obs[3] + 0.05 * obs[1] > 0)


@pytest.fixture
def recorded(new_run: Any) -> Any:
    """A book with 6 good episodes of CartPole-v1."""
    run = new_run("expert")
    env = RecordEpisodes(gymnasium.make("CartPole-v1", max_episode_steps=200), run.scope("train"), steps=True)
    for seed in range(6):
        obs, _ = env.reset(seed=seed)
        over = False
        while not over:
            obs, _, terminated, truncated, _ = env.step(balance(obs))
            over = terminated or truncated
    return run.book


@pytest.mark.parametrize("config", [MARWILConfig, BCConfig])
def test_rllib_learns_from_what_was_recorded(recorded: Any, tmp_path: Path, config: Any, record_property: Any) -> None:
    """One iteration of 30 batches: most of its time is Ray starting a process that reads for it."""
    told = to_rllib(recorded, tmp_path / "offline", action_logp=0.0)
    assert told.steps > 800
    env = gymnasium.make("CartPole-v1")
    algorithm = (
        config()
        .environment(observation_space=env.observation_space, action_space=env.action_space)
        .learners(num_learners=0)
        .env_runners(num_env_runners=0)
        .training(train_batch_size_per_learner=256, lr=5e-3)
        .offline_data(
            input_=[str(tmp_path / "offline")],
            dataset_num_iters_per_learner=30,
            map_batches_kwargs={"concurrency": 1, "num_cpus": 0.5},
            iter_batches_kwargs={"prefetch_batches": 1},
        )
        .build_algo()
    )
    begun = time.perf_counter()
    result = algorithm.train()
    took = time.perf_counter() - begun
    record_property("seconds", took)
    print(f"{config.__name__[:-6]} trained on {told.steps} recorded steps in {took:.1f} s")
    assert math.isfinite(float(result["learners"]["default_policy"]["policy_loss"]))
    import torch

    module = algorithm.learner_group._learner.module["default_policy"]
    rows = next(iter(StepSource(recorded)))
    batch = {"obs": torch.as_tensor(rows.columns["obs"])}
    chosen = module.forward_inference(batch)["action_dist_inputs"].argmax(-1).numpy()
    assert np.mean(chosen == np.asarray(rows.columns["action"])) > 0.75
    algorithm.stop()


@pytest.mark.parametrize("compressed", [["obs", "new_obs"], []])
def test_rllibs_own_steps_come_into_a_run(new_run: Any, tmp_path: Path, compressed: list[str]) -> None:
    from ray.rllib.algorithms.ppo import PPOConfig

    algorithm = (
        PPOConfig()
        .environment("CartPole-v1")
        .env_runners(num_env_runners=0, batch_mode="complete_episodes", rollout_fragment_length=64)
        .training(train_batch_size_per_learner=64, minibatch_size=32, num_epochs=1)
        .offline_data(output=str(tmp_path / "out"), output_write_episodes=False, output_compress_columns=compressed)
        .build_algo()
    )
    algorithm.train()
    algorithm.stop()
    run = new_run("back")
    if compressed:
        with pytest.raises(BadInput, match="never unpickles"):
            from_rllib(tmp_path / "out", run.scope("train"))
        return
    told = from_rllib(tmp_path / "out", run.scope("train"))
    assert told.steps > 60
    for trajectory in StepSource(run.book):
        obs, after = trajectory.columns["obs"], trajectory.next_observations()
        assert obs.shape[1:] == (4,)
        np.testing.assert_array_equal(obs[1:], after[: len(trajectory) - 1])
        assert trajectory.columns["action_logp"].shape == (len(trajectory),)
