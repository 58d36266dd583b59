"""Starting a keeper: quick, nobody's child, with nothing of the trainer's in its hands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rollbook.keeper import launch as launching
from rollbook.keeper.launch import launch, wait_done
from rollbook.keeper.own_files import Lock
from rollbook.system.liveness import is_alive
from waiting import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX processes")

SOURCE = str(Path(launching.__file__).parents[2])

TRAINER = """
import os, sys, time
from rollbook.journal.writer import Writer
from rollbook.keeper.launch import launch
folder, what = sys.argv[1:3]
writer = Writer(folder, main=True)
writer.open()
log = writer.make_log(writer.channel())
launch(folder)
for i in range(20):
    log({"i": float(i)})
if what == "os.wait":
    try:
        print(os.wait())
    except ChildProcessError:
        print("no children")
if what == "sleep":
    print("ready", flush=True)
    time.sleep(600)
if what == "close":
    writer.close()
"""


def test_it_returns_before_the_keeper_is_up(make_run: Any, eventually: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run()
    held = run.folder / "held"
    os.mkfifo(held)
    program = launching._program()
    start = f"os.execv(sys.executable, [sys.executable, *{program!r}, *sys.argv[1:]])"
    waits = f"import os, sys; open({str(held)!r}).read(); {start}"
    monkeypatch.setattr(launching, "_program", lambda: ["-c", waits])
    assert launch(run.folder) is True
    assert run.state() == {}
    held.write_text("go")
    state = eventually(run.state)
    assert state["phase"] == "running"
    assert is_alive(state) is True


def test_the_keeper_is_in_a_session_of_its_own_and_no_child_of_ours(make_run: Any, eventually: Any) -> None:
    run = make_run()
    launch(run.folder)
    pid = eventually(run.state)["pid"]
    assert os.getsid(pid) not in (os.getsid(0), 0)
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def test_a_second_keeper_is_not_started_while_one_is_at_work(make_run: Any, eventually: Any) -> None:
    run = make_run()
    launch(run.folder)
    eventually(run.state)
    assert launch(run.folder) is False


def test_of_two_keepers_started_at_once_one_goes_away_again(make_run: Any, eventually: Any, python: Any) -> None:
    run = make_run()
    launch(run.folder)
    first = eventually(run.state)["pid"]
    script = "from rollbook.keeper.process import main; import sys; main([sys.argv[1]])"
    second = python(script, run.folder, stderr=subprocess.PIPE)
    _, said = second.communicate(timeout=600)
    assert second.returncode == 0
    assert "another keeper is at work" in said
    assert run.state()["pid"] == first


def test_os_wait_never_sees_the_keeper(make_run: Any, python: Any, eventually: Any) -> None:
    run = make_run(main=None)
    trainer = python(TRAINER, run.folder, "os.wait")
    said, _ = trainer.communicate(timeout=600)
    assert said.strip() == "no children"


def test_a_trainer_whose_output_is_captured_is_done_when_it_exits(make_run: Any, python: Any, eventually: Any) -> None:
    run = make_run()
    trainer = python(TRAINER, run.folder, "exit", stderr=subprocess.PIPE, stdin=subprocess.PIPE)
    trainer.communicate(timeout=600)  # reads to the end of the pipe: would last as long as the keeper holds it
    eventually(Lock(str(run.folder)).taken)  # it is there, and stays: our own writer lives


def test_the_keeper_holds_no_descriptor_that_the_trainer_inherited(make_run: Any, eventually: Any) -> None:
    run = make_run()
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        launch(run.folder)
        eventually(run.state)
    finally:
        os.close(write)
    os.set_blocking(read, True)
    assert os.read(read, 1) == b""  # the last writing end is closed
    os.close(read)


def test_ctrl_c_and_a_closed_terminal_do_not_reach_the_keeper(make_run: Any, eventually: Any, python: Any) -> None:
    run = make_run()
    trainer = python(TRAINER, run.folder, "sleep", process_group=0)
    assert trainer.stdout is not None
    assert trainer.stdout.readline() == "ready\n"
    keeper = eventually(run.state)
    os.killpg(trainer.pid, signal.SIGINT)
    os.kill(keeper["pid"], signal.SIGINT)
    os.kill(keeper["pid"], signal.SIGHUP)
    trainer.wait(PATIENCE)
    run.log()({"alive": 1.0})
    eventually(lambda: run.keeper_file("heartbeat").get(run.writer.id))
    assert is_alive(keeper) is True


def test_asked_to_end_a_keeper_stays_with_its_trainer_for_a_while_and_goes_when_asked_again(
    make_run: Any, eventually: Any
) -> None:
    run = make_run(sinks=[{"name": "jsonl"}])
    launch(run.folder)
    keeper = eventually(run.state)
    os.kill(keeper["pid"], signal.SIGTERM)
    run.log()({"i": 1.0})
    eventually(run.lines)
    assert is_alive(keeper) is True
    os.kill(keeper["pid"], signal.SIGTERM)
    eventually(lambda: is_alive(keeper) is False)
    assert Lock(str(run.folder)).taken() is False
    assert run.info()["status"] == "running"  # its writer lives


def test_what_the_trainer_did_to_its_signals_does_not_reach_the_keeper(make_run: Any, eventually: Any) -> None:
    run = make_run()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
    try:
        launch(run.folder)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    pid = eventually(run.state)["pid"]
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        pytest.skip("no /proc")
    masks = dict(line.split(":\t") for line in status.read_text().splitlines() if line.startswith("Sig"))
    assert int(masks["SigBlk"], 16) == 0
    ignored = int(masks["SigIgn"], 16)
    assert ignored & (1 << (signal.SIGINT - 1))
    assert not ignored & (1 << (signal.SIGCHLD - 1))


def test_the_trainers_death_signal_does_not_pass_to_the_keeper(make_run: Any, eventually: Any, python: Any) -> None:
    if sys.platform != "linux":
        pytest.skip("Linux")
    run = make_run()
    ask_to_die = "import ctypes; ctypes.CDLL(None).prctl(1, 9)\n"  # PR_SET_PDEATHSIG
    parent = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', *sys.argv[1:]]); time.sleep(600)"
    process = python(parent, ask_to_die + TRAINER, run.folder, "sleep")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    keeper = eventually(run.state)
    process.kill()
    process.stdout.read()  # ends when the trainer has died, too
    assert is_alive(keeper) is True


def test_without_a_shell_the_new_process_forks_by_itself(
    make_run: Any, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    real = os.posix_spawn

    def without_shell(path: str, *arguments: Any, **options: Any) -> int:
        if path == "/bin/sh":
            raise FileNotFoundError(2, "No such file or directory", path)
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "posix_spawn", without_shell)
    assert launch(run.folder) is True
    pid = eventually(run.state)["pid"]
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def test_a_system_whose_spawn_knows_no_sessions_gets_one_all_the_same(
    make_run: Any, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    real = os.posix_spawn

    def without_session(*arguments: Any, **options: Any) -> int:
        if "setsid" in options:
            raise NotImplementedError("setsid unavailable on this platform")
        return real(*arguments, **options)

    monkeypatch.setattr(os, "posix_spawn", without_session)
    assert launch(run.folder) is True
    assert os.getsid(eventually(run.state)["pid"]) != os.getsid(0)


def test_without_posix_spawn_a_keeper_is_started_all_the_same(
    make_run: Any, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    monkeypatch.delattr(os, "posix_spawn")
    assert launch(run.folder) is True
    pid = eventually(run.state)["pid"]
    assert os.getsid(pid) != os.getsid(0)
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def test_a_program_without_an_interpreter_gets_an_error_that_says_what_to_do(
    make_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    with pytest.raises(OSError, match="keeper='thread'"):
        launch(run.folder, python="")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(OSError, match="keeper='thread'"):
        launch(run.folder)


def test_waiting_ends_when_no_keeper_is_at_work(make_run: Any) -> None:
    run = make_run()
    run.writer.close()
    assert wait_done(run.folder, 1e9) is False


def test_waiting_has_its_budget(make_run: Any, eventually: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run()
    launch(run.folder)
    os.kill(eventually(run.state)["pid"], signal.SIGSTOP)
    run.writer.close()
    assert wait_done(run.folder, 0.2) is False
    os.kill(run.state()["pid"], signal.SIGCONT)


def test_only_keepers_are_woken_by_a_signal(make_run: Any) -> None:
    run = make_run()
    assert launching._wake({**run.state(), "signal": "", "pid": os.getpid()}) is False
    assert launching._wake({"signal": "USR1", "pid": os.getpid()}) is False


def test_what_launch_imports_is_light(make_run: Any, python: Any) -> None:
    script = "import sys; import rollbook.keeper.launch, rollbook.keeper.forward; print(*sorted(sys.modules))"
    found = set(python(script).communicate(timeout=600)[0].split())
    assert not {"subprocess", "dataclasses", "inspect", "msgspec", "numpy", "pyarrow"} & found


def test_a_sink_from_an_editable_install_is_found_by_the_keeper(make_run: Any, eventually: Any, tmp_path: Path) -> None:
    """Such installs work by hooks that `site` runs, and the keeper starts without it."""
    run = make_run(sinks=[{"name": "homemade"}])
    hooked, packages = tmp_path / "hooked", tmp_path / "packages"
    hooked.mkdir()
    (hooked / "homemade_sink.py").write_text(
        "from rollbook.sinks import Jsonl\nclass Homemade(Jsonl):\n    accepts = frozenset({float})\n"
    )
    about = packages / "homemade-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: homemade\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[rollbook.sinks]\nhomemade = homemade_sink:Homemade\n")
    run.log()({"i": 1.0})
    # Stands for a `site` whose .pth files bring the package.
    (packages / "site.py").write_text(f"import sys\ndef main():\n    sys.path.append({str(hooked)!r})\n")
    script = "import sys; sys.path[:0] = sys.argv[2:4]; from rollbook.keeper.process import main; main([sys.argv[1]])"
    options = ["-I", "-S", "-X", "frozen_modules=off"]
    command = [sys.executable, *options, "-c", script, str(run.folder), SOURCE, str(packages)]
    environment = {**os.environ, "ROLLBOOK_KEEPER_PATH": os.pathsep.join(sys.path)}
    keeper = subprocess.Popen(command, env=environment)
    try:
        eventually(lambda: [line["i"] for line in run.lines()] == [1.0])
    finally:
        keeper.kill()
        keeper.wait()
