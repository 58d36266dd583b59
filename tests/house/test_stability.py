"""docs/stability.md: what a release must not take away is listed, is short, and is all that the pages use."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from syntax import tree as tree_of

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
LISTED = dict(
    re.findall(r"^\| `(rollbook[\w.]*)` \| (.*) \|$", (ROOT / "docs" / "stability.md").read_text("utf-8"), re.MULTILINE)
)
FOR_DEVELOPERS = {"internals.md", "disk-format.md"}
PAGES = [path for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")] if path.name not in FOR_DEVELOPERS]
PROGRAMS = [ROOT / "README.md", *PAGES, *(ROOT / "examples").rglob("*.py")]


def file_of(module: str) -> Path:
    """The file of a module, whether or not it can be imported here."""
    path = SRC.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def exported(module: str) -> set[str]:
    """What the module's `__all__` says; read, not run: most adapters need their framework."""
    names: set[str] = set()
    for node in tree_of(file_of(module).read_text("utf-8")).body:
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if ast.unparse(target) == "__all__":
                names |= set(ast.literal_eval(node.value))
    assert names, f"{module} has no __all__"
    return names


def promised(module: str) -> set[str]:
    """The names of a module that the page promises."""
    return set(re.findall(r"`(\w+)`", LISTED[module])) if LISTED[module].startswith("`") else exported(module)


@pytest.mark.parametrize("module", sorted(LISTED))
def test_what_the_page_promises_is_there(module: str) -> None:
    assert promised(module) <= exported(module)
    assert not any(part.startswith("_") for part in module.split("."))


def test_programs_in_the_pages_and_examples_import_stable_names_alone() -> None:
    unstable = set()
    for path in PROGRAMS:
        for module, names in re.findall(r"from (rollbook[\w.]*) import ([\w, ]+)", path.read_text("utf-8")):
            module = re.sub(r"^rollbook\.wandb\b", "rollbook.adapters.wandb", module)
            if LISTED.get(module) == "the host's":  # some of them are the host's own, fetched when they are asked for
                continue
            for name in (word.split()[0] for word in names.split(",") if word.strip()):
                is_module = any(f"{listed}.".startswith(f"{module}.{name}.") for listed in LISTED)
                if not is_module and (module not in LISTED or name not in {*promised(module), "open"}):
                    unstable.add(f"{path.name}: from {module} import {name}")
    assert unstable == set(), "list it in docs/stability.md, or use what is listed there"


def test_modules_that_the_pages_name_are_stable() -> None:
    unstable = set()
    for path in PAGES:
        for named in re.findall(r"\brollbook(?:\.[a-z_0-9]+)+", path.read_text("utf-8")):
            parts = named.replace("rollbook.wandb", "rollbook.adapters.wandb").split(".")
            while len(parts) > 1 and not file_of(".".join(parts)).exists():
                parts.pop()
            module = ".".join(parts)
            if module != "rollbook.cli" and not any(f"{listed}.".startswith(f"{module}.") for listed in LISTED):
                unstable.add(f"{path.name}: {module}")
    assert unstable == set(), "list it in docs/stability.md, or use what is listed there"
