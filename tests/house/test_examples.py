"""The examples run, and the quick start is the README's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run_example(name: str, cwd: Path) -> str:
    """What an example prints."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ROLLBOOK")}
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / name],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_quick_start_in_the_readme_is_the_example() -> None:
    page = (ROOT / "README.md").read_text("utf-8")
    block = re.search(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert block is not None
    squeeze = lambda text: [line for line in text.splitlines() if line]  # noqa: E731
    example = (ROOT / "examples" / "quickstart.py").read_text("utf-8")
    assert squeeze(example)[1:] == squeeze(block.group(1))


@pytest.mark.long
def test_the_cartpole_example_learns_and_records(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    printed = run_example("cartpole.py", tmp_path)
    found = re.search(r"last generation: (\d+) of 500", printed)
    assert found is not None
    assert int(found.group(1)) > 150
