"""Nothing happens in silence: sinks that get nothing, ends that were no good ones, cells that are run twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rollbook
from cases import some_of
from forked_programs import Interpreter
from rollbook.cli.show import summary
from rollbook.errors import MissingExtra, RollbookWarning, RunExists
from rollbook.keeper.main import Keeper
from rollbook.sinks import Memory
from waiting import until

Start = Callable[..., rollbook.Run]


def test_a_sink_whose_package_is_missing_is_an_error_of_init(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    monkeypatch.delitem(sys.modules, "wandb")
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "wandb" else real(name))
    with pytest.raises(MissingExtra, match=r"pip install 'rollbook(-core)?\[wandb\]'"):
        rollbook.init("p", "n", sinks=["wandb"])
    assert not root.exists()


class Broken(Memory):
    """A service that never answers well."""

    tries = 0

    def write(self, rows: Any) -> None:
        self.tries += 1
        raise ConnectionError("the server is away")


@pytest.mark.parametrize("keeper", ["thread", "inline", "process"])
def test_a_sink_that_keeps_failing_reaches_the_bill_and_is_reported_once(
    start: Start, keeper: str, tuned: Callable[..., None]
) -> None:
    tuned(drain_here_seconds=1.2)
    tuned(finish_seconds=2.0)
    sink = Broken()
    run = start(sinks=[sink], keeper=keeper)
    for i in range(100):
        run.log({"x": 1.0}, env_step=i)

    def end() -> None:
        if keeper != "inline":  # that feeds sinks at the end alone
            until(lambda: sink.tries > 2)  # two failures in a row are told
        run.finish()

    with pytest.warns(RollbookWarning) as warned:  # said by a thread, whenever that comes to it
        end()
    said = [str(w.message) for w in warned if "the server is away" in str(w.message)]
    assert len(said) == 1
    assert "Broken" in said[0]
    causes = {cause for cause in run.bill()["drops"] if cause.startswith("sink_Broken")}
    assert causes
    about = json.loads((run.folder / "run.json").read_text())  # where `show` looks
    assert causes <= set(about["drops"])
    assert all("the server is away" in about["reports"][cause] for cause in causes)


@pytest.mark.parametrize("keeper", ["inline", "process"])
def test_what_goes_wrong_at_the_very_end_stands_in_the_book_as_in_the_bill(start: Start, keeper: str) -> None:
    class FailsAtItsEnd:
        accepts = frozenset({float})

        def open(self, run: Any) -> None: ...
        def write(self, rows: Any) -> None: ...
        def close(self) -> None:
            raise OSError("the server is away")

    run = start(sinks=[FailsAtItsEnd()], keeper=keeper)
    run.log({"a": 1.0})
    with pytest.warns(RollbookWarning, match="the server is away"):
        run.finish()
    told = json.loads((run.folder / "run.json").read_text())["drops"]
    assert told == run.bill()["drops"]
    assert len(told) == 1
    with start(resume="must", keeper=keeper) as again:  # without that sink
        again.log({"a": 2.0})
    assert again.bill()["drops"] == {}
    assert summary(again.book)["silent_sinks"] == {}


def test_what_a_sink_does_not_show_is_a_remark_and_the_terminal_shows_what_it_can(start: Start) -> None:
    """A histogram beside the default terminal warned of a drop, and made finish() raise under strict=True."""

    class Numbers:
        accepts = frozenset({float})

        def open(self, run: Any) -> None: ...
        def write(self, rows: Any) -> None: ...
        def close(self) -> None: ...

    filtered = {"name": "terminal", "filters": [["select", {"keys": "a"}]]}
    run = start(strict=True, keeper="process", sinks=["terminal", filtered, Numbers()])
    with pytest.warns(RollbookWarning, match="sink Numbers does not take values of kind Histogram") as warned, run:
        run.log_histogram("h", [1.0, 2.0])
    assert len(warned) == 1
    assert (run.bill()["drops"], run.bill()["remarks"]) == ({}, {"refused_Numbers": 1})


def test_a_sink_that_fails_at_the_very_end_stands_in_the_runs_page_too(start: Start) -> None:
    runs: list[rollbook.Run] = []

    class Fails(Memory):
        def write(self, rows: Any) -> None:  # in a thread of its own, which looks for rows whenever it likes
            until(lambda: runs and runs[0].internals.writer.closed)
            raise ConnectionError("the server is away")

    run = start(sinks=[Fails()], keeper="process")
    runs.append(run)
    run.log({"x": 1.0}, env_step=1)
    with pytest.warns(RollbookWarning, match="the server is away"):
        run.finish()
    assert run.bill()["drops"].keys() == {"sink_Fails"}
    assert json.loads((run.folder / "run.json").read_text())["drops"] == run.bill()["drops"]


def test_a_plan_whose_sink_cannot_be_made_is_reported(start: Start) -> None:
    run = start()
    run.log({"x": 1.0})
    run._parts.ticker.stop()
    plan = run.folder / "data" / "keeper" / "plan.json"
    plan.write_text(json.dumps({"sinks": [{"name": "csv", "nonsense": 1}]}))
    Keeper(run.folder).run_to_end()
    with pytest.warns(RollbookWarning, match="csv cannot be made"):
        run._check_sinks()
    run._check_sinks()
    assert run.bill()["drops"]["sink_csv"] == 1


@pytest.mark.parametrize(("line", "word"), [("raise ValueError('oh')", "crashed"), ("pass", "finished")])
def test_the_terminal_says_how_a_program_ended(root: Path, line: str, word: str, interpreter: Interpreter) -> None:
    code = (
        f"import rollbook\nrun = rollbook.init('c', 'x', dir={str(root)!r}, sinks=['terminal'], keeper='inline')\n"
        f"run.log({{'a': 1}}, env_step=1)\n{line}\n"
    )
    done = interpreter.run(code, env=os.environ)
    (report,) = [text for text in done.stderr.splitlines() if " c/x" in text and "| a 1" in text][-1:]
    assert report.endswith(f"| {word}")


def test_every_row_reaches_tensorboard_and_thinning_goes_by_the_rows_own_time(start: Start) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def points(run: rollbook.Run) -> int:
        (file,) = (run.folder / "log").rglob("events.out.tfevents.*")
        events = EventAccumulator(str(file), {"scalars": 0, "tensors": 0})
        events.Reload()
        tag = next(tag for tag in [*events.Tags()["scalars"], *events.Tags()["tensors"]] if tag.endswith("x"))
        return len(events.Scalars(tag) if tag in events.Tags()["scalars"] else events.Tensors(tag))

    every = start(sinks=["tensorboard"])
    for i in range(300):
        every.log({"x": float(i)}, env_step=i)
    every.finish()
    assert points(every) == 300

    from rollbook.journal.writer import now

    thinned = start(sinks=[{"name": "tensorboard", "every_seconds": 10}])
    times = [now() + i * 10**9 for i in range(60)]  # a minute, delivered in one go
    thinned.record("metrics", {"x": [float(i) for i in range(60)]}, n=60, time_column=times)
    thinned.finish()
    assert points(thinned) == 7  # one in ten seconds, and the last one


def test_a_run_that_merely_exists_is_not_called_live(start: Start) -> None:
    start(run_id="taken").finish()
    with pytest.raises(RunExists, match="it exists"):
        start(run_id="taken")


def test_a_cell_that_is_run_twice_finishes_the_former_run_and_says_so_once(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    other = start("project", "another")
    first = start()
    with pytest.warns(RollbookWarning, match=f"run {first.id} of project/name was still open") as warned:
        second = start()
    assert len(warned) == 1
    assert (first.status, second.status, other.status) == ("finished", "running", "running")
    assert first.book.status == "finished"
    with start("project", "inner"):
        assert start("project", "inner").status == "running"  # a block ends its run by itself


def test_a_program_may_open_two_runs_of_one_name(start: Start) -> None:
    assert [run.status for run in (start(), start())] == ["running", "running"]


@pytest.mark.parametrize(
    ("errors", "warnings"),
    some_of([("closed", "shown"), ("None", "errors"), ("closed", "errors"), ("None", "shown")], 2),
)
def test_a_program_without_standard_streams_and_without_a_working_folder_trains_on(
    root: Path, tmp_path: Path, errors: str, warnings: str
) -> None:
    """As daemons do: what cannot be said stays counted."""
    code = f"""
        import os, sys
        import rollbook
        import warnings
        warnings.simplefilter({"default" if warnings == "shown" else "error"!r})
        os.mkdir("scratch")
        os.chdir("scratch")
        os.rmdir(os.getcwd())
        if {errors == "closed"}:
            sys.stdout.close(), sys.stderr.close()
        else:
            sys.stdout = sys.stderr = None
        run = rollbook.init("project", "name", keeper="inline")
        for i in range(10):
            run.log({{"a": 1.0, "bad": object()}}, env_step=i)
        run.finish()
        os._exit(0 if run.bill()["drops"]["unloggable"] == 10 and run.book.row_count("metrics") == 10 else 7)
    """
    # Of a file: with -c, CPython 3.13.0 itself fails at every attribute that a module lacks when the folder has gone.
    (tmp_path / "program.py").write_text(textwrap.dedent(code))
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path)
    assert done.returncode == 0
    (book,) = rollbook.open(root)
    assert (book.status, book.metrics(["a"]).num_rows) == ("finished", 10)
