"""The child processes of this one, where the system tells (/proc of Linux; elsewhere there seem to be none)."""

from __future__ import annotations

import os

__all__ = ["children"]


def children(word: str = "") -> list[str]:
    """Of each living child whose command has this word: the command, and the test during which it was started."""
    found = []
    for pid in os.listdir("/proc") if os.path.exists("/proc/self/stat") else []:
        stat = _content(pid, "stat").rpartition(")")[2].split()  # state, parent, …
        if not pid.isdigit() or stat[1:2] != [str(os.getpid())] or stat[0] in "ZX":
            continue
        command = _content(pid, "cmdline").replace("\0", " ")
        if word in command and "from multiprocessing." not in command:  # Python's own, which end with this process
            environment = dict(each.partition("=")[::2] for each in _content(pid, "environ").split("\0"))
            test = environment.get("PYTEST_CURRENT_TEST", "unknown")
            found.append(f"{pid}: {command[:60]} … {command[-100:]} (started in {test})")
    return found


def _content(process: str, file: str) -> str:
    try:
        with open(f"/proc/{process}/{file}", encoding="utf-8", errors="replace") as opened:
            return opened.read()
    except OSError:  # it has ended, or is another user's
        return ""
