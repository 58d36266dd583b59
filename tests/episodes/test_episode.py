"""`book.episode(…)`: from one row of the table to the steps, rewards, media, alerts and checkpoint behind it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import rollbook
from rollbook.book.book import Book
from rollbook.capture.gym import RecordEpisodes
from rollbook.errors import BadInput, UnknownKey

pytestmark = pytest.mark.filterwarnings("ignore:.*reward components at stage")


class Task(gymnasium.Env[Any, Any]):
    """Pays the action, in two components, for three steps; films itself; says odd sums in the second episode."""

    observation_space = gymnasium.spaces.Box(-9, 9, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(9)
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 - as gymnasium has it
    render_mode = "rgb_array"

    def __init__(self) -> None:
        self.t = self.n = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.t, self.n = 0, self.n + 1
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        self.t += 1
        parts = {"half": action / 2, "rest": action / 2 + (self.n == 2)}
        info = {"reward_components": parts, "media": {"map": np.full((8, 8, 3), self.t, np.uint8)}}
        return np.full(2, self.t, np.float32), float(action), self.t == 3, False, info

    def render(self) -> Any:
        return np.full((16, 16, 3), 40 * self.t, np.uint8)


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Returns 3, 6, 0 and one episode that was left after a step."""
    run = rollbook.init("p", "task", dir=tmp_path_factory.mktemp("runs"), sinks=[], keeper="inline")
    env = RecordEpisodes(Task(), run.scope("train"), steps=True, video="first 2", clock="env_step")
    for action in (1, 2, 0):
        env.reset(seed=action)
        if action == 2:
            run.log({"loss": 0.5})
            run.save_checkpoint({"w": [1.0]})
        while not env.step(action)[2]:
            pass
    env.reset()
    env.step(5)
    env.close()
    run.finish()
    return Book(run.folder)


def test_an_episode_is_its_row_as_a_mapping(book: Book) -> None:
    best = book.episode("best")
    assert (best["return"], best["length"], best["terminated"], best["seed"]) == (6.0, 3, True, 2)
    assert best.id == best["episode_id"] == book.episodes()["episode_id"].to_pylist()[1]
    assert dict(best) == best.row == book.episodes().slice(1, 1).to_pylist()[0]
    assert best.table.num_rows == 1
    assert "return 6, 3 steps, terminated" in repr(best)
    with pytest.raises(KeyError):
        best["nothing"]


def test_best_worst_first_and_last_are_among_those_that_were_played_to_their_end(book: Book) -> None:
    found = {which: book.episode(which)["return"] for which in ("best", "worst", "first", "last")}
    assert found == {"best": 6.0, "worst": 0.0, "first": 3.0, "last": 0.0}
    left = book.episode(book.episodes()["episode_id"].to_pylist()[3])
    assert (left["complete"], left["length"], left["return"]) == (False, 1, 5.0)
    assert "cut short" in repr(left)


def test_its_steps_rewards_and_media_come_with_it(book: Book) -> None:
    best = book.episode("best")
    steps = best.steps()
    assert steps["t"].to_pylist() == [0, 1, 2, 3]
    assert steps["action"].to_pylist() == [2, 2, 2, None]
    assert set(steps["episode_id"].to_pylist()) == {best.id}
    sums = {row["component"]: row["sum"] for row in best.rewards().to_pylist()}
    assert sums == {"half": 3.0, "rest": 6.0, "": 6.0}
    assert sorted(best.media()["key"].to_pylist()) == ["train/media/map", "train/video"]
    assert best.media("image").num_rows == 0
    assert set(best.media()["episode_id"].to_pylist()) == {best.id}
    assert best.video is not None
    assert best.files()["train/video"] == best.video
    assert best.video.stat().st_size > 100
    assert book.episode("last").video == book.episode("last").files()["train/media/map"]


def test_what_was_found_about_it_and_what_went_on_around_it_come_with_it(book: Book) -> None:
    best = book.episode("best")
    (alert,) = best.alerts().to_pylist()
    assert alert["rule"] == "reward_ledger"
    assert book.episode("worst").alerts().num_rows == 0
    around = best.around(rows=1)
    assert around["episodes"]["episode_id"].to_pylist() == [best.id]
    values = dict(zip(around["metrics"]["key"].to_pylist(), around["metrics"]["value"].to_pylist(), strict=True))
    assert values["loss"] == 0.5
    checkpoint = best.checkpoint()
    assert checkpoint is not None
    assert os.path.exists(book.path / checkpoint["path"])
    assert book.episode("first").checkpoint() is None


def test_an_episode_after_a_rewind_knows_the_checkpoint_it_went_on_from(tmp_path: Path) -> None:
    run = rollbook.init("p", "again", dir=tmp_path, sinks=[], keeper="inline")
    scope = run.scope("train")
    first = run.save_checkpoint({"w": [1.0]}, env_step=1)
    scope.log_episode(episode_id="old", return_=1.0, length=1, env_step=2)
    second = run.save_checkpoint({"w": [2.0]}, env_step=3)
    scope.log_episode(episode_id="older attempt", return_=2.0, length=1, env_step=4)
    run.restore(first.id)
    scope.log_episode(episode_id="new", return_=3.0, length=1, env_step=5)
    book = run.book
    found = {name: book.episode(name).checkpoint() for name in ("older attempt", "new")}
    assert {name: row and row["checkpoint_id"] for name, row in found.items()} == {
        "older attempt": second.id,
        "new": first.id,
    }
    assert book.episode("best").id == "new"
    run.finish()


def test_an_episode_that_is_not_there_is_named_with_what_may_be_asked_for(book: Book, tmp_path: Path) -> None:
    with pytest.raises(UnknownKey, match=r"no episode 'e7'.*'best'"):
        book.episode("e7")
    empty = rollbook.init("p", "empty", dir=tmp_path, sinks=[], keeper="inline")
    with pytest.raises(UnknownKey, match="no finished episode"):
        empty.book.episode("best")
    empty.finish()


def test_a_path_that_leads_out_of_the_run_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.mp4").write_bytes(b"x" * 10)
    run = rollbook.init("p", "odd", dir=tmp_path / "runs", sinks=[], keeper="inline")
    run.record("episodes", {"episode_id": ["e"], "return": [1.0], "length": [1]}, 1)
    run.record("media", {"key": ["video"], "kind": ["video"], "path": ["../../../secret.mp4"], "episode_id": ["e"]}, 1)
    assert run.book.episode("e").video is None
    assert run.book.episode("e").files() == {}
    run.finish()


def test_rows_with_one_text_in_a_column_can_be_asked_for_in_every_table_but_metrics(book: Book) -> None:
    best = book.episode("best")
    assert book.table("steps", where=("episode_id", best.id)).equals(best.steps())
    assert book.table("episodes", where=("scope", "test")).num_rows == 0
    with pytest.raises(BadInput, match="metrics hold numbers"):
        book.table("metrics", where=("scope", "train"))
