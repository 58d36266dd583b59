"""The Python on the pages of the adapters calls what is there: tests/frameworks train with it, this reads it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rollbook
from syntax import tree as tree_of

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
PAGES = [page for page in sorted((ROOT / "docs" / "adapters").glob("*.md")) if "```python\n" in page.read_text("utf-8")]
Definition = ast.ClassDef | ast.FunctionDef


def definitions(module: str) -> dict[str, Definition]:
    """The classes and functions of a module and its package, read, not imported: most need their framework."""
    path = SRC.joinpath(*module.split("."))
    files = path.glob("*.py") if path.is_dir() else [path.with_suffix(".py")]
    return {
        node.name: node
        for file in files
        for node in ast.walk(tree_of(file.read_text("utf-8")))
        if isinstance(node, Definition)
    }


def keywords_of(found: Definition) -> set[str] | None:
    """The arguments that can be given by name, those of `init` where they are passed on; None if any can be given."""
    function: ast.AST | None = found
    if isinstance(found, ast.ClassDef):
        function = next((each for each in found.body if getattr(each, "name", "") in ("__init__", "__new__")), None)
    if not isinstance(function, ast.FunctionDef):
        return None
    named = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}
    if function.args.kwarg is None:
        return named
    passed_on = function.args.kwarg.arg in ("run_options", "init_arguments", "init_kwargs")
    return named | {*inspect.signature(rollbook.init).parameters} if passed_on else None


def calls_of_ours(page: Path) -> Iterator[tuple[str, str, list[str]]]:
    """(module, name, keywords) of each call of a name that the page's blocks import from rollbook."""
    ours: dict[str, str] = {}
    for code in re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        for node in ast.walk(tree_of(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rollbook."):
                ours |= {alias.asname or alias.name: f"{node.module}:{alias.name}" for alias in node.names}
        for node in ast.walk(tree_of(code)):
            if not isinstance(node, ast.Call):
                continue
            words = [keyword.arg for keyword in node.keywords if keyword.arg]
            if isinstance(node.func, ast.Name) and node.func.id in ours:
                module, _, name = ours[node.func.id].partition(":")
                yield module, name, words
            elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
                module, _, name = ours.get(node.func.value.id, "").partition(":")
                if name and (
                    SRC.joinpath(*module.split("."), name).exists()
                    or (SRC / f"{module}.{name}".replace(".", "/")).with_suffix(".py").exists()
                ):
                    yield f"{module}.{name}", node.func.attr, words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_the_page_of_an_adapter_calls_takes_these_arguments(page: Path) -> None:
    for module, name, words in calls_of_ours(page):
        found = definitions(module).get(name)
        if found is None:
            continue  # the host's own, or a star import
        known = keywords_of(found)
        assert known is None or set(words) <= known, f"{module}.{name} takes no {set(words) - known}"


def test_the_pages_are_seen_to_call_something() -> None:
    called = {(module, name) for page in PAGES for module, name, _ in calls_of_ours(page)}
    assert len(called) >= 20, called


DOORS = {
    file.stem for file in (SRC / "rollbook" / "adapters").iterdir() if file.name[0] not in "_." and file.stem != "keys"
}
UNTRAINED = {"slime", "prime_rl", "nemo_rl", "tinker", "openrlhf"}
"""They need GPUs or a service, which their page says; tests/adapters plays their programs."""


def test_every_adapter_is_trained_with_its_real_package_or_its_page_gives_the_reason() -> None:
    trained = "".join(file.read_text("utf-8") for file in (ROOT / "tests" / "frameworks").glob("*.py"))
    for name in re.findall(r'\bexample\("(\w+)"\)', trained):
        trained += (ROOT / "examples" / f"{name}.py").read_text("utf-8")
    used = {door for door in DOORS if re.search(rf"rollbook\.adapters(\.| import .*\b){door}\b|--{door}\b", trained)}
    assert DOORS - used == UNTRAINED
    played = "".join(file.read_text("utf-8") for file in (ROOT / "tests" / "adapters").rglob("*.py"))
    assert {door for door in UNTRAINED if door not in played} == set()
