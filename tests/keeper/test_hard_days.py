"""What the system refuses for a while, and clocks that jump: the keeper stays, and everything goes on afterwards."""

from __future__ import annotations

import builtins
import errno
import io
import os
import time
from collections.abc import Callable
from typing import Any

import pytest

from cases import some_of
from waiting import until

CALLS = ["open", "listdir", "scandir", "replace", "unlink", "utime", "makedirs", "mkdir"]
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Refusing:
    """The system's calls on a folder, which fail with one error while `on`.

    EROFS refuses what writes, EMFILE what needs a descriptor, ENOSPC what makes files, EIO all of it.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: str, number: int) -> None:
        self.folder, self.number, self.on = folder, number, False
        for name in CALLS:
            monkeypatch.setattr(os, name, self._wrapped(name, getattr(os, name)))
        opened = self._wrapped("open file", builtins.open)
        monkeypatch.setattr(builtins, "open", opened)
        monkeypatch.setattr(io, "open", opened)

    def _wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def called(path: Any = ".", *arguments: Any, **options: Any) -> Any:
            is_here = isinstance(path, (str, os.PathLike)) and os.fspath(path).startswith(self.folder)
            if self.on and is_here and self._refuses(name, arguments, options):
                raise OSError(self.number, os.strerror(self.number), path)
            return call(path, *arguments, **options)

        return called

    def _refuses(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> bool:
        first = arguments[0] if arguments else options.get("mode", options.get("flags", "r"))
        writes = (
            bool(set("wax+") & set(str(first)))
            if name == "open file"
            else bool(int(first or 0) & WRITING)
            if name == "open"
            else name not in ("listdir", "scandir")
        )
        needs_descriptor = name in ("open", "open file", "listdir", "scandir")
        return {errno.EMFILE: needs_descriptor, errno.EIO: True}.get(self.number, writes)


@pytest.mark.parametrize("number", [errno.EROFS, errno.EMFILE, errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
@pytest.mark.parametrize("when", some_of(["while rows come", "before it saw a row", "while the writer ends"], 1))
def test_a_keeper_whose_folder_refuses_for_a_while_stays_and_does_the_rest_afterwards(
    make_run: Any, make_keeper: Any, monkeypatch: pytest.MonkeyPatch, clock: Any, number: int, when: str
) -> None:
    run = make_run(sinks=[{"name": "jsonl"}], host_seconds=10, rules=[{"name": "non_finite"}])
    keeper, log = make_keeper(run, clock=clock), run.log()
    refusing = Refusing(monkeypatch, str(run.folder), number)

    def step(times: int) -> None:
        for _ in range(times):
            pause = keeper.step()
            assert pause is not None, "it stays"
            clock.now += max(pause, 0.05)

    def logged() -> list[float]:
        return [line["i"] for line in run.lines() if "i" in line]

    step(1)  # a keeper that cannot even take its lock ends, and another one is started later
    log({"i": 0.0})
    if when != "before it saw a row":
        step(3)
    other = run.add_writer()  # the folder of writers has to be looked at again just then
    refusing.on = True
    step(120)
    if when == "while the writer ends":
        refusing.on = False
        run.writer.close()
        refusing.on = True
        step(120)
    refusing.on = False
    log_rest = [] if run.writer.closed else [1.0, 2.0]
    for value in log_rest:
        log({"i": value})
    for _ in range(20):
        if keeper.step() is None:
            break
        clock.now += 5.0
    assert logged() == [0.0, *log_rest]
    run.writer.close()
    other.close()

    def is_done() -> bool:
        clock.now += 1.0
        return keeper.step() is None

    until(is_done)
    assert keeper.phase == "done"


@pytest.mark.parametrize("hours", [-1.0, 1.0, -24.0, 24.0 * 400])
def test_a_wall_clock_that_jumps_ends_delays_and_loses_nothing(
    make_run: Any, make_keeper: Any, monkeypatch: pytest.MonkeyPatch, hours: float
) -> None:
    run = make_run(sinks=[{"name": "jsonl"}], host_seconds=10)
    keeper, log = make_keeper(run), run.log()
    log({"i": 0.0})
    for _ in range(3):
        keeper.step()
    wall, wall_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: wall() + 3600 * hours)
    monkeypatch.setattr(time, "time_ns", lambda: wall_ns() + int(3600e9 * hours))
    beat = run.folder / "data" / "keeper" / "heartbeat"
    before = beat.stat().st_mtime_ns
    for i in range(1, 4):
        log({"i": float(i)})
        pause = keeper.step()
        assert pause is not None
        assert pause <= 1.0
    assert [line["i"] for line in run.lines() if "i" in line] == [0.0, 1.0, 2.0, 3.0]
    assert beat.stat().st_mtime_ns > before, "readers see that rows come"
    second = run.add_writer()
    run.log(second)({"i": 4.0})
    keeper.step()
    assert [line["i"] for line in run.lines() if "i" in line][-1] == 4.0, "a writer that comes afterwards is found"
