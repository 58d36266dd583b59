#!/usr/bin/env python3
"""Runs the tests that failed in the last run once more, alone on the machine: what passes now failed beside others.

    python scripts/again.py [OPTIONS OF PYTEST]      exit status 0 if all of them pass now

The last line then counts them for `count_tests.py`, each is named, and each is a fault to be mended: in the test, or in
what it tests. Kills and crashes get no second chance: what they lose once they have lost. Nor do many tests at a time.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FAILED = Path(".pytest_cache/v/cache/lastfailed")
NEVER = ("tests/crash/", "kill")
MOST = 5


def main(arguments: list[str]) -> int:
    """Run them; the exit status."""
    names = sorted(json.loads(FAILED.read_text(encoding="utf-8"))) if FAILED.exists() else []
    if not names or len(names) > MOST or any(word in name for name in names for word in NEVER):
        print(f"not run again: {', '.join(names) or 'nothing is known to have failed'}")
        return 1
    if subprocess.run([sys.executable, "-m", "pytest", "-n", "0", *arguments, *names], check=False).returncode:
        return 1
    print("\n".join(f"failed beside others and passed alone: {name}" for name in names))
    print(f"passed the second time: {len(names)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
