"""One function over many runs: what fails is tried again, and costs no other run its answer."""

from __future__ import annotations

import functools
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import rollbook
from forked_programs import Interpreter
from rollbook.errors import BadInput, MissingExtra
from rollbook.runs.mapping import Answer
from rollbook.runs.run_set import RunSet
from waiting import PATIENCE, pause, until


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> RunSet:
    root = tmp_path_factory.mktemp("runs")
    for seed in range(4):
        with rollbook.init("p", "n", seed=seed, dir=root, sinks=[], keeper="import") as run:
            run.log({"loss": float(seed)}, env_step=1)
    return rollbook.open(root)  # type: ignore[return-value]


def seed_of(book: Any) -> int:
    return int(book.seed)


def raises_for_2(book: Any) -> int:
    if book.seed == 2:
        raise ValueError("no such score")
    return int(book.seed)


def dies(marks: str, book: Any) -> int:
    """Of the second run once, of the third each time."""
    mark = Path(marks) / str(book.seed)
    if book.seed == 2 or (book.seed == 1 and not mark.exists()):
        mark.touch()
        os._exit(9)
    return int(book.seed)


@pytest.mark.parametrize("on", ["threads", "processes"])
def test_each_run_has_an_answer_in_the_order_of_the_runs(runs: RunSet, on: str) -> None:
    told: list[tuple[int, int, Answer]] = []
    answers = runs.map(seed_of, on=on, workers=2, progress=lambda *words: told.append(words))
    assert answers.values == [book.seed for book in runs]
    assert [answer.path for answer in answers] == [str(book.path) for book in runs]
    assert [done for done, _of, _answer in told] == [1, 2, 3, 4]
    assert (answers.failed, answers.missing) == ([], [])


def test_a_run_whose_function_raises_is_tried_again_and_named(runs: RunSet) -> None:
    answers = runs.map(raises_for_2, retries=2)
    assert sorted(answers.values) == [0, 1, 3]
    (failed,) = answers.failed
    assert (failed.error, failed.tries) == ("ValueError: no such score", 3)
    assert repr(answers) == "<Answers of 3 of 4 runs, 1 failed>"


@pytest.mark.long
def test_a_process_that_dies_costs_one_more_try_and_no_other_run_its_answer(runs: RunSet, tmp_path: Path) -> None:
    answers = runs.map(functools.partial(dies, str(tmp_path)), on="processes", workers=2, retries=1)
    assert sorted(answers.values) == [0, 1, 3]
    assert [(answer.error, answer.tries) for answer in answers.failed] == [("its process died", 2)]


@pytest.mark.long
def test_a_process_that_dies_costs_no_other_run_a_try_where_one_process_works(runs: RunSet, tmp_path: Path) -> None:
    (tmp_path / "1").touch()
    alone = runs.map(functools.partial(dies, str(tmp_path)), on="processes", workers=1, retries=0)
    assert sorted(alone.values) == [0, 1, 3]
    assert [answer.tries for answer in alone] == [1, 1, 1, 1]


def goes_down_with_another(marks: str, book: Any) -> int:
    """The process of the second run dies each time, at first while the first run is at work."""
    began = Path(marks) / "began"
    if book.seed == 0 and not began.exists():
        began.touch()
        pause(PATIENCE)  # its process is ended long before, with the other one's
    if book.seed == 1:
        until(began.exists)
        os._exit(9)
    return int(book.seed)


def test_a_run_beside_one_whose_process_dies_has_its_answer_without_any_retry(runs: RunSet, tmp_path: Path) -> None:
    two = runs.where("seed < 2")
    answers = two.map(functools.partial(goes_down_with_another, str(tmp_path)), on="processes", workers=2, retries=0)
    assert answers.values == [0]
    (failed,) = answers.failed
    assert (failed.error, failed.tries) == ("its process died", 1)


def waits_for_the_end_of_another(marks: str, book: Any) -> int:
    """The process of the second run dies while that of the first is at work, which ends when that is known."""
    if book.seed == 0:
        until((Path(marks) / "known").exists)
    if book.seed == 1:
        os._exit(9)
    return int(book.seed)


@pytest.mark.long
def test_a_process_that_dies_right_after_it_was_started_is_noticed(
    runs: RunSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CPython's pool wakes up before it starts a process, and watches those it had: here it always looks too early."""
    start = ProcessPoolExecutor._adjust_process_count

    def late(pool: Any) -> None:
        if pool._processes:  # the pool's thread has gone to wait again, for those
            until(lambda: not pool._executor_manager_thread_wakeup._reader.poll())
            pause(0.2)
        start(pool)

    monkeypatch.setattr(ProcessPoolExecutor, "_adjust_process_count", late)
    two = runs.where("seed < 2")
    answers = two.map(
        functools.partial(waits_for_the_end_of_another, str(tmp_path)),
        on="processes",
        workers=2,
        retries=0,
        progress=lambda *_: (tmp_path / "known").touch(),
    )
    assert {answer.error: answer.value for answer in answers} == {"": 0, "its process died": None}


def test_when_the_time_is_up_what_is_there_is_the_answer(runs: RunSet) -> None:
    answers = runs.map(seed_of, seconds=0.0)
    assert (answers.values, len(answers.missing)) == ([], 4)


def test_wrong_arguments_are_refused(runs: RunSet, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ({"on": "mars"}, {"workers": 0}, {"retries": -1}):
        with pytest.raises(BadInput):
            runs.map(seed_of, **wrong)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="takes a Book"):
        runs.map("seed")  # type: ignore[arg-type]
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtra, match="needs Ray"):
        runs.map(seed_of, on="ray")


HANGS = """
import sys, threading
import rollbook
from rollbook.system import daemon_threads
daemon_threads._AT_THE_END = 0.2
hang = threading.Event().wait
print(len(rollbook.open(sys.argv[1]).map(lambda book: hang(), seconds=0.1, workers=2).missing))
kept = daemon_threads.DaemonThreads(2, "answers")
for _ in range(3):
    kept.submit(hang)
"""


def test_a_program_ends_although_an_answer_hangs(runs: RunSet, interpreter: Interpreter) -> None:
    root = str(Path(next(iter(runs)).path).parents[1])
    done = interpreter.run(HANGS, root, env=os.environ)
    assert (done.returncode, done.stdout) == (0, "4\n")
    assert done.stderr == "rollbook: 2 answers were still at work after 0.2 s, and are left undone\n"
