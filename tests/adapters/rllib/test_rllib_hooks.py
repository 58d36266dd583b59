"""RLlib's hooks: episodes over chunks and agents, one run in all processes, failures that stay here."""

from __future__ import annotations

import json
import math
import pickle
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from rollbook.adapters.rllib.identity import run_id
from rollbook.book.book import Book
from rollbook.errors import BadInput, MissingExtra


def only_book(place: Path) -> Book:
    (found,) = rollbook.open(place)
    return found


def play(callback: Any, episode: Any, runner: Any, infos: list[Any], metrics: Any = None, end: bool = True) -> None:
    """Step an episode as an env runner does."""
    for i, info in enumerate(infos):
        episode.add(1.0, info, terminated=end and i == len(infos) - 1)
        callback.on_episode_step(episode=episode, env_runner=runner, env_index=0)
    if end:
        callback.on_episode_end(episode=episode, env_runner=runner, metrics_logger=metrics, env_index=0)


@pytest.fixture
def plain(rllib: Any, fakes: Any, tmp_path: Path) -> Any:
    """A callback of a plain loop whose only env runner lives in this process."""
    runner = fakes.EnvRunner()
    algorithm = fakes.Algorithm(tmp_path / "logdir", runner)
    callback = rllib.callbacks(tmp_path / "runs", transitions=True, sinks=(), keeper="inline", strict=True)()
    callback.on_algorithm_init(algorithm=algorithm)
    return types.SimpleNamespace(callback=callback, runner=runner, algorithm=algorithm, runs=tmp_path / "runs")


def test_an_episode_cut_into_chunks_is_one_episode(plain: Any, fakes: Any) -> None:
    metrics, episode = fakes.Metrics(), fakes.Single()
    plain.callback.on_episode_start(episode=episode, env_runner=plain.runner, env_index=0)
    play(plain.callback, episode, plain.runner, [fakes.info(1.0), fakes.info(2.0)], end=False)
    plain.callback.on_sample_end(env_runner=plain.runner, samples=[episode])
    kept = Book(plain.callback.run.folder).steps()["running/speed"].to_pylist()
    assert [v for v in kept if v is not None] == [1.0, 2.0]  # on disk before training has seen the sample
    plain.runner._weights_seq_no = 2
    second = episode.cut()
    play(plain.callback, second, plain.runner, [fakes.info(6.0, parts=4)], metrics)
    plain.callback.on_sample_end(env_runner=plain.runner, samples=[second])
    plain.algorithm.cleanup()
    assert plain.algorithm.cleaned
    book = only_book(plain.runs)
    (row,) = book.episodes().to_pylist()
    assert (row["return"], row["length"], row["running/speed/sum"], row["final/parts"]) == (3.0, 3, 9.0, 4)
    assert (row["policy_version_at_start"], row["policy_version"], row["episode_id"]) == (1, 2, "e0")
    assert metrics.said["custom_metrics", "speed_avg_mean"] == [3.0]
    assert book.status == "finished"
    moves = [r for r in book.steps("e0").to_pylist() if r["obs"] is not None]
    assert [(r["t"], r["obs"], r["next_obs"], r["terminated"]) for r in moves] == [
        (0, 0.0, 1.0, False),
        (1, 1.0, 2.0, False),
        (2, 2.0, 3.0, True),
    ]
    assert [r["action_logp"] for r in moves] == [-0.5] * 3
    assert book.info.drops == {}


def test_every_transition_has_the_info_of_its_step_the_last_one_too(plain: Any, fakes: Any) -> None:
    episode = fakes.Single()
    infos = [
        {"goal": goal, "data": {"running": {"speed": speed}}}
        for goal, speed in ((False, 1.0), (False, 2.0), (True, 6.0))
    ]
    plain.callback.on_episode_start(episode=episode, env_runner=plain.runner, env_index=0)
    play(plain.callback, episode, plain.runner, infos, fakes.Metrics())
    plain.callback.on_sample_end(env_runner=plain.runner, samples=[episode])
    plain.callback.on_sample_end(env_runner=plain.runner, samples=[])  # RLlib's own writer repeats what it has
    moves = Book(plain.callback.run.folder).steps().to_pylist()
    assert [(row["t"], row["info/goal"], row["running/speed"], row["terminated"]) for row in moves] == [
        (0, False, 1.0, False),
        (1, False, 2.0, False),
        (2, True, 6.0, True),
    ]
    assert Book(plain.callback.run.folder).episodes()["running/speed/mean"].to_pylist() == [3.0]


def test_training_and_evaluation_are_kept_apart(plain: Any, fakes: Any) -> None:
    other, evaluator = type(plain.callback)(), fakes.EnvRunner(evaluation=True)
    evaluator._rollbook_address = plain.runner._rollbook_address
    for callback, runner, name in ((plain.callback, plain.runner, "e1"), (other, evaluator, "e2")):
        episode = fakes.Single(name)
        callback.on_episode_start(episode=episode, env_runner=runner, env_index=0)
        play(callback, episode, runner, [{}], fakes.Metrics())
    book = plain.callback.run.book
    assert {row["episode_id"]: row["scope"] for row in book.episodes().to_pylist()} == {"e1": "train", "e2": "test"}
    assert {"train/return", "test/return"} <= set(book.keys())


def test_each_agents_reward_and_data_are_its_own(plain: Any, fakes: Any) -> None:
    metrics, episode = fakes.Metrics(), fakes.Several("a", "b")
    hooks: dict[str, Any] = {"episode": episode, "env_runner": plain.runner, "env_index": 0}
    plain.callback.on_episode_start(**hooks)
    for t in range(3):
        episode.agent_episodes["a"].add(1.0, fakes.info(float(t)), terminated=t == 2)
        if t == 0:  # b acts once, and is done
            episode.agent_episodes["b"].add(-2.0, fakes.info(10.0), terminated=True)
        if t == 1:  # c comes later; its first observation is no step
            episode.agent_episodes["c"] = fakes.Single("m0/c")
        episode.is_terminated = t == 2
        plain.callback.on_episode_step(**hooks)
    plain.callback.on_episode_end(**hooks, metrics_logger=metrics)
    plain.callback.on_sample_end(env_runner=plain.runner, samples=[episode])
    book = plain.callback.run.book
    (row,) = book.episodes().to_pylist()
    assert (row["return"], row["length"], row["terminated"], row["complete"]) == (1.0, 3, True, True)
    assert (row["running/a/speed/sum"], row["running/b/speed/sum"]) == (3.0, 10.0)
    sums = {r["agent"]: r["sum"] for r in book.table("rewards").to_pylist()}
    assert (sums["a"], sums["b"]) == (3.0, -2.0)
    assert metrics.said["custom_metrics", "a/speed_sum_mean"] == [3.0]
    moves = [(r["agent"], r["t"]) for r in book.steps("m0").to_pylist() if r["obs"] is not None]
    assert sorted(moves) == [("a", 0), ("a", 1), ("a", 2), ("b", 0)]


def test_a_runner_that_took_a_dead_ones_place_gets_the_run(plain: Any, fakes: Any) -> None:
    fresh = fakes.EnvRunner()
    group = fakes.Group(fresh)
    plain.callback.on_env_runners_recreated(env_runner_group=group, env_runner_indices=[2], algorithm=None)
    assert fresh._rollbook_address == plain.runner._rollbook_address
    assert group.asked == [[2]]


def test_results_of_a_plain_loop_are_logged_and_their_episode_data_filed(
    rllib: Any, fakes: Any, tmp_path: Path
) -> None:
    algorithm = fakes.Algorithm(tmp_path / "logdir", fakes.EnvRunner())
    callback = rllib.callbacks(tmp_path / "runs", episode_data=True, sinks=(), keeper="inline", strict=True)()
    callback.on_algorithm_init(algorithm=algorithm)
    result = {"training_iteration": 1, "num_env_steps_sampled_lifetime": 7, "env_runners": {"x": 1.5}}
    result["env_runners"]["episode_media"] = {"episode_data": ['{"a":[1]}']}  # type: ignore[index]
    callback.on_train_result(algorithm=algorithm, result=result)
    (row,) = callback.run.book.metrics(["env_runners/x"]).to_pylist()
    assert (row["env_step"], row["epoch"], row["env_runners/x"]) == (7, 1, 1.5)
    assert json.loads((tmp_path / "logdir/episode_data/data-00000007.json").read_text()) == [{"a": [1]}]
    assert callback.run.config == {"lr": 0.1}
    assert (callback.run.project, callback.run.name) == ("Plant", "Algorithm")


def test_an_evaluation_is_written_once_however_often_results_repeat_it(rllib: Any, fakes: Any, tmp_path: Path) -> None:
    algorithm = fakes.Algorithm(tmp_path / "logdir", fakes.EnvRunner())
    callback = rllib.callbacks(tmp_path / "runs", episode_data=True, sinks=(), keeper="inline", strict=True)()
    callback.on_algorithm_init(algorithm=algorithm)

    def evaluation(i: int, is_repeated: bool, seconds: float, *texts: str) -> dict[str, Any]:
        """As RLlib 2.60 has it, which tests/frameworks holds: what is repeated is not the same in all its numbers."""
        inside: dict[str, Any] = {
            "episode_return_mean": 2.0,
            "sample": seconds,
            "lr": math.nan,
            "episode_media": {"episode_data": list(texts)},
            "num_episodes": 2 if is_repeated else np.int64(2),
            "num_episodes_lifetime": float(2 * i),
        }
        if is_repeated:
            return {"env_runners": {**inside, "steps_throughput": {"since_last_reduce": 2.25 + i}}}
        return {"env_runners": inside, "num_healthy_workers": 0}

    measured = [None, (0.5, '{"a":[1]}'), (0.5, '{"a":[1]}'), (0.7, '{"a":[1]}'), (0.7, '{"a":[1]}')]
    for i, told in enumerate(measured, 1):
        result: dict[str, Any] = {"training_iteration": i, "num_env_steps_sampled_lifetime": 10 * i, "env_runners": {}}
        if told is not None:  # RLlib attaches the last evaluation to every later result
            result["evaluation"] = evaluation(i, told == measured[i - 2], *told)
        callback.on_train_result(algorithm=algorithm, result=result)
        assert "evaluation" in result or told is None  # what Tune's schedulers read stays
    key = "evaluation/env_runners/episode_return_mean"
    rows = callback.run.book.metrics([key], x="env_step").to_pylist()
    assert [(row["env_step"], row[key]) for row in rows if row[key] is not None] == [(20, 2.0), (40, 2.0)]
    files = sorted((tmp_path / "logdir/episode_data").iterdir())
    assert [len(json.loads(path.read_text())) for path in files] == [1, 1]


def test_episodes_under_way_at_the_end_get_a_row(plain: Any, fakes: Any) -> None:
    plain.runner._callbacks = [plain.callback]
    done, episode = fakes.Single("e0"), fakes.Single("e1")
    for one, end in ((done, True), (episode, False)):
        plain.callback.on_episode_start(episode=one, env_runner=plain.runner, env_index=0)
        play(plain.callback, one, plain.runner, [fakes.info(1.0), fakes.info(2.0)], end=end)
    plain.algorithm.cleanup()
    rows = {row["episode_id"]: row for row in only_book(plain.runs).episodes().to_pylist()}
    assert {name: (row["length"], row["complete"]) for name, row in rows.items()} == {"e0": (2, True), "e1": (2, False)}


def test_a_failure_in_recording_is_counted_and_training_goes_on(rllib: Any, fakes: Any, tmp_path: Path) -> None:
    runner = fakes.EnvRunner()
    callback = rllib.callbacks(tmp_path / "runs", sinks=(), keeper="inline")()
    callback.on_algorithm_init(algorithm=fakes.Algorithm(tmp_path, runner))
    broken = fakes.Single()
    broken.get_infos = lambda _index: 1 / 0
    callback.on_episode_start(episode=broken, env_runner=runner, env_index=0)
    with pytest.warns(UserWarning, match="ZeroDivisionError"):
        play(callback, broken, runner, [{}, {}], fakes.Metrics())
    assert callback.run.bill()["drops"]["rllib/episodes"] == 2


def test_a_runner_that_cannot_see_the_folder_still_feeds_rllibs_metrics(rllib: Any, fakes: Any, tmp_path: Path) -> None:
    callback, runner, metrics = rllib.callbacks(tmp_path / "runs")(), fakes.EnvRunner(), fakes.Metrics()
    runner._rollbook_address = (str(tmp_path / "elsewhere"), "nonce", 1)
    episode = fakes.Single()
    with pytest.warns(UserWarning, match="joining the run"):
        callback.on_episode_start(episode=episode, env_runner=runner, env_index=0)
    play(callback, episode, runner, [fakes.info(2.0)], metrics)
    callback.on_sample_end(env_runner=runner, samples=[episode])
    assert metrics.said["custom_metrics", "speed_sum_mean"] == [2.0]


def test_a_trial_that_is_tried_again_goes_back_to_its_checkpoint(rllib: Any, fakes: Any, tmp_path: Path) -> None:
    trial = fakes.Trial(tmp_path)
    kind = rllib.callbacks(tmp_path / "runs", sinks=(), keeper="inline", strict=True)
    for attempt in (1, 2):
        algorithm = fakes.Algorithm(tmp_path, fakes.EnvRunner(), trial=trial)
        callback = kind()
        callback.on_algorithm_init(algorithm=algorithm)
        if attempt == 2:
            algorithm.iteration = 1
            callback.on_checkpoint_loaded(algorithm=algorithm)
        for epoch in (1, 2, 3)[attempt - 1 :]:
            result = {"training_iteration": epoch, "num_env_steps_sampled_lifetime": 10 * epoch, "x": attempt}
            callback.on_train_result(algorithm=algorithm, result=result)
        algorithm.cleanup()
    book = only_book(tmp_path / "runs")
    assert book.id == run_id("exp", trial.storage.trial_dir_name)
    assert [(row["epoch"], row["x"]) for row in book.metrics(["x"], x="epoch").to_pylist()] == [(1, 1), (2, 2), (3, 2)]


def test_the_old_api_stack_is_named(rllib: Any, fakes: Any, tmp_path: Path) -> None:
    algorithm = fakes.Algorithm(tmp_path)
    algorithm.config.enable_env_runner_and_connector_v2 = False
    callback = rllib.callbacks(tmp_path / "runs", sinks=(), keeper="inline")()
    with pytest.warns(UserWarning, match="old API stack"):
        callback.on_algorithm_init(algorithm=algorithm)
    callback.on_episode_start(episode=object(), worker=object())  # hooks of the old stack have no env_runner


def test_mistakes_are_named_when_the_callback_is_made(rllib: Any) -> None:
    for arguments in ({"episode_data": "yes"}, {"exclude": "["}, {"project": "a:b"}, {"colour": 1}):
        with pytest.raises(BadInput):
            rllib.callbacks(**arguments)


def test_without_ray_the_pip_line_is_reported_and_an_unknown_release_is_refused(
    fakes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version, expected in (
        (None, r"'rollbook(-core)?\[rllib\]'"),
        ("2.40.0", "2.40.0.*>=2.60,<2.61|2.60"),
    ):
        package = fakes.install(monkeypatch, version)
        with pytest.raises((MissingExtra, ImportError), match=expected):
            _ = package.RollbookTune
    with pytest.raises(AttributeError):
        _ = package.nothing


def test_settings_travel_to_other_processes(tmp_path: Path) -> None:
    from rollbook.adapters.rllib.identity import RunOptions

    settings = RunOptions(tmp_path, "p", options={"seed": 3})
    assert vars(pickle.loads(pickle.dumps(settings))) == vars(settings)
