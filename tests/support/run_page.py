"""Run the Python blocks of Markdown pages, in order, each page in one namespace.

    python run_page.py PAGE
    python run_page.py         for each line of stdin, "FOLDER\tPAGE", in a process of its own; prints its status

Errors show the page's own line numbers. What stands around the blocks of a page about a framework (its model, its data)
is in around_pages. The second form forks: what others wrote is loaded once, rollbook itself anew by each page.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> list[tuple[int, str]]:
    """(line of the page at which it begins, code) of each block."""
    return [(text.count("\n", 0, match.start(1)), match.group(1)) for match in BLOCK.finditer(text)]


def run(page: Path) -> None:
    """Run one page here."""
    from around_pages import AROUND
    from rollbook.system.tuning import TUNING

    TUNING.finish_seconds = 300.0  # what a page reads is sealed, on a slow machine too
    around = AROUND.get(f"{page.parent.name}/{page.name}")
    frame = around.frame() if around else iter(({},))
    namespace: dict[str, Any] = {"__name__": "__main__", **next(frame)}
    text = page.read_text(encoding="utf-8")
    instead = around.instead if around else {}
    assert all(any(old in code for _, code in blocks(text)) for old in instead), "a text to replace is not on the page"
    for line, code in blocks(text):
        for old, new in instead.items():
            code = code.replace(old, new)
        compiled = compile("\n" * line + code, str(page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        waiting = eval(compiled, namespace)
        if waiting is not None:  # a block that awaits, as the middle of an asynchronous program
            asyncio.run(waiting)
    if around:
        try:
            frame.send(namespace)
        except StopIteration:
            pass


def next_page() -> Path:
    """The page of the next line, in a child that stands in its folder and prints to `printed`; until stdin ends."""
    for name in ("msgspec", "numpy", "pyarrow.parquet", "pyarrow.compute", "duckdb", "matplotlib.pyplot"):
        importlib.import_module(name)
    for line in iter(sys.stdin.readline, ""):
        folder, _, page = line.rstrip("\n").partition("\t")
        child = os.fork()
        if not child:
            os.chdir(folder)
            printed = os.open("printed", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(printed, 1)
            os.dup2(printed, 2)
            return Path(page)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    sys.exit()


if __name__ == "__main__":
    run(Path(sys.argv[1]) if sys.argv[1:] else next_page())
