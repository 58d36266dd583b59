"""Full disks, read-only disks, folders that vanish: clean events, counted, and logging goes on when it can."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rollbook
from forked_programs import Interpreter
from journal_reading import read_rows
from rollbook.errors import RollbookWarning, RunError
from rollbook.schema import manifest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts file systems by the Linux rules")

HEAD = """
import json, os, sys, time, warnings
warnings.simplefilter("always")
from rollbook.journal.writer import Writer
folder = sys.argv[1]
writer = Writer(folder, mapped={mapped})
log = writer.make_log(writer.channel())
"""


def can_mount() -> bool:
    """Whether this process may mount a tmpfs in a namespace of its own."""
    probe = ["unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=64k none /mnt"]
    try:
        return subprocess.run(probe, capture_output=True, timeout=600, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def on_a_small_disk(folder: Path, program: str, size: str, options: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program with `folder` on a tmpfs of its own; the test sees what the program prints."""
    script = f'mount -t tmpfs -o size={size} none "$0" && {options or "true"} && exec "$1" -c "$2" "$0"'
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, str(folder), sys.executable, program],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "SUPPORT": str(Path(__file__).parent.parent / "support")},
    )


needs_mount = pytest.mark.skipif(not can_mount(), reason="mounting is refused here; the RLIMIT_FSIZE tests stand in")


@needs_mount
@pytest.mark.parametrize("mapped", [True, False], ids=["mapped", "pwrite"])
def test_a_full_disk_is_a_clean_event_and_logging_goes_on_when_there_is_room(tmp_path: Path, mapped: bool) -> None:
    program = (
        HEAD.format(mapped=mapped)
        + """
sys.path.insert(0, os.environ["SUPPORT"])
from pathlib import Path
from journal_reading import read_rows
ballast = os.path.join(folder, "ballast")
with open(ballast, "wb") as file:
    file.write(bytes(300_000))
for i in range(20_000):
    log({"i": i, "x": i * 2.0})
full = dict(writer.bill.counts)
kept = [row.values["i"] for row in read_rows(Path(folder))]
os.unlink(ballast)
time.sleep(1.1)
for i in range(20_000, 20_050):
    log({"i": i, "x": i * 2.0})
rows = [(row.values["i"], row.values["x"]) for row in read_rows(Path(folder))]
print(json.dumps({"full": full, "kept": kept[-1] + 1 == len(kept), "n": len(kept), "rows": rows[-50:],
                  "whole": all(x == i * 2.0 for i, x in rows)}))
"""
    )
    done = on_a_small_disk(tmp_path, program, "1m")
    assert done.returncode == 0, f"exit {done.returncode} (135 is SIGBUS): {done.stderr[-2000:]}"
    found = json.loads(done.stdout)
    assert found["n"] > 1000, "the disk took some rows"
    assert found["kept"], "what was written before the disk was full stays, without a gap"
    assert found["full"]["disk_full"] == 20_000 - found["n"], "every lost row is counted"
    assert done.stderr.count("no space for the run") == 1, "said once"
    assert found["whole"]
    assert [i for i, _x in found["rows"]] == list(range(20_000, 20_050)), "logging goes on by itself"


@needs_mount
def test_a_disk_that_becomes_read_only_costs_rows_and_nothing_else(tmp_path: Path) -> None:
    program = (
        HEAD.format(mapped=False)
        + """
import ctypes
for i in range(100):
    log({"i": i})
libc = ctypes.CDLL(None, use_errno=True)
MS_REMOUNT, MS_RDONLY = 32, 1
os.chdir("/")
lane = writer.lanes[0]
for stream in list(lane.shapes.values()):
    lane.drop(stream)  # a file that is open for writing keeps a mount writable
lane.forget()
assert libc.mount(b"none", folder.encode(), b"tmpfs", MS_REMOUNT | MS_RDONLY, b"") == 0, ctypes.get_errno()
for i in range(100, 200):
    log({"i": i})
print(json.dumps(writer.bill.counts))
"""
    )
    done = on_a_small_disk(tmp_path, program, "2m")
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == {"not_writable": 100}
    assert "cannot be written" in done.stderr


@pytest.mark.parametrize("mapped", [True, False], ids=["mapped", "pwrite"])
def test_a_file_size_limit_is_met_like_a_full_disk(tmp_path: Path, mapped: bool, interpreter: Interpreter) -> None:
    """Where mounting is refused: RLIMIT_FSIZE gives EFBIG."""
    program = (
        HEAD.format(mapped=mapped)
        + """
import resource
for i in range(100):
    log({"i": i})
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
for i in range(100, 5000):
    log({"i": i, "other": 1.0})
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(json.dumps(writer.bill.counts))
""".replace("(4096, 4096)", "(4096, resource.RLIM_INFINITY)")
    )
    done = interpreter.run(program, tmp_path, env=os.environ)
    assert done.returncode == 0, done.stderr[-2000:]
    assert set(json.loads(done.stdout)) == {"disk_full"}


def test_the_bytes_of_a_failed_frame_do_not_hide_later_ones(tmp_path: Path) -> None:
    program = (
        HEAD.format(mapped=False)
        + """
import resource
log({"note": "first"})
size = sum(entry.stat().st_size for entry in os.scandir(writer.folder) if entry.name.endswith(".log"))
soft = size + 50
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, resource.RLIM_INFINITY))
log({"note": "x" * 500})
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
log({"note": "third"})
sys.path.insert(0, os.environ["SUPPORT"])
from pathlib import Path
from journal_reading import read_frames
print(json.dumps([frame["columns"]["text"] for frame in read_frames(Path(folder))]))
"""
    )
    env = {**os.environ, "SUPPORT": str(Path(__file__).parent.parent / "support")}
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == [["first"], ["third"]]


@pytest.mark.parametrize("keeper", ["inline", "thread", "process"])
def test_a_folder_that_vanishes_costs_its_rows_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keeper: str
) -> None:
    monkeypatch.delenv("ROLLBOOK_RUN_ID", raising=False)
    run = rollbook.init("p", "n", dir=tmp_path, sinks=["csv"], keeper=keeper)
    for i in range(100):
        run.log({"x": float(i)}, env_step=i)
    while run.folder.exists():  # the keeper may write a file between the removal of the others and of the folder
        shutil.rmtree(run.folder, ignore_errors=True)

    def go_on() -> None:
        for i in range(3_000):
            run.log({"x": float(i)}, env_step=i)
            run.log({f"new{i % 50}": 1.0})

    with pytest.warns(RollbookWarning, match="is gone or was moved"):
        go_on()
    assert run.bill()["drops"]["folder_gone"] > 1_500
    run.summary["x"] = 1
    run.finish()
    assert not run.folder.exists(), "nothing brought it back"


@pytest.mark.filterwarnings("ignore::rollbook.errors.RollbookWarning")
def test_a_run_that_is_removed_just_before_a_folder_is_made_in_it_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever makes the folder: the training, its keeper, the sealing, a sink. Each of them in turn comes too late."""
    monkeypatch.delenv("ROLLBOOK_RUN_ID", raising=False)
    make, made, moved_at = os.mkdir, list[str](), 0
    inside = str(tmp_path)

    def comes_too_late(path: Any, *more: Any, **options: Any) -> None:
        if os.fspath(path).startswith(inside) and not is_opening:
            made.append(os.fspath(path).removeprefix(f"{run.folder}{os.sep}"))
            if len(made) == moved_at:
                os.rename(run.folder, f"{run.folder}-moved")
        make(path, *more, **options)

    monkeypatch.setattr(os, "mkdir", comes_too_late)
    places: set[str] = set()
    while not moved_at or len(made) >= moved_at:
        moved_at, is_opening = moved_at + 1, True
        made.clear()
        run = rollbook.init("p", "n", dir=tmp_path, sinks=["csv"], keeper="import")
        is_opening = False
        for i in range(300):
            run.log({"x": float(i)}, env_step=i)
        run.log({"rare": math.nan})
        run.log_text("words", "one")
        run.log_samples(["y" * 5_000], reward=[1.0])
        run.log_image("picture", [[0.0, 1.0]])
        run.finish()
        if len(made) >= moved_at:
            places.add(made[moved_at - 1])
            assert not run.folder.exists(), f"{made[moved_at - 1]} brought it back"
    assert run.book.metrics(["x"]).num_rows == 300, "the last one came in time everywhere"
    assert len(places) > 9, places


@needs_mount
def test_a_folder_that_cannot_be_written_is_an_error_of_init_in_words(tmp_path: Path) -> None:
    program = """
import sys, rollbook
from rollbook.errors import RunError
try:
    rollbook.init("p", "n", dir=sys.argv[1], sinks=[], keeper="inline")
except RunError as err:
    print(err)
"""
    done = on_a_small_disk(tmp_path, program, "1m", 'mount -t tmpfs -o remount,ro none "$0"')
    assert done.returncode == 0, done.stderr
    assert "init('p', 'n')" in done.stdout
    assert "Read-only file system" in done.stdout
    assert "Choose another with dir=" in done.stdout


@needs_mount
def test_commands_read_a_run_on_a_disk_that_cannot_be_written_and_those_that_change_it_advise(tmp_path: Path) -> None:
    """An archive, a snapshot, somebody else's folder: a run that was killed lies on it."""
    program = """
import io, os, subprocess, sys, rollbook
from contextlib import redirect_stderr, redirect_stdout
from rollbook.cli.app import app
os.chdir(sys.argv[1])
made = "import os, rollbook; run = rollbook.init('p', 'n', dir='.', sinks=[], keeper='inline'); "
made += "run.log({'x': 1.0}, env_step=1); os.kill(os.getpid(), 9)"
subprocess.run([sys.executable, "-c", made])
subprocess.run(["mount", "-t", "tmpfs", "-o", "remount,ro", "none", sys.argv[1]], check=True)
(run,) = os.listdir("p")
reading = (["show"], ["verify"], ["check"], ["sql", "select x from metrics"])
for words in (*reading, ["repair"], ["seal"], ["forward", "--to", "csv"]):
    text = io.StringIO()
    with redirect_stdout(text), redirect_stderr(text):
        try:
            app([words[0], f"p/{run}", *words[1:]], prog_name="rollbook")
            code = 0
        except SystemExit as end:
            code = end.code
    print(words[0], code, " ".join(text.getvalue().split()))
assert rollbook.open(f"p/{run}").metrics(["x"]).num_rows == 1
"""
    done = on_a_small_disk(tmp_path, program, "16m")
    assert done.returncode == 0, done.stderr
    said = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert [said[name].split()[1] for name in ("show", "check", "sql")] == ["0", "0", "0"], done.stdout
    for name in ("repair", "seal", "forward"):
        assert "Read-only file system: " in said[name], said[name]
        assert "copy its folder to another disk" in said[name], said[name]


def test_an_init_for_which_the_disk_is_too_full_leaves_no_half_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(manifest, "write", full)
    with pytest.raises(RunError, match="cannot be written"):
        rollbook.init("project", "name", dir=tmp_path, sinks=[], keeper="inline")
    assert list((tmp_path / "project").iterdir()) == []


@pytest.mark.parametrize("strict", [False, True])
def test_without_a_file_descriptor_rows_go_to_the_files_that_are_open(
    tmp_path: Path, strict: bool, interpreter: Interpreter
) -> None:
    program = (
        HEAD.format(mapped=True)
        + f"writer.bill.strict = {strict}"
        + """
import resource
log({"i": -1})
lowest_free = os.open(os.devnull, os.O_RDONLY)
os.close(lowest_free)
resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
for i in range(2000):
    log({"i": i, f"k{i % 40}": 1.0, "x": i * 0.5})
print(json.dumps([writer.bill.counts, list(writer.bill.remarks)]))
"""
    )
    done = interpreter.run(program, tmp_path, env=os.environ)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == [{}, ["no_descriptor"]], "nothing was dropped"
    assert done.stderr.count("no file descriptor is left") == 1, "it is said once"
    assert [row.values["i"] for row in read_rows(tmp_path)] == list(range(-1, 2000)), "no row is lost"
