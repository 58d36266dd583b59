"""The run as an Acme logger: nothing thinned, nothing renamed, at the steps Acme counted."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import rollbook
from rollbook.adapters import acme
from rollbook.adapters.acme.book import entries_of
from rollbook.errors import BadInput


def rows_of(run: Any, *keys: str) -> list[dict[str, Any]]:
    return run.book.metrics(list(keys)).to_pylist()  # type: ignore[no-any-return]


def test_a_record_becomes_a_row_under_its_label_at_its_steps(run: Any) -> None:
    logger = acme.RollbookLogger(run, "train_loop")
    logger.write({"episode_return": np.array(3.3, np.float32), "episodes": 1, "steps": 20, "note": None})
    logger.write({"episode_return": np.array(4.5, np.float32), "episodes": 2, "steps": 50})
    rows = rows_of(run, "train_loop/episode_return", "train_loop/steps")
    assert [(r["env_step"], r["episode"], r["train_loop/steps"]) for r in rows] == [(20, 1, 20), (50, 2, 50)]
    assert rows[0]["train_loop/episode_return"] == np.float32(3.3).item()
    assert "train_loop/note" not in run.book.keys()  # noqa: SIM118


def test_a_learner_beside_a_loop_stands_at_its_own_steps(run: Any) -> None:
    """Counters share their counts: a learner's record also has the loop's."""
    logger = acme.RollbookLogger(run, "learner")
    logger.write({"loss": 0.5, "learner_steps": 7, "steps": 300, "episodes": 4})
    (row,) = rows_of(run, "learner/loss")
    assert (row["gradient_step"], row["env_step"], row["episode"]) == (7, 300, 4)


def test_a_learner_alone_counts_gradient_steps(run: Any) -> None:
    acme.RollbookLogger(run, "learner").write({"loss": 0.5, "steps": 7})
    assert rows_of(run, "learner/loss")[0]["gradient_step"] == 7


def test_an_evaluators_steps_are_no_place_in_training(run: Any) -> None:
    acme.RollbookLogger(run, "train_loop").write({"episode_return": 1.0, "steps": 500, "episodes": 3})
    acme.RollbookLogger(run, "eval_loop").write({"episode_return": 9.0, "steps": 20, "episodes": 1})
    (row,) = rows_of(run, "eval_loop/episode_return")
    assert (row["step"], row["env_step"]) == (20, 500)


def test_prefixed_counters_say_where_training_stands(run: Any) -> None:
    parent = acme.Counter()
    actor, learner = acme.Counter(parent, "actor", 0.0), acme.Counter(parent, "learner", 0.0)
    evaluator = acme.Counter(parent, "evaluator", 0.0)
    actor.increment(steps=100, episodes=2)
    learner.increment(steps=10)
    counts = evaluator.increment(steps=33, episodes=1)
    acme.RollbookLogger(run, "evaluator", steps_key="evaluator_steps").write({"episode_return": 1.0, **counts})
    (row,) = rows_of(run, "evaluator/episode_return")
    assert (row["env_step"], row["gradient_step"], row["step"]) == (100, 10, 33)


def test_the_clocks_can_be_named(run: Any) -> None:
    logger = acme.RollbookLogger(run, "loop", clocks={"env_step": "frames"})
    logger.write({"x": 1.0, "frames": 400, "steps": 100})
    assert rows_of(run, "loop/x")[0]["env_step"] == 400
    assert entries_of("loop", "actor_steps")["env_step"][0] == "actor_steps"


def test_nested_returns_are_joined_and_arrays_are_kept(run: Any) -> None:
    logger = acme.RollbookLogger(run, "loop")
    logger.write({"episode_return": {"a": np.array(1.0), "b": np.array([2.0, 3.0])}, "steps": 5})
    assert rows_of(run, "loop/episode_return/a")[0]["loop/episode_return/a"] == 1.0
    (row,) = run.book.histograms().to_pylist()
    assert (row["key"], list(row["values"])) == ("loop/episode_return/b", [2.0, 3.0])


def test_a_record_that_is_none_harms_nothing(run: Any) -> None:
    with pytest.warns(rollbook.errors.RollbookWarning, match="could not be read"):
        acme.RollbookLogger(run, "loop").write(7)  # type: ignore[arg-type]


# -- the stacks


def test_the_book_has_every_record_and_the_terminal_one_a_stretch(run: Any) -> None:
    lines: list[str] = []
    logger = acme.make_logger(run, "train", time_delta=1000.0, smoothing_regex="return", print_fn=lines.append)
    for i, value in enumerate((10.0, 20.0, 30.0, 40.0)):
        logger.write({"episode_return": value, "steps": i})
    logger.close()
    assert len(lines) == 2
    assert lines[0].startswith("[Train] Episode Return = 10.000 | Episode Return Smoothed 0.99 = 10.000")
    assert "Episode Return = 40.000" in lines[1]
    rows = rows_of(run, "train/episode_return")
    assert [r["train/episode_return"] for r in rows] == [10.0, 20.0, 30.0, 40.0]
    smoothed = run.book.metrics(["train/episode_return_smoothed_0.99"], x="env_step")
    assert smoothed.column("env_step").to_pylist() == [0, 1, 2, 3]
    values = smoothed.column("train/episode_return_smoothed_0.99").to_pylist()
    assert values == pytest.approx([10, 19.01, 27.932781, 36.76248581449])


def test_aggregates_of_a_dump_stand_beside_the_raw_records(run: Any) -> None:
    lines: list[str] = []
    logger = acme.make_logger(run, prefix="eval", aggregate_regex="return", print_fn=lines.append)
    for batch in (1, 2):
        for i in range(5):
            logger.write({"episode_return": float(i * batch), "steps": 10 * batch + i})
        logger.dump()
    assert len(lines) == 2
    assert "Episode Return Mean = 2.000" in lines[0]
    assert len(rows_of(run, "eval/episode_return")) == 10
    rows = rows_of(run, "eval/episode_return_mean", "eval/episode_return_std")
    assert [(r["eval/episode_return_mean"], r["step"]) for r in rows] == [(2.0, 14), (4.0, 24)]


def test_the_articles_signature_works_over_a_neptune_experiment() -> None:
    sent: list[tuple[Any, ...]] = []

    class Experiment:
        def log_metric(self, *arguments: Any) -> None:
            sent.append(arguments)

    logger = acme.make_logger(Experiment(), "eval", 0.0, "return", None, 0.99, print_fn=lambda line: None)
    logger.write({"episode_return": 1.0, "epoch": 0})
    logger.write({"episode_return": 3.0, "epoch": 1})
    logger.dump()
    assert ("eval/episode_return_mean", 1, 2.0) in [(a[0], *a[1:]) for a in sent]


def test_smoothing_in_compat_mode_sees_only_what_passed_the_time_filter() -> None:
    lines: list[str] = []
    logger = acme.make_logger(None, "t", 1000.0, smoothing_regex="x", compat=True, print_fn=lines.append)
    for i in range(3):
        logger.write({"x": float(i)})
    logger.close()
    assert lines == ["[T] X = 0.000 | X Smoothed 0.99 = 0.000"]


def test_an_experiment_that_is_none_is_named() -> None:
    with pytest.raises(BadInput, match="int"):
        acme.make_logger(3)


def test_the_default_logger_can_write_to_a_run_too(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    logger = acme.make_default_logger("learner", asynchronous=True, run=run, print_fn=lambda line: None)
    logger.write({"loss": 0.5, "steps": 3})
    logger.close()
    assert rows_of(run, "learner/loss")[0]["gradient_step"] == 3
    (path,) = (tmp_path / "acme").rglob("logs.csv")
    assert path.read_text() == "loss,steps\n0.5,3\n"


def test_a_factory_makes_the_logger_of_every_component(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    factory = pickle.loads(pickle.dumps(acme.LoggerFactory(run)))
    factory("actor", "actor_steps", 0).write({"episode_return": 1.0, "actor_steps": 9})
    factory("actor", "actor_steps", 2).write({"episode_return": 2.0, "actor_steps": 5})
    acme.LoggerFactory(run, time_delta=None)("learner", steps_key="learner_steps").write(
        {"loss": 0.5, "learner_steps": 4}
    )
    assert rows_of(run, "actor/episode_return")[0]["env_step"] == 9
    assert rows_of(run, "actor_2/episode_return")[0]["env_step"] == 5
    assert rows_of(run, "learner/loss")[0]["gradient_step"] == 4
    assert "[Actor] Actor Steps = 9 | Episode Return = 1.000" in capsys.readouterr().out


# -- episodes


class Step(NamedTuple):
    reward: Any
    discount: Any
    is_last: bool

    def last(self) -> bool:
        return self.is_last


def test_episodes_are_rows_that_know_how_they_ended(run: Any) -> None:
    times = iter([0.0, 10.0, 12.5, 20.0, 21.0])
    observer = acme.EpisodeObserver(run, clock=lambda: next(times))
    for discount in (0.0, 1.0):
        observer.observe_first(None, Step(None, None, False))
        observer.observe(None, Step(1.0, 1.0, False), 0)
        observer.observe(None, Step(np.float32(2.5), discount, True), 0)
        assert observer.get_metrics() == {}
    rows = run.book.episodes().to_pylist()
    assert [(r["return"], r["length"], r["terminated"], r["truncated"]) for r in rows] == [
        (3.5, 2, True, False),
        (3.5, 2, False, True),
    ]
    assert [r["env_step"] for r in rows] == [2, 4]
    assert rows[0]["seconds"] == 2.5


def test_nested_rewards_have_a_column_each(run: Any) -> None:
    observer = acme.EpisodeObserver(run.scope("test"), counts_steps=False)
    observer.observe_first(None, Step(None, None, False))
    observer.observe(None, Step({"a": 1.0, "b": np.array([2.0, 3.0])}, {"a": 0.0, "b": np.zeros(2)}, True), 0)
    observer.get_metrics()
    (row,) = run.book.episodes().to_pylist()
    assert (row["return"], row["return/a"], row["return/b/0"], row["return/b/1"]) == (6.0, 1.0, 2.0, 3.0)
    assert (row["terminated"], row["scope"], row.get("env_step")) == (True, "test", None)


def test_an_episode_without_a_step_is_an_episode(run: Any) -> None:
    observer = acme.EpisodeObserver(run)
    observer.observe_first(None, Step(None, None, True))
    observer.get_metrics()
    assert run.book.episodes().to_pylist()[0]["length"] == 0
