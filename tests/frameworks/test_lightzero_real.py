"""LightZero's MuZero on CartPole and DI-engine's DQN pipeline, recorded: their numbers beside the book's."""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

GROUPS = ("lightzero",)
pytestmark = pytest.mark.frameworks

if not hasattr(np, "bool8"):
    np.bool8 = np.bool_  # type: ignore[attr-defined]  # gym 0.25 asks for the old name

torch = pytest.importorskip("torch")
pytest.importorskip("ding")
pytest.importorskip("lzero")

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters.lightzero import collecting, evaluating, recording, train_muzero  # noqa: E402
from rollbook.adapters.lightzero.collector import FIELDS as COLLECTOR_FIELDS  # noqa: E402
from rollbook.adapters.lightzero.evaluator import FIELDS as EVALUATOR_FIELDS  # noqa: E402
from rollbook.book.book import Book  # noqa: E402

torch.set_num_threads(1)
WRONG_UPSTREAM = {  # each for a reason that stands in the documentation of the adapter
    "collect_time",
    "total_duration",
    "avg_envstep_per_sec",
    "avg_episode_per_sec",
    "evaluate_time",
    "avg_time_per_episode",
    "envstep_count",
    "avg_envstep_per_episode",
}
Native = dict[str, list[tuple[int, float]]]


def muzero_config() -> tuple[Any, Any]:
    from zoo.classic_control.cartpole.config.cartpole_muzero_config import create_config, main_config

    main, create = copy.deepcopy(main_config), copy.deepcopy(create_config)
    main.exp_name = "data_muzero/cartpole_quick"
    main.env.update(collector_env_num=2, evaluator_env_num=2, n_evaluator_episode=2, manager={"shared_memory": False})
    main.policy.update(
        collector_env_num=2,
        evaluator_env_num=2,
        n_episode=2,
        num_simulations=3,
        update_per_collect=40,
        batch_size=16,
        eval_freq=100,
        cuda=False,
    )
    create.env_manager.type = "base"
    return main, create


@pytest.fixture(scope="module")
def muzero(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One training for all tests of this module: the book, and what LightZero itself said on the way."""
    place = tmp_path_factory.mktemp("muzero")
    native: Native = defaultdict(list)
    learned: list[tuple[int, dict[str, Any]]] = []
    patch = pytest.MonkeyPatch()
    patch.chdir(place)
    for cls in (collecting._Captured, evaluating._Captured):

        def add_scalar(said: Any, tag: str, value: Any, step: int, *, own: Any = cls.add_scalar) -> None:
            native[tag].append((step, float(value)))
            own(said, tag, value, step)

        patch.setattr(cls, "add_scalar", add_scalar)
    from ding.worker import BaseLearner

    train = BaseLearner.train

    def watched(learner: Any, *args: Any, **kwargs: Any) -> Any:
        before = learner.train_iter
        found = train(learner, *args, **kwargs)
        learned.extend((before + i, dict(values)) for i, values in enumerate(found))
        return found

    patch.setattr(BaseLearner, "train", watched)
    main, create = muzero_config()
    try:
        options = {"dir": place / "runs", "keeper": "inline"}
        train_muzero([main, create], seed=0, max_env_step=300, options=options)
    finally:
        patch.undo()
    (folder,) = (place / "runs" / "data_muzero").iterdir()
    return Book(folder), folder, native, learned


def column(book: Book, key: str, x: str) -> list[tuple[Any, Any]]:
    return [(row[x], row[key]) for row in book.metrics([key], x=x).to_pylist() if row[key] is not None]


def test_the_folder_is_that_of_the_document(muzero: Any) -> None:
    book, folder, _, _ = muzero
    assert book.status == "finished"
    assert (book.project, book.name, book.seed) == ("data_muzero", "cartpole_quick", 0)
    for component in ("buffer", "collector", "evaluator", "learner"):
        assert (folder / "log" / component / f"{component}_logger.txt").stat().st_size > 100
    (events,) = (folder / "log" / "serial").iterdir()
    assert re.fullmatch(r"events\.out\.tfevents\.\d+\.[^.]+", events.name)
    names = {path.name for path in (folder / "ckpt").iterdir() if not path.name.startswith(".")}
    assert {"ckpt_best.pth.tar", "iteration_0.pth.tar"} <= names
    assert all(re.fullmatch(r"(ckpt_best|iteration_\d+)\.pth\.tar", name) for name in names)
    namespace: dict[str, Any] = {}
    exec((folder / "total_config.py").read_text(), namespace)
    assert namespace["exp_config"]["policy"]["num_simulations"] == 3
    assert book.config["policy"]["batch_size"] == 16


@pytest.mark.core
def test_what_the_workers_reported_is_in_the_book_number_for_number(muzero: Any, reads_as: Any) -> None:
    book, _, native, _ = muzero
    numbers = 0
    for tag, points in native.items():
        instance, _, name = tag.partition("/")
        component, _, kind = instance.rpartition("_")
        if name in WRONG_UPSTREAM:
            continue
        clock = {"iter": "gradient_step", "step": "env_step"}[kind]
        found = dict(column(book, f"{component}/{name}", clock))
        for step, value in points:
            assert found[step] == value, (tag, step)
            numbers += 1
    # How often its workers report follows from how long episodes happen to be; each reports some twenty numbers.
    assert numbers > 20
    assert {tag.partition("_")[0] for tag in native} == {"collector", "evaluator"}
    reads_as(book, {"train/return": "collector/reward_mean", "test/return": "evaluator/reward_mean"})
    reads_as(book, {"update/loss/policy": "learner/policy_loss", "update/learning_rate": "learner/cur_lr"})


def test_the_event_file_has_every_tag_and_the_numbers_of_the_book(muzero: Any) -> None:
    book, folder, native, _ = muzero
    events = EventAccumulator(str(folder / "log" / "serial"), size_guidance={"scalars": 0})
    events.Reload()
    tags = {tag: [(e.step, e.value) for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}
    assert set(native) <= set(tags)
    for kind, clock in (("iter", "gradient_step"), ("step", "env_step")):
        for component in ("collector", "evaluator"):
            for tag, points in tags.items():
                if tag.startswith(f"{component}_{kind}/"):
                    name = tag.partition("/")[2]
                    found = dict(column(book, f"{component}/{name}", clock))
                    assert [(s, np.float32(v)) for s, v in found.items()] == [(s, np.float32(v)) for s, v in points], (
                        tag
                    )
    assert any(tag.startswith("learner_iter/") for tag in tags)
    assert any(tag.startswith("Buffer/") for tag in tags)


def test_every_iteration_of_the_learner_is_in_the_book(muzero: Any) -> None:
    book, _, _, learned = muzero
    assert len(learned) > 100
    for name in ("total_loss", "policy_loss", "value_loss", "cur_lr"):
        assert column(book, f"learner/{name}", "gradient_step") == [(i, values[name]) for i, values in learned]
    shown = column(book, "learner_iter/total_loss_avg", "gradient_step")
    losses = [values["total_loss"] for _, values in learned]
    assert shown[0] == (0, losses[0])
    assert shown[1][0] == 100
    assert shown[1][1] == pytest.approx(np.mean(losses[1:101]))  # of all, not of the last 11


def test_all_18_fields_of_the_collector_are_logged(muzero: Any) -> None:
    book, folder, _, _ = muzero
    text = (folder / "log" / "collector" / "collector_logger.txt").read_text()
    for field in COLLECTOR_FIELDS:
        assert f"  {field}: " in text
        if field == "each_reward":
            assert "collector/each_reward" in {row["key"] for row in book.histograms().to_pylist()}
        else:
            assert f"collector/{field}" in book.keys()  # noqa: SIM118
    assert re.search(r"^\[[\d :-]{19}\]\[\w+\.py:\d+\]\[INFO\] Collector Training Summary:$", text, re.M)
    episodes = [row for row in book.episodes().to_pylist() if row["scope"] == "collector"]
    total = column(book, "collector/total_episode_count", "gradient_step")[-1][1]
    assert len(episodes) == total
    steps = column(book, "collector/total_envstep_count", "gradient_step")[-1][1]
    assert sum(row["length"] for row in episodes) == steps


def test_all_14_fields_of_the_evaluator_are_logged(muzero: Any) -> None:
    book, folder, _, _ = muzero
    text = (folder / "log" / "evaluator" / "evaluator_logger.txt").read_text()
    for field in EVALUATOR_FIELDS:
        assert f"| {field} " in text, field
    lines = re.findall(
        r"\[INFO\] \[EVALUATOR\]env (\d) finish episode, final reward: ([\d.]+), current episode: (\d)", text
    )
    evaluations = column(book, "evaluator/reward_mean", "gradient_step")
    assert len(lines) == 2 * len(evaluations)
    assert len(evaluations) >= 2
    rewards = [float(reward) for _, reward, _ in lines]
    assert [value for _, value in evaluations] == pytest.approx(
        [np.mean(rewards[i : i + 2]) for i in range(0, len(rewards), 2)]
    )
    lengths = [row["length"] for row in book.episodes().to_pylist() if row["scope"] == "evaluator"]
    counted = [n for _, n in column(book, "evaluator/envstep_count", "gradient_step")]
    assert counted == [sum(lengths[i : i + 2]) for i in range(0, len(lengths), 2)]
    for (_, seconds), (_, per_episode) in zip(
        column(book, "evaluator/evaluate_time", "gradient_step"),
        column(book, "evaluator/avg_time_per_episode", "gradient_step"),
        strict=True,
    ):
        assert per_episode == pytest.approx(seconds / 2)


def test_every_ckpt_name_names_a_file_that_torch_loads(muzero: Any) -> None:
    book, folder, _, _ = muzero
    rows = [row for row in book.text().to_pylist() if row["key"] == "evaluator/ckpt_name"]
    iterations = [step for step, _ in column(book, "evaluator/reward_mean", "gradient_step")]
    assert [row["text"] for row in rows] == [f"iteration_{i}.pth.tar" for i in iterations]
    scores = dict(column(book, "evaluator/reward_mean", "gradient_step"))
    for name, iteration in zip([row["text"] for row in rows], iterations, strict=True):
        state = torch.load(folder / "ckpt" / name)
        assert {"model", "last_iter"} <= set(state)
        assert state["last_iter"] == iteration  # the model that was evaluated, not that of a step later
    best = torch.load(folder / "ckpt" / "ckpt_best.pth.tar")
    assert scores[best["last_iter"]] == max(scores.values())
    checkpoints = book.checkpoints(everything=True).to_pylist()
    assert [row["score"] for row in checkpoints if row["is_best"]][-1] == max(scores.values())
    assert len({row["path"] for row in checkpoints}) == len(checkpoints)  # a file has one row


def test_what_was_written_can_be_run_again(muzero: Any, own_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from easydict import EasyDict

    _, folder, _, _ = muzero
    monkeypatch.syspath_prepend(str(folder))
    from formatted_total_config import create_config, main_config

    main, create = muzero_config()
    assert isinstance(main_config, EasyDict)
    assert create_config == create
    assert (main_config.exp_name, main_config.policy.batch_size) == (main.exp_name, 16)
    again = copy.deepcopy(main_config)
    again.policy.update(update_per_collect=2, eval_freq=1000)
    options = {"dir": own_place / "again", "keeper": "inline", "save_evaluated": False}
    train_muzero([again, copy.deepcopy(create_config)], seed=0, max_env_step=10, options=options)
    (second,) = (own_place / "again" / "data_muzero").iterdir()
    book = Book(second)
    assert (book.project, book.name, book.status) == ("data_muzero", "cartpole_quick", "finished")
    mine, before = book.config, Book(folder).config
    changed = {"exp_name", "policy"}
    assert {k: v for k, v in mine.items() if k not in changed} == {k: v for k, v in before.items() if k not in changed}
    assert {k for k, v in mine["policy"].items() if v != before["policy"].get(k)} <= {
        "update_per_collect",
        "eval_freq",
        "eval",
    }


def small_config() -> tuple[Any, Any]:
    main, create = muzero_config()
    main.env.update(collector_env_num=1, evaluator_env_num=1, n_evaluator_episode=1)
    main.policy.update(collector_env_num=1, evaluator_env_num=1, n_episode=1, num_simulations=2)
    main.policy.update(update_per_collect=6, batch_size=4, eval_freq=6)
    return main, create


def test_a_resumed_training_goes_on_its_best_model_stays_and_checkpoints_are_bounded(own_place: Path) -> None:
    def trained(**more: Any) -> Any:
        with rollbook.init(
            "lz", "again", dir=own_place / "runs", sinks=(), keeper="inline", run_id="one", **more
        ) as run:
            options = {"terminal": False, "keep_evaluated": 1}
            train_muzero([*small_config()], seed=0, max_train_iter=14, run=run, options=options)
        return run

    def scores(run: Any) -> list[tuple[int, float]]:
        return column(run.book, "evaluator/reward_mean", "gradient_step")

    first = trained()
    iterations = column(first.book, "learner/total_loss", "gradient_step")
    assert [step for step, _ in iterations] == list(range(len(iterations)))
    counted = column(first.book, "collector/total_episode_count", "gradient_step")[-1][1]
    second = trained(resume="must")
    assert second.attempt == 2
    assert second.internals.offsets["gradient_step"] == len(iterations)
    assert second.internals.offsets["env_step"] > 0
    # One axis: no iteration twice, totals go on, and the best model is the best of both lives.
    steps = [step for step, _ in column(second.book, "learner/total_loss", "gradient_step")]
    assert steps == list(range(2 * len(iterations)))
    episodes = [row for row in second.book.episodes().to_pylist() if row["scope"] == "collector"]
    assert column(second.book, "collector/total_episode_count", "gradient_step")[-1][1] == len(episodes) > counted
    rows = second.book.checkpoints(everything=True).to_pylist()
    best = max(value for _, value in scores(second))
    named = [row for row in rows if row["kept"] and row["score"] == best]
    state = torch.load(second.folder / "ckpt" / "ckpt_best.pth.tar")
    told = torch.load(second.folder / named[0]["path"])
    assert all(torch.equal(value, told["model"][name]) for name, value in state["model"].items())
    gone = {row["checkpoint_id"] for row in rows if not row["kept"]}
    for row in rows:
        assert (second.folder / row["path"]).exists() == (row["checkpoint_id"] not in gone)
    evaluated = [row for row in rows if row["score"] is not None and row["checkpoint_id"] not in gone]
    assert len(evaluated) <= 2  # the newest of both lives, and the best
    assert second.bill()["drops"] == {}


def test_a_resumed_training_goes_on_from_the_checkpoint_that_it_loads(own_place: Path) -> None:
    """The documented resume: `model_path` of an earlier model. What came after it is hidden in every table."""

    def trained(most: int, **more: Any) -> Any:
        given = {name: more.pop(name) for name in ("model_path",) if name in more}
        with rollbook.init(
            "lz", "back", dir=own_place / "runs", sinks=(), keeper="inline", run_id="one", **more
        ) as run:
            options = {"terminal": False, "keep_evaluated": 9}
            train_muzero([*small_config()], seed=0, max_train_iter=most, run=run, options=options, **given)
        return run

    first = trained(20)
    whole = [step for step, _ in column(first.book, "learner/total_loss", "gradient_step")]
    saved = [row for row in first.book.checkpoints(everything=True).to_pylist() if 0 < row["gradient_step"] < whole[-1]]
    chosen = saved[-1]
    second = trained(7, resume="must", model_path=str(first.folder / chosen["path"]))
    kept = [step for step in whole if step < chosen["gradient_step"]]
    steps = [step for step, _ in column(second.book, "learner/total_loss", "gradient_step")]
    assert steps == list(range(len(steps)))
    assert len(kept) < len(steps)
    (entry,) = [entry for entry in second.book.attempts if entry["n"] == second.attempt]
    assert (entry["parent"], entry["checkpoint"]) == (1, chosen["checkpoint_id"])
    assert second.internals.offsets["gradient_step"] in (chosen["gradient_step"], chosen["gradient_step"] + 1)
    episodes = second.book.episodes().to_pylist()
    ours = [row for row in episodes if row["scope"] == "collector" and row["attempt"] == 1]
    assert all(row["env_step"] is None or row["env_step"] <= chosen["env_step"] for row in ours)
    assert any("goes on from this checkpoint" in text for text in second.book.text()["text"].to_pylist())
    assert second.bill()["drops"] == {}


def test_the_learner_log_shows_structure_and_status(muzero: Any) -> None:
    _, folder, _, _ = muzero
    text = (folder / "log" / "learner" / "learner_logger.txt").read_text()
    for part in ("representation_network", "dynamics_network", "prediction_network"):
        assert f"({part})" in text
    assert "=== Training Iteration 100 Result ===" in text
    assert "cur_lr_avg" in text


def test_everything_stands_as_before_when_the_recording_is_over(muzero: Any) -> None:
    import ding.utils
    import tensorboardX
    from ding.worker.learner import learner_hook
    from lzero.entry import train_muzero as module  # noqa: F401
    from lzero.worker import MuZeroCollector

    assert ding.utils.build_logger.__module__ == "ding.utils.log_helper"
    assert tensorboardX.SummaryWriter.__name__ == "SummaryWriter"
    assert learner_hook.LogShowHook.__call__.__module__ == "ding.worker.learner.learner_hook"
    assert not hasattr(MuZeroCollector.collect, "__wrapped__")


@pytest.mark.core
def test_a_pipeline_of_di_engine_is_recorded(own_place: Path) -> None:
    from ding.entry import serial_pipeline
    from dizoo.classic_control.cartpole.config.cartpole_dqn_config import create_config, main_config

    main, create = copy.deepcopy(main_config), copy.deepcopy(create_config)
    main.policy.cuda = False
    main.env.update(collector_env_num=2, evaluator_env_num=2, n_evaluator_episode=2)
    main.policy.collect.n_sample = 48
    main.policy.learn.update_per_collect = 5
    main.policy.learn.batch_size = 16
    main.policy.eval.evaluator.eval_freq = 20
    create.env_manager.type = "base"
    with rollbook.init("di", "dqn", dir=own_place / "runs", sinks=(), keeper="inline") as run:
        with recording(run, terminal=False):
            serial_pipeline([main, create], seed=0, max_env_step=1200)
        book = run.book
    iterations = [step for step, _ in column(book, "learner/total_loss", "gradient_step")]
    assert iterations == list(range(len(iterations)))
    assert len(iterations) >= 100
    for key in ("collector/train_sample_count", "evaluator/reward_mean", "learner_iter/total_loss_avg"):
        assert column(book, key, "gradient_step")
    steps = column(book, "collector/total_envstep_count", "gradient_step")
    finished = sum(row["length"] for row in book.episodes().to_pylist() if row["scope"] == "collector")
    assert steps[-1][1] >= finished
    assert (run.folder / "log" / "evaluator" / "evaluator_logger.txt").read_text().count("[EVALUATOR]") >= 4
    assert run.bill()["drops"] == {}


def test_a_pipeline_of_middleware_takes_a_logger(own_place: Path) -> None:
    from ding.framework import OnlineRLContext, task

    from rollbook.adapters.lightzero import online_logger

    def train(ctx: Any) -> None:
        ctx.train_iter += 1
        ctx.env_step += 10
        ctx.train_output = {"total_loss": 1.0 / ctx.train_iter, "priority": [1.0]}
        ctx.eval_value = float(ctx.train_iter) if ctx.train_iter % 50 == 0 else -np.inf

    with rollbook.init("di", "middleware", dir=own_place / "runs", sinks=(), keeper="inline") as run:
        with task.start(async_mode=False, ctx=OnlineRLContext()):
            task.use(train)
            task.use(online_logger(run, train_show_freq=25))
            task.run(max_step=100)
        book = run.book
        assert column(book, "basic/train_total_loss", "env_step") == [(10 * i, 1.0 / i) for i in range(1, 101)]
        assert column(book, "basic/eval_episode_return_mean", "env_step") == [(500, 50.0), (1000, 100.0)]
        events = EventAccumulator(str(run.folder / "log" / "serial"))
        events.Reload()
        assert [e.step for e in events.Scalars("basic/train_total_loss")] == [240, 490, 740, 990]
