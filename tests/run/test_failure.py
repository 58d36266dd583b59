"""What ended a run before its time: kept with the attempt, for every way to end and every keeper."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest
from click.testing import CliRunner

import rollbook
from cases import some_of
from forked_programs import Interpreter
from rollbook.book.book import Book
from rollbook.book.repair.doctor import repair
from rollbook.cli.app import app

HEAD = """\
import os, signal, sys, threading, time
import rollbook
def deep(n):
    if n: deep(n - 1)
    raise RuntimeError('CUDA out of memory')
run = rollbook.init('p', 'n', sinks=[], keeper=sys.argv[1])
run.log({'a': 1.0})
"""

WAYS = {
    "an exception in the block": ("with run:\n    deep(2)", "crashed", "RuntimeError", "CUDA out of memory", "in deep"),
    "an exception outside": ("deep(2)", "crashed", "RuntimeError", "CUDA out of memory", "in deep"),
    "finish in a handler": (
        "try:\n    deep(2)\nexcept RuntimeError:\n    run.finish('crashed')",
        "crashed", "RuntimeError", "CUDA out of memory", "in deep",
    ),
    "finish in a finally": (
        "try:\n    deep(2)\nfinally:\n    run.finish('crashed')",
        "crashed", "RuntimeError", "CUDA out of memory", "in deep",
    ),
    "a cause": (
        "with run:\n    try:\n        deep(0)\n    except RuntimeError as err:\n        raise KeyError('lr') from err",
        "crashed", "KeyError", "'lr'", "direct cause",
    ),
    "an exit status": ("with run:\n    sys.exit(3)", "crashed", "SystemExit", "exit status 3", "SystemExit: 3"),
    "last words": ("with run:\n    sys.exit('no data')", "crashed", "SystemExit", "no data", ""),
    "Ctrl-C in the block": ("with run:\n    raise KeyboardInterrupt", "killed", "KeyboardInterrupt", "", "Traceback"),
    "SIGINT": ("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", "killed", "KeyboardInterrupt", "", "Traceback"),
    "SIGTERM": (
        "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
        "killed", "SIGTERM", "the process was ended by SIGTERM", "",
    ),
    "an exception in the block of a thread": (
        "def work():\n    with run:\n        deep(2)\nt = threading.Thread(target=work); t.start(); t.join()",
        "crashed", "RuntimeError", "CUDA out of memory", "in deep",
    ),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", "crashed", None, "", ""),
    "a clean end": ("with run:\n    pass", "finished", None, "", ""),
    "a clean exit": ("with run:\n    sys.exit(0)", "finished", None, "", ""),
}  # fmt: skip
"""(the program, status, type, message, what the traceback holds)"""

KEEPERS = ("inline", "thread", "process")
FEW = ("an exception in the block", "an exception outside", "SIGTERM")


@pytest.fixture
def ended(root: Path, interpreter: Interpreter) -> Callable[..., tuple[Book, str]]:
    """Runs a program: the book of its run, and what it wrote to the error output."""

    def run(body: str, keeper: str = "inline") -> tuple[Book, str]:
        done = interpreter.run(HEAD + body, keeper, env=os.environ)
        return rollbook.open(root).one(), done.stderr

    return run


@pytest.mark.parametrize(
    ("way", "keeper"),
    some_of(
        [(way, keeper) for way in WAYS for keeper in (KEEPERS if way in FEW else KEEPERS[:1])],
        lambda case: case[0] == FEW[-1] or (case[1] == "inline" and list(WAYS).index(case[0]) % 2 == 0),
    ),
)
def test_what_ended_a_run_is_kept_with_it(ended: Callable[..., tuple[Book, str]], way: str, keeper: str) -> None:
    body, status, kind, message, inside = WAYS[way]
    book, printed = ended(body, keeper)
    assert book.status == status
    if kind is None:
        assert book.failure is None
        assert "failure" not in book.attempts[-1]
        return
    failure = book.failure
    assert failure is not None
    assert (failure["type"], failure["message"]) == (kind, message)
    assert inside in failure["traceback"]
    if "Traceback" in printed:
        assert failure["traceback"].splitlines()[-1] == printed.strip().splitlines()[-1], "what the interpreter prints"
    shown = CliRunner().invoke(app, ["show", str(book.path)]).stdout.splitlines()
    assert shown[2].startswith(f"ended by {kind}"), "the first thing after the name"


def test_a_thread_that_ended_by_an_exception_is_an_alert_and_the_run_goes_on(
    root: Path, interpreter: Interpreter
) -> None:
    """Whatever hook the program has set is asked as before."""
    hook = "threading.excepthook = lambda args: print('mine', file=sys.stderr)\n"
    code = HEAD.replace("run = ", hook + "run = ")
    code += "t = threading.Thread(target=deep, args=(1,), name='learner'); t.start(); t.join()\n"
    done = interpreter.run(code, "inline", env=os.environ)
    assert done.returncode == 0
    book = rollbook.open(root).one()
    assert (book.status, book.failure, done.stderr.count("mine")) == ("finished", None, 1)
    (alert,) = book.alerts().to_pylist()
    assert (alert["rule"], alert["level"]) == ("exception", "error")
    assert alert["message"] == "thread learner ended by an exception: RuntimeError: CUDA out of memory"
    assert "in deep" in json.loads(alert["evidence"])["traceback"]


def test_what_ends_a_further_writer_is_an_alert_of_the_run(root: Path, interpreter: Interpreter) -> None:
    with rollbook.init("p", "n", sinks=[], keeper="inline") as run:
        code = f"import rollbook\nwith rollbook.attach({str(run.folder)!r}) as run:\n    raise ValueError('rank 1')"
        assert interpreter.run(code, env=os.environ).returncode == 1
    assert run.book.failure is None
    assert [row["message"].partition(": ")[2] for row in run.book.alerts().to_pylist()] == ["ValueError: rank 1"]


class Odd(Exception):
    """Its words cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def recursing(n: int = 0) -> int:
    return recursing(n + 1)


def raising(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (lambda: raising(Odd()), "Odd"),
        (lambda: raising(ValueError("x" * 10**6)), "ValueError"),
        (lambda: raising(ExceptionGroup("several", [ValueError("one"), KeyError("two")])), "ExceptionGroup"),
        (recursing, "RecursionError"),
        (lambda: raising(UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates")), "UnicodeEncodeError"),
        (lambda: raising(ValueError("a\x1b[2Jb\ud800")), "ValueError"),
    ],
)
def test_odd_exceptions_pass_unchanged_and_are_kept_in_few_words(tmp_path: Path, error: Any, kind: str) -> None:
    with pytest.raises(BaseException) as seen, rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="inline") as run:
        error()
    assert type(seen.value).__name__ == kind
    failure = run.book.failure
    assert failure is not None
    assert failure["type"].endswith(kind)
    assert 0 < len(json.dumps(failure)) < 30_000
    shown = CliRunner().invoke(app, ["show", str(run.folder)])
    assert shown.exit_code == 0
    assert "\x1b[2J" not in shown.stdout
    assert len(shown.stdout.splitlines()) < 40


def test_credentials_in_an_exception_are_hidden(tmp_path: Path) -> None:
    with (
        pytest.raises(OSError, match="hunter2"),
        rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="inline") as run,
    ):
        raise OSError("cannot reach https://me:hunter2@host/ with ghp_" + "a" * 36)
    text = (run.folder / "run.json").read_text()
    assert "hunter2@" not in text
    assert "a" * 36 not in text


@pytest.fixture
def fails_into(interpreter: Interpreter) -> Callable[..., None]:
    """Runs a program that fails, with these streams."""

    def run(stderr: IO[Any], body: str, stdout: IO[Any] | None = None) -> None:
        with open(os.devnull, "r+b") as nothing:
            streams = [each.fileno() for each in (nothing, stdout or nothing, stderr)]
            assert interpreter.wait(interpreter.fork(HEAD + body, ("inline",), os.environ, streams)) == 1

    return run


def test_the_last_lines_of_an_error_output_that_goes_into_a_file_are_kept(
    root: Path, tmp_path: Path, fails_into: Callable[..., None]
) -> None:
    """As under a batch system. Those of a pipe or a terminal are not touched."""
    body = "os.write(2, b'NCCL WARN ring broke\\n')\ndeep(0)"
    with open(tmp_path / "err", "w") as file:
        fails_into(file, body)
    failure = rollbook.open(root).one().failure
    assert failure is not None
    assert failure["stderr"] == "NCCL WARN ring broke"
    assert "Traceback" in (tmp_path / "err").read_text()


def test_what_was_printed_is_no_error_output_where_both_go_into_one_file(
    root: Path, tmp_path: Path, fails_into: Callable[..., None]
) -> None:
    """As with `python train.py > log 2>&1`, and under a batch system."""
    body = (
        "for i in range(30): print('loss', i, flush=True)\n"
        "os.write(2, b'NCCL WARN ring broke\\n')\nprint('loss 30', flush=True)\ndeep(0)"
    )
    with open(tmp_path / "both", "w") as file:
        fails_into(file, body, stdout=file)
    failure = rollbook.open(root).one().failure
    assert failure is not None
    assert failure["stderr"] == "NCCL WARN ring broke"


def test_error_output_is_that_of_the_attempt_that_failed(root: Path, tmp_path: Path) -> None:
    """A batch system appends the error output of a restarted job to the same file; where its own begins a program
    looks as it starts."""
    with open(tmp_path / "err", "ab") as file:
        for words in (
            "the first attempt's line",
            "a handled one\nTraceback (most recent call last):\nOSError: harmless",
        ):
            body = f"os.write(2, {words.encode() + bytes([10])!r})\ndeep(0)"
            subprocess.run([sys.executable, "-c", HEAD + body, "inline"], stderr=file, timeout=600, check=False)
            failure = rollbook.open(root).one(newest=True).failure
            assert failure is not None
            assert failure["stderr"] == words


def test_what_ended_a_run_comes_back_where_its_page_is_lost(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="why"),
        rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="inline") as run,
    ):
        raise ValueError("why")
    (run.folder / "run.json").unlink()
    repair(run.folder)
    failure = Book(run.folder).failure
    assert failure is not None
    assert (failure["type"], failure["message"]) == ("ValueError", "why")


def test_a_later_attempt_has_an_end_of_its_own(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="one"),
        rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="inline") as run,
    ):
        raise ValueError("one")
    with rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="inline", resume="must") as run:
        run.log({"a": 1})
    assert run.book.failure is None
    assert [entry.get("failure", {}).get("message") for entry in run.book.attempts] == ["one", None]


def test_an_exception_that_was_dealt_with_before_is_not_what_ended_a_run(tmp_path: Path) -> None:
    run = rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="inline")
    try:
        raise ValueError("of no importance")
    except ValueError:
        run.finish()
    assert run.book.failure is None


def test_hooks_are_set_once_and_ask_the_one_before(tmp_path: Path) -> None:
    before = threading.excepthook
    for name in ("a", "b"):
        rollbook.init("p", name, dir=tmp_path, sinks=[], keeper="inline").finish()
    assert threading.excepthook is before, "the first run of the process set it, and no other one"
