"""Nothing waits for ever: every wait for a thread, a process, a lock or an answer has a deadline."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import rollbook
from syntax import tree as tree_of

SRC = Path(rollbook.__file__).parent

WAITS = {"acquire", "communicate", "join", "recv", "result", "wait"}
"""Methods that wait until something happens, or so long as they are told."""

RUNS = {"call", "check_call", "check_output", "run"}

CONNECTS = {"create_connection": 1, "urlopen": 2, "HTTPConnection": 2, "HTTPSConnection": 2}
"""What talks to another machine, and the place of its timeout among the arguments."""

NAMES = {
    *WAITS, *RUNS, *CONNECTS, "flock", "get", "lockf", "map", "poll", "read", "readline", "select", "shutdown",
    "wait_for", "waitid", "waitpid",
}  # fmt: skip
"""The methods that `waits` knows."""

LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.cmpop, ast.alias, ast.arg)
"""Two of three nodes, which hold no call; an argument's annotation holds none either."""

CONTEXTS = {"_current", "_stack"}
"""Variables of a context: their `get()` waits for nothing."""

ALLOWED: dict[str, str] = {
    "adapters/acme/asynchronous.py:_run": "a daemon thread that waits for its owner",
    "book/book.py:tail": "the caller's own loop, until the run ends or `stop` says so",
    "cli/demo.py:demo": "the page in the foreground, until Ctrl-C",
    "cli/logs.py:logs": "the lines in the foreground, until the run ends or Ctrl-C",
    "cli/run.py:run": "the program in the foreground, until it ends (Windows)",
    "cli/ui.py:page_is_ready": "the building of the page in the foreground, until Ctrl-C",
    "formats/foreign.py:laid_out": "who wants this lock asks for the same folders, and would wait as long for them",
    "formats/foreign.py:look": "a daemon thread that follows files",
    "system/files.py:_seek_and_read": "a file, not a pipe",
    "system/liveness.py:_look": "as long as the caller of Watch.wait says",
    "system/optional.py:__enter__": "another import of this process; a fork that waits for it has a deadline",
    "system/daemon_threads.py:shutdown": "its caller asks for that; the end of a program does not",
    "system/daemon_threads.py:_work": "a daemon thread that waits for its owner",
    "values/arrays.py:host_tensor": "CuPy's copy",
    "keeper/many_runs.py:_lead": "the keeper's own loop, which another thread ends",
    "keeper/many_runs.py:run": "a file lock that is tried, not waited for",
    "keeper/many_runs.py:_read_signals": "a pipe of its own that does not block",
    "keeper/many_runs.py:_has_left": "a file lock that is tried, not waited for",
    "keeper/one_run.py:_take_lock": "a file lock that is tried, not waited for",
    "keeper/process.py:wait": "a pipe of its own that does not block",
    "keeper/rules.py:run": "a daemon thread that waits for its owner",
    "keeper/warm_children.py:wait": "after a poll that has a deadline",
    "remote/catalogue.py:rebuild": "each request has a deadline of its own",
    "remote/objects.py:listing": "each request has a deadline of its own",
    "remote/remote.py:perform": "each request has a deadline of its own",
    "run/origin/hydra.py:_hydra_config": "what Hydra holds in this process",
    "runs/mapping.py:ended": "an answer that is there",
    "runs/results.py:for_each_run": "the caller's own question, computed in threads of this process",
    "runs/waiting.py:wait": "the caller's own clock has the deadline",
    "server/live.py:_look": "under asyncio.wait_for",
    "server/live.py:_send": "a listener's own task, which ends with its socket",
    "server/curves/row_helpers.py:main": "a helper, which is killed by its asker",
    "server/serving.py:serve": "until the server has started or has failed",
    "stats/iqm_bootstrap.py:_workers": "the caller's own question, computed in threads of this process",
    "storage/sealing/helpers.py:_end_with_parent": "a daemon thread that waits for its owner",
    "storage/sealing/helpers.py:seal_by_helpers": "a timer kills the helpers, which ends what they say",
    "stats/iqm_bootstrap.py:together": "the caller's own question, computed in threads of this process",
}
"""File and function of each wait that has none: why."""


def waits_without_a_deadline(source: str) -> list[tuple[str, int, str]]:
    """(function, line, call) of each wait in a module that may last for ever."""
    found: list[tuple[str, int, str]] = []
    lines = source.splitlines()

    def look(node: ast.AST, function: str) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
        if isinstance(node, ast.Call) and waits(node):
            found.append((function, node.lineno, ast.unparse(node.func)))
        if isinstance(node, ast.While):
            loop = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            if "sleep(" in loop and "monotonic()" not in loop:
                found.append((function, node.lineno, f"while {ast.unparse(node.test)}: sleep"))
        if isinstance(node, ast.With):
            for item in node.items:
                if (
                    ast.unparse(item.context_expr)
                    .partition("(")[0]
                    .endswith(("PoolExecutor", "DaemonThreads", "Popen"))
                ):
                    found.append((function, node.lineno, f"with {ast.unparse(item.context_expr)[:60]}"))
                if ast.unparse(item.context_expr).rpartition(".")[2].endswith("lock"):
                    found.extend(
                        (function, line, f"a wait for others with a lock: {what}") for line, what in slow(node)
                    )
        if isinstance(node, ast.For) and ast.unparse(node.iter).endswith((".stdout", ".stderr")):
            found.append((function, node.lineno, f"for … in {ast.unparse(node.iter)}"))
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, LEAVES):
                look(child, function)

    look(tree_of(source), "")
    return found


def slow(held: ast.With) -> Iterator[tuple[int, str]]:
    """What waits for a process, a thread or the net while a lock is held: who wants the lock waits along."""
    for node in ast.walk(held):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            first, _, last = name.rpartition(".")
            if first == "subprocess" or last in ("sleep", "communicate", "urlopen") or last in CONNECTS:
                yield node.lineno, name
            if (
                last in ("join", "wait")
                and not isinstance(node.func, ast.Name)
                and "path" not in first
                and not (first.startswith(("'", '"')))
            ):
                yield node.lineno, name


def waits(call: ast.Call) -> bool:
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    if isinstance(call.func, ast.Name):
        if call.func.id in CONNECTS:
            return "timeout" not in named and len(call.args) <= CONNECTS[call.func.id]
        if call.func.id == "ThreadPoolExecutor":  # the end of the program joins its threads
            return True
        return call.func.id == "wait" and "timeout" not in named and len(call.args) < 2
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in NAMES:
        return False
    name, whose = call.func.attr, ast.unparse(call.func.value)
    if whose == "subprocess" and name in RUNS:
        return not {"timeout", None} & named.keys()
    if whose == "os":
        return name in ("wait", "read") or (name in ("waitpid", "waitid") and "WNOHANG" not in ast.unparse(call))
    if name in ("flock", "lockf"):
        return not any(word in ast.unparse(call) for word in ("LOCK_NB", "LOCK_UN"))
    if name == "select":
        return len(call.args) in (0, 3)
    if name == "poll":
        return whose.endswith("poller") and (not call.args or "None" in ast.unparse(call.args[0]))
    if name in CONNECTS:
        return "timeout" not in named and len(call.args) <= CONNECTS[name]
    if name == "shutdown":
        return "socket" not in whose and ast.unparse(named.get("wait", ast.Constant(True))) != "False"
    if name == "wait_for" and whose != "asyncio":
        return "timeout" not in named and len(call.args) < 2
    if name in ("read", "readline") and whose.endswith(("stdout", "stderr", "stdin.buffer")):
        return True
    if name == "get" and (not call.args or whose.rpartition(".")[2].lstrip("_") in ("queue", "answers", "inbox")):
        return "timeout" not in named and len(call.args) < 2 and whose.rpartition(".")[2] not in CONTEXTS
    if name == "map" and whose.endswith("pool"):
        return "timeout" not in named
    if name not in WAITS or whose in ("asyncio", "ray", "os.path"):
        return False
    if "timeout" in named:
        return ast.unparse(named["timeout"]) == "None"
    if name == "acquire" and "False" in ast.unparse(call):
        return False
    endless = not call.args or ast.unparse(call.args[0]) in ("None", "True")
    return endless or (name in ("communicate", "recv") and len(call.args) == 1)


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
lock.acquire()
lock.acquire(True)
p.communicate(x)
g.result()
work = waiting.get()
list(pool.map(f, x))
pool = ThreadPoolExecutor(2)
os.waitpid(1, 0)
os.read(fd, 10)
subprocess.run(x)
p.stdout.read()
p.stderr.readline()
self._queue.get()
self._queue.get(True)
pipe.recv(10)
condition.wait_for(ready)
wait(futures)
pool.shutdown()
fcntl.flock(fd, fcntl.LOCK_EX)
select.select([fd], [], [])
poller.poll()
urlopen(address)
socket.create_connection(address)
http.client.HTTPConnection("there")
while not try_lock(fd): time.sleep(1)
with ProcessPoolExecutor(2) as pool: pass
with DaemonThreads(2) as pool: pass
with subprocess.Popen(words) as process: pass
for line in p.stdout: pass
with self._lock: time.sleep(1)
with _lock: thread.join(5)
"""
BOUNDED = """
a.wait(1)
",".join(x)
os.path.join(a, b)
lock.acquire(timeout=2)
lock.acquire(blocking=False)
p.communicate(x, timeout=3)
g.result(2)
os.waitpid(1, os.WNOHANG)
subprocess.run(x, timeout=5)
self._current.get()
values.get(key)
self._queue.get(True, 5)
pool.shutdown(wait=False)
condition.wait_for(ready, 3)
wait(futures, timeout=3)
fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
fcntl.flock(fd, fcntl.LOCK_UN)
select.select([fd], [], [], 3)
poller.poll(300)
urlopen(address, timeout=3)
urlopen(address, None, 3)
socket.create_connection(address, 3)
while not try_lock(fd) and time.monotonic() < until: time.sleep(1)
with self._lock: path = os.path.join(a, b)
"""


@pytest.mark.parametrize("line", ENDLESS.strip().splitlines())
def test_the_search_finds_each_kind_of_wait(line: str) -> None:
    assert len(waits_without_a_deadline(line)) == 1


def test_the_search_passes_what_has_a_deadline() -> None:
    assert waits_without_a_deadline(BOUNDED) == []
