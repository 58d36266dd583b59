"""The page benchmarks/RESULTS.md: one table of one commit."""

from __future__ import annotations

import compileall
import os
import platform
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

__all__ = ["RESULTS", "checkout", "measured_at", "page", "row_of", "rows_in"]

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).with_name("RESULTS.md")

HEAD = """# Benchmarks

Written by `make bench`, which measures all rows of one commit and names those that miss their goals. `python -m
benchmarks --rows N` measures single ones and prints them.

Loggers take turns on one machine, and figures of one turn are compared with each other: the ratio is the median over
the turns, with the interval that holds that median with at least 90 %. A row is "met" or "MISSED" if the whole interval
is on one side of its goal, else "undecided". Absolute times belong to that machine and day. "packing" puts the same
numbers into memory with `struct`, and does nothing else. What log, init, keeper and health rules cost in calls and
bytes is held by tests/run/test_cost.py between two measurements.

"""
COLUMNS = "| # | what | rollbook | peer | ratio | goal | |\n|---|---|---|---|---|---|---|\n"


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


def page(lines: Iterable[list[str]], commit: str, missing: Mapping[str, str]) -> str:
    """The page with these lines, as cells, all measured at one commit.

    Args:
      lines: the cells of each.
      commit: where they were measured.
      missing: the rows that were not measured, or not to their end -> why.
    """
    told = f"Measured at {commit} with CPython {platform.python_version()} on {platform.system()}, "
    told += f"{os.cpu_count()} cores.\n\n"
    told += "".join(f"Not measured: row {row}, {' '.join(why.split())[:200]}.\n\n" for row, why in missing.items())
    return HEAD + told + COLUMNS + "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """The sources of another commit, in a folder of their own while the block runs.

    Raises:
      ValueError: there is no such commit.
    """
    with tempfile.TemporaryDirectory(prefix="rollbook-former-") as folder:
        archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=False)
        if archive.returncode:
            raise ValueError(f"--against {commit}: {archive.stderr.decode().strip()}")
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        compileall.compile_dir(folder, quiet=2)
        yield Path(folder) / "src"


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
