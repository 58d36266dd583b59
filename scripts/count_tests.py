#!/usr/bin/env python3
"""Names each test that failed in several pytest runs of one log, and adds up their closing lines.

    python scripts/count_tests.py LOG

    FAILED tests/page/test_monkey.py::test_hands[1]
        AssertionError: assert '#/runs' == '#/compare'
    tests: 2512 passed, 1 failed, 31 skipped

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
NAMED = re.compile(r"^(FAILED|ERROR) (\S+?\.py(?:::.+?)?)(?: - (.*))?$")
REPORT = re.compile(r"^_+ (?:ERROR (?:at \w+ of|collecting) )?(\S.*?) _+$")
REASON = re.compile(r"^E +(\S.*)$")
LINES, WIDTH = 3, 300  # of what an assertion says
MOST = 40


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


def failures(text: str) -> list[str]:
    """Each test that failed and the first lines of why, in the order of the log."""
    reasons: dict[str, list[str]] = {}
    found: dict[str, list[str]] = {}
    now: list[str] = []
    for line in COLOUR.sub("", text).splitlines():
        if report := REPORT.match(line):
            now = reasons[report.group(1)] = []
        elif (reason := REASON.match(line)) and len(now) < LINES:
            now.append(reason.group(1))
        elif named := NAMED.match(line):
            kind, name, short = named.groups()
            known = reasons.get(name.partition("::")[2].replace("::", ".")) or reasons.get(name)
            found[f"{kind} {name}"] = known or [short or "why stands above"]
    named = [part[:WIDTH] for name in list(found)[:MOST] for part in (name, *(f"    {one}" for one in found[name]))]
    return named if len(found) <= MOST else [*named, f"and {len(found) - MOST} more, above"]


def main(log: str) -> int:
    """Print the lines; the exit status."""
    text = Path(log).read_text(encoding="utf-8", errors="replace")
    total = counts(text)
    print(*failures(text), sep="\n", end="\n" if failures(text) else "")
    print("tests: " + ", ".join(f"{number} {word}" for word, number in total.items()))
    return 0 if total["passed"] and not total["failed"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
