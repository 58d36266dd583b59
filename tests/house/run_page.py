"""Run the Python blocks of a Markdown page, in order, in one namespace: python run_page.py PAGE.

Errors show the page's own line numbers. A block after a line `<!-- not run: why -->` is passed over.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from rollbook.run import start_and_finish

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> list[tuple[int, str]]:
    """(line of the page at which it begins, code) of each block that is to run."""
    found = []
    for match in BLOCK.finditer(text):
        before = text[: match.start()].rstrip().rpartition("\n")[2]
        if not before.startswith("<!-- not run:"):
            found.append((text.count("\n", 0, match.start(1)), match.group(1)))
    return found


if __name__ == "__main__":
    start_and_finish.FINISH_SECONDS = 300.0  # what a page reads is sealed, on a slow machine too
    page = Path(sys.argv[1])
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line, code in blocks(page.read_text(encoding="utf-8")):
        exec(compile("\n" * line + code, str(page), "exec"), namespace)
