"""Saving checkpoints, keeping the best, deleting the surplus, and coming back."""

from __future__ import annotations

import json
import math
import os
import random
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forked_programs import Interpreter
from line_by_line import at_line
from rollbook.capture.checkpoints import folder as checkpoint_folder
from rollbook.capture.checkpoints import random_states
from rollbook.capture.checkpoints.saving import Checkpoint, Checkpoints, load
from rollbook.errors import BadInput, Damaged, LoggingFailed
from rollbook.schema import checkpoint_files
from waiting import pause

STATE = {"w": np.arange(3.0), "step": 7}


@pytest.fixture
def checkpoints(recorder: Any) -> Checkpoints:
    return Checkpoints(recorder, recorder.folder, positions=lambda: {"writer-1": {"0": 41, "1": 5}})


def names(recorder: Any) -> list[str]:
    return sorted(p.name for p in (recorder.folder / "ckpt").iterdir() if p.name != ".index.json")


# -- saving


def test_a_state_without_tensors_is_saved_under_the_gradient_step_and_comes_back(
    checkpoints: Checkpoints, recorder: Any
) -> None:
    checkpoint = checkpoints.save(STATE, clocks={"env_step": 2048, "gradient_step": 10})
    assert checkpoint.path == recorder.folder / "ckpt" / "iteration_10.ckpt"
    assert checkpoint.clocks == {"env_step": 2048, "gradient_step": 10}
    back = load(checkpoint.path)
    assert back["w"].tolist() == [0.0, 1.0, 2.0]
    assert back["step"] == 7
    assert names(recorder) == ["iteration_10.ckpt"]


def test_the_row_holds_score_clocks_positions_and_random_states(checkpoints: Checkpoints, recorder: Any) -> None:
    np.random.rand()  # numpy loads its generators at first use
    checkpoint = checkpoints.save(STATE, score=np.float32(1.5), clocks={"env_step": 5})
    ((table, row, clocks),) = recorder.rows
    assert table == "checkpoints"
    assert clocks == {"env_step": 5}
    assert row["checkpoint_id"] == checkpoint.id
    assert row["path"] == "ckpt/iteration_5.ckpt"
    assert (row["score"], row["is_best"], row["kept"], row["format"]) == (1.5, True, True, "ckpt")
    assert json.loads(row["positions"]) == {"writer-1": {"0": 41, "1": 5}}
    assert set(random_states.loads(row["state"])) >= {"python", "numpy"}
    assert row["seconds"] >= 0


def test_without_gradient_step_the_first_known_clock_counts_and_without_any_the_number_of_saves(
    checkpoints: Checkpoints,
) -> None:
    assert checkpoints.save(STATE, clocks={"env_step": 7, "epoch": 1}).path.name == "iteration_7.ckpt"
    assert checkpoints.save(STATE, clocks={"epoch": 3.0, "env_step": None}).path.name == "iteration_3.ckpt"
    unnumbered = [checkpoints.save(STATE, clocks={}).path.name for _ in range(2)]
    assert len(set(unnumbered)) == 2


def test_clocks_are_the_runs_unless_given(checkpoints: Checkpoints, recorder: Any) -> None:
    recorder.clock(gradient_step=12)
    assert checkpoints.save(STATE).clocks == {"gradient_step": 12}


def test_a_slow_save_does_not_turn_the_runs_clocks_back(checkpoints: Checkpoints, recorder: Any) -> None:
    recorder.clock(env_step=1)

    def write(path: Path) -> None:
        path.write_text("x")
        recorder.clock(env_step=500, epoch=1)  # another thread went on

    checkpoints.save(write=write)
    assert recorder.clocks_now() == {"env_step": 500, "epoch": 1}
    assert recorder.rows[0][2] == {"env_step": 1}


def test_saving_at_the_same_step_again_gets_another_name(checkpoints: Checkpoints, recorder: Any) -> None:
    made = [checkpoints.save({"i": i}, clocks={"gradient_step": 5}) for i in range(3)]
    assert names(recorder) == ["iteration_5.ckpt", "iteration_5_2.ckpt", "iteration_5_3.ckpt"]
    assert [load(c.path)["i"] for c in made] == [0, 1, 2]
    assert len({c.id for c in made}) == 3


def test_torch_tensors_make_a_file_that_torch_loads_with_its_defaults(checkpoints: Checkpoints, recorder: Any) -> None:
    torch = pytest.importorskip("torch")
    checkpoint = checkpoints.save(
        {"model": {"w": torch.ones(2)}, "norm": np.arange(2.0)}, score=1.0, clocks={"gradient_step": 3}
    )
    assert names(recorder) == ["ckpt_best.pth.tar", "iteration_3.pth.tar"]
    assert torch.load(checkpoint.path)["model"]["w"].tolist() == [1.0, 1.0]
    assert torch.load(recorder.folder / "ckpt" / "ckpt_best.pth.tar")["norm"].tolist() == [0.0, 1.0]
    assert isinstance(load(checkpoint.path)["norm"], np.ndarray)
    assert "torch" in random_states.loads(recorder.rows[0][1]["state"])


def test_threads_that_save_at_the_same_step_each_get_a_whole_file(checkpoints: Checkpoints, recorder: Any) -> None:
    found: list[Checkpoint] = []

    def work(i: int) -> None:
        found.append(checkpoints.save({"i": i, "w": np.full(10_000, i)}, score=float(i), clocks={"env_step": 1}))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(load(c.path)["i"] for c in found) == list(range(8))
    assert load(recorder.folder / "ckpt" / "ckpt_best.ckpt")["i"] == 7
    assert len(recorder.rows) == 8
    assert recorder.counts == {}


# -- the best one


def test_the_best_score_has_a_second_name_and_nan_never_is_the_best(checkpoints: Checkpoints, recorder: Any) -> None:
    scores = [math.nan, 1.0, 3.0, 3.0, 2.0, math.nan, 4.0, None]
    made = [checkpoints.save({"i": i}, score=score, clocks={"env_step": i}) for i, score in enumerate(scores)]
    assert [c.is_best for c in made] == [False, True, True, False, False, False, True, False]
    assert load(recorder.folder / "ckpt" / "ckpt_best.ckpt")["i"] == 6


def test_a_loss_is_better_when_it_is_lower(checkpoints: Checkpoints, recorder: Any) -> None:
    made = [
        checkpoints.save({"i": i}, score=score, higher_is_better=False, clocks={"env_step": i})
        for i, score in enumerate([2.0, 3.0, 1.0])
    ]
    assert [c.is_best for c in made] == [True, False, True]
    assert load(recorder.folder / "ckpt" / "ckpt_best.ckpt")["i"] == 2


def test_there_is_one_best_file_even_when_its_kind_changes(checkpoints: Checkpoints, recorder: Any) -> None:
    checkpoints.save({"i": 1}, score=1.0, clocks={"env_step": 1})
    checkpoints.save(write=lambda p: p.with_suffix(".zip").write_text("z"), score=2.0, clocks={"env_step": 2})
    assert [n for n in names(recorder) if "best" in n] == ["ckpt_best.zip"]


def test_where_there_are_no_hard_links_files_are_copied(
    checkpoints: Checkpoints, recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError("no links")

    monkeypatch.setattr(os, "link", refuse)
    for i in range(2):
        checkpoints.save({"i": i}, score=float(i), clocks={"env_step": 1})
    assert names(recorder) == ["ckpt_best.ckpt", "iteration_1.ckpt", "iteration_1_2.ckpt"]
    assert load(recorder.folder / "ckpt" / "ckpt_best.ckpt")["i"] == 1


def test_a_score_that_is_no_number_is_reported_and_the_checkpoint_is_kept(
    checkpoints: Checkpoints, recorder: Any
) -> None:
    checkpoint = checkpoints.save(STATE, score="good", clocks={"env_step": 1})
    assert checkpoint.path.exists()
    assert (checkpoint.score, checkpoint.is_best) == (None, False)
    assert recorder.counts == {"checkpoint_score": 1}


# -- keeping some


def test_keep_deletes_all_but_the_newest_and_the_best_and_says_so(checkpoints: Checkpoints, recorder: Any) -> None:
    for i, score in enumerate([5.0, 1.0, 2.0, 3.0, 4.0]):
        checkpoints.save({"i": i}, score=score, keep=2, clocks={"env_step": i})
    assert names(recorder) == ["ckpt_best.ckpt", "iteration_0.ckpt", "iteration_3.ckpt", "iteration_4.ckpt"]
    deleted = [(row["path"], clocks) for _, row, clocks in recorder.rows if not row["kept"]]
    assert deleted == [("ckpt/iteration_1.ckpt", {"env_step": 1}), ("ckpt/iteration_2.ckpt", {"env_step": 2})]
    ids = [row["checkpoint_id"] for _, row, _ in recorder.rows]
    assert len(set(ids)) == 5


def test_a_former_best_goes_once_there_is_a_better_one(checkpoints: Checkpoints, recorder: Any) -> None:
    for i, score in enumerate([5.0, 1.0, 6.0, 2.0]):
        checkpoints.save({"i": i}, score=score, keep=1, clocks={"env_step": i})
    assert names(recorder) == ["ckpt_best.ckpt", "iteration_2.ckpt", "iteration_3.ckpt"]


def test_a_resumed_run_knows_the_older_checkpoints_and_their_scores(checkpoints: Checkpoints, recorder: Any) -> None:
    for i, score in enumerate([5.0, 1.0, 2.0]):
        checkpoints.save({"i": i}, score=score, clocks={"env_step": i})
    later = Checkpoints(recorder, recorder.folder)
    checkpoint = later.save({"i": 3}, score=3.0, keep=2, clocks={"env_step": 3})
    assert not checkpoint.is_best
    assert names(recorder) == ["ckpt_best.ckpt", "iteration_0.ckpt", "iteration_2.ckpt", "iteration_3.ckpt"]
    assert not checkpoints.save({"i": 4}, score=4.0, clocks={"env_step": 4}).is_best


def test_a_forged_or_broken_index_deletes_nothing_outside_the_folder(checkpoints: Checkpoints, recorder: Any) -> None:
    victim = recorder.folder / "run.json"
    victim.write_text("{}")
    (recorder.folder / "ckpt").mkdir()
    entry = {"id": "a", "score": 1.0, "higher_is_better": True, "format": "ckpt", "clocks": {}}
    index = recorder.folder / "ckpt" / ".index.json"
    for text in (
        json.dumps([{**entry, "name": "../run.json"}, {**entry, "name": str(victim)}, {**entry, "name": ".."}, 3, {}]),
        "no json",
        json.dumps({"a": 1}),
    ):
        index.write_text(text)
        assert Checkpoints(recorder, recorder.folder).save(STATE, keep=1, clocks={"env_step": 1}).path is not None
    assert victim.exists()
    assert recorder.counts == {}


# -- files of others


def test_a_function_may_write_a_file_with_a_suffix_of_its_own(checkpoints: Checkpoints, recorder: Any) -> None:
    checkpoint = checkpoints.save(
        write=lambda path: Path(f"{path}.zip").write_bytes(b"sb3"), score=1.0, clocks={"env_step": 9}
    )
    assert checkpoint.path.name == "iteration_9.zip"
    assert names(recorder) == ["ckpt_best.zip", "iteration_9.zip"]
    assert recorder.rows[0][1]["format"] == "custom"


def test_a_function_may_write_a_folder_or_several_files(checkpoints: Checkpoints, recorder: Any) -> None:
    def folder(path: Path) -> None:
        (path / "inner").mkdir(parents=True)
        (path / "inner" / "a").write_text("a")

    def several(path: Path) -> None:
        Path(f"{path}.index").write_text("i")
        Path(f"{path}.data").write_text("d")

    first = checkpoints.save(write=folder, score=1.0, clocks={"env_step": 1})
    second = checkpoints.save(write=several, clocks={"env_step": 1})
    assert (first.path.name, second.path.name) == ("iteration_1", "iteration_1_2")
    assert (first.path / "inner" / "a").read_text() == "a"
    assert sorted(p.name for p in second.path.iterdir()) == ["iteration_1.data", "iteration_1.index"]
    checkpoints.save(write=several, clocks={"env_step": 3}, keep=1)
    assert names(recorder) == ["ckpt_best", "iteration_1", "iteration_3"]  # the best and the newest
    assert (recorder.folder / "ckpt" / "ckpt_best").resolve() == first.path.resolve()


def test_files_a_framework_wrote_are_registered_and_never_copied_or_deleted(
    checkpoints: Checkpoints, recorder: Any, tmp_path: Path
) -> None:
    inside, outside = recorder.folder / "rllib" / "checkpoint_000001", tmp_path / "elsewhere.zip"
    inside.mkdir(parents=True)
    outside.write_text("x")
    first = checkpoints.save(path=inside, score=2.0, clocks={"env_step": 1})
    second = checkpoints.save(path=str(outside), score=1.0, keep=1, clocks={"env_step": 2})
    assert (first.path, second.path) == (inside, outside)
    assert (first.is_best, second.is_best) == (True, False)
    assert [row["path"] for _, row, _ in recorder.rows] == ["rllib/checkpoint_000001", str(outside)]
    checkpoints.save(STATE, score=0.5, keep=1, clocks={"env_step": 3})
    assert inside.exists()
    assert outside.exists()


def test_the_best_has_its_name_no_matter_who_wrote_it(checkpoints: Checkpoints, recorder: Any, tmp_path: Path) -> None:
    folder = recorder.folder / "ckpt"
    outside = tmp_path / "best_model.zip"
    outside.write_text("weights")
    checkpoints.save(STATE, score=1.0, clocks={"env_step": 1})
    assert names(recorder)[0] == "ckpt_best.ckpt"
    checkpoints.save(path=outside, score=2.0, clocks={"env_step": 2})
    assert [name for name in names(recorder) if "best" in name] == ["ckpt_best.zip"], "the older one is best no more"
    assert os.readlink(folder / "ckpt_best.zip") == str(outside)
    inside = recorder.folder / "rllib" / "checkpoint_000001"
    inside.mkdir(parents=True)
    checkpoints.save(path=inside, score=3.0, clocks={"env_step": 3})
    assert os.readlink(folder / "ckpt_best") == os.path.join("..", "rllib", "checkpoint_000001")
    checkpoints.save(STATE, score=4.0, clocks={"env_step": 4})
    assert [name for name in names(recorder) if "best" in name] == ["ckpt_best.ckpt"]
    assert load(folder / "ckpt_best.ckpt")["step"] == 7
    assert inside.is_dir()
    assert outside.read_text() == "weights"


def test_a_framework_that_keeps_its_best_under_our_name_keeps_it(checkpoints: Checkpoints, recorder: Any) -> None:
    own = recorder.folder / "ckpt" / "ckpt_best.pth.tar"
    own.parent.mkdir()
    for i, text in enumerate(("first", "second")):
        own.write_text(text)
        assert checkpoints.save(path=own, score=float(i), clocks={"env_step": i}).is_best
        assert not own.is_symlink()
        assert own.read_text() == text
    assert recorder.counts == {}


def test_where_no_links_can_be_made_no_older_best_is_left_to_lie(
    checkpoints: Checkpoints, recorder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: Any, **_options: Any) -> None:
        raise OSError(1314, "A required privilege is not held by the client")

    monkeypatch.setattr(os, "symlink", refuse)
    outside = tmp_path / "model.ckpt"
    outside.write_text("weights")
    checkpoints.save(STATE, score=1.0, clocks={"env_step": 1})
    checkpoints.save(path=outside, score=2.0, clocks={"env_step": 2})
    assert names(recorder) == ["iteration_1.ckpt"]
    assert recorder.counts == {}


# -- failures


class Agent:
    pass


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"state": {"agent": Agent()}}, r"state['agent'] is a"),
        ({"write": lambda path: None}, "left nothing"),
        ({"write": lambda path: 1 / 0}, "ZeroDivisionError"),
        ({"path": "nowhere/at/all"}, "does not exist"),
        ({"state": {}, "path": "."}, "more than one"),
        ({"state": {}, "keep": "three"}, "must be an integer"),
    ],
)
def test_a_checkpoint_that_cannot_be_saved_is_counted_and_leaves_nothing_behind(
    checkpoints: Checkpoints, recorder: Any, arguments: dict[str, Any], said: str
) -> None:
    good = checkpoints.save(STATE, score=1.0, clocks={"env_step": 1})
    before = names(recorder)
    failed = checkpoints.save(score=2.0, clocks={"env_step": 2}, **arguments)
    assert (failed.id, failed.path, failed.clocks, failed.is_best) == ("", None, {"env_step": 2}, False)
    assert recorder.counts == {"checkpoint_failed": 1}
    assert said in recorder.messages[0]
    assert names(recorder) == before
    assert len(recorder.rows) == 1
    assert load(good.path)["step"] == 7


def test_a_strict_run_raises(strict_recorder: Any) -> None:
    with pytest.raises(LoggingFailed, match="Agent"):
        Checkpoints(strict_recorder, strict_recorder.folder).save({"a": Agent()})


def test_an_interrupt_while_writing_leaves_nothing_behind(checkpoints: Checkpoints, recorder: Any) -> None:
    def interrupted(path: Path) -> None:
        path.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        checkpoints.save(write=interrupted, clocks={"env_step": 2})
    assert names(recorder) == []


@pytest.fixture(scope="module")
def numerical() -> Iterator[Interpreter]:
    """Starts programs that have loaded what saves checkpoints of arrays."""
    made = Interpreter("import numpy, rollbook.capture.checkpoints.saving")
    yield made
    made.end()


FULL_DISK = """
    import resource, sys, json
    import numpy as np
    from pathlib import Path
    sys.path.insert(0, {tests!r})
    from conftest import ToldRun
    from rollbook.capture.checkpoints.saving import Checkpoints, load

    recorder = ToldRun(Path({folder!r}))
    folder = recorder.folder
    checkpoints = Checkpoints(recorder, folder)
    make = lambda n: {make}
    good = checkpoints.save(make(10), score=1.0, clocks={{"env_step": 1}})
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    bad = checkpoints.save(make(1_000_000), score=2.0, clocks={{"env_step": 2}})
    again = checkpoints.save(make(10), score=3.0, clocks={{"env_step": 3}})
    print(json.dumps({{
        "bad": bad.path is None and bad.id == "",
        "good": len(load(good.path)["w"]) == 10,
        "again": again.path is not None and again.is_best,
        "counts": recorder.counts,
        "files": sorted(p.name for p in (folder / "ckpt").iterdir()),
    }}))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs RLIMIT_FSIZE")
@pytest.mark.parametrize("kind", ["ckpt", "torch"])
def test_a_full_disk_is_counted_and_the_last_good_checkpoint_stays(
    kind: str, tmp_path: Path, numerical: Interpreter
) -> None:
    make = '{"w": np.zeros(n)}'
    if kind == "torch":
        pytest.importorskip("torch")
        make = '{"w": __import__("torch").zeros(n)}'
    code = textwrap.dedent(FULL_DISK).format(tests=str(Path(__file__).parent), folder=str(tmp_path), make=make)
    done = numerical.run(code, env=os.environ)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    suffix = "pth.tar" if kind == "torch" else "ckpt"
    assert found == {
        "bad": True,
        "good": True,
        "again": True,
        "counts": {"checkpoint_failed": 1},
        "files": [".index.json", f"ckpt_best.{suffix}", f"iteration_1.{suffix}", f"iteration_3.{suffix}"],
    }


KILLED = """
    import sys
    from pathlib import Path
    import numpy as np
    sys.path.insert(0, {tests!r})
    from conftest import ToldRun
    from rollbook.capture.checkpoints.saving import Checkpoints

    recorder = ToldRun(Path({folder!r}))
    checkpoints = Checkpoints(recorder, recorder.folder)
    i = 0
    while True:
        i += 1
        done = checkpoints.save({{"i": i, "w": np.full(50_000, i)}}, score=float(i), keep=2, clocks={{"env_step": i}})
        print(i, flush=True)
"""


def test_at_every_line_of_a_save_each_named_file_is_whole(checkpoints: Checkpoints, recorder: Any) -> None:
    seen: set[float] = set()

    def look() -> None:
        for path in [*recorder.folder.glob("ckpt/iteration_*"), *recorder.folder.glob("ckpt/ckpt_best*")]:
            seen.add(load(path)["i"])

    for i in (1.0, 2.0):
        save = partial(checkpoints.save, {"i": i, "w": np.zeros(500)}, score=i, clocks={"env_step": int(i)})
        at_line(None, (os.path.dirname(checkpoint_folder.__file__),), look, save)
    assert seen == {1.0, 2.0}


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_after_a_kill_at_any_moment_every_named_file_is_whole(tmp_path: Path, numerical: Interpreter) -> None:
    rng = random.Random(5)
    for attempt in range(3):
        root = tmp_path / str(attempt)
        code = textwrap.dedent(KILLED).format(tests=str(Path(__file__).parent), folder=str(root))
        child = numerical.start(code, env=os.environ)
        last = 0
        for _ in range(rng.randrange(3, 12)):
            last = int(child.stdout.readline())
        pause(rng.random() * 0.01)  # somewhere within the next save
        child.kill()
        child.wait()
        last = max([last, *map(int, child.stdout.read().split())])
        child.stdout.close()
        child.stdin.close()
        (folder,) = root.glob("p/*/ckpt")
        assert last in {load(path)["i"] for path in folder.glob("iteration_*")}
        assert load(folder / "ckpt_best.ckpt")["i"] >= last


def test_what_a_killed_process_left_unfinished_is_cleared_an_hour_later(
    checkpoints: Checkpoints, recorder: Any
) -> None:
    folder = recorder.folder / "ckpt"
    (folder / ".partial-1-dir").mkdir(parents=True)
    for name, age in ((".partial-1-old", 4000), (".partial-1-young", 100), (".partial-1-dir/big", 100)):
        (folder / name).write_text("half")
        os.utime(folder / name, (time.time() - age,) * 2)
    os.utime(folder / ".partial-1-dir", (time.time() - 4000,) * 2)
    checkpoints.save(STATE, clocks={"env_step": 1})
    assert names(recorder) == [".partial-1-dir", ".partial-1-young", "iteration_1.ckpt"]


def test_loading_says_what_a_file_is_not(tmp_path: Path) -> None:
    other = tmp_path / "model.pkl"
    other.write_bytes(b"\x80\x04cposix\nsystem\n")
    with pytest.raises(BadInput, match="neither by rollbook nor by torch"):
        load(other)
    with pytest.raises(FileNotFoundError, match="may have been deleted"):
        load(tmp_path / "gone.ckpt")
    broken = tmp_path / "x.ckpt"
    broken.write_bytes(checkpoint_files.MAGIC)
    with pytest.raises(Damaged):
        load(broken)
