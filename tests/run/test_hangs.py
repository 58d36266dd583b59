"""What a run waits for stands still: its end comes back all the same, and reports it."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import textwrap
from pathlib import Path

import pytest

import sealing_forks
from cases import some_of
from forked_programs import Interpreter
from rollbook.system.files import read_json
from rollbook.system.liveness import is_alive
from waiting import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="this system does not stop processes")

SECONDS = 15
"""How long an end may take while something hangs, with the deadlines as they are."""

COMMON = """
    import os, signal, subprocess, sys, threading, time, warnings
    import rollbook
    warnings.simplefilter("ignore")
    os.setsid()
    signal.alarm(int(sys.argv.pop(1)))
    folder, keeper, deadline = sys.argv[1:]
    if deadline:  # all of them alike: what has none hangs with these, too
        import rollbook.keeper.child, rollbook.keeper.launch, rollbook.keeper.sinks, rollbook.keeper.main
        import rollbook.keeper.one_run, rollbook.system.tuning
        waits = "finish_seconds drain_here_seconds drain_seconds look_seconds".split()
        vars(rollbook.system.tuning.TUNING).update(dict.fromkeys(waits, float(deadline)))
        rollbook.keeper.one_run._PATIENCE_HERE_SECONDS = rollbook.keeper.child._STOP_SECONDS = float(deadline)
        rollbook.keeper.launch._START_SECONDS = float(deadline)

    def end(run, *causes):
        began = time.monotonic()
        run.finish()
        print("finish", round(time.monotonic() - began, 1), sorted(run.bill()["drops"]), flush=True)
"""

HANGS = {
    "the process that seals": """
        import rollbook.keeper.child as child
        start = child.start_child
        def stopped(command, words, log):
            process = start(command, words, log)
            os.kill(process.pid, signal.SIGSTOP)
            return process
        child.start_child = stopped
        run = rollbook.init("p", "r", dir=folder, keeper=keeper, sinks=[])
        for i in range(100): run.log({"a": 1.0}, env_step=i)
        end(run)
    """,
    "a place that accepts and never answers": """
        import socket
        silent = socket.create_server(("127.0.0.1", 0))
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"): os.environ[name] = "x"
        os.environ["AWS_REGION"] = "us-east-1"
        os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
        os.environ["AWS_ALLOW_HTTP"] = "true"
        run = rollbook.init("p", "r", dir=folder, keeper=keeper, sinks=[])
        from rollbook.schema import addresses
        addresses.begin(str(run.folder), "s3://bucket/prefix", home=True)
        run.log({"a": 1.0})
        end(run)
    """,
    "a sink that never returns": """
        class Hangs:
            accepts = frozenset({float})
            def open(self, run): ...
            def write(self, rows): threading.Event().wait()
            def close(self): ...
        run = rollbook.init("p", "r", dir=folder, keeper=keeper, sinks=[Hangs()])
        run.log({"a": 1.0})
        end(run)
    """,
    "a health rule that never returns": """
        import rollbook.health.silent as silent
        silent.Silent.look = lambda self, rows, now: threading.Event().wait()
        run = rollbook.init("p", "r", dir=folder, keeper=keeper, sinks=[])
        run.log({"a": 1.0})
        end(run)
    """,
    "the reading of rows for the health rules": """
        import rollbook.keeper.rules as rules
        rules._RuleBook.__init__ = lambda self, owner, looker: threading.Event().wait()
        run = rollbook.init("p", "r", dir=folder, keeper=keeper, sinks=[])
        run.log({"a": 1.0})
        end(run)
    """,
    "the run's own thread": """
        run = rollbook.init("p", "r", dir=folder, keeper=keeper, sinks=[])
        if deadline: run._parts.ticker.join = lambda seconds: time.sleep(float(deadline))
        run._parts.ticker._settle = lambda: threading.current_thread() is run._parts.ticker and threading.Event().wait()
        run.log({"a": 1.0})
        time.sleep(1.5)
        end(run)
    """,
    "the keeper": """
        run = rollbook.init("p", "r", dir=folder, keeper=keeper, sinks=[])
        run.log({"a": 1.0})
        if keeper == "process":
            from rollbook.system.files import read_json
            from rollbook.keeper.own_files import state_path
            while not (pid := read_json(state_path(str(run.folder))).get("pid")): time.sleep(0.01)
            os.kill(pid, signal.SIGSTOP)
        elif keeper == "thread":
            run._parts.keeper_thread.step = lambda: threading.Event().wait()
        end(run)
        if keeper == "process": os.kill(pid, signal.SIGKILL)
    """,
}


KEEPERS = ["process", "thread", "inline"]


@pytest.mark.parametrize("deadline", ["0.5", pytest.param("", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("hangs", "keeper"),
    some_of(
        itertools.product(HANGS, KEEPERS),
        lambda case: (
            case[1] == KEEPERS[list(HANGS).index(case[0]) % 3] or case == ("a sink that never returns", "inline")
        ),
    ),
)
def test_finish_and_the_end_of_the_program_come_back_whatever_stands_still(
    hangs: str, keeper: str, deadline: str, tmp_path: Path, interpreter: Interpreter
) -> None:
    code = textwrap.dedent(COMMON) + textwrap.dedent(HANGS[hangs])
    # A keeper that is nobody else's, with children of its own: the common server that forks them would be stopped.
    environment = {k: v for k, v in os.environ.items() if k != sealing_forks.VARIABLE}
    environment |= {"XDG_CACHE_HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONPATH": ""}
    with (tmp_path / "said").open("w+") as said:
        streams = [said.fileno()] * 3
        pid = interpreter.fork(code, (round(PATIENCE), tmp_path, keeper, deadline), environment, streams)
    try:
        status = interpreter.wait(pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        for path in tmp_path.glob("p/*/data/keeper/state*.json"):  # a keeper goes on trying a store that is silent
            if is_alive(state := read_json(str(path))):
                os.kill(state["pid"], signal.SIGKILL)
    printed = (tmp_path / "said").read_text()
    assert status == 0, printed
    seconds = float(next(line for line in printed.splitlines() if line.startswith("finish ")).split()[1])
    assert deadline or seconds <= SECONDS
