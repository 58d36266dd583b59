"""The page benchmarks/RESULTS.md: which rows it has, at which commit each was measured, and which of them are older.

A row is older when what it measures changed since its commit: then it says so instead of "met". `measured_at` names the
commit (with a + where files of the rooms were changed and not committed), `page` sets the marks.
"""

from __future__ import annotations

import ast
import os
import platform
import subprocess
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

__all__ = ["RESULTS", "ROOMS", "changed_since", "code_of", "measured_at", "page", "row_of", "rows_in", "wrongly_met"]

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).with_name("RESULTS.md")

_WRITING = ("ground", "journal", "run", "capture")
_KEEPING = (*_WRITING, "keeper", "health", "storage", "sinks")
_READING = ("ground", "storage", "book")

ROOMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("1", "2", "3", "5", "7", "8"), _WRITING),
    **dict.fromkeys(("4", "29", "9", "6", "11", "19", "K"), _KEEPING),
    **dict.fromkeys(("10", "12", "15", "16", "17", "18", "20", "L"), _READING),
    "30": (*_KEEPING, "adapters/wandb"),
    "13": ("ground", "runs", "book"),
    "D": ("formats", *_READING),
    "E": ("capture", "journal"),
    "F": ("ground", "journal", "run", "keeper", "storage", "remote"),
    "I": ("ground", "formats", "journal", "run", "runs", "storage"),
    "P": ("ground", "storage", "book", "runs", "server", "dashboard"),
    "R": ("ground", "capture", "journal", "storage", "book"),
    "S": ("capture", "journal"),
}
"""Row -> the rooms in src/rollbook that it measures; `dashboard` is the page's own folder."""

HEAD = """# Benchmarks

Written by `make bench`, which measures all rows and names those that miss their goals; `python -m benchmarks
--rows N --write` measures single ones again, and `python -m benchmarks --mark` only marks those that are older
than the rooms they measure. Ratios compare loggers that took turns on one machine; absolute times belong to
that machine and day. The peer's figure stands beside each ratio, so that a slow machine does not look like a
slow library. Figures vary by a tenth to a quarter from run to run, rows 2 and 10 by more: a row that just meets
its goal may miss it in the next run. `at` is the commit that was measured, with a + where files were changed
beside it. What log, init, keeper and health rules cost in calls and bytes is held by tests/house/test_cost.py
between two measurements.

"""
COLUMNS = "| # | what | rollbook | peer | ratio | goal | | at |\n|---|---|---|---|---|---|---|---|\n"


def row_of(number: str) -> str:
    """The row that a line of the page belongs to: "D" for "D1"."""
    return number if number in ROOMS else number.rstrip("0123456789")


def measured_at(rooms: Iterable[str]) -> str:
    """The commit of the work tree; with a + where files of these rooms are not as in it."""
    commit = _git("rev-parse", "--short", "HEAD") or "unknown"
    return commit + ("+" if _git("status", "--porcelain", "--", *_paths(rooms)) else "")


def changed_since(commit: str, rooms: Iterable[str]) -> bool | None:
    """Whether code of these rooms changed since a commit, docstrings and comments aside; None where that cannot be told
    (no git, no such commit)."""
    base = commit.rstrip("+")
    if _git("cat-file", "-t", base) != "commit":
        return None
    return any(_is_other_code(base, name) for name in _git("diff", "--name-only", base, "--", *_paths(rooms)).split())


@cache
def _is_other_code(base: str, name: str) -> bool:
    path = ROOT / name
    if not name.endswith(".py") or not path.is_file():
        return True
    before = _git("show", f"{base}:{name}")
    return not before or code_of(before) != code_of(path.read_text(encoding="utf-8"))


def code_of(source: str) -> str:
    """What Python runs of a source: it without comments and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for name, parts in ast.iter_fields(node):
            if isinstance(parts, list):
                setattr(node, name, [part for part in parts if not _is_text(part)])
    return ast.dump(tree)


def _is_text(part: object) -> bool:
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str)


def rows_in(text: str) -> list[list[str]]:
    """The cells of the page's lines."""
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| # ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def wrongly_met(text: str, changed: Callable[[str, Iterable[str]], bool | None] = changed_since) -> list[str]:
    """Lines that say "met" although what they measure changed since: their numbers and what they are."""
    known: dict[tuple[str, str], bool | None] = {}
    wrong = []
    for number, what, *_rest, state, commit in rows_in(text):
        row = row_of(number)
        if (row, commit) not in known:
            known[(row, commit)] = changed(commit, ROOMS[row])
        if known[(row, commit)] and state.startswith("met"):
            wrong.append(f"{number} {what}")
    return wrong


def page(
    new: Iterable[list[str]], old: str, changed: Callable[[str, Iterable[str]], bool | None] = changed_since
) -> str:
    """The page with new lines in the place of those of the same rows, all others marked as they are now.

    Args:
      new: lines as cells, the commit last.
      old: the page so far.
      changed: see `changed_since`.
    """
    lines = list(new)
    fresh = {row_of(cells[0]) for cells in lines}
    known: dict[tuple[str, str], bool | None] = {}
    for cells in rows_in(old):
        row, commit = row_of(cells[0]), cells[-1]
        if row in fresh or row not in ROOMS:
            continue
        if (row, commit) not in known:
            known[(row, commit)] = changed(commit, ROOMS[row])
        state, _, note = cells[-2].partition("; ")
        if known[(row, commit)] and state == "met":
            cells[-2] = "older" + (f"; {note}" if note else "")
        lines.append(cells)
    lines.sort(key=lambda cells: (not row_of(cells[0]).isdigit(), int(cells[0]) if cells[0].isdigit() else 0, cells[0]))
    told = f"Last measured with CPython {platform.python_version()} on {platform.system()}, {os.cpu_count()} cores.\n\n"
    return HEAD + (told if fresh else _told_before(old)) + COLUMNS + "".join(f"| {' | '.join(c)} |\n" for c in lines)


def _told_before(old: str) -> str:
    told = [line for line in old.splitlines() if line.startswith(("Last measured", "Measured"))]
    return f"{told[0]}\n\n" if told else ""


def _paths(rooms: Iterable[str]) -> list[str]:
    return ["dashboard/src" if room == "dashboard" else f"src/rollbook/{room}" for room in rooms]


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
