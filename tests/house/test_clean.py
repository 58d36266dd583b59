"""The tree holds nothing that only makes sense on one machine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Written in pieces, so that this file does not match itself.
MACHINE = re.compile("|".join([r"(?<![\w.~/-])/" + r"(work|tmp|root|home|Users)/\w", r"file://" + r"/\w"]))
TEXT = {".py", ".md", ".toml", ".txt", ".json", ".cfg", ".yml", ".yaml", ".sh", ".ts", ".js", ".html", ".css", ""}


def tracked() -> list[Path]:
    """Every file that git knows."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in done.stdout.split("\0") if name]


def test_no_tracked_file_names_a_path_of_some_machine() -> None:
    found = []
    for path in tracked():
        if path.suffix in TEXT and path.is_file():
            for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
                if MACHINE.search(line):
                    found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}")
    assert not found, "\n".join(found)


def test_no_run_or_large_file_is_tracked() -> None:
    large = [
        f"{p.relative_to(ROOT)}: {p.stat().st_size:,} bytes"
        for p in tracked()
        if p.is_file() and p.stat().st_size > 2**20
    ]
    assert not large, "\n".join(large)
    assert not [p for p in tracked() if p.name == "run.json" and "fixtures" not in p.parts]
