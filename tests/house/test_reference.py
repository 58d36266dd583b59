"""The reference names everything that is public, and nothing that is not there."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.ground.clocks import STANDARD

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "api.md").read_text("utf-8")


def section(title: str) -> str:
    """The text of one section of the reference."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/api.md has no section {title!r}"
    return found.group(1)


def names_in(text: str) -> set[str]:
    """Every name that stands in code quotes, alone or with arguments."""
    return {name for quoted in re.findall(r"`([^`]+)`", text) for name in re.findall(r"^\w+", quoted)}


def public(cls: type) -> set[str]:
    """What completion offers of an instance of `cls`: methods, properties and annotated attributes."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("rollbook")]
    internal = frozenset().union(*(getattr(sys.modules[base.__module__], "_INTERNAL", ()) for base in ours))
    return {name for base in ours for name in vars(base) if not name.startswith("_")} - internal


def test_every_public_name_of_the_module_is_in_the_reference() -> None:
    assert {*dir(rollbook)} <= names_in(section("Module `rollbook`"))


def test_every_verb_of_a_run_is_in_the_reference() -> None:
    assert public(rollbook.Run) <= names_in(section("`Run` and `Scope`"))


@pytest.mark.parametrize("name", ["Book", "RunSet"])
def test_everything_a_reader_offers_is_in_the_reference(name: str) -> None:
    assert public(getattr(rollbook, name)) <= names_in(section(f"`{name}`"))


HOMES = {
    "Module `rollbook`": (rollbook,),
    "`Run` and `Scope`": (rollbook.Run, rollbook.Scope),
    "`Book`": (rollbook.Book,),
    "`RunSet`": (rollbook.RunSet,),
}


def call_of(name: str, function: Any) -> str:
    """How a function is called: its parameters in order, the standard clocks as `**clocks`."""
    parts: list[str] = []
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name not in ("self", *STANDARD)]
    takes_clocks = any(name in inspect.signature(function).parameters for name in STANDARD)
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            parts.append("**clocks" if takes_clocks else f"**{parameter.name}")
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            parts.append(f"*{parameter.name}")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        parts.append(parameter.name)
    return f"{name}({', '.join(parts)})"


@pytest.mark.parametrize("title", HOMES)
def test_what_the_reference_calls_is_called_so(title: str) -> None:
    """By signature: a parameter that is added, renamed or gone shows here."""
    wrong = []
    for line in section(title).splitlines():
        for quoted in re.findall(r"`(\w+\([^`]*\))`", line.split("|")[1]) if line.startswith("| `") else ():
            name = quoted.partition("(")[0]
            owner = next((owner for owner in HOMES[title] if hasattr(owner, name)), None)
            assert owner is not None, quoted
            own = inspect.getattr_static(owner, name) if inspect.isclass(owner) else getattr(owner, name)
            elsewhere = (quoted.endswith(", …)") and "](" in line) or name == "siblings"  # another page has them
            if not elsewhere and call_of(name, own) != quoted:
                wrong.append((quoted, call_of(name, own)))
    assert wrong == []


def test_the_reference_names_nothing_that_is_not_there(tmp_path: Path) -> None:
    with rollbook.init("house", "reference", dir=tmp_path, sinks=[], keeper="inline") as run:
        run.log({"a": 1.0})
        missing = [name for name in first_column("`Run` and `Scope`") if not hasattr(run, name)]
        assert missing in ([], ["run"]), missing
    book = run.book
    assert not [name for name in first_column("`Book`") if not hasattr(book, name)]


def first_column(title: str) -> list[str]:
    """The names in the first column of a section's tables."""
    cells = [line.split("|")[1] for line in section(title).splitlines() if line.startswith("| `")]
    return [name for cell in cells for name in sorted(names_in(cell)) if name not in ("len",)]


def test_every_public_name_says_what_it_is(tmp_path: Path) -> None:
    bare = []
    with rollbook.init("house", "docs", dir=tmp_path, sinks=[], keeper="inline"):  # module verbs are then the run's
        bare += [name for name in rollbook.__all__ if name != "__version__" and not getattr(rollbook, name).__doc__]
    for cls in (rollbook.Run, rollbook.Scope, rollbook.Book, rollbook.RunSet):
        for name, member in vars(cls).items():
            if not name.startswith("_") and (callable(member) or isinstance(member, property)) and not member.__doc__:
                bare.append(f"{cls.__name__}.{name}")
    assert not bare
