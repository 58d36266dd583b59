"""The callback in a host with Stable-Baselines3's interface and order of events."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from rollbook.adapters import _versions
from rollbook.errors import BadInput, MissingExtra

_spec = importlib.util.spec_from_file_location("fake_sb3", Path(__file__).with_name("fake.py"))
assert _spec is not None
assert _spec.loader is not None
fake = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fake)


def _forget() -> None:
    for name in [name for name in sys.modules if name.startswith("rollbook.adapters.sb3")]:
        del sys.modules[name]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, installed: Callable[[str, str], None]) -> Iterator[Any]:
    """`rollbook.adapters.sb3`, imported where the fake library is installed."""
    before = {name: module for name, module in sys.modules.items() if name.startswith("rollbook.adapters.sb3")}
    _forget()
    for name, module in fake.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    installed("stable-baselines3", "2.9.0")
    import rollbook.adapters.sb3 as adapter

    yield adapter
    _forget()
    sys.modules.update(before)


def test_native_rows_keep_their_step_and_updates_stand_at_their_own(host: Any, run: Any, rows: Any) -> None:
    fake.PPO().learn(12, host.RollbookCallback(run))
    kl = [float(np.float32(n / 1000)) for n in (10, 20, 30)]
    assert rows(run, "train/approx_kl", x="env_step") == [(8, kl[0]), (12, kl[1])]
    assert rows(run, "update/approx_kl", x="env_step") == [(4, kl[0]), (8, kl[1]), (12, kl[2])]
    assert rows(run, "update/approx_kl", x="policy_version") == [(1, kl[0]), (2, kl[1]), (3, kl[2])]
    assert rows(run, "rollout/ep_rew_mean", x="step") == [(4, 1.0), (8, 1.0), (12, 1.0)]


def test_every_episode_is_kept_with_its_place(host: Any, run: Any) -> None:
    fake.PPO().learn(12, host.RollbookCallback(run))
    episodes = run.book.episodes().to_pylist()
    assert [row["env_step"] for row in episodes] == [3, 6, 9, 12]
    assert [row["length"] for row in episodes] == [3] * 4
    assert [row["episode"] for row in episodes] == [1, 2, 3, 4]
    assert [row["policy_version"] for row in episodes] == [0, 1, 2, 2]
    assert all(row["terminated"] and not row["truncated"] for row in episodes)


def test_stages_are_timed(host: Any, run: Any) -> None:
    fake.PPO().learn(8, host.RollbookCallback(run))
    names = [row["name"] for row in run.book.timings().to_pylist()]
    assert names == ["rollout", "train", "rollout", "train"]


def test_counters_that_begin_again_are_continued(host: Any, run: Any, rows: Any) -> None:
    model, callback = fake.PPO(), host.RollbookCallback(run)
    model.learn(8, callback)
    model.learn(8, callback)
    model.learn(4, callback, reset_num_timesteps=False)
    assert rows(run, "time/iterations", x="env_step") == [(4, 1), (8, 2), (12, 1), (16, 2), (20, 1)]
    assert rows(run, "time/iterations", x="step") == [(4, 1), (4, 1), (8, 2), (8, 2), (12, 1)]
    assert run.internals.offsets == {"env_step": 8}


def test_the_configuration_of_the_algorithm_is_kept_and_does_not_replace_the_users(host: Any, run: Any) -> None:
    run.config["gamma"] = "mine"
    fake.PPO(learning_rate=lambda progress: progress * 1e-3, seed=3).learn(4, host.RollbookCallback(run))
    assert run.config["algo"] == "PPO"
    assert run.config["env"] == "Three-v0"
    assert run.config["learning_rate"] == 1e-3 or run.config["learning_rate"] == "<lambda>"
    assert run.config["gamma"] == "mine"
    assert run.config["seed"] == 3


def test_checkpoints_come_at_multiples_of_steps(host: Any, run: Any) -> None:
    fake.PPO().learn(12, host.RollbookCallback(run, checkpoint_every=5, keep=1))
    saved = run.book.checkpoints(everything=True).to_pylist()
    assert [row["env_step"] for row in saved] == [5, 10]
    assert len(list((run.folder / "ckpt").glob("iteration_*.zip"))) == 1


def test_evaluated_episodes_stand_in_the_scope_test(host: Any, run: Any, tmp_path: Path) -> None:
    (tmp_path / "best_model.zip").write_bytes(b"best")
    evaluation = fake.EvalCallback([1.0, 4.0], best_model_save_path=str(tmp_path))
    callback = host.RollbookCallback(run)
    model = fake.PPO()
    original = model._env.step
    model._env.step = lambda: (evaluation.evaluate() if model.num_timesteps == 5 else None, original())[1]
    model.learn(8, callback, evaluations=evaluation)
    rows = run.book.episodes().to_pylist()
    assert [row["return"] for row in rows if row["scope"].startswith("test")] == [1.0, 4.0]
    assert len([row for row in rows if row["scope"].startswith("train")]) == 2
    assert run.summary["best_mean_reward"] == 2.5
    assert [row["score"] for row in run.book.checkpoints().to_pylist()] == [2.5]


def test_a_logger_that_has_the_run_already_does_not_get_it_twice(host: Any, run: Any, rows: Any) -> None:
    model = fake.PPO()
    model.logger.output_formats.append(host.RollbookOutputFormat(run))
    model.learn(4, host.RollbookCallback(run))
    assert len(model.logger.output_formats) == 1
    assert rows(run, "time/iterations") == [(1,)]


def test_without_a_run_one_is_opened_after_environment_and_algorithm(host: Any, tmp_path: Path) -> None:
    options = {"keeper": "inline", "sinks": (), "dir": tmp_path / "runs"}
    callback = host.RollbookCallback(run_options=options)
    fake.PPO(seed=5).learn(4, callback)
    assert (callback.run.project, callback.run.name, callback.run.seed) == ("Three-v0", "PPO", 5)
    callback.close()
    assert callback.run.status == "finished"


def test_a_failure_inside_is_reported_once_and_the_training_goes_on(
    host: Any, run: Any, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rollbook.errors import RollbookWarning

    def broken(*_args: Any) -> None:
        raise RuntimeError("no environments here")

    callback = host.RollbookCallback(run)
    monkeypatch.setattr(sys.modules["rollbook.adapters.sb3.callback"], "EpisodeTracker", broken)
    with pytest.warns(RollbookWarning, match="no environments here"):
        fake.PPO().learn(8, callback)
    assert len(rows(run, "time/iterations")) == 2


def test_bad_arguments_are_named(host: Any) -> None:
    with pytest.raises(BadInput, match="checkpoint_every=0"):
        host.RollbookCallback(checkpoint_every=0)
    with pytest.raises(BadInput, match="would record nothing"):
        fake.PPO().learn(4, host.RollbookCallback(run=False))


def test_a_version_outside_the_range_is_refused_with_the_range(installed: Callable[[str, str], None]) -> None:
    before = {name: module for name, module in sys.modules.items() if name.startswith("rollbook.adapters.sb3")}
    _forget()
    installed("stable-baselines3", "1.8.0")
    try:
        with pytest.raises(_versions.UnsupportedVersion, match=r"1\.8\.0"):
            import rollbook.adapters.sb3  # noqa: F401
    finally:
        _forget()
        sys.modules.update(before)


def test_the_callback_without_the_library_gives_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {name: module for name, module in sys.modules.items() if name.startswith("rollbook.adapters.sb3")}
    _forget()
    monkeypatch.setattr(_versions, "installed", lambda _name: None)
    try:
        import rollbook.adapters.sb3 as adapter

        with pytest.raises(MissingExtra, match=r"pip install 'rollbook(-core)?\[sb3\]'"):
            _ = adapter.RollbookCallback
    finally:
        _forget()
        sys.modules.update(before)


@pytest.mark.parametrize("first", ["record", "evaluate"])
def test_an_evaluation_at_the_step_of_a_save_is_kept_and_its_episodes_stand_there(
    first: str, host: Any, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"dir": tmp_path / "runs", "sinks": (), "keeper": "inline"}

    class Evaluates(fake.EvalCallback):  # type: ignore[misc]
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
        pair = [host.RollbookCallback(run, checkpoint_every=8), Evaluates([1.0, 4.0])]
        model.learn(steps, Both(*(pair if first == "record" else pair[::-1])), reset_num_timesteps=not more)

    run = rollbook.init("sb3", "order", **options)
    learn(run, fake.PPO(), 12)
    run.finish("crashed")
    run = rollbook.init("sb3", "order", resume="must", **options)
    assert run.restore("last").clocks["env_step"] == 8
    model = fake.PPO()
    model.num_timesteps = 8
    learn(run, model, 8, more=True)
    assert run.book.metrics(["eval/mean_reward"], x="env_step")["env_step"].to_pylist() == [4, 8, 12, 16]
    tested = [row["env_step"] for row in run.book.episodes().to_pylist() if row["scope"] == "test"]
    assert tested == [4, 4, 8, 8, 12, 12, 16, 16]
