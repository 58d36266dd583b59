"""CollectorLog, EvaluatorLog, LearnerLog and BufferLog on a loop of one's own."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from few_files import FEW, empty_folders, without_names
from rollbook.adapters.lightzero import BufferLog, CollectorLog, EvaluatorLog, Experiment, LearnerLog
from rollbook.adapters.lightzero import collector as collector_module
from rollbook.adapters.lightzero import evaluator as evaluator_module
from rollbook.adapters.lightzero.events import EventWriter, clock_of
from rollbook.errors import RollbookWarning

DOCUMENT_COLLECTOR = """episode_count envstep_count train_sample_count avg_envstep_per_episode avg_sample_per_episode
    avg_envstep_per_sec avg_train_sample_per_sec avg_episode_per_sec collect_time reward_mean reward_std each_reward
    reward_max reward_min total_envstep_count total_train_sample_count total_episode_count total_duration""".split()  # noqa: SIM905
DOCUMENT_EVALUATOR = """train_iter ckpt_name episode_count envstep_count evaluate_time avg_envstep_per_episode
    avg_envstep_per_sec avg_time_per_episode reward_mean reward_std each_reward reward_max reward_min""".split()  # noqa: SIM905


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def events_of(run: Any) -> dict[str, list[tuple[int, float]]]:
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    (path,) = (run.folder / "log" / "serial").glob("events.out.tfevents.*")
    found: dict[str, list[tuple[int, float]]] = {}
    for event in loader.LegacyEventFileLoader(str(path)).Load():
        for value in event.summary.value:
            found.setdefault(value.tag, []).append((event.step, value.simple_value))
    return found


# -- collector


def test_a_collection_is_reported_in_all_18_fields_of_the_document(run: Any) -> None:
    clock = Clock()
    log = CollectorLog(run, clock=clock)
    with log.collecting():
        log.episode(reward=10.0, envstep=20)
        clock.now += 4.0
        log.episode(reward=20.0, envstep=30, train_sample=25, visit_entropy=0.5)
    fields = log.report(train_iter=100)
    assert list(collector_module.FIELDS) == DOCUMENT_COLLECTOR
    assert len(DOCUMENT_COLLECTOR) == 18
    assert list(fields)[:18] == DOCUMENT_COLLECTOR
    assert fields == {
        "episode_count": 2,
        "envstep_count": 50,
        "train_sample_count": 45,
        "avg_envstep_per_episode": 25.0,
        "avg_sample_per_episode": 22.5,
        "avg_envstep_per_sec": 12.5,
        "avg_train_sample_per_sec": 11.25,
        "avg_episode_per_sec": 0.5,
        "collect_time": 4.0,
        "reward_mean": 15.0,
        "reward_std": 5.0,
        "each_reward": [10.0, 20.0],
        "reward_max": 20.0,
        "reward_min": 10.0,
        "total_envstep_count": 50,
        "total_train_sample_count": 45,
        "total_episode_count": 2,
        "total_duration": 4.0,
        "visit_entropy": 0.5,
    }
    text = (run.folder / "log" / "collector" / "collector_logger.txt").read_text()
    assert re.match(r"\[[\d :-]+\]\[collector\.py:\d+\]\[INFO\] Collector Training Summary:\n", text)
    assert [line.split(": ")[0].strip() for line in text.splitlines()[1:19]] == DOCUMENT_COLLECTOR


def test_totals_go_on_and_time_is_not_counted_twice(run: Any) -> None:
    """LightZero adds the time of all pending episodes at every collection."""
    clock = Clock()
    log = CollectorLog(run, print_freq=100, clock=clock)
    for train_iter in (0, 50, 100):
        with log.collecting():
            clock.now += 2.0
            log.episode(1.0, 10, seconds=2.0)
        if log.is_due(train_iter):
            first = log.report(train_iter)
        clock.now += 7.0  # learning
    assert (first["collect_time"], first["total_duration"], first["episode_count"]) == (6.0, 6.0, 3)
    with log.collecting():
        clock.now += 1.0
        log.episode(1.0, 10)
        second = log.report(150)  # inside of the block, as collectors do
    assert (second["collect_time"], second["total_duration"]) == (1.0, 7.0)
    assert (second["episode_count"], second["total_episode_count"], second["total_envstep_count"]) == (1, 4, 40)


def test_without_timed_blocks_the_episodes_say_how_long_it_took(run: Any) -> None:
    log = CollectorLog(run)
    log.episode(1.0, 10, seconds=0.5)
    log.episode(1.0, 10, seconds=1.5)
    assert log.report(100)["avg_envstep_per_sec"] == 10.0


def test_a_report_of_nothing_writes_nothing(run: Any) -> None:
    log = CollectorLog(run)
    assert not log.is_due(1000)
    assert log.report(1000) == {}


def test_every_episode_and_each_reward_is_in_the_book(run: Any) -> None:
    log = CollectorLog(run)
    for reward in (1.0, 2.0, 4.0):
        log.episode(reward, 5)
    log.report(100, envstep=15)
    episodes = run.book.episodes().to_pylist()
    assert [(e["return"], e["length"], e["scope"]) for e in episodes] == [
        (1.0, 5, "collector"),
        (2.0, 5, "collector"),
        (4.0, 5, "collector"),
    ]
    (row,) = [r for r in run.book.histograms().to_pylist() if r["key"] == "collector/each_reward"]
    assert list(row["values"]) == [1.0, 2.0, 4.0]
    table = run.book.metrics(["collector/reward_mean"])
    assert table.column("gradient_step").to_pylist() == [100]
    assert table.column("env_step").to_pylist() == [15]


def test_the_event_file_has_the_fields_at_iterations_and_at_environment_steps(run: Any) -> None:
    log = CollectorLog(run)
    log.episode(3.0, 5)
    log.report(100)
    found = events_of(run)
    assert found["collector_iter/reward_mean"] == [(100, 3.0)]
    assert found["collector_step/reward_mean"] == [(5, 3.0)]
    assert "collector_iter/each_reward" not in found


# -- evaluator


def test_an_evaluation_is_reported_in_all_fields_and_a_line_per_episode(run: Any, tmp_path: Path) -> None:
    clock = Clock()
    log = EvaluatorLog(run, clock=clock)
    (run.folder / "ckpt").mkdir(exist_ok=True)
    (run.folder / "ckpt" / "iteration_200.pth.tar").write_bytes(b"x")
    with log.evaluating():
        log.episode(8.0, 10, env_id=1)
        clock.now += 0.5
        log.episode(10.0, 30, env_id=0, info={"success": True})
    fields = log.report(train_iter=200, envstep=4000)
    assert list(evaluator_module.FIELDS) == DOCUMENT_EVALUATOR
    assert list(fields)[:13] == DOCUMENT_EVALUATOR
    assert fields["ckpt_name"] == "iteration_200.pth.tar"
    assert (fields["episode_count"], fields["envstep_count"], fields["evaluate_time"]) == (2, 40, 0.5)
    assert (fields["avg_envstep_per_episode"], fields["avg_envstep_per_sec"]) == (20.0, 80.0)
    assert (fields["reward_mean"], fields["reward_std"], fields["each_reward"]) == (9.0, 1.0, [10.0, 8.0])
    assert (fields["success"], fields["success_mean"]) == ([1.0], 1.0)
    text = (run.folder / "log" / "evaluator" / "evaluator_logger.txt").read_text()
    lines = [line for line in text.splitlines() if "[EVALUATOR]" in line]
    assert lines[0].endswith("[INFO] [EVALUATOR]env 1 finish episode, final reward: 8.0000, current episode: 1")
    assert lines[1].endswith("[INFO] [EVALUATOR]env 0 finish episode, final reward: 10.0000, current episode: 2")
    assert "| ckpt_name             |" in text


def test_time_per_episode_is_in_seconds_and_its_inverse_in_compat_mode(tmp_path: Path) -> None:
    for compat, expected in ((False, 2.0), (True, 0.5)):
        clock = Clock()
        with rollbook.init("p", f"c{compat}", dir=tmp_path, sinks=[], keeper="inline", rules=()) as run:
            log = EvaluatorLog(Experiment(run, compat=compat), clock=clock)
            with log.evaluating():
                log.episode(1.0, 1)
                log.episode(1.0, 1)
                clock.now += 4.0
            assert log.report(1)["avg_time_per_episode"] == expected


def test_ckpt_name_names_a_file_that_exists_or_nothing(run: Any) -> None:
    log = EvaluatorLog(run)

    def evaluate(**how: Any) -> str:
        with log.evaluating():
            log.episode(1.0, 1)
        return str(log.report(**how)["ckpt_name"])

    assert evaluate(train_iter=1) == ""

    def save(name: str) -> None:
        (run.folder / "ckpt").mkdir(exist_ok=True)
        (run.folder / "ckpt" / name).write_bytes(b"x")

    assert evaluate(train_iter=2, save=save) == "iteration_2.pth.tar"
    checkpoint = run.save_checkpoint({"w": np.ones(2)}, gradient_step=3)
    name = evaluate(train_iter=3, checkpoint=checkpoint)
    assert (run.folder / "ckpt" / name).is_file()
    with pytest.warns(RollbookWarning, match="no such file"):
        assert evaluate(train_iter=4, checkpoint="gone.pth.tar") == ""


def test_an_evaluation_is_due_at_first_and_then_every_so_many_iterations(run: Any) -> None:
    log = EvaluatorLog(run, eval_freq=10)
    assert [i for i in (0, 0, 5, 9, 10, 11, 20, 25, 30) if log.should_eval(i)] == [0, 10, 20, 30]


# -- learner


def test_averages_are_over_all_iterations_since_the_last_table(run: Any) -> None:
    """DI-engine averages the last 11: 25 values 0 … 24 give 19."""
    log = LearnerLog(run, show_freq=25)
    shown = [log.log({"loss": float(i), "n": i}, train_iter=i, envstep=10 * i) for i in range(51)]
    assert [i for i, averages in enumerate(shown) if averages] == [0, 25, 50]
    assert shown[25] == {"loss_avg": 13.0, "n_avg": 13.0}
    found = events_of(run)
    assert found["learner_iter/loss_avg"] == [(0, 0.0), (25, 13.0), (50, 38.0)]
    assert found["learner_step/loss_avg"] == [(0, 0.0), (250, 13.0), (500, 38.0)]
    table = run.book.metrics(["learner/loss"], x="gradient_step")
    assert table.column("learner/loss").to_pylist() == [float(i) for i in range(51)]
    assert table.column("env_step").to_pylist() == [10 * i for i in range(51)]


def test_values_of_any_kind_harm_nothing_and_unlisted_ones_are_kept(run: Any) -> None:
    """DI-engine's monitor dies of an integer, shows names without a value as 0, and forgets those it does not list."""
    log = LearnerLog(run, show_freq=1, monitor_vars=["loss", "never"])
    values = {"loss": 3, "flag": True, "extra": np.float32(2.0), "name": "adam", "list": [1, 2], "none": None}
    assert log.log(values, 1) == {"loss_avg": 3.0}
    assert run.book.metrics(["learner/extra"]).column("learner/extra").to_pylist() == [2.0]
    text = (run.folder / "log" / "learner" / "learner_logger.txt").read_text()
    assert "never" not in text


def test_the_learner_log_begins_with_the_structure_and_shows_its_status(run: Any) -> None:
    log = LearnerLog(run)
    log.structure("Net(\n  (fc): Linear(4, 2)\n)")
    log.log({"cur_lr": 0.001, "total_loss": 0.5}, 100)
    text = (run.folder / "log" / "learner" / "learner_logger.txt").read_text()
    assert "[RANK0]: Net(\n  (fc): Linear(4, 2)\n)\n" in text
    assert "[RANK0]: === Training Iteration 100 Result ===\n" in text
    assert "| Value | 0.001000   | 0.500000       |" in text
    assert any("Net(" in row["text"] for row in run.book.text().to_pylist())


def test_checkpoints_have_the_names_of_the_document(run: Any) -> None:
    torch = pytest.importorskip("torch")
    log = LearnerLog(run)
    state = {"model": {"w": torch.ones(2)}}
    log.save_checkpoint(state, 0, 0, score=1.0)
    log.save_checkpoint(state, 10000, 5000, score=3.0)
    log.save_checkpoint(state, 20000, 9000, score=2.0)
    names = {path.name for path in (run.folder / "ckpt").iterdir() if not path.name.startswith(".")}
    assert names == {"ckpt_best.pth.tar", "iteration_0.pth.tar", "iteration_10000.pth.tar", "iteration_20000.pth.tar"}
    assert torch.load(run.folder / "ckpt" / "ckpt_best.pth.tar")["model"]["w"].tolist() == [1.0, 1.0]


# -- buffer


def test_the_buffer_log_counts_what_goes_in_and_out(run: Any) -> None:
    log = BufferLog(run)
    log.pushed(100)
    log.sampled(64)
    assert log.report(10) == {
        "pushed_in": 100,
        "sampled_out": 64,
        "removed": 0,
        "total_pushed_in": 100,
        "total_sampled_out": 64,
        "total_removed": 0,
        "current_have": 100,
    }
    log.removed(30)
    fields = log.report(20, num_of_game_segments=7)
    assert (fields["pushed_in"], fields["current_have"], fields["num_of_game_segments"]) == (0, 70, 7)
    assert "| pushed_in" in (run.folder / "log" / "buffer" / "buffer_logger.txt").read_text()
    assert events_of(run)["buffer_iter/current_have"] == [(10, 100.0), (20, 70.0)]


# -- the folder


@pytest.mark.usefixtures("sealed")
def test_the_folder_is_that_of_the_document(run: Any) -> None:
    np.random.seed(0)
    CollectorLog(run).episode(1.0, 2)
    EvaluatorLog(run).episode(1.0, 2)
    LearnerLog(run).log({"loss": 1.0}, 0)
    BufferLog(run).report(0, current_have=1)
    collector = CollectorLog(run)
    collector.episode(1.0, 2)
    collector.report(0)
    run.save_checkpoint({"w": 1.0}, gradient_step=0)
    run.finish()
    for component in ("buffer", "collector", "evaluator", "learner"):
        assert (run.folder / "log" / component / f"{component}_logger.txt").stat().st_size
    (events,) = (run.folder / "log" / "serial").iterdir()
    assert re.fullmatch(r"events\.out\.tfevents\.\d+\.[^.]+", events.name)
    for name in ("total_config.py", "formatted_total_config.py"):
        namespace: dict[str, Any] = {}
        exec((run.folder / name).read_text(), namespace)
        assert isinstance(namespace["exp_config"], dict)
    theirs = ("log/", "ckpt/", "total_config.py", "formatted_total_config.py")
    ours = [name for name in without_names(run.folder) if not name.startswith(theirs)]
    assert sorted(ours) == sorted([*FEW, "data/checkpoints", "data/episodes", "data/text"])
    assert empty_folders(run.folder) == []


def test_a_resumed_experiment_goes_on_with_its_totals_its_best_and_its_event_file(tmp_path: Path) -> None:
    where = {"dir": tmp_path, "sinks": [], "keeper": "inline", "rules": (), "run_id": "first"}
    for attempt in range(2):
        with rollbook.init("p", "mine", resume="allow", **where) as run:
            collector = CollectorLog(run)
            collector.episode(1.0, 10)
            total = collector.report(100 * (attempt + 1))["total_envstep_count"]
            evaluator = EvaluatorLog(run)
            best = evaluator.best
            with evaluator.evaluating():
                evaluator.episode(5.0 - attempt, 3)
            evaluator.report(100 * (attempt + 1), 10 * (attempt + 1))
            found = events_of(run)
    assert total == 20
    assert best == 5.0
    assert found["collector_iter/reward_mean"] == [(100, 1.0), (200, 1.0)]


def test_the_best_score_is_that_of_the_checkpoints_that_are_there(tmp_path: Path) -> None:
    """A score of which no model was kept, or whose model was lost, must not keep a better model from being saved."""
    with rollbook.init("p", "mine", dir=tmp_path, sinks=[], keeper="inline", rules=()) as run:
        evaluator = EvaluatorLog(run)
        assert evaluator.best == float("-inf")
        for score in (13.0, 4.0):
            with evaluator.evaluating():
                evaluator.episode(score, 3)
            evaluator.report(1, 1)
            assert evaluator.best == 13.0  # nothing is saved: the evaluations themselves count
        run.save_checkpoint({"w": 1.0}, score=9.0)
        assert evaluator.best == EvaluatorLog(run).best == 9.0
        assert run.summary["evaluator/best_reward_mean"] == 13.0


def test_the_evaluation_of_the_checkpoint_that_a_run_goes_back_to_is_kept(tmp_path: Path) -> None:
    """It is reported when the model has been saved, and was abandoned with what came after."""
    where: Any = {"dir": tmp_path, "run_id": "mine", "sinks": [], "keeper": "inline", "rules": ()}
    for attempt in range(2):
        with rollbook.init("p", "mine", resume="allow", **where) as run:
            if attempt:
                run.restore("last")
            evaluator, learner = EvaluatorLog(run), LearnerLog(run)
            for iteration in (5, 10) if not attempt else (11,):
                with evaluator.evaluating():
                    evaluator.episode(float(iteration), 3)
                saved = learner.save_checkpoint({"w": iteration}, iteration, 10 * iteration) if iteration == 5 else None
                evaluator.report(iteration, 10 * iteration, checkpoint=saved)
    rows = run.book.metrics(["evaluator/reward_mean"], x="gradient_step")
    assert rows["gradient_step"].to_pylist() == [5, 11]
    assert rows["env_step"].to_pylist() == [50, 110]


def test_tensorboard_shows_both_axes_of_a_resumed_experiment_and_hides_what_was_abandoned(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    where = {"dir": tmp_path, "sinks": [], "keeper": "inline", "rules": (), "run_id": "first"}
    for attempt in range(2):
        with rollbook.init("p", "mine", resume="allow", **where) as run:
            if attempt:
                run.restore()
            writer = EventWriter(run)
            for i in (1, 2, 3, 4)[2 * attempt :]:  # an iteration is a thousand environment steps
                writer.add_scalar("collector_iter/reward_mean", 10.0 * attempt + i, i)
                writer.add_scalar("collector_step/reward_mean", 10.0 * attempt + i, 1000 * i)
                if i == 2:
                    run.save_checkpoint({"i": i}, gradient_step=i, env_step=1000 * i)
    shown = accumulator.EventAccumulator(str(run.folder / "log" / "serial"))
    shown.Reload()
    steps = [(event.step, event.value) for event in shown.Scalars("collector_step/reward_mean")]
    assert steps == [(1000, 1.0), (2000, 2.0), (3000, 13.0), (4000, 14.0)]
    # Iterations are smaller numbers than environment steps, and a mark has one number for all: nothing is hidden there.
    iterations = [(event.step, event.value) for event in shown.Scalars("collector_iter/reward_mean")]
    assert iterations == [(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0), (3, 13.0), (4, 14.0)]


@pytest.mark.usefixtures("sealed")
def test_a_run_with_a_text_sink_leaves_the_text_files_to_it(tmp_path: Path) -> None:
    with rollbook.init("p", "mine", dir=tmp_path, sinks=["text"], keeper="inline") as run:
        log = CollectorLog(run)
        log.episode(1.5, 10)
        log.report(100)
        assert not (run.folder / "log" / "collector" / "collector_logger.txt").exists()
    assert "reward_mean" in (run.folder / "log" / "collector" / "collector_logger.txt").read_text()


def test_the_clock_of_a_tag_is_known_by_its_name() -> None:
    assert clock_of("collector_step/reward_mean") == "env_step"
    assert clock_of("learner_iter/loss_avg") == "gradient_step"
    assert clock_of("basic/train_loss") == "env_step"
    assert clock_of("basic/train_loss-train_iter") == "gradient_step"
    assert clock_of("Buffer/num_of_transitions") == "gradient_step"


def test_an_unreadable_reward_counts_as_nan_and_not_as_an_error(run: Any) -> None:
    log = CollectorLog(run)
    log.episode("broken", 3)
    assert math.isnan(log.report(1)["reward_mean"])
