"""Nothing waits for ever: every wait for a thread, a process, a lock or an answer has a deadline."""

from __future__ import annotations

import ast
from pathlib import Path

import rollbook

SRC = Path(rollbook.__file__).parent

WAITS = {"acquire", "communicate", "join", "result", "wait"}
"""Methods that wait until something happens, or so long as they are told."""

RUNS = {"call", "check_call", "check_output", "run"}

ALLOWED: dict[str, str] = {
    "adapters/acme/asynchronous.py:_run": "a daemon thread that waits for its owner",
    "book/book.py:tail": "the caller's own loop, until the run ends or `stop` says so",
    "cli/demo.py:demo": "the page in the foreground, until Ctrl-C",
    "cli/run.py:run": "the program in the foreground, until it ends (Windows)",
    "cli/ui.py:page_is_ready": "the building of the page in the foreground, until Ctrl-C",
    "formats/foreign.py:look": "a daemon thread that follows files",
    "ground/optional.py:__enter__": "another import of this process; a fork that waits for it has a deadline",
    "keeper/many_runs.py:_lead": "the keeper's own loop, which another thread ends",
    "keeper/many_runs.py:run": "a file lock that is tried, not waited for",
    "keeper/many_runs.py:_has_left": "a file lock that is tried, not waited for",
    "keeper/one_run.py:_take_lock": "a file lock that is tried, not waited for",
    "keeper/rules.py:run": "a daemon thread that waits for its owner",
    "runs/mapping.py:ended": "an answer that is there",
    "runs/results.py:for_each_run": "the caller's own question, computed in threads of this process",
    "runs/waiting.py:wait": "the caller's own clock has the deadline",
    "server/live.py:_look": "under asyncio.wait_for",
    "server/live.py:_send": "a listener's own task, which ends with its socket",
    "server/curves/row_helpers.py:main": "a helper, which is killed by its asker",
    "server/serving.py:serve": "until the server has started or has failed",
    "storage/sealing/helpers.py:seal_by_helpers": "a timer kills the helpers, which ends what they say",
    "stats/iqm_bootstrap.py:together": "the caller's own question, computed in threads of this process",
}
"""File and function of each wait that has none: why."""


def waits_without_a_deadline(source: str) -> list[tuple[str, int, str]]:
    """(function, line, call) of each wait in a module that may last for ever."""
    found: list[tuple[str, int, str]] = []

    def look(node: ast.AST, function: str) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
        if isinstance(node, ast.Call) and waits(node):
            found.append((function, node.lineno, ast.unparse(node.func)))
        if isinstance(node, ast.While) and "sleep(" in (loop := ast.unparse(node)) and "monotonic()" not in loop:
            found.append((function, node.lineno, f"while {ast.unparse(node.test)}: sleep"))
        for child in ast.iter_child_nodes(node):
            look(child, function)

    look(ast.parse(source), "")
    return found


def waits(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    name, whose = call.func.attr, ast.unparse(call.func.value)
    if whose == "subprocess" and name in RUNS:
        return not any(keyword.arg in ("timeout", None) for keyword in call.keywords)
    if whose == "os" and name in ("wait", "waitpid", "waitid"):
        return name == "wait" or "WNOHANG" not in ast.unparse(call)
    if name == "read" and whose.endswith(("stdout", "stderr", "stdin.buffer")):
        return True
    if name == "get" and not call.args and not call.keywords:
        return whose.rpartition(".")[2].lstrip("_") in ("queue", "answers", "inbox")
    if name not in WAITS or whose in ("asyncio", "ray", "os.path"):
        return False
    if any(keyword.arg == "timeout" for keyword in call.keywords):
        return False
    return not call.args or (name == "communicate" and len(call.args) == 1)


def test_every_wait_has_a_deadline() -> None:
    found = {
        f"{file.relative_to(SRC)}:{function}": f"{file.relative_to(SRC)}:{line} {call}"
        for file in sorted(SRC.rglob("*.py"))
        for function, line, call in waits_without_a_deadline(file.read_text(encoding="utf-8"))
    }
    assert [place for function, place in found.items() if function not in ALLOWED] == []
    assert ALLOWED.keys() <= found.keys(), "an allowance that nobody needs any more"


def test_the_search_finds_each_kind_of_wait_and_passes_those_with_a_deadline() -> None:
    found = waits_without_a_deadline(
        "def f():\n a.wait()\n b.join()\n lock.acquire()\n p.communicate(x)\n g.result()\n os.waitpid(1, 0)\n"
        " subprocess.run(x)\n p.stdout.read()\n self._queue.get()\n"
        " while not try_lock(fd):\n  time.sleep(1)\n"
    )
    assert len(found) == 10
    assert not waits_without_a_deadline(
        "def f():\n a.wait(1)\n ','.join(x)\n lock.acquire(timeout=2)\n p.communicate(x, timeout=3)\n"
        " os.waitpid(1, os.WNOHANG)\n subprocess.run(x, timeout=5)\n d.get()\n"
        " while not try_lock(fd) and time.monotonic() < until:\n  time.sleep(1)\n"
    )
