"""The page benchmarks/RESULTS.md: the lines of its table, each with the commit at which it was measured.

A line speaks of that commit alone: what changed since is `git diff COMMIT -- src dashboard/src`.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path

__all__ = ["RESULTS", "measured_at", "page", "row_of", "rows_in"]

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).with_name("RESULTS.md")

HEAD = """# Benchmarks

Written by `make bench`, which measures all rows and names those that miss their goals; `python -m benchmarks
--rows N --write` measures single ones again. A line speaks of the commit in its column `at` (with a + where files
of src were changed beside it), and "met" too: `git diff COMMIT -- src dashboard/src` shows what changed since.
Ratios compare loggers that took turns on one machine; absolute times belong to that machine and day. The peer's
figure stands beside each ratio, so that a slow machine does not look like a slow library. Figures vary by a tenth
to a quarter from run to run, rows 2 and 10 by more: a row that just meets its goal may miss it in the next run.
What log, init, keeper and health rules cost in calls and bytes is held by tests/run/test_cost.py between two
measurements.

"""
COLUMNS = "| # | what | rollbook | peer | ratio | goal | | at |\n|---|---|---|---|---|---|---|---|\n"


def row_of(number: str) -> str:
    """The row that a line of the page belongs to: "D" for "D1"."""
    return number if number.isdigit() else number.rstrip("0123456789")


def measured_at() -> str:
    """The commit of the work tree; with a + where what is measured is not as in it."""
    commit = _git("rev-parse", "--short", "HEAD") or "unknown"
    return commit + ("+" if _git("status", "--porcelain", "--", "src", "dashboard/src") else "")


def rows_in(text: str) -> list[list[str]]:
    """The cells of the page's lines."""
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| # ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def page(new: Iterable[list[str]], old: str) -> str:
    """The page with new lines (as cells, the commit last) in the place of those of the same rows in the old page."""
    lines = list(new)
    fresh = {row_of(cells[0]) for cells in lines}
    lines += [cells for cells in rows_in(old) if row_of(cells[0]) not in fresh]
    lines.sort(key=lambda cells: (not row_of(cells[0]).isdigit(), int(cells[0]) if cells[0].isdigit() else 0, cells[0]))
    told = f"Last measured with CPython {platform.python_version()} on {platform.system()}, {os.cpu_count()} cores.\n\n"
    return HEAD + told + COLUMNS + "".join(f"| {' | '.join(c)} |\n" for c in lines)


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
