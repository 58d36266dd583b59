"""Who a process is, and whether it lives."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from other_machine import BOOT_ID, system_file
from rollbook.system import liveness
from rollbook.system.liveness import Watch, identity, is_alive, start_time
from waiting import PATIENCE

NOT_ON_WINDOWS = pytest.mark.skipif(sys.platform == "win32", reason="signals")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    )
    yield process
    process.kill()
    process.communicate()


def identity_of(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    return {**identity(), "pid": process.pid, "start_time": start_time(process.pid), "image": ""}


def test_this_process_is_alive() -> None:
    assert is_alive(identity()) is True


def test_an_identity_is_plain_json_data() -> None:
    import json

    assert json.loads(json.dumps(identity())) == identity()
    assert set(identity()) == {"boot_id", "machine", "pid_ns", "pid", "start_time", "image", "host"}


def test_a_process_that_ended_is_dead(sleeper: subprocess.Popen[bytes]) -> None:
    who = identity_of(sleeper)
    assert is_alive(who) is True
    sleeper.kill()
    sleeper.wait()
    assert is_alive(who) is False


@NOT_ON_WINDOWS
def test_a_zombie_is_dead_though_its_pid_still_answers(sleeper: subprocess.Popen[bytes]) -> None:
    who = identity_of(sleeper)
    with Watch(who) as watch:
        sleeper.kill()
        assert watch.wait(PATIENCE)
    os.kill(sleeper.pid, 0)  # nobody has waited for it: the pid is still taken
    assert is_alive(who) is False


def test_a_pid_that_was_used_again_is_not_the_process_we_knew() -> None:
    assert is_alive({**identity(), "start_time": "1"}) is False


@pytest.mark.skipif(sys.platform != "linux", reason="no other system tells")
def test_a_program_that_has_replaced_itself_is_dead_though_its_process_lives_on() -> None:
    code = (
        "import json, os, sys; from rollbook.system.liveness import identity, is_alive\n"
        "if len(sys.argv) == 1: os.execv(sys.executable, [*sys.orig_argv, json.dumps(identity())])\n"
        "before = json.loads(sys.argv[1])\n"
        "print(before['pid'] == os.getpid(), is_alive(before), is_alive(identity()), is_alive({**before, 'image': ''}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.split() == ["True", "False", "True", "True"]


def test_another_boot_of_the_same_host_means_dead_and_another_host_cannot_be_judged() -> None:
    me = identity()
    assert is_alive({**me, "boot_id": "before", "host": "node-7"}) is None
    if me["host"] not in ("", "localhost"):
        assert is_alive({**me, "boot_id": "before"}) is False


def test_two_machines_called_localhost_are_not_taken_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(liveness.HOST_VARIABLE, "localhost")
    assert is_alive({**identity(), "boot_id": "another"}) is None


def test_another_pid_namespace_cannot_be_judged() -> None:
    assert is_alive({**identity(), "pid_ns": "4026539999"}) is None


@pytest.mark.parametrize(
    "odd", [{}, {"pid": "12"}, {"pid": -1}, {"pid": 2**40}, {"pid": None}, {"pid": True}, {"boot_id": [], "host": {}}]
)
def test_an_identity_with_nonsense_in_it_is_not_judged(odd: dict[str, Any]) -> None:
    assert is_alive({**identity(), "start_time": "", **odd}) is None
    assert Watch(odd).dead() is False


def test_running_out_of_descriptors_does_not_make_the_living_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    who = identity()
    real = open

    def refuse(path: Any, *args: Any, **kwargs: Any) -> Any:
        if str(path).endswith("/stat"):
            raise OSError(24, "Too many open files")
        return real(path, *args, **kwargs)

    monkeypatch.setattr("builtins.open", refuse)
    assert is_alive(who) is not False


def test_a_watch_notices_the_end_at_once(sleeper: subprocess.Popen[bytes]) -> None:
    # With pidfd the end itself wakes it: it looks at no intervals.
    with Watch(identity_of(sleeper), poll_seconds=1e9 if hasattr(os, "pidfd_open") else 0.25) as watch:
        assert watch.dead() is False
        assert watch.wait(0.01) is False
        threading.Timer(0.05, sleeper.kill).start()
        assert watch.wait(PATIENCE) is True
        assert watch.dead() is True


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="Linux")
def test_a_watch_has_a_descriptor_for_select(sleeper: subprocess.Popen[bytes]) -> None:
    import select

    with Watch(identity_of(sleeper)) as watch:
        assert watch.how == "pidfd"
        poller = select.poll()
        poller.register(watch.fileno(), select.POLLIN)
        assert poller.poll(0) == []
        sleeper.kill()
        assert poller.poll(1000 * PATIENCE)


def test_without_pidfd_a_watch_looks_again_and_again(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    with Watch(identity_of(sleeper), poll_seconds=0.01) as watch:
        assert (watch.how, watch.fileno()) == ("poll", -1)
        assert watch.wait(0.02) is False
        threading.Timer(0.03, sleeper.kill).start()
        assert watch.wait(PATIENCE) is True


def test_a_kernel_that_refuses_pidfd_gets_the_same_answer(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(pid: int, flags: int = 0) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)
    with Watch(identity_of(sleeper)) as watch:
        assert watch.how == "poll"
        sleeper.kill()
        assert watch.wait(PATIENCE) is True


def test_on_a_system_with_kqueue_a_watch_asks_for_the_exit_event(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    import select

    asked: list[Any] = []

    class Queue:
        def fileno(self) -> int:
            return 77

        def control(self, changes: Any, most: int, timeout: Any = None) -> list[Any]:
            asked.extend(changes or [])
            return ["event"] if most and sleeper.poll() is not None else []

        def close(self) -> None:
            asked.append("closed")

    def kevent(pid: int, **options: Any) -> Any:
        return SimpleNamespace(pid=pid, **options)

    monkeypatch.delattr(os, "pidfd_open", raising=False)
    numbers = {"KQ_FILTER_PROC": -5, "KQ_EV_ADD": 1, "KQ_NOTE_EXIT": 0x80000000}
    for name, value in {"kqueue": Queue, "kevent": kevent, **numbers}.items():
        monkeypatch.setattr(select, name, value, raising=False)
    watch = Watch(identity_of(sleeper))
    assert (watch.how, watch.fileno()) == ("kqueue", 77)
    assert (asked[0].pid, asked[0].fflags) == (sleeper.pid, 0x80000000)
    assert watch.dead() is False
    sleeper.kill()
    sleeper.wait()
    assert watch.dead() is True
    assert asked[-1] == "closed"


def test_watching_a_process_that_has_gone_says_so_at_once(sleeper: subprocess.Popen[bytes]) -> None:
    who = identity_of(sleeper)
    sleeper.kill()
    sleeper.wait()
    watch = Watch(who)
    assert (watch.how, watch.dead(), watch.wait(PATIENCE)) == ("dead", True, True)


def test_a_process_elsewhere_is_never_called_dead() -> None:
    watch = Watch({**identity(), "boot_id": "elsewhere", "host": "node-7"})
    assert (watch.how, watch.dead(), watch.wait(0.01)) == ("unknown", False, False)


def test_a_system_without_boot_ids_goes_by_host_and_start_time(monkeypatch: pytest.MonkeyPatch) -> None:
    system_file(monkeypatch, BOOT_ID, None)
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename="node-1"))
    me = identity()
    assert (me["boot_id"], me["host"]) == ("", "node-1")
    assert is_alive(me) is True
    assert is_alive({**me, "start_time": "1"}) is False
    assert is_alive({**me, "host": "node-2"}) is None


def test_importing_it_loads_nothing_heavy() -> None:
    script = "import sys, rollbook.system.liveness; print(*sorted(sys.modules))"
    source = os.path.dirname(os.path.dirname(os.path.dirname(liveness.__file__)))
    found = subprocess.run(
        [sys.executable, "-S", "-c", script], env={"PYTHONPATH": source}, capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"subprocess", "dataclasses", "typing", "re", "select", "json", "pathlib"} & set(found)


def test_a_watch_is_let_go_of_twice_without_harm(sleeper: subprocess.Popen[bytes]) -> None:
    watch = Watch(identity_of(sleeper))
    watch.close()
    watch.close()
    assert watch.dead() is False
