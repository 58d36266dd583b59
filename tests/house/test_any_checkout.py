"""The tests pass wherever their checkout lies and whatever it is called."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = (
    "tests/demo/test_demo.py",
    "tests/cli/test_command_words.py",
    "tests/cli/test_page_is_ready.py",
    "tests/remote/test_spellings.py",
)
"""Those that print commands, start programs or name folders; all of them by hand: `git clone`, then `make test`."""


@pytest.mark.long
@pytest.mark.skipif(not (ROOT / ".git").exists() or shutil.which("git") is None, reason="not a checkout")
@pytest.mark.parametrize("name", ["with spaces/\u00fc \u00e4/it's 100%", "behind a link"])
def test_the_tests_pass_in_a_checkout_of_any_name(name: str, tmp_path: Path) -> None:
    place = tmp_path / name
    place.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "clone", "-q", "--depth", "1", ROOT.as_uri(), place], check=True, timeout=600)
    if name == "behind a link":
        place.rename(tmp_path / "real")
        place.symlink_to(tmp_path / "real")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "ROLLBOOK"))}
    environment["PYTHONPATH"] = str(place / "src")
    words = ["-m", "pytest", "-q", "-n", "0", "-m", "not long and not page and not frameworks", *TESTS]
    done = subprocess.run(
        [sys.executable, *words], cwd=place, env=environment, capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    subprocess.run(["git", "diff", "--exit-code"], cwd=place, check=True, timeout=600)
