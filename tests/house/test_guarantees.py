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


def test_every_anchor_of_the_docs_is_that_of_a_heading_and_the_site_is_strict() -> None:
    """The site and the places that show Markdown make anchors alike only of letters, digits, blanks and hyphens."""
    docs = ROOT / "docs"
    dead = []
    for page in docs.rglob("*.md"):
        for target, anchor in re.findall(r"\]\(([\w./-]*\.md)?#([\w-]+)\)", page.read_text("utf-8")):
            other = (page.parent / target).resolve() if target else page
            if not other.is_relative_to(docs):
                continue
            text = re.sub(r"^```.*?^```", "", other.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
            heads = [
                re.sub(r"`|\[([^]]*)\]\([^)]*\)", r"\1", head) for head in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
            ]
            ways = [
                {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads},
                {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", head.lower()).strip()) for head in heads},
            ]
            dead += [f"{page.name}: {target}#{anchor}"] if any(anchor not in way for way in ways) else []
    assert dead == []
    assert "mkdocs build\n" in (ROOT / "Makefile").read_text("utf-8")  # --quiet would hide what strict counts
    assert "strict: true" in (ROOT / "mkdocs.yml").read_text("utf-8")
