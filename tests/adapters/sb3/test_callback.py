"""The callback in a host with Stable-Baselines3's interface and order of events."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fake_sb3
import rollbook
from rollbook.errors import BadInput


def test_native_rows_keep_their_step_and_updates_stand_at_their_own(sb3_host: Any, run: Any, rows: Any) -> None:
    fake_sb3.PPO().learn(12, sb3_host.RollbookCallback(run))
    kl = [float(np.float32(n / 1000)) for n in (10, 20, 30)]
    assert rows(run, "train/approx_kl", x="env_step") == [(8, kl[0]), (12, kl[1])]
    assert rows(run, "update/approx_kl", x="env_step") == [(4, kl[0]), (8, kl[1]), (12, kl[2])]
    assert rows(run, "update/approx_kl", x="policy_version") == [(1, kl[0]), (2, kl[1]), (3, kl[2])]
    assert rows(run, "rollout/ep_rew_mean", x="step") == [(4, 1.0), (8, 1.0), (12, 1.0)]


def test_every_episode_is_kept_with_its_place(sb3_host: Any, run: Any) -> None:
    fake_sb3.PPO().learn(12, sb3_host.RollbookCallback(run))
    episodes = run.book.episodes().to_pylist()
    assert [row["env_step"] for row in episodes] == [3, 6, 9, 12]
    assert [row["length"] for row in episodes] == [3] * 4
    assert [row["episode"] for row in episodes] == [1, 2, 3, 4]
    assert [row["policy_version"] for row in episodes] == [0, 1, 2, 2]
    assert all(row["terminated"] and not row["truncated"] for row in episodes)


def test_stages_are_timed(sb3_host: Any, run: Any) -> None:
    fake_sb3.PPO().learn(8, sb3_host.RollbookCallback(run))
    names = [row["name"] for row in run.book.timings().to_pylist()]
    assert names == ["rollout", "train", "rollout", "train"]


def test_counters_that_begin_again_are_continued(sb3_host: Any, run: Any, rows: Any) -> None:
    model, callback = fake_sb3.PPO(), sb3_host.RollbookCallback(run)
    model.learn(8, callback)
    model.learn(8, callback)
    model.learn(4, callback, reset_num_timesteps=False)
    assert rows(run, "time/iterations", x="env_step") == [(4, 1), (8, 2), (12, 1), (16, 2), (20, 1)]
    assert rows(run, "time/iterations", x="step") == [(4, 1), (4, 1), (8, 2), (8, 2), (12, 1)]
    assert run.internals.offsets == {"env_step": 8}


def test_the_configuration_of_the_algorithm_is_kept_and_does_not_replace_the_users(sb3_host: Any, run: Any) -> None:
    run.config["gamma"] = "mine"
    fake_sb3.PPO(learning_rate=lambda progress: progress * 1e-3, seed=3).learn(4, sb3_host.RollbookCallback(run))
    assert run.config["algo"] == "PPO"
    assert run.config["env"] == "Three-v0"
    assert run.config["learning_rate"] == 1e-3 or run.config["learning_rate"] == "<lambda>"
    assert run.config["gamma"] == "mine"
    assert run.config["seed"] == 3


def test_checkpoints_come_at_multiples_of_steps(sb3_host: Any, run: Any) -> None:
    fake_sb3.PPO().learn(12, sb3_host.RollbookCallback(run, checkpoint_every=5, keep=1))
    saved = run.book.checkpoints(everything=True).to_pylist()
    assert [row["env_step"] for row in saved] == [5, 10]
    assert len(list((run.folder / "ckpt").glob("iteration_*.zip"))) == 1


def test_evaluated_episodes_stand_in_the_scope_test(sb3_host: Any, run: Any, tmp_path: Path) -> None:
    (tmp_path / "best_model.zip").write_bytes(b"best")
    evaluation = fake_sb3.EvalCallback([1.0, 4.0], best_model_save_path=str(tmp_path))
    callback = sb3_host.RollbookCallback(run)
    model = fake_sb3.PPO()
    original = model._env.step
    model._env.step = lambda: (evaluation.evaluate() if model.num_timesteps == 5 else None, original())[1]
    model.learn(8, callback, evaluations=evaluation)
    rows = run.book.episodes().to_pylist()
    assert [row["return"] for row in rows if row["scope"].startswith("test")] == [1.0, 4.0]
    assert len([row for row in rows if row["scope"].startswith("train")]) == 2
    assert run.summary["best_mean_reward"] == 2.5
    assert [row["score"] for row in run.book.checkpoints().to_pylist()] == [2.5]


def test_a_logger_that_has_the_run_already_does_not_get_it_twice(sb3_host: Any, run: Any, rows: Any) -> None:
    model = fake_sb3.PPO()
    model.logger.output_formats.append(sb3_host.RollbookOutputFormat(run))
    model.learn(4, sb3_host.RollbookCallback(run))
    assert len(model.logger.output_formats) == 1
    assert rows(run, "time/iterations") == [(1,)]


def test_without_a_run_one_is_opened_after_environment_and_algorithm(sb3_host: Any, tmp_path: Path) -> None:
    options = {"keeper": "inline", "sinks": (), "dir": tmp_path / "runs"}
    callback = sb3_host.RollbookCallback(run_options=options)
    fake_sb3.PPO(seed=5).learn(4, callback)
    assert (callback.run.project, callback.run.name, callback.run.seed) == ("Three-v0", "PPO", 5)
    callback.close()
    assert callback.run.status == "finished"


def test_a_failure_inside_is_reported_once_and_the_training_goes_on(
    sb3_host: Any, run: Any, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rollbook.errors import RollbookWarning

    def broken(*_args: Any) -> None:
        raise RuntimeError("no environments here")

    callback = sb3_host.RollbookCallback(run)
    monkeypatch.setattr(sys.modules["rollbook.adapters.sb3.callback"], "EpisodeTracker", broken)
    with pytest.warns(RollbookWarning, match="no environments here"):
        fake_sb3.PPO().learn(8, callback)
    assert len(rows(run, "time/iterations")) == 2


def test_bad_arguments_are_named(sb3_host: Any) -> None:
    with pytest.raises(BadInput, match="checkpoint_every=0"):
        sb3_host.RollbookCallback(checkpoint_every=0)
    with pytest.raises(BadInput, match="would record nothing"):
        fake_sb3.PPO().learn(4, sb3_host.RollbookCallback(run=False))


@pytest.mark.parametrize("first", ["record", "evaluate"])
def test_an_evaluation_at_the_step_of_a_save_is_kept_and_its_episodes_stand_there(
    first: str, sb3_host: Any, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"dir": tmp_path / "runs", "sinks": (), "keeper": "inline"}

    class Evaluates(fake_sb3.EvalCallback):  # type: ignore[misc]
        def _on_step(self) -> bool:
            if self.num_timesteps % 4 == 0:
                self.evaluate()
                self.logger.record("eval/mean_reward", 2.5)
                self.logger.dump(self.num_timesteps)
            return True

    class Both:
        def __init__(self, *callbacks: Any) -> None:
            self.callbacks, self.locals = callbacks, {"callback": self}

        def __getattr__(self, name: str) -> Any:
            def each(*arguments: Any) -> None:
                for callback in self.callbacks:
                    callback.locals = self.locals
                    getattr(callback, name)(*([{"callback": self}, {}] if len(arguments) == 2 else arguments))

            return each

    def learn(run: Any, model: Any, steps: int, more: bool = False) -> None:
        pair = [sb3_host.RollbookCallback(run, checkpoint_every=8), Evaluates([1.0, 4.0])]
        model.learn(steps, Both(*(pair if first == "record" else pair[::-1])), reset_num_timesteps=not more)

    run = rollbook.init("sb3", "order", **options)
    learn(run, fake_sb3.PPO(), 12)
    run.finish("crashed")
    run = rollbook.init("sb3", "order", resume="must", **options)
    assert run.restore("last").clocks["env_step"] == 8
    model = fake_sb3.PPO()
    model.num_timesteps = 8
    learn(run, model, 8, more=True)
    assert run.book.metrics(["eval/mean_reward"], x="env_step")["env_step"].to_pylist() == [4, 8, 12, 16]
    tested = [row["env_step"] for row in run.book.episodes().to_pylist() if row["scope"] == "test"]
    assert tested == [4, 4, 8, 8, 12, 12, 16, 16]
