"""Pictures and films from the training to files and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import rollbook
from rollbook.cli.play import play

Start = Callable[..., rollbook.Run]


def test_a_picture_is_a_file_of_the_run_when_it_has_finished(start: Start) -> None:
    pixels = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    run = start()
    run.scope("test").log_image("view", pixels, env_step=7)
    run.finish()
    (row,) = run.book.media().drop_columns(["time"]).to_pylist()
    assert (row["key"], row["env_step"], row["width"], row["height"]) == ("test/view", 7, 6, 4)
    matplotlib = pytest.importorskip("matplotlib.image")
    np.testing.assert_array_equal(np.rint(matplotlib.imread(run.folder / row["path"])[..., :3] * 255), pixels)
    assert run.bill()["media"]["encoded"] == 1


def test_play_finds_the_film_of_an_episode(start: Start) -> None:
    run = start()
    for number, total in enumerate((3.0, 9.0, 5.0)):
        frames = np.full((3, 16, 16, 3), number, dtype=np.uint8)
        run.log_episode(return_=total, episode_id=f"e{number}", env_step=number)
        run.media.log_video(run, "episode", frames, fps=5, episode_id=f"e{number}")
    run.finish()
    shown = {}
    for which in ("best", "worst", "last", "e2"):
        done = CliRunner().invoke(play, [str(run.folder), "--episode", which, "--no-open"])
        assert done.exit_code == 0, done.output
        shown[which] = Path(done.stdout.strip())
        assert shown[which].stat().st_size > 0
    assert shown["best"] != shown["worst"] != shown["last"]
    assert shown["last"] == shown["e2"]
