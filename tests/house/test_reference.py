"""The reference names everything that is public, and its generated parts are those of the program as it is."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import rollbook
from script_files import script

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "api.md").read_text("utf-8")


REFERENCE = script("reference")


def section(title: str) -> str:
    """The text of one section of the reference."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/api.md has no section {title!r}"
    return found.group(1)


def names_in(text: str) -> set[str]:
    """Every name that stands in code quotes, alone or with arguments."""
    return {name for quoted in re.findall(r"`([^`]+)`", text) for name in re.findall(r"^\w+", quoted)}


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_the_generated_parts_of_a_page_are_those_of_the_program(page: Path) -> None:
    text = page.read_text("utf-8")
    assert REFERENCE.written(text) == text, "run: python scripts/reference.py"


def test_every_public_name_is_in_the_reference() -> None:
    assert {*dir(rollbook)} <= names_in(section("Module `rollbook`"))
    assert {*REFERENCE.public(rollbook.Run)} <= names_in(section("`Run` and `Scope`"))
    assert {*REFERENCE.public(rollbook.Book)} <= names_in(section("`Book`"))
    assert {*REFERENCE.public(rollbook.RunSet)} <= names_in(section("`RunSet`"))


def test_every_public_name_says_what_it_is(tmp_path: Path) -> None:
    bare = []
    with rollbook.init("house", "docs", dir=tmp_path, sinks=[], keeper="inline"):  # module verbs are then the run's
        bare += [name for name in rollbook.__all__ if name != "__version__" and not getattr(rollbook, name).__doc__]
    for cls in (rollbook.Run, rollbook.Scope, rollbook.Book, rollbook.RunSet):
        bare += [f"{cls.__name__}.{name}" for name, it in REFERENCE.public(cls).items() if not inspect.getdoc(it)]
    assert not bare


def test_every_argument_of_the_four_classes_is_named_by_its_method_or_its_class() -> None:
    silent = []
    for cls in (rollbook.Run, rollbook.Scope, rollbook.Book, rollbook.RunSet):
        shared = "".join(inspect.getdoc(base) or "" for base in cls.__mro__ if base.__module__.startswith("rollbook"))
        for name, member in REFERENCE.public(cls).items():
            words = f"{shared}\n{inspect.getdoc(member) or ''}"
            for argument in inspect.signature(member).parameters if inspect.isfunction(member) else ():
                if argument != "self" and not re.search(rf"\b{argument}\b", words):
                    silent.append(f"{cls.__name__}.{name}: {argument}")
    assert silent == []
