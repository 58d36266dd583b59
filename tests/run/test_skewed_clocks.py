"""A resume needs no clock: whatever the clocks of two machines say, what was acknowledged before it is there."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import rollbook
from cases import some_of
from forked_programs import Interpreter
from rollbook.remote import views
from rollbook.remote.push import push
from rollbook.schema import manifest
from waiting import until

PROGRAM = """
import os, signal, time, rollbook
skew = float({skew!r})
plain, plain_ns = time.time, time.time_ns
time.time, time.time_ns = (lambda: plain() + skew), (lambda: plain_ns() + int(skew * 1e9))
os.environ["ROLLBOOK_HOST"] = "the-first-machine"
run = rollbook.init("project", "name", dir={root!r}, sinks=[], keeper={keeper!r}, run_id="r1", remote=False)
for step in range(81):
    run.log({{"loss": float(step)}}, env_step=step)
    run.log_episode(return_=float(step), length=1)
    if step % 20 == 19:
        run.save_checkpoint({{"step": step}})
    run.log_text("note", f"text {{step}}")
print(run.folder, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_run(interpreter: Interpreter, root: Path, skew: float = 0.0, keeper: str = "inline") -> Path:
    done = interpreter.run(PROGRAM.format(root=str(root), skew=skew, keeper=keeper), env=os.environ)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return Path(done.stdout.strip())


@pytest.fixture(scope="module")
def gone(tmp_path_factory: pytest.TempPathFactory, interpreter: Interpreter) -> Path:
    """The root of a run of 81 steps and 4 checkpoints; its trainer was killed, and it has no keeper."""
    root = tmp_path_factory.mktemp("gone")
    killed_run(interpreter, root)
    return root


def skewed(monkeypatch: pytest.MonkeyPatch, seconds: float, host: str) -> None:
    plain, plain_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: plain() + seconds)
    monkeypatch.setattr(time, "time_ns", lambda: plain_ns() + int(seconds * 1e9))
    monkeypatch.setenv("ROLLBOOK_HOST", host)


def resumed(root: Path, how: str, **more: Any) -> rollbook.Run:
    options: dict[str, Any] = {"sinks": [], "keeper": "inline", "remote": False, "run_id": "r1", **more}
    return rollbook.init("project", "name", dir=root, resume="takeover" if how == "takeover" else "must", **options)


def steps_of(book: rollbook.Book) -> dict[str, list[Any]]:
    return {
        "metrics": book.metrics(["loss"], x="env_step")["env_step"].to_pylist(),
        "episodes": sorted(book.episodes()["env_step"].to_pylist()),
        "text": sorted(int(text.split()[1]) for text in book.text()["text"].to_pylist()),
        "checkpoints": sorted(book.checkpoints()["env_step"].to_pylist()),
    }


def check(run: rollbook.Run, how: str) -> None:
    """Everything acknowledged is there; a restore takes the newest checkpoint; the run goes on as one curve."""
    whole = list(range(81))
    everything = {"metrics": whole, "episodes": whole, "text": whole, "checkpoints": [19, 39, 59, 79]}
    assert steps_of(run.book) == everything
    first = 81
    if how != "plain":
        restored = run.restore("last")
        assert restored is not None
        assert (restored.state, restored.clocks) == ({"step": 79}, {"env_step": 79})
        first, kept = 80, list(range(80))
        # the text of step 79 was written after its checkpoint
        assert steps_of(run.book) == {**everything, "metrics": kept, "episodes": kept, "text": list(range(79))}
    for step in range(first, 90):
        run.log({"loss": float(step)}, env_step=step)
    run.finish()
    book = run.book
    assert book.metrics(["loss"], x="env_step")["env_step"].to_pylist() == list(range(90))
    times = book.metrics(["loss"])["env_step"].to_pylist()
    assert times == list(range(90)), "the rows of the new attempt come last"
    assert book.metrics(["loss"], attempts="all").num_rows == 81 + 90 - first
    about = book.info
    assert about.ended >= about.created
    assert all(entry["ended"] >= entry["started"] for entry in book.attempts)
    assert not book.problems()


SKEWS = [-3600.0, -60.0, -5.0, 0.0, 5.0, 3600.0]
HOW = ["plain", "restore", "takeover"]


HOSTS = ["the-first-machine", "another-machine"]


@pytest.mark.parametrize(
    ("skew", "how", "host"),
    some_of(
        itertools.product(SKEWS, HOW, HOSTS),
        lambda case: (case[0] in SKEWS[:2]) and (case[0] == SKEWS[0]) == (HOW.index(case[1]) == HOSTS.index(case[2])),
    ),
)
def test_a_clock_that_is_off_hides_nothing_on_the_same_disk(
    gone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, skew: float, how: str, host: str
) -> None:
    shutil.copytree(gone, tmp_path / "runs", symlinks=True)
    skewed(monkeypatch, skew, host)
    check(resumed(tmp_path / "runs", how), how)


@pytest.mark.parametrize("how", some_of(HOW, 1))
@pytest.mark.parametrize("skew", some_of(SKEWS, 1))
def test_a_clock_that_is_off_hides_nothing_that_a_remote_has(
    gone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, skew: float, how: str
) -> None:
    store = f"file://{tmp_path}/store"
    push(gone / "project" / "name-r1", store)
    for file in (tmp_path / "store").rglob("*"):  # the machine has been gone for a while, by the store's clock
        os.utime(file, (file.stat().st_mtime - 300, file.stat().st_mtime - 300))
    skewed(monkeypatch, skew, "another-machine")
    run = resumed(tmp_path / "new", how, remote=store)
    check(run, how)
    push(run.folder)
    views.forget()
    book = rollbook.open(store).one()
    assert book.metrics(["loss"], x="env_step")["env_step"].to_pylist() == list(range(90))


@pytest.mark.parametrize("skew", some_of([3600.0, -3600.0], 1))
def test_a_keeper_that_outlives_its_training_and_another_machine_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, skew: float, interpreter: Interpreter
) -> None:
    """The training's clock was off; its keeper, whose clock is right, has sealed the run and written how it ended."""
    root = tmp_path / "runs"
    folder = killed_run(interpreter, root, skew, "process")
    until(lambda: manifest.look(folder).status == "crashed")
    until(lambda: not list(folder.glob("data/journal/*/*.seg")))
    until(lambda: not (folder / "data" / "keeper" / "ballast").exists())  # the last that it does
    monkeypatch.setenv("ROLLBOOK_HOST", "another-machine")
    for how in HOW:
        place = tmp_path / how
        shutil.copytree(root, place, symlinks=True)
        check(resumed(place, how), how)
