"""RLlib and Tune themselves, training for a few seconds: what their own outputs say and what the book says."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

GROUPS = ("rllib",)

ray = pytest.importorskip("ray")
gymnasium = pytest.importorskip("gymnasium")

import numpy as np  # noqa: E402
from ray import tune  # noqa: E402
from ray.rllib.algorithms.ppo import PPO, PPOConfig  # noqa: E402
from ray.rllib.env.multi_agent_env import MultiAgentEnv  # noqa: E402
from ray.rllib.utils.metrics.metrics_logger import MetricsLogger  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters import rllib  # noqa: E402
from rollbook.adapters.rllib.data import EpisodeData, tidy  # noqa: E402
from rollbook.adapters.rllib.identity import run_id  # noqa: E402

SOURCES = str(Path(rollbook.__file__).parents[1])


class Plant(gymnasium.Env):  # type: ignore[misc,name-defined]
    """Episodes of exactly `length` steps; step t pays 1, runs at speed t and makes a part."""

    def __init__(self, config: Any = None) -> None:
        self.length = int((config or {}).get("length", 10))
        self.flag = (config or {}).get("die_once")
        self.fail_flag = (config or {}).get("fail_once")
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (3,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.t = self.episodes = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.t = 0
        return np.zeros(3, np.float32), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        done = self.t >= self.length
        self.episodes += done
        if self.flag and self.episodes >= 7 and not os.path.exists(self.flag):
            Path(self.flag).write_text("dead")
            os._exit(1)
        if self.fail_flag and self.episodes >= 8 and not os.path.exists(self.fail_flag):
            Path(self.fail_flag).write_text("failed")
            raise RuntimeError("the environment's own mistake")
        info = {
            "data": {"running": {"speed": float(self.t)}, "final": {"parts": self.t}},
            "media": {"trace": [self.t, 2 * self.t]},
            "reward_components": {"base": 0.75, "bonus": 0.25},
        }
        return np.full(3, self.t / self.length, np.float32), 1.0, done, False, info


class Pair(MultiAgentEnv):  # type: ignore[misc]
    """Two agents; `b` ends after three steps, `a` and the episode after five."""

    def __init__(self, config: Any = None) -> None:
        super().__init__()
        self.agents = self.possible_agents = ["a", "b"]
        box, two = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32), gymnasium.spaces.Discrete(2)
        self.observation_spaces = {"a": box, "b": box}
        self.action_spaces = {"a": two, "b": two}
        self.t = 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        self.t, self.agents = 0, ["a", "b"]
        return {agent: np.zeros(2, np.float32) for agent in self.agents}, {}

    def step(self, actions: Any) -> Any:
        self.t += 1
        acting = ["a", "b"] if self.t <= 3 else ["a"]
        obs = {agent: np.full(2, self.t / 5, np.float32) for agent in acting}
        rewards = {agent: 1.0 if agent == "a" else -2.0 for agent in acting}
        ends = {"b": self.t == 3} if "b" in acting else {}
        infos = {agent: {"data": {"running": {"load": 1.0 * self.t}, "final": {"stock": self.t}}} for agent in acting}
        ends["__all__"] = self.t >= 5
        return obs, rewards, ends, {"__all__": False}, infos


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
        runtime_env={"env_vars": {"PYTHONPATH": SOURCES}},
    )
    yield
    ray.shutdown()


def small(env: Any = Plant, runners: int = 1, **env_config: Any) -> Any:
    return (
        PPOConfig()
        .environment(env, env_config=env_config)
        .env_runners(num_env_runners=runners, rollout_fragment_length=32, num_envs_per_env_runner=1)
        .training(train_batch_size=64, minibatch_size=32, num_epochs=1)
        .rl_module(model_config={"fcnet_hiddens": [8]})
    )


def book_in(root: Path) -> Any:
    (only,) = rollbook.open(root)
    return only


def numbers(found: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The leaves of a native result that are numbers."""
    flat: dict[str, Any] = {}
    for key, value in found.items():
        if isinstance(value, dict):
            if f"{prefix}{key}" != "config":
                flat |= numbers(value, f"{prefix}{key}/")
        elif isinstance(value, (int, float)):
            flat[f"{prefix}{key}"] = value
    return flat


def equal(a: Any, b: Any) -> bool:
    return a == b or (a is not None and b is not None and math.isnan(a) and math.isnan(b))


@pytest.mark.core
def test_a_plain_training_loop_is_one_run_with_all_its_episodes_and_results(tmp_path: Path) -> None:
    config = small(num_envs_per_env_runner=2).callbacks(
        rllib.callbacks(tmp_path / "runs", project="plant", name="plain", episode_data=True, transitions=True)
    )
    config.env_runners(num_envs_per_env_runner=2).evaluation(
        evaluation_interval=1, evaluation_duration=2, evaluation_num_env_runners=0
    )
    algorithm = config.build_algo()
    results = [algorithm.train() for _ in range(2)]
    folder = Path(algorithm.logdir)
    algorithm.stop()
    book = book_in(tmp_path / "runs")
    assert (book.project, book.name, book.status) == ("plant", "plain", "finished")

    rows = book.metrics(["env_runners/episode_return_mean"], x="epoch", exact=True).to_pylist()
    assert [row["epoch"] for row in rows] == [1, 2]
    assert [row["env_step"] for row in rows] == [r["num_env_steps_sampled_lifetime"] for r in results]
    for result, epoch in zip(results, (1, 2), strict=True):
        expected = numbers(result)
        (row,) = [r for r in book.metrics().to_pylist() if r["training_iteration"] == epoch]
        assert len(expected) > 60
        assert [key for key, value in expected.items() if not equal(row[key], value)] == []

    episodes = book.episodes().to_pylist()
    train = [row for row in episodes if row["scope"] == "train" and row["complete"]]
    test = [row for row in episodes if row["scope"] == "test" and row["complete"]]
    assert len(train) == sum(r["env_runners"]["num_episodes"] for r in results)
    assert len(test) == 4
    assert {(row["return"], row["length"]) for row in train + test} == {(10.0, 10)}
    assert {row["running/speed/sum"] for row in train} == {55.0}
    assert {row["final/parts"] for row in train} == {10}
    assert min(row["policy_version"] for row in train) < max(row["policy_version"] for row in train)
    custom = results[0]["env_runners"]["custom_metrics"]
    assert (custom["speed_avg_mean"], custom["speed_sum_max"], custom["parts_min"]) == (5.5, 55.0, 10.0)
    assert results[0]["env_runners"]["hist_stats"]["speed"][:10] == [float(i) for i in range(1, 11)]
    assert results[0]["evaluation"]["env_runners"]["custom_metrics"]["speed_sum_mean"] == 55.0

    files = sorted((folder / "episode_data").iterdir())
    assert [file.name for file in files] == [
        f"data-{int(r['num_env_steps_sampled_lifetime']):08d}.json" for r in results
    ]
    data = json.loads(files[0].read_text())
    assert data[0] == {"trace": [[t, 2 * t] for t in range(1, 11)]}
    assert len(data) == results[0]["env_runners"]["num_episodes"] + 2

    one = train[0]["episode_id"]
    steps = book.steps(one).to_pylist()
    speeds = {row["t"]: row["running/speed"] for row in steps if row["running/speed"] is not None}
    assert speeds == {t: float(t + 1) for t in range(10)}
    moves = [row for row in steps if row["obs"] is not None]
    assert sorted(row["t"] for row in moves) == list(range(10))
    assert [row["terminated"] for row in sorted(moves, key=lambda row: row["t"])] == [False] * 9 + [True]
    rewards = book.table("rewards").to_pylist()
    assert {row["component"]: row["sum"] for row in rewards if row["episode_id"] == one}["bonus"] == 2.5


@pytest.mark.parametrize(
    "runners", [pytest.param(0, id="in the driver", marks=pytest.mark.core), pytest.param(1, id="in an actor")]
)
def test_an_evaluation_is_written_when_it_happened_and_not_again_with_the_results_that_repeat_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runners: int
) -> None:
    evaluated: list[int] = []
    evaluate = PPO.evaluate

    def counted(algorithm: Any, *arguments: Any, **options: Any) -> Any:
        evaluated.append(algorithm.iteration)
        return evaluate(algorithm, *arguments, **options)

    monkeypatch.setattr(PPO, "evaluate", counted)
    config = small().callbacks(rllib.callbacks(tmp_path / "runs", episode_data=True))
    config.evaluation(
        evaluation_interval=2,
        evaluation_duration=2,
        evaluation_num_env_runners=runners,
        evaluation_config={"env_config": {"length": 7}},
    )
    algorithm = config.build_algo()
    results, times = [], []
    for _ in range(5):
        before = len(evaluated)
        results.append(algorithm.train())
        times.append(len(evaluated) - before)
    folder = Path(algorithm.logdir)
    algorithm.stop()
    assert times == [0, 1, 0, 1, 0]
    assert ["evaluation" in result for result in results] == [False, True, True, True, True]  # RLlib repeats them

    book = book_in(tmp_path / "runs")
    key = "evaluation/env_runners/episode_len_mean"
    rows = {row["training_iteration"]: row for row in book.metrics().to_pylist() if row["training_iteration"]}
    assert {epoch: row[key] for epoch, row in rows.items() if row[key] is not None} == {2: 7.0, 4: 7.0}
    test = [row for row in book.episodes().to_pylist() if row["scope"] == "test" and row["complete"]]
    assert [row["length"] for row in test] == [7] * 4
    files = sorted((folder / "episode_data").iterdir())
    lengths = [[len(episode["trace"]) for episode in json.loads(file.read_text())] for file in files]
    assert [each.count(7) for each in lengths] == [2 * n for n in times]
    assert [each.count(10) for each in lengths] == [result["env_runners"]["num_episodes"] for result in results]


@pytest.mark.core
def test_tune_and_the_callback_write_one_run_that_equals_the_native_files(tmp_path: Path, reads_as: Any) -> None:
    config = small().callbacks(rllib.callbacks(tmp_path / "runs", episode_data=True))
    tuner = tune.Tuner(
        PPO,
        param_space=config,
        run_config=tune.RunConfig(
            name="exp",
            storage_path=str(tmp_path / "ray"),
            stop={"training_iteration": 2},
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=True),
            callbacks=[rllib.RollbookTune(episode_data=True)],
            verbose=0,
        ),
    )
    (found,) = tuner.fit()
    book = book_in(tmp_path / "runs")
    assert book.id == run_id("exp", Path(found.path).name)
    assert (book.project, book.group, book.status) == ("exp", "exp", "finished")
    assert book.config["train_batch_size"] == 64

    lines = [json.loads(line) for line in (Path(found.path) / "result.json").read_text().splitlines()]
    assert len(lines) == 2
    rows = book.metrics(x="epoch", exact=True).to_pylist()
    rows = [row for row in rows if row.get("training_iteration") is not None]
    assert len(rows) == 2
    for line, row in zip(lines, rows, strict=True):
        expected = numbers(line)
        assert len(expected) > 60
        assert [key for key, value in expected.items() if not equal(row[key], value)] == []
    with (Path(found.path) / "progress.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    for cell, row in zip(cells, rows, strict=True):
        for key, text in cell.items():
            if isinstance(row.get(key), float) and text:
                assert equal(float(text), row[key]), key

    module = "learners/default_policy"
    reads_as(book, {"update/loss/policy": f"{module}/policy_loss", "update/entropy": f"{module}/entropy"})
    reads_as(book, {"time/env_steps": "num_env_steps_sampled_lifetime", "time/iterations": "training_iteration"})

    episodes = book.episodes().to_pylist()
    done = [row for row in episodes if row["complete"]]
    assert len(done) == sum(line["env_runners"]["num_episodes"] for line in lines)
    assert len({row["writer"] for row in done}) == 1
    assert book.attempts[0]["writer"] != done[0]["writer"]
    data = Path(found.path) / "episode_data" / f"data-{int(lines[0]['num_env_steps_sampled_lifetime']):08d}.json"
    assert len(json.loads(data.read_text())) == lines[0]["env_runners"]["num_episodes"]
    assert "episode_media" not in lines[0]["env_runners"]
    kept = book.checkpoints(everything=True).to_pylist()
    assert [row["epoch"] for row in kept] == [2]


def test_agents_of_a_multi_agent_env_are_kept_apart_and_their_transitions_are_recorded(tmp_path: Path) -> None:
    config = small(Pair, runners=0).callbacks(rllib.callbacks(tmp_path / "runs", transitions=True))
    config.multi_agent(policies={"p"}, policy_mapping_fn=lambda *_, **__: "p")
    algorithm = config.build_algo()
    result = algorithm.train()
    algorithm.stop()
    book = book_in(tmp_path / "runs")
    done = [row for row in book.episodes().to_pylist() if row["complete"]]
    assert len(done) == result["env_runners"]["num_episodes"] > 5
    assert {(row["return"], row["length"]) for row in done} == {(5 * 1.0 + 3 * -2.0, 5)}
    assert {row["running/a/load/sum"] for row in done} == {15.0}
    assert {row["running/b/load/sum"] for row in done} == {6.0}
    assert {(row["final/a/stock"], row["final/b/stock"]) for row in done} == {(5, 3)}
    one = done[0]["episode_id"]
    shares = [r for r in book.table("rewards").to_pylist() if r["episode_id"] == one]
    assert {row["agent"]: row["sum"] for row in shares if row["agent"]} == {"a": 5.0, "b": -6.0}
    moves = [row for row in book.steps(one).to_pylist() if row["obs"] is not None]
    assert sorted((row["agent"], row["t"]) for row in moves) == [("a", t) for t in range(5)] + [
        ("b", t) for t in range(3)
    ]
    assert result["env_runners"]["custom_metrics"]["a/load_sum_mean"] == 15.0


def test_nothing_recorded_is_lost_when_an_env_runner_dies(tmp_path: Path) -> None:
    config = small(die_once=str(tmp_path / "flag")).callbacks(rllib.callbacks(tmp_path / "runs"))
    config.fault_tolerance(restart_failed_env_runners=True)
    algorithm = config.build_algo()
    reported = 0
    for _ in range(60):  # the dead runner's iterations have no episodes
        number = algorithm.train().get("env_runners", {}).get("num_episodes", math.nan)
        reported += 0 if math.isnan(number) else int(number)
        if reported > 6:
            break
    algorithm.stop()
    assert (tmp_path / "flag").exists()
    done = [row for row in book_in(tmp_path / "runs").episodes().to_pylist() if row["complete"]]
    by_writer = {writer: [row for row in done if row["writer"] == writer] for writer in {r["writer"] for r in done}}
    first = by_writer.pop(done[0]["writer"])
    assert len(first) == 6  # it died at the end of its seventh, before the environment had returned
    assert by_writer, "its successor writes to the same run"
    assert len(done) >= reported > 6


def test_a_trial_that_fails_once_is_one_run_that_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    config = small(runners=0, fail_once=str(tmp_path / "flag")).callbacks(rllib.callbacks(tmp_path / "runs"))
    tuner = tune.Tuner(
        PPO,
        param_space=config,
        run_config=tune.RunConfig(
            name="exp",
            storage_path=str(tmp_path / "ray"),
            stop={"training_iteration": 3},
            checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=1),
            failure_config=tune.FailureConfig(max_failures=1),
            callbacks=[rllib.RollbookTune()],
            verbose=0,
        ),
    )
    tuner.fit()
    assert (tmp_path / "flag").exists()
    book = book_in(tmp_path / "runs")
    assert book.status == "finished"
    assert len(book.attempts) == 2
    rows = book.metrics(["training_iteration"]).to_pylist()
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    shown = [row for row in book.episodes().to_pylist() if row["complete"]]
    every = [row for row in book.episodes(attempts="all").to_pylist() if row["complete"]]
    assert {row["attempt"] for row in shown} == {1, 2}
    assert len(every) > len(shown)  # those between the checkpoint and the failure are hidden, and kept


def test_lengths_are_exact_where_rllib_adds_artificial_steps(tmp_path: Path) -> None:
    config = small(runners=0, length=30).callbacks(rllib.callbacks(tmp_path / "runs"))
    algorithm = config.build_algo()
    native = [algorithm.train()["env_runners"]["episode_len_mean"] for _ in range(2)]
    algorithm.stop()
    done = [row for row in book_in(tmp_path / "runs").episodes().to_pylist() if row["complete"]]
    assert {(row["length"], row["return"]) for row in done} == {(30, 30.0)}
    assert max(native) >= 30.0


def test_means_over_several_runners_are_the_means_of_their_episodes() -> None:
    runners, root = [MetricsLogger(), MetricsLogger()], MetricsLogger(root=True)
    for runner, episodes in zip(runners, ([1.0, 2.0, 3.0], [10.0]), strict=True):
        for speed in episodes:
            data = EpisodeData(True)
            data.take({"data": {"running": {"speed": speed}}, "media": {"trace": [1]}})
            data.push(runner)
    root.aggregate([runner.reduce() for runner in runners], key="env_runners")
    result = root.reduce(compile=True)
    tidy(result)
    custom = result["env_runners"]["custom_metrics"]
    assert [custom[f"speed_avg_{how}"] for how in ("mean", "min", "max")] == [4.0, 1.0, 10.0]
    assert sorted(result["env_runners"]["hist_stats"]["speed"]) == [1.0, 2.0, 3.0, 10.0]
    assert len(result["env_runners"]["episode_media"]["episode_data"]) == 4
