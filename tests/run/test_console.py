"""What a program prints is kept with its run, and never costs the program anything that it would notice."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import rollbook
from forked_programs import Interpreter
from rollbook.book import Book, questions
from rollbook.book.questions import asked_log
from rollbook.cli.app import app
from rollbook.run.console import Console
from rollbook.system.tuning import TUNING
from waiting import until

STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ(!?) ?")


def kept(folder: str | Path) -> list[tuple[str, str]]:
    """(mark, text) of each line of the file."""
    lines = Path(folder, "log", "console.log").read_text().splitlines()
    found = [(STAMP.match(line), line) for line in lines]
    return [(match[1], line[match.end() :]) if match else ("?", line) for match, line in found]


def texts(folder: str | Path) -> list[str]:
    return [text for _, text in kept(folder)]


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    console = Console(str(tmp_path), 1)
    yield console
    console.close()


Script = Callable[..., Book]


@pytest.fixture
def script(tmp_path: Path, interpreter: Interpreter) -> Script:
    """Runs a program that opens a run, as `run`, and does the body; its book."""
    head = (
        "import os, sys, threading, signal, rollbook\n"
        "run = rollbook.init('p', 'n', dir=sys.argv[1], sinks=[], rules=(), keeper='inline')\n"
    )

    def run(body: str, root: Path = tmp_path, *, expect: int = 0, env: dict[str, str] | None = None) -> Book:
        done = interpreter.run(head + body, root, env={**os.environ, **(env or {})})
        assert done.returncode == expect, done.stderr
        return rollbook.open(root).one()

    return run


def test_what_a_script_prints_is_kept_with_times_and_streams_and_printed_as_before(script: Script) -> None:
    body = (
        "sys.stdout.reconfigure(encoding='utf-8', errors='backslashreplace')\n"
        "print('loss', 0.5)\n"
        "print('two', end=' '); print('parts')\n"
        "sys.stderr.write('a warning\\n')\n"
        "sys.stdout.writelines(['x\\n', 'y\\n'])\n"
        "print('the key is ghp_' + 'a' * 36)\n"
        "print('\\x1b[31mred\\x1b[0m and \\ud800 \\x00')\n"
        "print('no end', end='')\n"
    )
    book = script(body)
    assert kept(book.path) == [
        ("", "loss 0.5"),
        ("", "two parts"),
        ("!", "a warning"),
        ("", "x"),
        ("", "y"),
        ("", "the key is ***"),
        ("", "red and \\ud800"),
        ("", "no end"),
    ]
    assert [line.bare() for line in book.log(search="warning")] == ["a warning"]
    assert book.log(search="warning")[0].is_error()
    assert book.log()[0].time is not None


def test_a_run_whose_program_prints_nothing_has_no_file_for_it(script: Script) -> None:
    book = script("run.log({'a': 1.0})")
    assert not Path(book.path, "log").exists()
    assert book.logs() == []


@pytest.mark.parametrize(("body", "env"), [("", {"ROLLBOOK_CONSOLE": "0"}), ("sys.ps1 = '>>> '", {})])
def test_at_a_prompt_or_if_told_so_nothing_is_kept_and_no_stream_is_touched(
    script: Script, body: str, env: dict[str, str]
) -> None:
    book = script(
        f"run.finish()\n{body}\n"
        "run = rollbook.init('p', 'n', dir=sys.argv[1], sinks=[], rules=(), keeper='inline', resume='must')\n"
        "assert 'write' not in vars(sys.stdout)\nprint('hello')\n",
        env=env,
    )
    assert book.logs() == []


def test_streams_are_as_they_were_after_the_last_run(script: Script) -> None:
    body = (
        "assert 'write' in vars(sys.stdout) and sys.stdout is sys.__stdout__\n"
        "run.finish()\n"
        "assert 'write' not in vars(sys.stdout) and 'write' not in vars(sys.stderr)\n"
        "print('later')\n"
    )
    assert script(body).logs() == []


def test_who_wraps_a_stream_meanwhile_keeps_his_wrapper(script: Script) -> None:
    """As other loggers do."""
    body = (
        "seen, before = [], sys.stdout.write\n"
        "def own(text):\n    seen.append(text)\n    return before(text)\n"
        "sys.stdout.write = own\nprint('a')\nrun.finish()\nprint('b')\n"
        "assert seen == ['a', '\\n', 'b', '\\n'] and sys.stdout.write is own\n"
    )
    assert texts(script(body).path) == ["a"]


def test_a_program_that_tees_its_output_is_kept_once(script: Script) -> None:
    body = (
        "class Tee:\n"
        "    def __init__(self, stream): self.stream = stream\n"
        "    def write(self, text): self.stream.write(text); return len(text)\n"
        "    def flush(self): self.stream.flush()\n"
        "sys.stdout = Tee(sys.stdout)\nprint('teed')\n"
    )
    assert texts(script(body).path) == ["teed"]


def test_the_traceback_that_ends_a_program_is_its_last_words(tmp_path: Path, script: Script) -> None:
    for body in ("print('on')\nraise ValueError('why')", "print('on')\nwith run: raise ValueError('why')"):
        root = tmp_path / str(len(body))
        lines = kept(script(body, root, expect=1).path)
        assert lines[0] == ("", "on")
        assert lines[-1] == ("!", "ValueError: why")
        assert [text for _, text in lines].count("ValueError: why") == 1


def test_after_sigkill_every_line_is_there_that_was_printed(script: Script) -> None:
    body = "for n in range(500): print('line', n)\nprint('\\rbar 10%', end='')\nos.kill(os.getpid(), signal.SIGKILL)\n"
    book = script(body, expect=-signal.SIGKILL)
    assert texts(book.path)[:500] == [f"line {n}" for n in range(500)]


def test_children_print_on_their_own_account(script: Script) -> None:
    body = (
        "import warnings; warnings.simplefilter('ignore', DeprecationWarning)\n"  # Python 3.12 and later, of a fork
        "print('before')\n"
        "if (child := os.fork()) == 0:\n    print('child'); sys.stdout.flush(); os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "os.system('echo from a shell')\n"
        "print('after')\n"
    )
    assert texts(script(body).path) == ["before", "after"]


def test_a_signal_handler_that_prints_and_threads_that_print_lose_no_line_and_never_hang(script: Script) -> None:
    body = (
        "told = [0]\n"
        "def tell(*_):\n    told[0] += 1\n    sys.stdout.write(f'signal {told[0]}\\n')\n"
        "signal.signal(signal.SIGALRM, tell)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\n"
        "def work(k):\n    for n in range(500): sys.stderr.write(f'{k}:{n}\\n')\n"
        "threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "signal.setitimer(signal.ITIMER_REAL, 0)\n"
        "run.summary['told'] = told[0]\n"
    )
    book = script(body)
    errors = [text for mark, text in kept(book.path) if mark == "!"]
    assert sorted(errors) == sorted(f"{k}:{n}" for k in range(4) for n in range(500))
    for k in range(4):
        own = [text for text in errors if text.startswith(f"{k}:")]
        assert own == [f"{k}:{n}" for n in range(500)]
    told = int(book.summary["told"])
    said = [text for mark, text in kept(book.path) if not mark]  # a handler may interrupt itself
    assert sorted(said) == sorted(f"signal {n}" for n in range(1, told + 1))


def test_a_disk_that_takes_nothing_costs_lines_and_no_print(script: Script) -> None:
    body = (
        "import resource, warnings\n"
        "for stream in (1, 2): os.dup2(os.pipe()[1], stream)\n"  # no files, which the limit would be for, too
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "print('kept')\n"
        "size = os.path.getsize(run.folder / 'log' / 'console.log')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))\n"
        "for n in range(5): print('lost', n)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "print('kept again')\n"
    )
    book = script(body)
    assert [text for mark, text in kept(book.path) if not mark] == ["kept", "kept again"]


def test_a_later_attempt_goes_on_in_the_same_file(tmp_path: Path) -> None:
    for attempt in (1, 2):
        with rollbook.init("p", "n", dir=tmp_path, sinks=[], rules=(), keeper="inline", resume="allow") as run:
            console = run._parts.console
            assert console is not None
            console.take("", f"from {attempt}\n")
    assert texts(run.folder) == ["from 1", "— attempt 2 —", "from 2"]


def test_of_a_long_log_the_beginning_and_the_end_are_kept(console: Console, tmp_path: Path) -> None:
    with TUNING.changed(console_bytes=20_000):
        for n in range(5_000):
            console.take("", f"line {n}\n")
            assert (tmp_path / "log" / "console.log").stat().st_size <= 20_100
        console.close()
    lines = texts(tmp_path)
    numbers = [int(line.split()[1]) for line in lines if line.startswith("line")]
    assert numbers[0] == 0
    assert numbers[-1] == 4_999
    (gap,) = [n for n, line in enumerate(lines) if "bytes left out" in line]
    assert numbers[:gap] == list(range(gap))
    assert numbers[gap:] == list(range(numbers[gap], 5_000))
    skipped = sum(len(f"2026-11-29 03:10:22Z line {n}\n") for n in range(gap, numbers[gap]))
    assert int(lines[gap].split()[1].replace(",", "")) == skipped


BAR = "\r{}%|####| {}/9"


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (["\r10%", "\r50%", "\r100%", "\n", "done\n"], ["100%", "done"]),
        (["long line\rshort", "\n"], ["shortline"]),
        (["long line\r\x1b[Kshort\n"], ["short"]),
        (["windows\r\n", "lines\r\n"], ["windows", "lines"]),
        (["a\bb\n"], ["b"]),
        (
            ["\router 1", "\n", "\rinner 1", "\x1b[A", "\n", "\rinner 2", "\x1b[A", "\router 2", "\n", "\n"],
            ["outer 2", "inner 2"],
        ),
        (["\x1b]0;title\x07text\n"], ["text"]),
        (["x" * 5_000 + "\n"], ["x" * 4_000 + " … 1,000 characters left out …"]),
    ],
)
def test_what_is_drawn_again_and_again_is_kept_as_it_last_looked(
    console: Console, tmp_path: Path, written: list[str], lines: list[str]
) -> None:
    for text in written:
        console.take("", text)
    console.close()
    assert texts(tmp_path) == lines


def test_a_bar_is_seen_while_it_moves_and_its_line_ends_once(console: Console, tmp_path: Path) -> None:
    console.take("", "begin\n")
    for n in range(1, 10):
        console.take("!", BAR.format(n * 11, n))
        console.settle()
        assert kept(tmp_path) == [("", "begin"), ("!", f"{n * 11}%|####| {n}/9")]
    console.take("!", "\n")
    console.settle()
    console.settle()
    console.take("", "end\n")
    console.close()
    assert kept(tmp_path) == [("", "begin"), ("!", "99%|####| 9/9"), ("", "end")]


@given(st.lists(st.text(alphabet="ab\n\t é", max_size=8), max_size=30), st.sets(st.integers(0, 30)))
def test_plain_text_is_kept_as_it_was_however_it_was_cut(parts: list[str], settled: set[int]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        console = Console(folder, 1)
        for n, part in enumerate(parts):
            console.take("", part)
            if n in settled:
                console.settle()
        console.close()
        whole = "".join(parts)
        expected = [line.rstrip() for line in whole.split("\n")]
        while expected and not expected[-1]:
            expected.pop()
        found = texts(folder) if os.path.exists(os.path.join(folder, "log")) else []
        while found and not found[-1]:
            found.pop()
        assert found == expected


@given(st.lists(st.text(alphabet="ab\n\r\b\x1b[A2K\x00\x07", max_size=8), max_size=30))
def test_no_text_whatever_breaks_the_log(parts: list[str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        console = Console(folder, 1)
        for part in parts:
            console.take("", part)
        console.settle()
        console.close()
        assert console.trouble == ""
        for line in Path(folder, "log", "console.log").read_text().splitlines() if parts and os.listdir(folder) else ():
            assert STAMP.match(line)
            assert not re.search(r"[\x00-\x08\x0b-\x1f]", line)


def test_the_page_and_agents_get_the_lines_too(tmp_path: Path) -> None:
    import json

    from click.testing import CliRunner

    from rollbook.cli.app import app
    from rollbook.server.agents import AgentTools

    with rollbook.init("p", "n", dir=tmp_path, sinks=[], rules=(), keeper="inline") as run:
        run._parts.console.take("", "epoch 1\n")  # type: ignore[union-attr]
        run._parts.console.take("!", "careful\n")  # type: ignore[union-attr]
    asked = CliRunner().invoke(app, ["logs", "last", "--dir", str(tmp_path), "--json"])
    rows = json.loads(asked.stdout)
    assert [(row["stream"], row["text"]) for row in rows] == [("stdout", "epoch 1"), ("stderr", "careful")]
    shown = CliRunner().invoke(app, ["logs", str(run.folder), "--search", "care"])
    assert shown.stdout.endswith("careful\n")
    assert "epoch" not in shown.stdout
    answer = AgentTools(str(tmp_path)).logs(run.id)
    assert "careful" in answer
    assert "log/console.log" in answer


def test_what_is_followed_comes_as_it_is_written(tmp_path: Path) -> None:
    with rollbook.init("p", "n", dir=tmp_path, sinks=[], rules=(), keeper="inline") as run:
        console: Any = run._parts.console
        console.take("", "one\n")
        command = [sys.executable, "-m", "rollbook", "logs", "-f", str(run.folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:
            assert follower.stdout is not None
            lines: list[str] = []
            reader = threading.Thread(target=lambda: lines.extend(iter(follower.stdout.readline, "")))  # type: ignore[union-attr]
            reader.start()
            until(lambda: lines)
            console.take("", "two\n")
            until(lambda: len(lines) == 2)
            run.finish()
            reader.join()
    assert [line.split(" ", 1)[1] for line in lines] == ["one\n", "two\n"]


def test_a_line_that_comes_while_the_lines_before_are_read_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rollbook.init("p", "n", dir=tmp_path, sinks=[], rules=(), keeper="inline") as run:
        console: Any = run._parts.console
        console.take("", "one\n")
    log = run.folder / "log" / "console.log"

    def slow(*asked: Any) -> Any:
        answer = asked_log(*asked)
        log.write_text(log.read_text() + log.read_text().replace("one", "two"))
        return answer

    monkeypatch.setattr(questions, "asked_log", slow)
    done = CliRunner().invoke(app, ["logs", "-f", str(run.folder)])
    assert [line.split(" ", 1)[1] for line in done.stdout.splitlines()] == ["one", "two"]


def test_of_an_error_output_that_processes_share_a_run_keeps_its_own_lines(tmp_path: Path) -> None:
    """As under a loop of seeds in one batch script."""
    body = (
        "import sys, rollbook\n"
        "me = sys.argv[2]\n"
        "run = rollbook.init('p', 'seed' + me, dir=sys.argv[1], sinks=[], rules=(), keeper='inline')\n"
        "print(f'{me} says', file=sys.stderr)\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "raise ValueError(me)\n"
    )
    with open(tmp_path / "err", "ab") as errors:
        programs = [
            subprocess.Popen(
                [sys.executable, "-c", body, str(tmp_path / "runs"), str(n)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
            for n in range(3)
        ]
        for program in programs:
            assert program.stdout is not None
            assert program.stdout.readline() == "ready\n"
        for program in programs:
            program.communicate("\n", timeout=600)
    for n in range(3):
        failure = rollbook.open(tmp_path / "runs").one(f"seed{n}").failure
        assert failure is not None
        assert failure["stderr"] == f"{n} says"


def test_a_stream_of_bytes_or_none_at_all_is_no_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd: list[Callable[[], Any]] = [lambda: None, io.StringIO, lambda: object()]
    for make in odd:
        monkeypatch.setattr(sys, "stdout", make())
        monkeypatch.setattr(sys, "__stdout__", make())
        with rollbook.init("p", "n", dir=tmp_path, sinks=[], rules=(), keeper="inline"):
            pass
