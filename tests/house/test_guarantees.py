"""Every test that the page of guarantees, the list of closed faults and other pages name exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text("utf-8")
FAULTS = (ROOT / "tests" / "closed-faults.md").read_text("utf-8")


def functions_in(path: Path) -> set[str]:
    """The names of the test functions of a file."""
    return set(re.findall(r"^ *def (test_\w+)", path.read_text("utf-8"), re.MULTILINE))


def test_every_test_that_holds_a_promise_exists() -> None:
    cited = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", PAGE + FAULTS)
    assert len(cited) > 20
    gone = [
        f"{file}::{name}" for file, name in cited if not (ROOT / file).exists() or name not in functions_in(ROOT / file)
    ]
    assert not gone


def test_every_test_that_holds_a_rule_exists() -> None:
    everywhere = {name for path in (ROOT / "tests").rglob("test_*.py") for name in functions_in(path)}
    assert not set(re.findall(r"`(test_\w+)`", PAGE + FAULTS)) - everywhere


def test_every_test_that_a_page_names_for_a_failure_exists() -> None:
    everywhere = {(path.name, name) for path in (ROOT / "tests").rglob("test_*.py") for name in functions_in(path)}
    cited = set()
    for page in (ROOT / "docs").rglob("*.md"):
        cited |= set(re.findall(r"`(?:tests/[\w/]+/)?(test_\w+\.py)::(test_\w+)`", page.read_text("utf-8")))
    assert len(cited) > 40
    assert not cited - everywhere


def test_every_python_that_is_claimed_is_tested() -> None:
    claimed = re.findall(r"Programming Language :: Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text("utf-8"))
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8")
    (matrix,) = re.findall(r"^ +python: \[(.*)\]$", workflow, re.MULTILINE)
    assert re.findall(r"3\.\d+", matrix) == claimed


def test_every_promise_names_a_test() -> None:
    """A promise is a paragraph in bold, with what else belongs to it, up to the next one."""
    promises = re.split(r"^(?=\*\*)", PAGE, flags=re.MULTILINE)[1:]
    assert len(promises) > 30
    assert [text.splitlines()[0] for text in promises if not re.search(r"^- `tests/", text, re.MULTILINE)] == []


def test_the_site_is_strict_about_links_and_anchors() -> None:
    assert "mkdocs build\n" in (ROOT / "Makefile").read_text("utf-8")  # --quiet would hide what strict counts
    site = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert "strict: true" in site
    assert "links: {not_found: warn, anchors: warn" in site
