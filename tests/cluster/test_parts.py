"""Hosts that do not see the run's folder keep a part of the run."""

from __future__ import annotations

import functools
import inspect
import json
import os
import pickle
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

import rollbook
from forked_programs import Interpreter
from json_shapes import misfits
from line_by_line import at_line
from rollbook.book.book import Book
from rollbook.book.repair.joining import join
from rollbook.cli.app import app
from rollbook.cli.shapes import SHAPES
from rollbook.errors import BadInput, NotARun, RunIsLive
from rollbook.keeper.ending import report_the_dead
from rollbook.run import local_part
from rollbook.run.ray import Address, address
from rollbook.schema import manifest
from rollbook.system import files
from waiting import PATIENCE, until

Start = Callable[..., rollbook.Run]
OnHost = Callable[..., subprocess.CompletedProcess[str]]

LOGS = """
import pickle, sys, warnings
with open(sys.argv[1], "rb") as file:
    told = pickle.load(file)
run = told.writer() if hasattr(told, "writer") and hasattr(told, "nonce") else told
for i in range(int(sys.argv[2])):
    run.log({"worker/x": float(i)}, env_step=i)
print(run.folder)
if len(sys.argv) > 3:
    import os
    os._exit(0)
run.finish()
"""


@pytest.fixture
def hidden(tmp_path: Path) -> Callable[[rollbook.Run], Path]:
    """The pickled address of a run as a host knows it that does not see the run's folder."""

    def hide(run: rollbook.Run) -> Path:
        own = address(run)
        told = Address("/folders/of/another/host" + own.folder, own.nonce, own.page)
        path = tmp_path / "address.pickle"
        path.write_bytes(pickle.dumps(told))
        return path

    return hide


def test_a_host_that_does_not_see_the_folder_keeps_a_part_and_joins_it(
    start: Start, on_host: OnHost, hidden: Callable[..., Path], tmp_path: Path
) -> None:
    run = start()
    run.log({"loss": 1.0}, env_step=1)
    root = str(tmp_path / "of node 1")
    done = on_host("node-1", LOGS, hidden(run), 20, ROLLBOOK_DIR=root)
    part = Path(done.stdout.strip())
    assert part == Path(root) / "project" / run.folder.name
    assert "does not see the run's folder" in done.stderr
    assert f"rollbook join {shlex.quote(str(part))} RUN" in done.stderr
    again = on_host("node-1", LOGS, hidden(run), 5, ROLLBOOK_DIR=root)
    assert Path(again.stdout.strip()) == part
    here = Book(part)
    assert (here.status, here.id, len(here.writers)) == ("part", run.id, 2)
    assert [row["status"] for row in rollbook.open(root).rows()] == ["part"]
    run.finish()
    assert join(part, run.folder).files > 0
    assert join(part, run.folder).known > 0
    found = run.book.metrics(["worker/x"])["worker/x"].to_pylist()
    assert sorted(found) == sorted([*map(float, range(20)), *map(float, range(5))])
    assert {writer["host"] for writer in run.book.writers} == {os.uname().nodename, "node-1"}
    assert run.book.problems() == []


def test_a_part_that_is_sealed_and_joined_again_has_every_row_once(
    start: Start, on_host: OnHost, hidden: Callable[..., Path], tmp_path: Path
) -> None:
    run = start()
    run.log({"loss": 1.0}, env_step=1)
    run.finish()
    root = str(tmp_path / "of node 1")
    part = Path(on_host("node-1", LOGS, hidden(run), 30, "dies", ROLLBOOK_DIR=root).stdout.strip())
    join(part, run.folder, force=True)
    on_host(
        "node-1", "import sys; from rollbook.storage.sealing.folder import seal; seal(sys.argv[1], final=True)", part
    )
    join(part, run.folder, force=True)
    assert sorted(run.book.metrics(["worker/x"])["worker/x"].to_pylist()) == [float(i) for i in range(30)]


def test_the_nonce_decides_and_not_the_path(start: Start, on_host: OnHost, tmp_path: Path) -> None:
    run = start()
    own = address(run)
    path = tmp_path / "address.pickle"
    path.write_bytes(pickle.dumps(Address("/mounted/elsewhere/runs", own.nonce, own.page)))
    done = on_host("node-1", LOGS, path, 3)  # its root is where the run's folder is mounted
    assert Path(done.stdout.strip()) == run.folder
    assert len(run.book.metrics(["worker/x"])) == 3
    assert run.book.status == "running"


@pytest.fixture
def found(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Path]:
    """Finds or makes the folder of a run's part on a host whose root folder is "far"."""
    extract = local_part.extract_of(manifest.read(start().folder), 1)
    monkeypatch.setenv("ROLLBOOK_DIR", str(tmp_path / "far"))
    at_once = functools.partial(
        manifest.ManifestLock, seconds=0.0
    )  # a lock whose holder stands still is not waited for
    monkeypatch.setattr(manifest, "ManifestLock", at_once)
    return lambda: Path(local_part.folder_here("/not/here", extract["nonce"], extract)[0])


def test_writers_that_start_at_once_keep_their_rows_in_one_part(
    found: Callable[[], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second writer makes the part, wholly, at any moment in which the first looks for it or makes it."""
    monkeypatch.setattr(local_part, "_MADE_SECONDS", 0.0)  # the first does not go on meanwhile
    folders: set[Path] = set()
    looks = (inspect.getfile(local_part),)
    number, lines = 0, 1
    while number < lines:
        number += 1
        lines = at_line(number, looks, lambda: folders.add(found()), lambda: folders.add(found()))
        assert [folder.parent for folder in folders] == [tmp_path / "far" / "project"], f"line {number}"
        shutil.rmtree(tmp_path / "far")
    assert number > 20


def test_a_part_that_another_writer_is_making_is_waited_for(
    found: Callable[[], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second writer looks at any moment in which the first makes the part."""
    folders: set[Path] = set()
    threads: list[threading.Thread] = []
    waits_or_ended = threading.Event()
    clock = SimpleNamespace(monotonic=time.monotonic, time=time.time, sleep=lambda seconds: waits_or_ended.set())
    monkeypatch.setattr(local_part, "time", clock)

    def look() -> None:
        folders.add(found())
        waits_or_ended.set()

    def look_beside() -> None:
        waits_or_ended.clear()
        threads.append(threading.Thread(target=look))
        threads[-1].start()
        assert waits_or_ended.wait(PATIENCE)

    makes = (inspect.getfile(local_part), inspect.getfile(files))  # the writing of run.json, too
    number, lines = 0, 1
    while number < lines:
        number += 1
        lines = at_line(number, makes, look_beside, lambda: folders.add(found()))
        while threads:
            threads.pop().join(PATIENCE)
        assert [folder.parent for folder in folders] == [tmp_path / "far" / "project"], f"line {number}"
        shutil.rmtree(tmp_path / "far")
    assert number > 30


def test_another_run_in_the_place_of_the_part_is_left_alone(
    start: Start, on_host: OnHost, hidden: Callable[..., Path], tmp_path: Path
) -> None:
    run = start()
    root = tmp_path / "of node 1"
    other = root / "project" / run.folder.name
    other.mkdir(parents=True)
    (other / "run.json").write_text(json.dumps({"format": 1, "id": run.id, "nonce": "another", "attempts": []}))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = on_host("node-1", LOGS, hidden(run), 3, ROLLBOOK_DIR=str(root), TMPDIR=str(temporary))
    assert Path(done.stdout.strip()).is_relative_to(temporary)
    assert sorted(os.listdir(other)) == ["run.json"]


def test_a_host_where_nothing_can_be_written_counts_and_goes_on(
    start: Start, on_host: OnHost, hidden: Callable[..., Path], tmp_path: Path
) -> None:
    run = start()
    file = tmp_path / "a file"
    file.write_text("")
    nowhere = "import tempfile; tempfile.gettempdir = lambda: sys.argv[-1]\n"
    script = LOGS.replace("with open", nowhere + "with open", 1).replace("if len(sys.argv) > 3", "if False")
    done = on_host("node-1", script, hidden(run), 3, file, ROLLBOOK_DIR=str(file / "runs"))
    assert "is counted and lost" in done.stderr


def test_a_folder_that_is_gone_from_its_own_host_is_an_error(start: Start, tmp_path: Path) -> None:
    run = start()
    data = pickle.dumps(run)
    run.finish()
    run.folder.rename(tmp_path / "elsewhere")
    with pytest.raises(NotARun, match="is gone or belongs to another run"):
        pickle.loads(data)


def test_only_a_part_of_the_run_is_joined_and_only_when_no_process_writes_it(
    start: Start, on_host: OnHost, hidden: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, other = start(), start("project", "other")
    with pytest.raises(BadInput, match="another nonce"):
        join(other.folder, run.folder)
    with pytest.raises(BadInput, match="own folder"):
        join(run.folder, run.folder)
    root = str(tmp_path / "of node 1")
    part = on_host("node-1", LOGS, hidden(run), 3, "dies", ROLLBOOK_DIR=root).stdout.strip()
    with pytest.raises(RunIsLive, match="still writes it"):
        join(part, run.folder)  # it died a moment ago, and that cannot be judged from here
    told = CliRunner().invoke(app, ["join", part, str(run.folder), "--force", "--json"])
    assert told.exit_code == 0, told.output
    assert misfits(json.loads(told.stdout), SHAPES["join"]) == []


def test_side_writers_that_died_are_reported_by_ls_and_show(start: Start, interpreter: Interpreter) -> None:
    run = start()
    run.log({"loss": 1.0}, env_step=1)
    script = "import os, sys, rollbook; rollbook.attach(sys.argv[1]).log({'x': 1.0}); os._exit(9)"
    for _ in range(2):
        assert interpreter.run(script, run.folder, env=os.environ).returncode == 9
    run.finish()
    assert run.book.status == "finished"
    assert sorted(writer["state"] for writer in run.book.writers) == ["closed", "died", "died"]
    until(lambda: rollbook.open(run.folder.parent).rows()[0]["writers_died"] == 2)  # its keeper is about to say so
    assert rollbook.open(run.folder.parent).rows()[0]["status"] == "finished"
    listed = CliRunner().invoke(app, ["ls", str(run.folder.parent)])
    assert "finished, 2 died" in listed.output
    shown: dict[str, Any] = json.loads(CliRunner().invoke(app, ["show", str(run.folder), "--json"]).output)
    assert shown["writers"] == {"all": 3, "hosts": 1, "closed": 1, "died": 2}
    assert "3 on 1 host, 1 closed, 2 died" in CliRunner().invoke(app, ["show", str(run.folder)]).output


def test_ls_and_show_agree_about_writers_of_other_hosts_whose_keeper_saw_them_die(
    start: Start, interpreter: Interpreter
) -> None:
    run = start()
    run.log({"loss": 1.0}, env_step=1)
    script = "import os, sys, rollbook; rollbook.attach(sys.argv[1]).log({'x': 1.0}); os._exit(9)"
    environment = {**os.environ, "ROLLBOOK_HOST": "node-9"}
    for _ in range(2):
        assert interpreter.run(script, run.folder, env=environment).returncode == 9
    run.finish()
    report_the_dead(str(run.folder), "node-9", 2)
    assert [writer["state"] for writer in run.book.writers if writer["host"] == "node-9"] == ["died", "died"]
    assert "finished, 2 died" in CliRunner().invoke(app, ["ls", str(run.folder.parent)]).output
    assert "3 on 2 hosts, 1 closed, 2 died" in CliRunner().invoke(app, ["show", str(run.folder)]).output


def test_an_address_is_small_and_makes_one_writer_a_process(start: Start) -> None:
    run = start()
    told = address(run)
    assert len(pickle.dumps(told)) < 1000
    assert pickle.loads(pickle.dumps(told)).writer() is run
    assert run.id in repr(told)
