#!/usr/bin/env python3
"""Adds up the closing lines of several pytest runs in one log, and prints one line for them all.

    python scripts/count_tests.py LOG       "tests: 2512 passed, 0 failed, 31 skipped"

Exit status 1 if a test failed or none ran; an error outside a test counts as a failure. Standard library only.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
SUMMARY = re.compile(r"^[= ]*((?:\d+ [a-z]+, )*\d+ [a-z]+) in [\d.:hms ()]+[= ]*$")
COUNT = re.compile(r"(\d+) ([a-z]+)")
AGAIN = re.compile(r"^passed the second time: (\d+)$")
FAILED = frozenset({"failed", "error", "errors"})


def counts(text: str) -> dict[str, int]:
    """Passed, failed and skipped over all the closing lines of pytest in `text`."""
    total = {"passed": 0, "failed": 0, "skipped": 0}
    for line in text.splitlines():
        summary = SUMMARY.match(COLOUR.sub("", line))
        for number, word in COUNT.findall(summary.group(1)) if summary else ():
            key = "failed" if word in FAILED else word
            if key in total:
                total[key] += int(number)
        if again := AGAIN.match(line):  # counted as failed once and as passed once
            total["failed"] -= int(again.group(1))
            total["passed the second time"] = total.get("passed the second time", 0) + int(again.group(1))
    return total


def main(log: str) -> int:
    """Print the line; the exit status."""
    total = counts(Path(log).read_text(encoding="utf-8", errors="replace"))
    print("tests: " + ", ".join(f"{number} {word}" for word, number in total.items()))
    return 0 if total["passed"] and not total["failed"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
