"""Continuous integration runs all its parts, and its last lines name what failed and why."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOG = """
________________ test_hands[1] ________________
[gw0] linux -- Python 3.11.7
>       assert now == before
E       AssertionError: assert '#/runs' == '#/sweep'
E         - #/sweep
_____ ERROR at setup of Rows.test_count ______
E   OSError: no space left
=========== short test summary info ===========
SKIPPED [1] tests/page/test_room.py:9: no chromium
FAILED tests/page/test_monkey.py::test_hands[1]
FAILED tests/run/test_cost.py::test_log - AssertionError: 12 calls
ERROR tests/book/test_rows.py::Rows::test_count
= 2 failed, 7 passed, 1 skipped, 1 error in 3.21s =
"""
SAID = """FAILED tests/page/test_monkey.py::test_hands[1]
    AssertionError: assert '#/runs' == '#/sweep'
    - #/sweep
FAILED tests/run/test_cost.py::test_log
    AssertionError: 12 calls
ERROR tests/book/test_rows.py::Rows::test_count
    OSError: no space left
tests: 7 passed, 3 failed, 1 skipped
"""


def test_each_test_that_failed_is_named_at_the_end_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LOG)
    script = [sys.executable, ROOT / "scripts" / "count_tests.py", tmp_path / "log"]
    ended = subprocess.run(script, capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.returncode) == (SAID, 1)


MAKE = """#!/bin/sh
echo "made $*"
case $1 in bad*) echo "why $1 is bad"; exit 2 ;; lasting) until [ -e begun ]; do :; done ;; begun) touch begun ;; esac
echo "=== 3 passed in 0.12s ==="
"""
PARTS = """source "$(dirname "$0")/parts.sh"
begin 5 lasting
begin 5 bad-beside
part 5 bad
part 5 begun ARGS=all
end lasting
end bad-beside
report
"""


@pytest.mark.skipif(
    not shutil.which("timeout") or not (ROOT / ".ci").is_dir(), reason="CI runs in a checkout, on Linux"
)
def test_a_part_that_fails_costs_no_other_part_and_parts_run_side_by_side(tmp_path: Path) -> None:
    for place, text, mode in (("bin/make", MAKE, 0o755), (".ci/run", PARTS, 0o644)):
        (tmp_path / place).parent.mkdir()
        (tmp_path / place).write_text(text)
        (tmp_path / place).chmod(mode)
    for name in (".ci/parts.sh", "scripts/count_tests.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", tmp_path / ".ci" / "run"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    for part in ("made lasting", "made bad-beside", "made bad", "made begun ARGS=all"):
        assert part in ended.stdout.splitlines()
    last = ended.stdout.splitlines()[-7:]
    assert last == [
        "make bad failed:",
        "made bad",
        "why bad is bad",
        "make bad-beside failed:",
        "made bad-beside",
        "why bad-beside is bad",
        "tests: 6 passed, 0 failed, 0 skipped",
    ]
    assert ended.returncode == 1
