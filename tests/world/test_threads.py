"""The page of this folder names each test, and threads of many projects."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent
PAGE = (FOLDER / "README.md").read_text("utf-8")


def _tests_of(file: Path) -> set[str]:
    return set(re.findall(r"^def (test_\w+)", file.read_text("utf-8"), re.MULTILINE))


def test_each_row_names_tests_that_exist_and_each_test_here_has_a_row() -> None:
    named = set(re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", PAGE))
    root = FOLDER.parents[1]
    assert {(file, name) for file, name in named if name not in _tests_of(root / file)} == set()
    here = {(f"tests/world/{file.name}", name) for file in FOLDER.glob("test_*.py") for name in _tests_of(file)}
    assert {name for file, name in here - named if file != f"tests/world/{Path(__file__).name}"} == set()
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "#" in line]
    assert all("`tests/" in line for line in rows)


def test_the_threads_are_of_many_projects() -> None:
    threads = set(re.findall(r"([\w.-]+/[\w.-]+)#(\d+)", PAGE))
    assert len(threads) >= 60
    assert len({project for project, _ in threads}) >= 15
