"""Evaluations of Stable-Baselines3 beside checkpoints: in any order of callbacks, and over a kill and a resume."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

GROUPS = ("main",)

pytest.importorskip("gymnasium")
sb3 = pytest.importorskip("stable_baselines3")

from stable_baselines3.common.callbacks import BaseCallback, CallbackList, EvalCallback  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters.sb3 import RollbookCallback  # noqa: E402

ALGORITHMS: dict[str, dict[str, Any]] = {
    "PPO": {"n_steps": 32, "batch_size": 32, "n_epochs": 1},
    "DQN": {"learning_starts": 20, "train_freq": 4},
}
WORDS = ("record", "evaluate", "note")


class _Note(BaseCallback):
    """A user's own callback: a row every 100 environment steps, as late as the order of callbacks has it."""

    def __init__(self, run: Any) -> None:
        super().__init__()
        self.run = run

    def _on_step(self) -> bool:
        if self.num_timesteps % 100 == 0:
            self.run.log({"note": 1.0}, env_step=self.num_timesteps)
        return True


def callbacks(order: tuple[str, ...], run: Any, n_envs: int, best: Path | None = None, nested: bool = False) -> Any:
    made = {
        "record": RollbookCallback(run, checkpoint_every=200),
        "evaluate": EvalCallback(
            make_vec_env("CartPole-v1", n_envs=1, seed=7),
            n_eval_episodes=2,
            eval_freq=100 // n_envs,
            best_model_save_path=None if best is None else str(best),
            verbose=0,
        ),
        "note": _Note(run),
    }
    listed = [made[word] for word in order]
    return CallbackList([listed[0], CallbackList(listed[1:])]) if nested else listed


def model_of(algorithm: str, n_envs: int) -> Any:
    env = make_vec_env("CartPole-v1", n_envs=n_envs, seed=3)
    return getattr(sb3, algorithm)("MlpPolicy", env, seed=1, device="cpu", **ALGORITHMS[algorithm])


def steps(run: Any, key: str) -> list[int]:
    table = run.book.metrics([key], x="env_step")
    return [row["env_step"] for row in table.to_pylist() if row[key] is not None]


def steps_of_tests(run: Any) -> list[int]:
    return [row["env_step"] for row in run.book.episodes().to_pylist() if row["scope"] == "test"]


@pytest.mark.parametrize("n_envs", [1, 4])
@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_rows_of_an_evaluation_and_its_episodes_stand_at_one_step_whatever_the_order(
    algorithm: str, n_envs: int, own_place: Path
) -> None:
    for number, order in enumerate(permutations(WORDS)):
        nested = bool(number % 2)
        run = rollbook.init("sb3", "-".join(order), dir=own_place / "runs", sinks=(), keeper="inline")
        best = own_place / "best" / "-".join(order)
        model_of(algorithm, n_envs).learn(400, callbacks(order, run, n_envs, best, nested))
        evaluated = steps(run, "eval/mean_reward")
        assert evaluated[:4] == [100, 200, 300, 400]
        assert steps_of_tests(run) == [step for step in evaluated for _ in range(2)]
        assert steps(run, "note")[:4] == [100, 200, 300, 400]
        means = {
            row["env_step"]: row["eval/mean_reward"]
            for row in run.book.metrics(["eval/mean_reward"], x="env_step").to_pylist()
        }
        scored = [row for row in run.book.checkpoints(everything=True).to_pylist() if row["score"] is not None]
        assert scored
        for row in scored:  # the best model is registered at the step of the evaluation that chose it
            assert means[row["env_step"]] == pytest.approx(row["score"])
        run.finish()


@pytest.mark.parametrize("n_envs", [1, 4])
@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_what_was_logged_after_the_save_at_its_step_is_there_once_after_a_kill_and_a_resume(
    algorithm: str, n_envs: int, own_place: Path
) -> None:
    for order in permutations(WORDS):
        options: dict[str, Any] = {"dir": own_place / "runs", "sinks": (), "keeper": "inline"}
        run = rollbook.init("sb3", "-".join(order), **options)
        model_of(algorithm, n_envs).learn(452, callbacks(order, run, n_envs))
        run.finish("crashed")
        run = rollbook.init("sb3", "-".join(order), resume="must", **options)
        restored = run.restore("last")
        assert restored is not None
        assert restored.clocks["env_step"] == 400
        model = getattr(sb3, algorithm).load(restored.path, env=make_vec_env("CartPole-v1", n_envs=n_envs, seed=3))
        model.learn(200, callbacks(order, run, n_envs), reset_num_timesteps=False)
        assert steps(run, "eval/mean_reward")[:6] == [100, 200, 300, 400, 500, 600]
        assert steps_of_tests(run)[:12] == [step for step in (100, 200, 300, 400, 500, 600) for _ in range(2)]
        assert steps(run, "note")[:6] == [100, 200, 300, 400, 500, 600]
        if algorithm == "PPO":  # an update that the saved model has not seen is not kept
            table = run.book.metrics(["update/loss/value"], x="gradient_step")
            updates = table["gradient_step"].to_pylist()
            assert updates == sorted(set(updates))
        run.finish()
