"""`rollbook episodes`, `samples` and `play`: what a person and what a program get to see."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from click.testing import CliRunner, Result

import rollbook
from json_shapes import misfits
from rollbook.capture.gym import RecordEpisodes
from rollbook.cli.app import app
from rollbook.cli.shapes import SHAPES


class Filmed(gymnasium.Env[Any, Any]):
    """As many steps as the seed says, plus one; a picture of each."""

    observation_space = gymnasium.spaces.Box(0, 9, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"], "render_fps": 5}  # noqa: RUF012 - as gymnasium has it
    render_mode = "rgb_array"

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.left = (seed or 0) + 1
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.left -= 1
        info = {"data": {"running": {"speed": 0.5}, "final": {"parts": 7}}}
        return np.zeros(1, np.float32), 1.0, self.left == 0, False, info

    def render(self) -> Any:
        return np.full((16, 16, 3), 9, np.uint8)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    run = rollbook.init("p", "filmed", dir=folder, sinks=[], keeper="inline")
    env = RecordEpisodes(Filmed(), run.scope("train"), steps="best", video="first, best", clock="env_step")
    for seed in (1, 4, 2):
        env.reset(seed=seed)
        while not env.step(0)[2]:
            pass
    run.save_checkpoint({"w": [1.0]})
    items = ["short", "a very long item " * 20, {"smiles": "C\x1b[31mC"}]
    run.log_samples(items, reward=[0.1, 0.9, 0.5], rewards={"a": [1, 2, 3]}, source="live")
    run.finish()
    return folder


def call(root: Path, *words: str, columns: int = 0) -> Result:
    env = {"COLUMNS": str(columns) if columns else "", "DISPLAY": "", "WAYLAND_DISPLAY": ""}
    return CliRunner().invoke(app, [words[0], "last", "--dir", str(root), *words[1:]], env=env)


def test_episodes_are_listed_with_what_matters_first(root: Path) -> None:
    lines = call(root, "episodes").stdout.splitlines()
    assert lines[0].split()[:7] == ["episode", "env_step", "return", "length", "end", "took", "seed"]
    assert [line.split()[1:5] for line in lines[1:]] == [
        ["2", "2", "2", "terminated"],
        ["7", "5", "5", "terminated"],
        ["10", "3", "3", "terminated"],
    ]
    assert "steps, video" in lines[2]
    assert "video" not in lines[3]


def test_a_listing_fits_the_terminal_and_names_what_it_leaves_out(root: Path) -> None:
    for table in ("episodes", "samples"):
        narrow = call(root, table, columns=70)
        assert max(map(len, narrow.stdout.splitlines())) <= 70
        assert "not shown: " in narrow.stderr
        wide = call(root, table, "--wide", columns=70)
        assert "not shown" not in wide.stderr
        assert max(map(len, wide.stdout.splitlines())) > 70
    assert "final/parts" in call(root, "episodes").stdout


def test_programs_get_every_column_and_every_row_in_full(root: Path) -> None:
    rows = json.loads(call(root, "episodes", "--json", columns=40).stdout)
    assert [row["final/parts"] for row in rows] == [7, 7, 7]
    assert rows[0]["running/speed/mean"] == 0.5
    table = list(csv.DictReader(io.StringIO(call(root, "samples", "--csv", columns=40).stdout)))
    assert [row["item"] for row in table][1] == "a very long item " * 20


def test_rows_are_chosen_and_sorted_in_sql(root: Path) -> None:
    best = call(root, "episodes", "--where", "length > 2", "--order-by", '"return" desc', "--limit", "1")
    assert [line.split()[2] for line in best.stdout.splitlines()[1:]] == ["5"]
    assert "more rows" in best.stderr
    none = call(root, "episodes", "--where", "length > 99")
    assert "nothing to list" in none.stderr


def test_a_mistake_in_the_query_is_reported_in_words(root: Path) -> None:
    for table in ("episodes", "samples"):
        wrong = call(root, table, "--where", "retrun > 1")
        assert (wrong.exit_code, wrong.stdout) == (1, "")
        assert wrong.stderr.startswith("Error: there is no column 'retrun'. ")
        assert "Available: " in wrong.stderr
    below = call(root, "samples", "--limit", "-1")
    assert (below.exit_code, below.stderr) == (1, "Error: limit=-1: a number of rows is not below 0. Give 0 or more\n")


def test_items_stand_last_on_one_line_and_cannot_play_with_the_terminal(root: Path) -> None:
    lines = call(root, "samples", "--order-by", "reward desc", columns=100).stdout.splitlines()
    assert lines[0].split()[-1] == "item"
    assert lines[1].endswith("…")
    assert "a very long item" in lines[1]
    assert "\x1b" not in "".join(lines)
    assert "0.9" in lines[1]


def test_different_items_are_listed_with_how_often_they_were_seen(root: Path) -> None:
    lines = call(root, "samples", "--unique", "--order-by", "reward", columns=110).stdout.splitlines()
    assert lines[0].split()[1:4] == ["times_seen", "first_seen", "last_seen"]
    assert [line.split()[1] for line in lines[1:]] == ["1", "1", "1"]


def test_one_episode_is_shown_with_all_that_was_kept_of_it(root: Path) -> None:
    shown = call(root, "episodes", "--episode", "best").stdout
    assert "return 5 over 5 steps" in shown
    assert "terminated" in shown
    assert "final/parts" in shown
    assert "6 rows (t, obs, action, reward" in shown
    assert "kept for: best" in shown
    assert ".mp4" in shown or ".gif" in shown or ".png" in shown
    as_json = json.loads(call(root, "episodes", "--episode", "last", "--json").stdout)
    assert (as_json["return"], as_json["recorded_steps"], as_json["files"]) == (3.0, 3, {})
    unknown = call(root, "episodes", "--episode", "nobody")
    assert unknown.exit_code == 1
    assert "no episode 'nobody'" in unknown.stderr


def test_play_says_what_is_in_the_video_and_where_it_is(root: Path, tmp_path: Path) -> None:
    played = call(root, "play", "--episode", "worst")
    assert "return 2, 2 steps, terminated; 3 frames at 5 a second" in played.stderr
    assert "no display here" in played.stderr
    video = Path(played.stdout.strip())
    assert video.is_file()
    copied = call(root, "play", "--episode", "best", "-o", str(tmp_path / f"best{video.suffix}"))
    assert copied.exit_code == 0
    assert (tmp_path / f"best{video.suffix}").stat().st_size > 50
    other = call(root, "play", "--episode", "best", "-o", str(tmp_path / "best.avi"))
    assert other.stdout.strip() == str(tmp_path / f"best{video.suffix}")
    assert f"the video is a {video.suffix[1:].upper()}" in other.stderr
    assert "there are videos of " in call(root, "play", "--episode", "x").stderr
    answer = json.loads(call(root, "play", "--episode", "best", "--json").stdout)
    assert misfits(answer, SHAPES["play"]) == []
