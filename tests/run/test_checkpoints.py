"""Checkpoints as a reader finds them: which is the best, which the last, and what is said of those that are gone."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import rollbook
from rollbook.book.repair.doctor import verify
from rollbook.capture.checkpoints import folder as ckpt_folder
from rollbook.cli.app import app
from rollbook.errors import RollbookWarning, UnknownKey

Start = Callable[..., rollbook.Run]


def test_one_checkpoint_is_the_best_and_it_is_the_one_that_restore_takes(start: Start) -> None:
    run = start()
    for step, score in enumerate([1.0, 5.0, 3.0, 9.0, 2.0]):
        run.save_checkpoint({"w": score}, score=score, env_step=step)
    table = run.book.checkpoints()
    assert table["is_best"].to_pylist() == [False, False, False, True, False]
    best, last = run.book.checkpoint("best"), run.book.checkpoint()
    assert (best.score, best.is_best, best.clocks) == (9.0, True, {"env_step": 3})
    assert (last.score, last.is_best) == (2.0, False)
    assert run.book.checkpoint(best.id) == best
    restored = run.restore("best")
    assert restored is not None
    assert (restored.id, restored.path.absolute()) == (best.id, best.path)
    assert run.book.checkpoint("best") == best
    with pytest.raises(UnknownKey, match="'best'"):
        run.book.checkpoint("bests")


def test_with_a_loss_the_smallest_is_the_best(start: Start) -> None:
    run = start()
    for step, score in enumerate([3.0, 1.0, 2.0]):
        run.save_checkpoint({"w": 1}, score=score, higher_is_better=False, env_step=step)
    assert run.book.checkpoints()["is_best"].to_pylist() == [False, True, False]


def test_a_file_that_is_registered_again_leaves_no_row_that_says_something_else_of_it(start: Start) -> None:
    run = start()
    own = run.folder / "ckpt_best.bin"
    own.write_bytes(b"first")
    first = run.save_checkpoint(path=own, score=13.0, env_step=1)
    run.finish()
    again = start(resume="must")
    own.write_bytes(b"second")  # another attempt of the framework writes over it
    assert again.internals.checkpoints.best_score == 13.0
    second = again.save_checkpoint(path=own, score=9.5, env_step=1)
    rows = again.book.checkpoints(everything=True).to_pylist()
    assert [(row["checkpoint_id"], row["score"], row["status"]) for row in rows] == [
        (first.id, 13.0, "deleted"),
        (second.id, 9.5, "kept"),
    ]
    assert again.book.checkpoints()["checkpoint_id"].to_pylist() == [second.id]
    assert again.book.checkpoint("best").score == 9.5
    assert second.is_best
    with pytest.raises(UnknownKey):
        again.book.checkpoint(first.id)


def test_what_is_saved_after_the_end_is_not_kept_and_says_so(start: Start) -> None:
    run = start()
    assert run.save_checkpoint({"w": 1}, env_step=1)
    run.finish()
    before = sorted(os.listdir(run.folder / "ckpt"))
    with pytest.warns(RollbookWarning, match=r"save_checkpoint\(\) was called after finish"):
        late = run.save_checkpoint({"w": 2}, env_step=2)
    assert not late
    assert (late.id, late.path) == ("", None)
    assert sorted(os.listdir(run.folder / "ckpt")) == before
    assert run.bill()["drops"]["checkpoint_after_finish"] == 1


def test_a_checkpoint_that_could_not_be_saved_is_false(start: Start) -> None:
    run = start()
    with pytest.warns(RollbookWarning, match="save_checkpoint"):
        assert not run.save_checkpoint(path=run.folder / "nothing here")


class Killed(BaseException):
    pass


@pytest.mark.parametrize("moment", ["delete", "forget", "_write_index"])
def test_verify_is_quiet_whenever_a_program_is_killed_while_old_checkpoints_go(
    start: Start, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    run = start()
    for step in range(3):
        run.save_checkpoint({"w": step}, env_step=step)
    asked = []

    def killed(self: Any, *entry: Any) -> None:
        asked.append(1)
        if moment != "_write_index" or len(asked) > 1:  # the first index is that of the new checkpoint
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(ckpt_folder.CkptFolder, moment, killed)
        with pytest.raises(Killed):
            run.save_checkpoint({"w": 3}, keep=1, env_step=3)
    assert asked
    run.finish()
    assert [problem for problem in verify(run.folder) if "checkpoint" in problem] == []
    again = start(resume="must")
    again.save_checkpoint({"w": 4}, keep=1, env_step=4)
    assert again.book.checkpoint().clocks == {"env_step": 4}
    assert [problem for problem in verify(again.folder) if "checkpoint" in problem] == []


def test_the_command_lists_them_and_names_the_path_of_one(start: Start, root: Path) -> None:
    run = start()
    for step, score in enumerate([1.0, 5.0, 3.0]):
        run.save_checkpoint({"w": score}, score=score, keep=1, env_step=step)
    run.finish()

    def said(*words: str) -> str:
        done = CliRunner().invoke(app, ["checkpoints", *words, "--dir", str(root)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    listed = said("last")
    assert "best" in listed
    assert "1 more were deleted" in listed or "1 more" in listed
    assert said("last", "best").strip() == str(run.book.checkpoint("best").path)
    assert '"status": "deleted"' in said("last", "--all", "--json")
