"""Opening runs: what is accepted, what is refused and how it is said."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from cases import some_of
from forked_programs import Interpreter
from rollbook.errors import (
    BadInput,
    InvalidClock,
    InvalidName,
    NewerFormat,
    NotARun,
    NothingToResume,
    RollbookWarning,
    RunError,
    RunExists,
    RunIsLive,
    RunNotFound,
    UnknownOption,
)
from rollbook.schema.manifest import Cut, RunJson
from rollbook.system import files
from waiting import PATIENCE

Start = Callable[..., rollbook.Run]


def about(run: rollbook.Run) -> dict[str, Any]:
    return dict(json.loads((run.folder / "run.json").read_text()))


def test_a_run_is_a_folder_under_its_project_that_says_what_it_is(start: Start, root: Path) -> None:
    run = start("cartpole", "ppo", seed=3, group="g", tags=["a", "b", "a"], notes="try", total={"env_step": 1000})
    assert run.folder == root / "cartpole" / f"ppo-{run.id}"
    page = about(run)
    assert page["status"] == "running"
    assert (page["seed"], page["group"], page["tags"], page["notes"]) == (3, "g", ["a", "b"], "try")
    assert page["total"] == {"env_step": 1000}
    assert [entry["n"] for entry in page["attempts"]] == [1]
    run.finish()
    assert about(run)["status"] == "finished"
    assert about(run)["ended"] >= page["created"]


def test_two_runs_of_one_name_are_two_folders(start: Start) -> None:
    assert start("p", "n").folder != start("p", "n").folder


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a/b",
        "../up",
        "a\\b",
        "a\nb",
        "a\x00b",
        ".hidden",
        "x" * 200,
        7,
        "what?",
        " a",
        "a\x9bb",
        "a\u202eb",
        "a\u2028b",
        "a\ud800",
        "NUL",
    ],
)
def test_a_name_that_is_no_folder_name_is_refused_and_quoted(start: Start, root: Path, name: Any) -> None:
    for names in ((name, "n"), ("p", name)):
        with pytest.raises(InvalidName, match="cannot be used as a folder's name"):
            start(*names)
    assert not root.exists(), "nothing was made"


def test_choices_outside_the_list_name_the_nearest(start: Start) -> None:
    with pytest.raises(UnknownOption, match="Did you mean 'tensorboard'"):
        start(sinks=["tensorbord"])
    with pytest.raises(UnknownOption, match="allow, must, never, takeover"):
        start(resume="perhaps")
    with pytest.raises(UnknownOption, match="inline, process, thread"):
        start(keeper="butler")
    with pytest.raises(BadInput, match="lacks open, write, close"):
        start(sinks=[object()])
    with pytest.raises(BadInput, match="pass a list"):
        start(sinks="csv")


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        ({"nam": "csv"}, "does not say which sink"),
        ({"name": "csv", "options": {"perscope": True}}, "Did you mean 'per_scope'"),
        ({"name": "csv", "perscope": True}, "Did you mean 'per_scope'"),
        ({"name": "csv", "options": "per_scope"}, "options are a dict"),
        ({"name": "text", "layout": "tabel"}, "Did you mean 'table'"),
        ({"name": "csv", "every_seconds": -1}, "longer than 0"),
        ({"name": "csv", "filters": [["smoot", {}]]}, "Did you mean 'smooth'"),
        ({"name": "csv", "filters": [["smooth", {"key": "x"}]]}, "Did you mean 'keys'"),
        ({"name": "csv", "filters": [["Smooth", {"keys": "("}]]}, "not a regular expression"),
        ({"name": "csv", "filters": "smooth"}, "a list of names"),
        ({"name": "csv", "filters": [3]}, "a filter is its name"),
        ({"name": "wandb", "filters": [["smoot", {}]]}, "Did you mean 'smooth'"),
        ({"name": "csv", "filters": [["gate", {"when": print}]]}, "made by the keeper in another process"),
    ],
)
def test_a_sink_that_could_not_be_made_is_reported_before_training_begins(
    start: Start, root: Path, sink: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput, match=said):  # UnknownOption is one
        start(sinks=[sink])
    assert not root.exists(), "nothing was made"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"clocks": "tokens"}, r"clocks=\['tokens'\]"),
        ({"clocks": 3}, "a list of names"),
        ({"clocks": ["lane"]}, "uses for something else"),
        ({"tags": "good"}, r"tags=\['good'\]"),
        ({"total": 100}, "of which clock"),
        ({"total": {"env_step": "many"}}, "a whole number above 0"),
        ({"total": {"env_step": 1.5}}, "a whole number above 0"),
        ({"total": {"env_steps": 100}}, "Did you mean 'env_step'"),
        ({"seed": "three"}, "a seed is one integer"),
        ({"config": "lr=3"}, "a set of named values"),
        ({"strict": "yes"}, "True or False"),
    ],
)
def test_arguments_that_would_be_misread_are_refused(
    start: Start, root: Path, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        start(**arguments)
    assert not root.exists()


def test_numbers_of_other_makes_are_numbers(start: Start) -> None:
    run = start(seed=np.int64(3), total={"env_step": 1e6, "tokens": np.int32(7)}, clocks=("tokens",))
    page = about(run)
    assert (page["seed"], page["total"]) == (3, {"env_step": 1_000_000, "tokens": 7})
    assert start("p", "big", seed=2**100).book.seed == 2**100


def test_a_clock_has_to_be_a_keyword(start: Start) -> None:
    with pytest.raises(InvalidClock, match="not a clock"):
        start(clocks=["not a clock"])
    with pytest.raises(InvalidClock, match="time"):
        start(clocks=["time"])


def test_a_folder_that_cannot_be_written_is_reported_at_once(start: Start, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        start(dir=tmp_path / "file")


@dataclasses.dataclass
class Settings:
    lr: float = 1e-3
    layers: tuple[int, ...] = (64, 64)


@pytest.mark.parametrize(
    "config",
    [{"lr": 1e-3, "layers": [64, 64]}, Settings(), argparse.Namespace(lr=1e-3, layers=[64, 64])],
    ids=["dict", "dataclass", "namespace"],
)
def test_a_configuration_of_any_usual_make_is_kept(start: Start, config: Any) -> None:
    run = start(config=config)
    run.write_config_files()
    run.finish()
    assert about(run)["config"] == {"lr": 1e-3, "layers": [64, 64]}
    for name in ("total_config.py", "formatted_total_config.py"):
        text = (run.folder / name).read_text()
        compile(text, name, "exec")
        assert "0.001" in text


def test_what_has_no_json_form_in_a_configuration_is_kept_as_its_repr_and_reported(start: Start) -> None:
    with pytest.warns(RollbookWarning, match="config"):
        run = start(config={"lr": 1e-3, "odd": object()})
    assert about(run)["config"]["lr"] == 1e-3
    assert "object object" in about(run)["config"]["odd"]


def test_changes_of_config_and_summary_are_kept(start: Start) -> None:
    run = start(config={"lr": 1})
    run.config.update(lr=2, new=3)
    run.summary["best"] = 500.0
    run.finish()
    assert about(run)["config"] == {"lr": 2, "new": 3}
    assert about(run)["summary"] == {"best": 500.0}


def test_the_current_run_is_the_innermost_with_block_else_the_last_opened(start: Start) -> None:
    with start("p", "outer") as outer:
        with start("p", "inner") as inner:
            rollbook.log({"a": 1.0})
            assert inner.internals.writer.rows_written() == 1
        rollbook.log({"a": 1.0})
        assert outer.internals.writer.rows_written() == 1
        other = start("p", "other")
        rollbook.log({"a": 1.0})
        assert (outer.internals.writer.rows_written(), other.internals.writer.rows_written()) == (2, 0)


def test_store_stays_a_verb_when_the_room_of_that_name_was_loaded(start: Start) -> None:
    with start("p", "n") as run:
        rollbook.store(a=1.0)
        assert run.book.metrics("a").num_rows == 1
        rollbook.store(a=3.0)
        assert rollbook.dump()["a/mean"] == 2.0
        assert rollbook.book.book.Book is rollbook.Book  # type: ignore[attr-defined]


def test_without_a_run_module_verbs_warn_once_and_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from rollbook.run import current
    from rollbook.system.bill import Bill

    monkeypatch.setattr(current, "opened", [])
    monkeypatch.setattr(current, "_no_run", Bill())
    with pytest.warns(RollbookWarning, match="no run is open"):
        rollbook.log({"a": 1.0})
    rollbook.log({"a": 1.0})


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no file system here that has no place for folders")
def test_a_place_without_room_for_folders_is_a_named_error() -> None:
    with pytest.raises(RunError, match="Choose another with dir="):
        rollbook.init("p", "n", dir="/proc/runs", sinks=[])


def test_an_empty_folder_of_runs_in_the_environment_counts_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    from rollbook.cli.app import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROLLBOOK_DIR", "")
    run = rollbook.init("p", "n", sinks=[], keeper="import")
    run.finish()
    assert run.folder.parent == tmp_path / "runs" / "p"
    assert run.id in CliRunner().invoke(app, ["ls"]).stdout


def test_never_makes_a_new_run_and_refuses_an_id_that_exists(start: Start) -> None:
    start("p", "n", run_id="mine").finish()
    with pytest.raises(RunExists, match="it exists"):
        start("p", "n", run_id="mine")


def test_must_refuses_to_begin_again_and_allow_does_not(start: Start) -> None:
    with pytest.raises(NothingToResume, match="resume='allow'"):
        start("p", "n", resume="must")
    first = start("p", "n", resume="allow")
    assert first.attempt == 1
    first.finish()
    again = start("p", "n", resume="must")
    assert (again.id, again.attempt, again.resumed) == (first.id, 2, True)
    again.finish()
    assert [(e["n"], e["parent"], e["status"]) for e in about(again)["attempts"]] == [
        (1, None, "finished"),
        (2, 1, "finished"),
    ]


def test_resuming_keeps_what_is_not_given_again(start: Start) -> None:
    start("p", "n", seed=3, config={"lr": 1}, tags=["a"], clocks=["tokens"], total={"env_step": 10}).finish()
    run = start("p", "n", resume="must", tags=["b"])
    page = about(run)
    assert (page["seed"], page["config"], page["tags"]) == (3, {"lr": 1}, ["a", "b"])
    assert page["total"] == {"env_step": 10}
    assert "tokens" in page["clocks"]


@pytest.mark.parametrize("again", some_of(["allow", "must", "takeover", True], 2))
def test_seeds_that_share_a_name_each_resume_their_own_run(start: Start, again: str | bool) -> None:
    first = {seed: start("p", "n", seed=seed, resume=True) for seed in (0, 1, 2)}
    assert len({run.id for run in first.values()}) == 3
    for run in first.values():
        run.finish()
    for seed in (1, 0, 2):
        run = start("p", "n", seed=seed, resume=again)
        assert (run.id, run.resumed) == (first[seed].id, True)
        run.finish()
    with pytest.raises(NothingToResume, match="with seed 7"):
        start("p", "n", seed=7, resume="must")
    assert start("p", "n", resume=again).id == first[2].id  # no seed is given: the newest of that name


def test_a_run_without_a_seed_is_resumed_by_one_only_if_no_run_has_that_seed(start: Start) -> None:
    second = start("p", "n", seed=2)
    second.finish()
    unknown = start("p", "n")
    unknown.finish()
    run = start("p", "n", seed=2, resume="must")
    assert run.id == second.id
    run.finish()
    assert start("p", "n", seed=5, resume="must").id == unknown.id


@pytest.mark.parametrize("how", [None, False, "never"])
def test_a_run_that_is_not_resumed_is_new(start: Start, how: str | bool | None) -> None:
    assert start("p", "n").id != start("p", "n", resume=how).id


def test_a_run_that_is_being_written_is_not_resumed_unless_taken_over(start: Start) -> None:
    living = start("p", "n")
    living.log({"a": 1.0})
    with pytest.raises(RunIsLive, match=f"process {os.getpid()}"):
        start("p", "n", resume="allow", run_id=living.id)
    taken = start("p", "n", resume="takeover", run_id=living.id)
    assert (taken.id, taken.attempt) == (living.id, 2)


@pytest.mark.filterwarnings("ignore:another process took this run over")  # the run's own thread may be the first to see
def test_a_fenced_writer_is_reported(start: Start) -> None:
    living = start("p", "n")
    for i in range(10):
        living.log({"a": i})
    start("p", "n", resume="takeover", run_id=living.id)
    living.internals.writer.tick()
    assert living.bill()["drops"] == {"fenced": 1}


@pytest.mark.filterwarnings("ignore:another process took this run over")
def test_a_process_whose_run_was_taken_over_does_not_write_over_what_came_after(start: Start) -> None:
    old = start("p", "n")
    old.log({"a": 1.0}, env_step=1)
    new = start("p", "n", resume="takeover", run_id=old.id)
    new.log({"a": 2.0}, env_step=2)
    new.summary["best"] = 2
    new.finish()
    old.summary["best"] = 1
    old.rewind(env_step=1)
    assert old.bill()["drops"] == {"fenced": 1}
    old.log({"a": 3.0}, env_step=3)
    old.finish("crashed")
    page = about(new)
    assert (page["status"], len(page["attempts"]), page["summary"]) == ("finished", 2, {"best": 2})
    assert new.book.metrics(["a"])["a"].to_pylist() == [1.0, 2.0]


def test_an_attempt_never_starts_before_the_last_one_ended(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall clock steps back an hour between two attempts."""
    from rollbook.journal import writer

    run = start("p", "n")
    run.log({"a": 1.0})
    run.finish()
    ended = about(run)["attempts"][-1]["last"]
    real = writer.time.time_ns
    monkeypatch.setattr(writer.time, "time_ns", lambda: real() - 3600 * 10**9)
    again = start("p", "n", resume="must")
    assert writer.now() + again.internals.writer.time_offset > ended


def test_a_newer_format_is_refused_by_name(start: Start) -> None:
    run = start("p", "n")
    run.finish()
    page = about(run)
    page["format"] = 99
    (run.folder / "run.json").write_text(json.dumps(page))
    with pytest.raises(NewerFormat, match="format 99"):
        rollbook.attach(run.folder)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"format": 1}',
        '{"format": "x", "id": "a", "attempts": []}',
        "\x00\xff",
        '{"format": 1, "id": "a", "attempts": [3]}',
        '{"format": 1, "id": "a", "attempts": [{"n": "1"}]}',
    ],
)
def test_a_damaged_run_page_is_an_error_that_says_so(start: Start, content: str) -> None:
    run = start("p", "n")
    run.finish()
    (run.folder / "run.json").write_text(content)
    with pytest.raises((NotARun, NewerFormat)):
        rollbook.attach(run.folder)
    for arguments in ({"resume": "allow"}, {"resume": "must"}, {"run_id": run.id, "resume": "allow"}):
        with pytest.raises((NotARun, NewerFormat)):  # nor is it passed over
            start("p", "n", **arguments)


def test_a_folder_without_a_page_is_passed_over_by_name_and_named_by_id(start: Start) -> None:
    run = start("p", "n")
    run.finish()
    (run.folder / "run.json").unlink()
    with pytest.raises(RunExists, match="rollbook repair"):
        start("p", "n", run_id=run.id, resume="allow")
    assert start("p", "n", resume="allow").id != run.id


def test_odd_times_on_a_page_do_not_keep_a_run_from_going_on(start: Start) -> None:
    run = start("p", "n")
    run.finish()
    page = about(run)
    page["attempts"][0].update(started="yesterday", ended=1e300, last=[1])
    (run.folder / "run.json").write_text(json.dumps(page))
    again = start("p", "n", resume="must")
    again.log({"a": 1.0})
    assert again.book.metrics(["a"]).num_rows == 1


def test_attach_finds_a_run_by_folder_or_id(start: Start, root: Path) -> None:
    run = start("p", "n")
    for address in (run.folder, run.id):
        other = rollbook.attach(address)
        assert (other.id, other.internals.writer.main) == (run.id, False)
        other.log({"from": 1.0})
        other.finish()
    with pytest.raises(RunNotFound, match="nothere"):
        rollbook.attach("nothere")
    with pytest.raises(NotARun, match="rollbook ls"):
        rollbook.attach(root)


def test_a_child_that_inherits_the_run_joins_it(start: Start, interpreter: Interpreter) -> None:
    run = start("p", "n")
    code = (
        "import rollbook; run = rollbook.init('p', 'n', sinks=[]); run.log({'child': 1.0}); "
        "print(run.id, run.internals.writer.main); run.finish()"
    )
    printed = interpreter.run(code, env=os.environ).stdout
    assert printed.split() == [run.id, "False"]
    other = code.replace("'n'", "'another'")
    printed = interpreter.run(other, env=os.environ).stdout
    assert printed.split()[1] == "True", "another name is another run"


def test_ranks_of_a_distributed_job_share_one_run(root: Path, interpreter: Interpreter) -> None:
    code = (
        "import rollbook, sys; run = rollbook.init('p', 'n', sinks=[]); run.log({'rank': 1.0}); print(run.id, "
        "flush=True); "
        "sys.stdin.readline(); run.finish()"
    )
    ranks = []
    for rank in (1, 0, 2):
        env = {**os.environ, "RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
        ranks.append(interpreter.start(code, env=env))
    ids = {process.stdout.readline().strip() for process in ranks}
    for process in ranks:
        with process.stdin, process.stdout:
            process.stdin.write("\n")
        assert process.wait() == 0
    assert len(ids) == 1
    assert len(list((root / "p").iterdir())) == 1


def test_importing_and_opening_loads_nothing_heavy(root: Path) -> None:
    code = (
        "import sys, rollbook; run = rollbook.init('p', 'n', sinks=[]); "
        "print([m for m in ('numpy', 'pyarrow', 'torch', 'pandas') if m in sys.modules]); run.finish()"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_of_two_that_continue_a_run_at_one_moment_one_is_refused(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    start().finish("crashed")
    waits, results = threading.Event(), []
    try_lock = files.try_lock

    def watched(fd: int, *, shared: bool = False) -> bool | None:
        got = try_lock(fd, shared=shared)
        if got is False:
            waits.set()
        return got

    def continue_it() -> None:
        try:
            results.append(start(resume="must"))
        except RunIsLive as err:
            results.append(err)

    second = threading.Thread(target=continue_it)

    def end_of(folder: str, about: RunJson) -> tuple[Cut, int]:
        # The first one has looked whether anybody writes the run, and has not yet said that it does.
        if threading.current_thread() is not second:
            second.start()
            assert waits.wait(PATIENCE), "the second one did not wait for the first"
        return Cut(), 0

    monkeypatch.setattr(files, "try_lock", watched)
    monkeypatch.setattr("rollbook.run.opening.end_of", end_of)
    continue_it()
    second.join(PATIENCE)
    assert sorted(type(found).__name__ for found in results) == ["Run", "RunIsLive"]
    (run,) = [found for found in results if isinstance(found, rollbook.Run)]
    assert [entry["n"] for entry in run.book.attempts] == [1, 2]


def test_what_init_says_names_the_line_that_called_it(tmp_path: Path) -> None:
    with pytest.warns(RollbookWarning, match="looks like a secret") as hidden:
        rollbook.init(
            "p", "a", dir=tmp_path, config={"api_key": "k-123456", "lr": 0.1}, sinks=[], keeper="inline"
        ).finish()
    with pytest.warns(RollbookWarning, match="other values than before") as differs:
        rollbook.init("p", "a", dir=tmp_path, config={"lr": 0.2}, resume="must", sinks=[], keeper="inline").finish()
    assert {warning.filename for warning in [*hidden, *differs]} == {__file__}


def test_where_warnings_are_errors_a_run_is_opened_nevertheless(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rollbook.init("p", "a", dir=tmp_path, config={"api_key": "k-123456"}, sinks=[], keeper="inline").finish()
        run = rollbook.init("p", "a", dir=tmp_path, config={"lr": 0.2}, resume="must", sinks=[], keeper="inline")
        run.finish()
    said = capsys.readouterr().err
    assert "looks like a secret" in said
    assert "other values than before" in said
    assert run.book.status == "finished"


def test_a_count_that_is_passed_on_keeps_the_name_it_was_about() -> None:
    from rollbook.system.bill import Bill

    whole = Bill()
    Bill(to=whole).count("refused", 2, "no number", name="config.lr")
    assert whole.counts == {"refused": 2}
    assert whole.names == {"refused": {"config.lr": 2}}
