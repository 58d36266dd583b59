"""Pages and help texts use plain words: phrases that a reader of another first language has to puzzle over are gone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click import Context

from rollbook.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
PHRASES = {
    r"\b[Ww]ho reads\b": "readers",
    r"\b[Ww]hoever\b": "the one that …",
    r"\bsaid once\b": "reported once",
    r"\bgoodbye\b": "closed cleanly",
    r"\btold of\b": "reported",
    r"(?<!-)\banew\b": "again, start over",
    r"\bby itself\b": "automatically, separately",
    r"\bas far as\b": "up to, what …",
    r"\bone that finds some\b": "detected",
}
"""What to look for: what to write instead."""

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def found_in(text: str) -> list[str]:
    prose = re.sub(r"`[^`\n]*`", "", text)  # names of tests and options are what they are
    return [
        f"{match.group(0)!r}: {better}" for phrase, better in PHRASES.items() for match in re.finditer(phrase, prose)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_in_plain_words(page: Path) -> None:
    assert found_in(page.read_text("utf-8")) == []


@pytest.mark.parametrize("name", app.list_commands(Context(app)))
def test_a_help_text_is_in_plain_words(name: str) -> None:
    command = app.get_command(Context(app), name)
    assert command is not None
    assert found_in(command.get_help(Context(command, info_name=name))) == []
