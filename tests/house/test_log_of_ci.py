"""The last lines of continuous integration name what failed and why."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
