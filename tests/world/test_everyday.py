"""What people do every day and what they then look for: one small program each."""

from __future__ import annotations

import enum
import json
import math
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import rollbook
from cases import some_of
from rollbook.cli.app import app

Begin = Callable[..., Any]


def _column(book: Any, key: str) -> list[Any]:
    return [row[key] for row in book.metrics([key]).to_pylist() if row[key] is not None]


def test_two_libraries_that_log_loss_and_Loss_are_answered_each_for_itself(begin: Begin, root: Path) -> None:
    with begin(config={"LR": 1.0, "lr": 2.0}) as run:
        run.log({"Loss": 1.0}, step=1)
        run.log({"loss": 2.0}, step=2)
    book = rollbook.open(root).one()
    assert book.sql('select max("loss"), max("Loss") from metrics').fetchall() == [(2.0, 1.0)]
    assert (_column(book, "loss"), _column(book, "Loss")) == ([2.0], [1.0])
    assert len(rollbook.open(root).where("config.lr = 2.0")) == 1


def test_a_reward_of_two_objectives_is_an_episode_with_two_components(begin: Begin) -> None:
    gymnasium = pytest.importorskip("gymnasium")

    class Two(gymnasium.Env):  # type: ignore[misc, name-defined]
        observation_space = gymnasium.spaces.Discrete(2)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, **_: Any) -> tuple[int, dict[str, Any]]:
            return 0, {}

        def step(self, action: object) -> tuple[int, Any, bool, bool, dict[str, Any]]:
            return 0, np.array([1.0, -0.5]), True, False, {}

    run = begin()
    env = rollbook.RecordEpisodes(Two(), run.scope("train"))
    for _ in range(3):
        env.reset()
        env.step(0)
    assert run.book.episodes()["return"].to_pylist() == [0.5] * 3
    sums = run.book.sql("select sum(sum) from rewards group by component order by 1").fetchall()
    assert sums == [(-1.5,), (1.5,), (3.0,)]  # the second is the whole reward


def test_an_array_of_booleans_leaves_the_histograms_readable(begin: Begin) -> None:
    run = begin()
    run.log_histogram("weights", [0.1, 0.2, 0.3])
    run.log({"dones": np.array([True, False, True])})
    assert set(run.book.table("histograms")["key"].to_pylist()) >= {"weights"}


def test_an_empty_name_breaks_no_query(begin: Begin) -> None:
    run = begin()
    run.log({"": 1.0, "loss": 2.0})
    assert run.book.sql("select max(loss) from metrics").fetchall() == [(2.0,)]


@pytest.mark.parametrize("name", some_of(["loss\0", '"', "'; --", "select", "\u2060", "\0", "a\0b", "\n", " ", "/"], 5))
def test_no_name_breaks_a_query_wherever_it_stands(begin: Begin, name: str) -> None:
    """As of a tensor of letters of fixed length, which are filled up with zeros."""
    run = begin(config={name: 1})
    run.log({name: 1.0, "loss": 2.0})
    run.log_episode(**{"return": 5.0, "length": 2, f"x{name}": 3.0})
    run.finish()
    for asked in (run.book, rollbook.open(run.folder.parent.parent)):
        assert asked.sql("select max(loss) from metrics").fetchall() == [(2.0,)]
        assert asked.sql('select "return" from episodes').fetchall() == [(5.0,)]
        assert len(asked.sql("select * from metrics").fetchall()) == 2
    assert run.book.metrics([name])[name].to_pylist() == [1.0]


@pytest.mark.parametrize("clock", [np.array([5]), np.array([5, 6]), math.nan, None, "five"])
def test_a_clock_that_is_none_costs_no_value(begin: Begin, clock: object) -> None:
    run = begin()
    run.log({"loss": 1.0}, env_step=clock)
    assert _column(run.book, "loss") == [1.0]


class Split(str, enum.Enum):  # noqa: UP042 - as programs for older Pythons write it
    TRAIN = "train"


@pytest.mark.parametrize("before", [[], ["train"], ["Split.TRAIN"]])
def test_the_member_of_an_enum_is_a_key_by_its_value(begin: Begin, before: list[str]) -> None:
    run = begin()
    for key in before:
        run.log({key: 0.0})
    run.log({Split.TRAIN: 1.0})
    assert _column(run.book, "train")[-1] == 1.0


def test_a_limit_outside_of_the_recorder_is_said_and_one_inside_ends_episodes(begin: Begin) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    limit, run = gymnasium.wrappers.TimeLimit, begin()
    cars = [gymnasium.make("MountainCar-v0").unwrapped for _ in range(2)]
    limited = {
        "outside": limit(rollbook.RecordEpisodes(cars[0], run.scope("outside")), 4),
        "inside": rollbook.RecordEpisodes(limit(cars[1], 4), run.scope("inside")),
    }

    def play() -> None:
        for env in limited.values():
            for _ in range(5):
                env.reset()
                while not env.step(0)[3]:
                    pass

    with pytest.warns(rollbook.errors.RollbookWarning, match="TimeLimit, belongs inside") as said:
        play()
    assert len(said) == 1
    rows = run.book.episodes().to_pylist()
    assert [row["complete"] for row in rows if row["scope"] == "inside"] == [True] * 5
    assert {row["complete"] for row in rows if row["scope"] == "outside"} == {False}


def test_wrappers_that_stand_around_each_other_record_an_episode_once(begin: Begin) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    run = begin()
    env = gymnasium.make("CartPole-v1", max_episode_steps=5)
    env = rollbook.RecordEpisodes(rollbook.RecordEpisodes(env, run.scope("train")), run.scope("train"))
    env.reset(seed=1)
    for _ in range(5):
        env.step(0)
    env.close()
    assert run.book.row_count("episodes") == 1


@pytest.mark.parametrize("columns", ["1", "10", "80", "1000"])
def test_a_terminal_of_any_width_shows_the_run(begin: Begin, root: Path, columns: str) -> None:
    with begin(config={"lr": 0.1}) as run:
        run.log({"a/rather/long/name/of/a/metric": 1.0}, step=1)
    for words in (["ls"], ["show", "last"], ["tail", "last"], ["diff"]):
        done = CliRunner().invoke(app, [*words, "--dir", str(root)], env={**os.environ, "COLUMNS": columns})
        assert (done.exit_code, done.exception) == (0, None), (words, done.output)


def test_half_of_a_character_in_a_configuration_hides_no_other_run(begin: Begin, root: Path) -> None:
    for name, text in (("odd", "half \ud800"), ("plain", "whole")):
        with begin(name, config={"text": text}) as run:
            run.log({"loss": 1.0})
    assert rollbook.open(root).table().num_rows == 2
    assert CliRunner().invoke(app, ["ls", "--json", "--dir", str(root)]).exit_code == 0


def test_a_text_that_begins_like_a_formula_is_a_text(begin: Begin) -> None:
    run = begin()
    run.log_text("note", "=1+1")
    assert run.book.table("text")["text"].to_pylist() == ["=1+1"]


@pytest.mark.parametrize("rate", [[3e-4], (3e-4,), [[3e-4]]], ids=str)
def test_a_list_of_one_number_is_that_number(begin: Begin, rate: Any) -> None:
    """`scheduler.get_last_lr()` of torch."""
    run = begin()
    for step in range(20):
        run.log({"lr": rate, "weights": [1.0, 2.0]}, env_step=step)
    book = run.book
    assert (book.series("lr").count.sum(), book.latest()["lr"][0]) == (20, 3e-4)
    assert set(book.histograms()["key"].to_pylist()) == {"weights"}


def test_lists_of_several_numbers_stay_lists_when_there_is_one(begin: Begin) -> None:
    """The returns of the episodes that ended in an iteration; and the tokens of a rollout."""
    run = begin()
    for step, returns in enumerate(([1.0, 2.0], [3.0], [4.0, 5.0, 6.0])):
        run.log({"returns": returns}, env_step=step)
    assert run.book.histograms().num_rows == 3
    assert "returns" not in run.book.latest()
    with run.rollouts.begin(task="t") as rollout:
        rollout.turn("assistant", "a", tokens=[17], logprobs=[-0.5])
        rollout.turn("assistant", "b c", tokens=[17, 3], logprobs=[-1.0, -2.0])
    assert run.book.table("tokens")["sampler_logprobs"].to_pylist() == [[-0.5], [-1.0, -2.0]]


def test_a_table_for_each_iteration_is_kept_and_the_program_is_told_what_it_costs(begin: Begin) -> None:
    run = begin()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for step in range(50):
            run.record(f"answers_{step}", {"text": "a"}, env_step=step)
    assert ["one table 'answers'" in str(each.message) for each in told] == [True]
    assert run.book.table("answers_49")["text"].to_pylist() == ["a"]
    assert (run.bill()["drops"], run.bill()["remarks"]) == ({}, {"numbered_tables": 1})


def test_tables_that_a_program_recorded_itself_are_shown_and_of_many_the_first(begin: Begin, root: Path) -> None:
    run = begin("own")
    for step in range(12):
        run.record(f"answers_{step:02d}", {"text": ["a", "b"]}, 2, env_step=step)
    run.finish()
    assert run.book.overview().tables == {f"answers_{step:02d}": 2 for step in range(12)}
    shown = CliRunner().invoke(app, ["show", "own", "--dir", str(root)]).output
    assert "answers_00 2" in shown
    assert "5 more" in shown
    assert "answers_11 2" in CliRunner().invoke(app, ["show", "own", "--dir", str(root), "--all"]).output


def test_the_api_of_wandb_has_the_history_of_every_run_whoever_recorded_it(begin: Begin, root: Path) -> None:
    run = begin("native")
    for step in range(0, 50, 10):
        run.log({"return": float(step)}, env_step=step)
    begin("bare").log({"loss": 1.0})
    import rollbook.wandb as wandb

    runs = {each.name: each for each in wandb.Api().runs("world")}
    rows = runs["native"].history(pandas=False)
    assert [(row["_step"], row["env_step"], row["return"]) for row in rows] == [
        (n, n, float(n)) for n in range(0, 50, 10)
    ]
    assert runs["native"].lastHistoryStep == 40
    assert [row["loss"] for row in runs["bare"].scan_history(keys=["loss"])] == [1.0]


def test_an_analysis_finds_the_keys_that_its_program_logged_whatever_they_are_called(root: Path) -> None:
    """Scripts ask for the steps of the environment beside the return: `history(keys=["return", "env_step"])`."""
    import rollbook.wandb as wandb

    with wandb.init(project="world", name="asked", config={"lr": 0.1}) as run:
        for n in range(4):
            run.log({"return": float(n), "env_step": n * 10, "epoch": n // 2, "time": 0.5, "value/x": 1.0})
    asked = wandb.Api().runs("world")[0]
    rows = asked.history(keys=["return", "env_step", "epoch", "time", "value/x"], pandas=False)
    assert [(row["return"], row["env_step"], row["epoch"]) for row in rows] == [
        (0, 0, 0),
        (1, 10, 0),
        (2, 20, 1),
        (3, 30, 1),
    ]
    assert asked.history(keys=["return"], x_axis="env_step", pandas=False)[-1]["env_step"] == 30
    assert {"return", "env_step", "epoch", "time", "value/x"} <= {*asked.summary} == {*asked.summary_metrics}
    assert asked.summary["env_step"] == 30
    assert json.loads(asked.json_config)["lr"] == {"value": 0.1}


def test_a_script_finds_the_pictures_of_a_run_and_can_fetch_them(root: Path, tmp_path: Path) -> None:
    """`for row in run.scan_history(keys=["frame", "_step"]): run.file(row["frame"]["path"]).download(…)`, as a film."""
    import rollbook.wandb as wandb

    with wandb.init(project="world", name="pictures") as run:
        for step in range(4):
            frame = {"frame": wandb.Image(np.full((4, 6, 3), 40 * step, np.uint8))} if step % 2 else {}
            run.log({"loss": 1.0, **frame}, step=step)
    (asked,) = wandb.Api().runs("world")
    rows = list(asked.scan_history(keys=["frame", "_step"]))
    assert [(row["_step"], row["frame"]["_type"], row["frame"]["width"]) for row in rows] == [
        (1, "image-file", 6),
        (3, "image-file", 6),
    ]
    for row in rows:
        asked.file(row["frame"]["path"]).download(root=tmp_path / "film").close()
        assert (tmp_path / "film" / row["frame"]["path"]).read_bytes().startswith(b"\x89PNG")
    assert {row["frame"]["path"] for row in rows} <= {file.name for file in asked.files()}
    assert [row["_step"] for row in asked.scan_history(keys=["loss", "frame"])] == [1, 3]
    assert [row["_step"] for row in asked.scan_history(keys=["loss"])] == [0, 1, 2, 3]
    assert ["frame" in row for row in asked.scan_history()] == [False, True, False, True]


def test_an_analysis_finds_the_global_step_of_what_a_summary_writer_logged(root: Path) -> None:
    """openrlbenchmark: `run.history(samples=1500)[["global_step", "_runtime", "charts/episodic_return"]].dropna()`."""
    import rollbook.wandb as wandb

    from rollbook.adapters.tensorboard import SummaryWriter

    with wandb.init(project="world", name="both", sync_tensorboard=True) as run:
        writer = SummaryWriter(str(root / "events"), run=run.rollbook)
        for step in range(0, 30, 10):
            writer.add_scalar("charts/episodic_return", float(step), step)
        writer.close()
    (asked,) = wandb.Api().runs("world")
    frame = asked.history(samples=1500)[["global_step", "_runtime", "charts/episodic_return"]].dropna()
    assert (list(frame["global_step"]), list(frame["charts/episodic_return"])) == ([0, 10, 20], [0.0, 10.0, 20.0])
    assert [row["global_step"] for row in asked.scan_history(keys=["global_step"])] == [0, 10, 20]


@pytest.mark.parametrize("empty", [[], (), np.array([])], ids=["list", "tuple", "array"])
def test_nothing_in_a_list_is_called_empty(begin: Begin, empty: Any) -> None:
    """`infos["episode"]["r"][done]` where no episode has ended."""
    run = begin()
    with pytest.warns(rollbook.errors.RollbookWarning, match="an empty"):
        run.log({"returns": empty, "loss": 1.0}, env_step=1)
    assert _column(run.book, "loss") == [1.0]


def test_a_run_whose_health_rules_were_given_up_is_not_shown_as_one_without_alerts(begin: Begin, root: Path) -> None:
    """The keeper gives rules up where a look takes too long; this is what it then writes."""
    run = begin("fast")
    run.log({"rollbook/rules/failures": 1.0})
    run.finish()
    begin("calm").log({"rollbook/rules/failures": 0.0})
    shown = {name: CliRunner().invoke(app, ["show", name, "--dir", str(root)]).output for name in ("fast", "calm")}
    assert f"rollbook check {run.id}" in shown["fast"]
    assert "rollbook check" not in shown["calm"]
