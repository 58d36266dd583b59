"""A program whose children are forked at bad moments; tests/run/test_forks.py runs it in an interpreter of its own.

    python forking.py imports KEEPER FOLDER     each import that a thread of rollbook makes never ends
    python forking.py locks KEEPER FOLDER       each lock of rollbook is held by another thread at the fork

It prints, as JSON, what threads of rollbook imported, and what became of each child: the moment and its exit status.
"""

from __future__ import annotations

import gc
import importlib.abc
import json
import os
import signal
import sys
import threading
import time
import types
import warnings
from importlib.machinery import ModuleSpec
from typing import Any

import rollbook
from rollbook.system import optional

CHILD_SECONDS = 60
"""After which a child is said to hang: a guard, no measure of speed."""

LOCKS = (type(threading.Lock()), type(threading.RLock()))

imported: dict[str, list[str]] = {}
started = threading.Event()


class NeverEnding(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """What a thread of rollbook imports is noted and never comes; what the program itself imports is noted."""

    def __init__(self, stops: bool) -> None:
        self.stops = stops

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        thread = threading.current_thread()
        imported.setdefault(thread.name, []).append(name)
        return ModuleSpec(name, self) if self.stops and thread.name.startswith("rollbook") else None

    def exec_module(self, _module: types.ModuleType) -> None:
        started.set()
        threading.Event().wait()


def use(run: Any) -> None:
    """Every verb that needs no numpy."""
    for i in range(3):
        run.log({"a": 1.0 + i}, env_step=i)
    run.log({"many": [1.0, 2.0], "t": "x", "d": {"z": 1}, "odd": object(), "none": float("nan")})
    run.log_text("a", "b")
    run.note("words")
    run.log_episode(return_=1.0, length=3)
    run.log_histogram("h", [1.0, 2.0])
    run.log_samples(["prompt"], i=[1])
    run.log_many({"i": [1]})
    run.record("own", {"i": [1]})
    run.store({"i": 1})
    run.dump()
    with run.timer("stage"):
        run.scope("s").log({"a": 1})
    run.summary["last"] = 1
    run.config["b"] = 2
    run.save_checkpoint({"w": [1.0]}, score=1.0)
    run.save_checkpoint({"w": [1.0]}, score=2.0, keep=1)
    run.bill()


def child_of(run: Any) -> int:
    """Fork; the child uses every verb, finishes and leaves. Its exit status."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            signal.alarm(CHILD_SECONDS)
            use(run)
            run.finish()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def reachable(roots: list[object]) -> dict[int, tuple[str, Any]]:
    """The locks that rollbook's own objects hold, by id, with the way to each."""
    locks: dict[int, tuple[str, Any]] = {}
    seen: set[int] = set()
    waiting: list[tuple[str, object]] = [(type(root).__name__, root) for root in roots]
    plain = (dict, list, tuple, set, frozenset, types.CellType, types.FunctionType, types.MethodType, threading.Event)
    while waiting:
        way, thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, LOCKS):
            locks[id(thing)] = (way, thing)
            continue
        kind = type(thing)
        if isinstance(thing, types.FunctionType) and not thing.__module__.startswith("rollbook"):
            continue
        if not (
            issubclass(kind, (*plain, threading.Thread, threading.Condition)) or kind.__module__.startswith("rollbook")
        ):
            continue
        for held in gc.get_referents(thing):
            if isinstance(held, type) and held.__module__.startswith("rollbook"):
                waiting.append((held.__name__, dict(vars(held))))
            elif not isinstance(held, (type, types.ModuleType, str, int, float, bytes)):
                waiting.append((f"{way} > {type(held).__name__}" if len(way) < 200 else way, held))
    return locks


def main(what: str, keeper: str, folder: str) -> None:
    """See the top of this file."""
    warnings.simplefilter("ignore")
    finder = NeverEnding(stops=what == "imports")
    start = threading.Thread.start

    def noting(thread: threading.Thread) -> None:  # from the moment on at which something runs beside the program
        if finder not in sys.meta_path:
            sys.meta_path.insert(0, finder)
        start(thread)

    threading.Thread.start = noting  # type: ignore[method-assign]
    sinks = ["text", "csv", "jsonl", {"name": "terminal", "filters": [["smooth", {"keys": "a"}]]}, "memory"]
    run = rollbook.init("p", "r", dir=folder, keeper=keeper, sinks=sinks, config={"a": 1})
    children: list[tuple[str, int]] = []
    if what == "imports":
        run.log({"a": 1.0})
        ticker: Any = run._parts.ticker
        end = time.monotonic() + CHILD_SECONDS
        # Until the run's own thread has done what it does soon after the start, or stands still.
        while not started.is_set() and not run.internals.about.packages and time.monotonic() < end:
            time.sleep(0.01)
        assert ticker.is_alive()
        children.append(("shortly after init", child_of(run)))
    else:
        use(run)
        own = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("rollbook.")]
        locks = reachable([run, *own, *threading.enumerate()])
        del locks[id(optional._importing)]  # that is what a fork waits for
        for way, lock in locks.values():
            taken = threading.Event()
            done = threading.Event()

            def hold(lock: Any = lock, taken: threading.Event = taken, done: threading.Event = done) -> None:
                has = lock.acquire(timeout=1.0)
                taken.set()
                done.wait()
                if has:
                    lock.release()

            holder = threading.Thread(target=hold, name="holder", daemon=True)
            holder.start()
            taken.wait()
            children.append((way, child_of(run)))
            done.set()
            holder.join()
    if what == "imports" and not started.is_set():
        use(run)
        run.finish()
    sys.stdout.write("\n" + json.dumps({"imported": imported, "children": children}) + "\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
