"""One run, many processes: forked, spawned, pickled, attached."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rollbook
from cases import some_of
from forked_programs import Interpreter
from rollbook.errors import NotARun
from rollbook.keeper.own_files import Lock, state_path
from rollbook.system.files import read_json
from waiting import PATIENCE, until
from workers import log_alone, work

Start = Callable[..., rollbook.Run]


@pytest.mark.parametrize(
    "method",
    ["spawn", *(pytest.param(m, marks=pytest.mark.skipif(os.name == "nt", reason="")) for m in ("fork", "forkserver"))],
)
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_run_handed_to_another_process_is_a_further_writer_of_it(start: Start, method: str) -> None:
    run = start()
    run.log({"main": 1.0}, env_step=1)
    context = multiprocessing.get_context(method)
    workers = [
        context.Process(target=work, args=(target, i)) for i, target in enumerate((run, run.scope("train")), start=10)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(PATIENCE)
        assert worker.exitcode == 0
    assert run.status == "running"
    run.log({"main": 2.0}, env_step=2)
    run.finish()
    table = run.book.table("metrics")
    rows = {row["env_step"]: row for row in table.drop_columns(["time"]).to_pylist() if row["env_step"]}
    assert (rows[10]["worker"], rows[11]["train/worker"], rows[2]["main"]) == (10.0, 11.0, 2.0)
    assert len({row["writer"] for row in rows.values()}) == 3
    assert run.book.status == "finished"


def test_a_run_unpickled_in_its_own_process_is_the_same_run(start: Start) -> None:
    run = start()
    assert pickle.loads(pickle.dumps(run)) is run
    scope = pickle.loads(pickle.dumps(run.scope("train", at=run.save_checkpoint({"w": 1}, env_step=5))))
    scope.log({"x": 1.0})
    assert run.book.metrics(["train/x"])["env_step"].to_pylist() == [5]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_the_log_of_a_run_or_scope_is_handed_over_as_the_run_is(start: Start) -> None:
    run = start("a.1", "b.2")
    train, odd = run.scope("train"), run.scope("x.y's \u2603/.", at=run.save_checkpoint({"w": 1}, env_step=5))
    for log in (run.log, train.log, odd.log, run.scope("train").log):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(log, protocol)) is log
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.starmap(log_alone, [(run.log, 10), (train.log, 11), (odd.log, 12), (run.log, 13)])
        pool.close()
        pool.join()
    run.finish()
    found = {
        (row["env_step"], key, value): row
        for row in run.book.table("metrics").to_pylist()
        for key, value in row.items()
        if key.endswith("worker") and value is not None
    }
    odd_key = "x.y's \u2603/./worker"
    assert set(found) == {
        (10, "worker", 10.0),
        (11, "train/worker", 11.0),
        (12, odd_key, 12.0),
        (13, "worker", 13.0),
    }
    assert len({row["writer"] for row in found.values()}) == 1
    (saved,) = run.book.checkpoints().to_pylist()
    assert (found[12, odd_key, 12.0]["at"], found[10, "worker", 10.0]["at"]) == (saved["checkpoint_id"], "")


def test_functions_that_log_are_let_go_of_with_their_scopes(start: Start) -> None:
    from rollbook.run.scope import LOGS

    run = start()
    before = len(LOGS)
    for n in range(50):
        run.scope("update").log({"loss": float(n)}, gradient_step=n)
    assert len(LOGS) == before


def test_a_folder_of_the_same_name_that_is_another_run_is_refused(start: Start, tmp_path: Path) -> None:
    run = start()
    data = pickle.dumps(run)
    folder = run.folder
    run.finish()
    page = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**page, "nonce": "other"}))
    with pytest.raises(NotARun, match="belongs to another run now"):
        pickle.loads(data)
    folder.rename(tmp_path / "elsewhere")
    with pytest.raises((NotARun, rollbook.errors.RunNotFound)):
        pickle.loads(data)


def test_a_further_writer_neither_ends_nor_changes_the_run(start: Start, interpreter: Interpreter) -> None:
    run = start(config={"lr": 1})
    code = (
        "import sys, rollbook\n"
        "run = rollbook.attach(sys.argv[1])\n"
        "run.log({'eval/x': 1.0}, env_step=3); run.summary['best'] = 1; run.config['lr'] = 2\n"
        "raise SystemExit(3)\n"
    )
    assert interpreter.run(code, run.folder, env=os.environ).returncode == 3
    assert (run.book.status, run.book.config) == ("running", {"lr": 1})
    run.finish()
    assert run.book.metrics(["eval/x"])["env_step"].to_pylist() == [3]
    assert (run.book.status, run.book.config) == ("finished", {"lr": 1})


STEERED = (
    "import os, signal, sys, rollbook, rollbook.keeper.launch as launching\n"
    "if sys.argv[2] == 'none': launching._start = lambda *_: None\n"
    "run = rollbook.attach(sys.argv[1])\n"
    "run.log({'child/x': 1.0}, env_step=1)\n"
    "for word in iter(sys.stdin.readline, ''):\n"
    "    if word == 'die\\n': os.kill(os.getpid(), signal.SIGKILL)\n"
    "    if word == 'end\\n': run.finish()\n"
    "    print(word, flush=True)\n"
)


@pytest.mark.parametrize(
    ("child", "its_keeper"),
    some_of(
        [
            *[("ends before", "at work"), ("is killed after", "at work"), ("is killed before", "none")],
            *[("ends after", "killed"), ("is killed before", "at work"), ("ends after", "at work")],
            ("is killed after", "none"),
        ],
        4,
    ),
)
def test_a_run_kept_inline_is_sealed_whatever_an_attached_process_and_its_keeper_do(
    start: Start, child: str, its_keeper: str, interpreter: Interpreter
) -> None:
    """A process that attaches brings a keeper: it may hold the run's lock when finish() comes, or never have come."""
    rows: list[float] = []

    class Sink:
        accepts: frozenset[type] = frozenset({float, int})

        def open(self, run: Any) -> None:
            return

        def write(self, batch: Any) -> None:
            rows.extend(row.values["child/x"] for row in batch if "child/x" in row.values)

        def close(self) -> None:
            return

    run = start(sinks=[Sink()])
    folder = str(run.folder)
    process = interpreter.start(STEERED, folder, its_keeper, env=os.environ)
    with process.stdout, process.stdin:

        def report(word: str) -> None:
            process.stdin.write(f"{word}\n")
            process.stdin.flush()
            if word == "die":
                process.wait()
            else:
                while process.stdout.readline() != f"{word}\n":
                    pass

        report("written")
        if its_keeper != "none":
            until(lambda: read_json(state_path(folder)).get("phase") == "running")
            if its_keeper == "killed":
                os.kill(read_json(state_path(folder))["pid"], signal.SIGKILL)
                until(lambda: not Lock(folder).taken())
        if child.endswith("before"):
            report("end" if child == "ends before" else "die")
        run.log({"main": 1.0}, env_step=2)
        run.finish()
        assert rows == [1.0]
        if child.endswith("before"):
            assert not list(run.folder.glob("data/journal/*/*.[sl]*g"))
        else:
            report("end" if child == "ends after" else "die")
        until(lambda: not list(run.folder.glob("data/journal/*/*.[sl]*g")))
    process.wait()
    until(lambda: not Lock(folder).taken())
    assert run.book.metrics(["child/x", "main"]).num_rows == 2
    assert run.book.problems() == []


ATTACHED = (
    "import os, signal, sys, rollbook\n"
    "run = rollbook.attach(sys.argv[1])\n"
    "run.summary.update({'worker': 7, 'best': 2, 'odd': 1}); del run.summary['odd']\n"
    "if sys.argv[2] == 'killed': os.kill(os.getpid(), signal.SIGKILL)\n"
)


@pytest.mark.parametrize("how", ["ended", "killed"])
def test_what_another_process_says_in_the_summary_is_the_runs_also_when_it_is_killed(
    start: Start, how: str, interpreter: Interpreter
) -> None:
    run = start()
    run.summary.update({"best": 1, "own": 3, "odd": 0})
    assert interpreter.run(ATTACHED, run.folder, how, env=os.environ).returncode == (0 if how == "ended" else -9)
    said = {"best": 2, "own": 3, "worker": 7}
    assert said.items() <= run.book.summary.items()
    run._check_others()
    assert run.summary == said
    run.summary["best"] = 5  # the newer word stays
    run.finish()
    assert {**said, "best": 5}.items() <= run.book.summary.items()
    assert "odd" not in run.book.summary


def test_what_another_process_says_after_the_end_is_read_and_goes_on_with_a_resume(
    start: Start, interpreter: Interpreter
) -> None:
    run = start()
    run.summary["best"] = 1
    run.finish()
    assert interpreter.run(ATTACHED, run.folder, "ended", env=os.environ).returncode == 0
    assert {"best": 2, "worker": 7}.items() <= run.book.summary.items()
