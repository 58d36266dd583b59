"""Nothing waits for ever: every wait for a thread, a process, a lock or another machine has a deadline.

`tests/run/test_hangs.py` has what a user meets: the end of a run comes back whatever stands still.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import rollbook
from syntax import tree as tree_of

SRC = Path(rollbook.__file__).parent

WAITS = {"acquire", "communicate", "join", "result", "wait", "wait_for"}
"""Methods that wait until something happens, or so long as they are told."""

RUNS = {"call", "check_call", "check_output", "run"}

CONNECTS = {"create_connection": 1, "urlopen": 2, "HTTPConnection": 2, "HTTPSConnection": 2}
"""What talks to another machine, and the place of its timeout among the arguments."""

QUEUES = ("queue", "waiting", "inbox", "answers")
"""Where `get()` waits for another thread; other methods of that name wait for nothing."""

POOLS = ("PoolExecutor", "DaemonThreads", "Popen")
"""At the end of a `with` block, these wait for all that was started in it."""

ALLOWED: dict[str, str] = {
    "adapters/acme/asynchronous.py:_run": "a daemon thread that waits for its owner",
    "cli/demo.py:demo": "the page in the foreground, until Ctrl-C",
    "cli/run.py:run": "the program in the foreground, until it ends (Windows)",
    "cli/ui.py:page_is_ready": "the building of the page in the foreground, until Ctrl-C",
    "keeper/many_runs.py:run": "a file lock that is tried, not waited for",
    "keeper/many_runs.py:_has_left": "a file lock that is tried, not waited for",
    "keeper/one_run.py:_take_lock": "a file lock that is tried, not waited for",
    "keeper/rules.py:run": "a daemon thread that waits for its owner",
    "remote/catalogue.py:rebuild": "each request has a deadline of its own",
    "remote/objects.py:listing": "each request has a deadline of its own",
    "remote/remote.py:perform": "each request has a deadline of its own",
    "runs/mapping.py:ended": "an answer that is there",
    "runs/results.py:for_each_run": "the caller's own question, computed in threads of this process",
    "server/live.py:_look": "under asyncio.wait_for",
    "server/live.py:_send": "a listener's own task, which ends with its socket",
    "stats/iqm_bootstrap.py:_workers": "the caller's own question, computed in threads of this process",
    "stats/iqm_bootstrap.py:together": "the caller's own question, computed in threads of this process",
    "system/daemon_threads.py:_work": "a daemon thread that waits for its owner",
    "system/daemon_threads.py:shutdown": "its caller asks for that; the end of a program does not",
    "system/optional.py:__enter__": "another import of this process; a fork that waits for it has a deadline",
}
"""File and function of each wait that has none: why."""


def waits(call: ast.Call) -> bool:
    """Whether a call may wait for ever."""
    named = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    whose, _, name = ast.unparse(call.func).rpartition(".")
    if name in CONNECTS:
        return "timeout" not in named and len(call.args) <= CONNECTS[name]
    if whose == "subprocess" and name in RUNS:
        return not {"timeout", None} & named.keys()
    if whose == "os" and name in ("wait", "waitpid", "waitid"):
        return "WNOHANG" not in ast.unparse(call)
    if name in ("flock", "lockf"):
        return not any(word in ast.unparse(call) for word in ("LOCK_NB", "LOCK_UN"))
    if name == "select" or (name == "poll" and whose.endswith("poller")):
        return len(call.args) == (3 if whose == "select" else 0)
    if name == "get" and whose.rpartition(".")[2].lstrip("_") in QUEUES:
        return "timeout" not in named and [ast.unparse(each) for each in call.args] in ([], ["True"])
    if name == "shutdown" and "socket" not in whose:
        return named.get("wait") != "False"
    if name not in WAITS or not whose or whose in ("asyncio", "ray", "os.path"):
        return False
    if "timeout" in named:
        return named["timeout"] == "None"
    endless = not call.args or ast.unparse(call.args[0]) in ("None", "True")
    takes_another_first = name in ("communicate", "wait_for") and len(call.args) == 1
    return (endless or takes_another_first) and "False" not in ast.unparse(call)


def waits_without_a_deadline(source: str) -> list[tuple[str, int, str]]:
    """(function, line, call) of each wait in a module that may last for ever."""
    found: list[tuple[str, int, str]] = []

    def look(node: ast.AST, function: str) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Attribute, ast.Name)) and waits(node):
            found.append((function, node.lineno, ast.unparse(node.func)))
        for item in node.items if isinstance(node, ast.With) else ():
            if ast.unparse(item.context_expr).partition("(")[0].endswith(POOLS):
                found.append((function, node.lineno, f"with {ast.unparse(item.context_expr)[:60]}"))
        for child in ast.iter_child_nodes(node):
            look(child, function)

    look(tree_of(source), "")
    return found


def test_every_wait_has_a_deadline() -> None:
    found = {
        f"{file.relative_to(SRC)}:{function}": f"{file.relative_to(SRC)}:{line} {call}"
        for file in sorted(SRC.rglob("*.py"))
        for function, line, call in waits_without_a_deadline(file.read_text(encoding="utf-8"))
    }
    assert [place for function, place in found.items() if function not in ALLOWED] == []
    assert ALLOWED.keys() <= found.keys(), "an allowance that nobody needs any more"


ENDLESS = """
a.wait()
a.wait(None)
b.join()
lock.acquire(True)
fcntl.flock(fd, fcntl.LOCK_EX)
os.waitpid(pid, 0)
select.select([fd], [], [])
poller.poll()
self._queue.get()
pool.shutdown()
p.communicate(x)
g.result()
subprocess.run(x)
condition.wait_for(ready)
urlopen(address)
socket.create_connection(address)
with ProcessPoolExecutor(2) as pool: pass
with subprocess.Popen(words) as process: pass
"""
BOUNDED = """
a.wait(1)
",".join(x)
os.path.join(a, b)
lock.acquire(timeout=2)
lock.acquire(blocking=False)
fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
fcntl.flock(fd, fcntl.LOCK_UN)
os.waitpid(pid, os.WNOHANG)
select.select([fd], [], [], 3)
poller.poll(300)
self._queue.get(True, 5)
values.get(key)
pool.shutdown(wait=False)
p.communicate(x, timeout=3)
g.result(2)
subprocess.run(x, timeout=5)
condition.wait_for(ready, 3)
urlopen(address, None, 3)
socket.create_connection(address, 3)
"""


@pytest.mark.parametrize("line", ENDLESS.strip().splitlines())
def test_the_search_finds_each_kind_of_wait(line: str) -> None:
    assert len(waits_without_a_deadline(line)) == 1


def test_the_search_passes_what_has_a_deadline() -> None:
    assert waits_without_a_deadline(BOUNDED) == []
