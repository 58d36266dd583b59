"""What is watched inside of LightZero's workers, without LightZero."""

from __future__ import annotations

import types
from typing import Any

import pytest

import rollbook
from rollbook.adapters.lightzero import EvaluatorLog, Experiment, bridge
from rollbook.adapters.lightzero.evaluating import EvaluatorBridge, _Watch


def timestep(done: bool, value: float = 0.0) -> Any:
    return types.SimpleNamespace(done=done, info={"eval_episode_return": value} if done else {})


def test_an_environment_that_plays_on_does_not_overwrite_its_earlier_result(run: Any) -> None:
    """LightZero's monitor keeps the latest episodes of each environment, and counts the steps of all of them."""
    log = EvaluatorLog(run)
    watch = _Watch(log, env_num=2, n_episode=2)
    answers: list[dict[int, Any]] = [
        {0: timestep(True, 2.0), 1: timestep(False)},
        {0: timestep(True, 9.0), 1: timestep(False)},  # a second episode while the other still plays its first
        {0: timestep(False), 1: timestep(True, 5.0)},
    ]
    step = watch.around(lambda _actions: answers.pop(0))
    with log.evaluating():
        while answers:
            step(None)
    fields = log.report(1)
    assert fields["each_reward"] == [2.0, 5.0]
    assert (fields["envstep_count"], fields["avg_envstep_per_episode"]) == (4, 2.0)


def test_a_step_that_cannot_be_read_is_counted_and_reaches_the_evaluator(run: Any) -> None:
    watch = _Watch(EvaluatorLog(run), env_num=1, n_episode=1)
    with pytest.warns(UserWarning, match="a step could not be read"):
        assert watch.around(lambda _actions: {0: None})(None) == {0: None}


class Learner:
    """Saves a model under the name it is told, as LearnerBridge does."""

    def __init__(self, run: Any) -> None:
        self.run = run

    def save_evaluated(self, engine: Any, score: float, train_step: int, env_step: int) -> Any:
        def write(path: Any) -> None:
            path.with_suffix(".pth.tar").write_text("model")

        return self.run.save_checkpoint(write=write, score=score, gradient_step=train_step)


def test_models_of_evaluations_are_bounded_over_all_attempts_of_a_run(tmp_path: Any) -> None:
    def files(run: Any) -> list[str]:
        return sorted(path.name for path in (run.folder / "ckpt").glob("iteration_*"))

    where = {"dir": tmp_path, "sinks": (), "keeper": "inline", "run_id": "one"}
    left = []
    for attempt, scores in enumerate([(5.0, 4.0, 3.0), (1.0, 6.0, 2.0), (7.0, 1.0)]):
        with rollbook.init("lz", "again", resume="must" if attempt else "never", **where) as run:  # type: ignore[arg-type]
            experiment = Experiment(run)
            evaluator = EvaluatorBridge(experiment, Learner(run), keep_evaluated=1)  # type: ignore[arg-type]
            for step, score in enumerate(scores):
                log = evaluator.log(types.SimpleNamespace(_instance_name="evaluator"))
                with log.evaluating():
                    log.episode(score, 1, 0, {})
                    assert evaluator._save(None, log, 10 * attempt + step, -1)
                    log.report(10 * attempt + step)
            left.append(files(run))
    assert left == [
        ["iteration_0.pth.tar", "iteration_2.pth.tar"],
        ["iteration_11.pth.tar", "iteration_12.pth.tar"],
        ["iteration_20.pth.tar", "iteration_21.pth.tar"],
    ]


def test_measuring_the_buffer_takes_a_twentieth_of_the_time_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    now, measured = 0.0, 0
    monkeypatch.setattr(bridge.time, "monotonic", lambda: now)

    def measure() -> None:
        nonlocal now, measured
        now += 1.0
        measured += 1

    rarely = bridge._Rarely()
    for _ in range(100):
        rarely(measure)
        now += 1.0
    assert measured == pytest.approx(now / 20, abs=1)
