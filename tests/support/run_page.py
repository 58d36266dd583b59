"""Run the Python blocks of Markdown pages, in order, each page in one namespace.

    python run_page.py PAGE
    python run_page.py         for each line of stdin, "FOLDER\tPAGE", in a process of its own; prints its status

Errors show the page's own line numbers. A block after a line `<!-- not run: why -->` is passed over. The second form
forks: what others wrote and pages use is loaded once, rollbook itself anew by each page.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> list[tuple[int, str]]:
    """(line of the page at which it begins, code) of each block that is to run."""
    found = []
    for match in BLOCK.finditer(text):
        before = text[: match.start()].rstrip().rpartition("\n")[2]
        if not before.startswith("<!-- not run:"):
            found.append((text.count("\n", 0, match.start(1)), match.group(1)))
    return found


def run(page: Path) -> None:
    """Run one page here."""
    from rollbook.run import start_and_finish

    start_and_finish.FINISH_SECONDS = 300.0  # what a page reads is sealed, on a slow machine too
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line, code in blocks(page.read_text(encoding="utf-8")):
        exec(compile("\n" * line + code, str(page), "exec"), namespace)


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
