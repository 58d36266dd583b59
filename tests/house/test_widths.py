"""How wide the face of each room is: the names that other rooms import (`python tests/house/test_widths.py` prints).

A name counts once, however many rooms import it; of a module that is imported whole, the attributes count that are
used. Imports for the type checker alone are counted apart, and count, too.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from syntax import tree as tree_of

SRC = Path(__file__).parents[2] / "src" / "rollbook"
DOCS = Path(__file__).parents[2] / "docs"

WIDEST = {
    "": 2,
    "adapters": 1,
    "book": 12,
    "capture": 15,
    "cli": 1,
    "compare": 20,
    "demo": 2,
    "errors": 29,
    "formats": 11,
    "ground": 242,
    "ground.values": 20,
    "health": 6,
    "journal": 15,
    "keeper": 17,
    "plots": 20,
    "protocols": 15,
    "remote": 19,
    "run": 17,
    "runs": 21,
    "server": 7,
    "sinks": 15,
    "stats": 30,
    "storage": 25,
    "testing": 0,
}
"""The most names that other rooms may import from each. Who makes a face narrower, makes the number smaller."""

MOST_ARROWS = 90
"""Between two rooms there is an arrow if a module of the one imports something of the other."""

SMALL, MOST_SMALL = 80, 10
"""Lines below which a file is small, and the most small files that one other file alone imports.

Such a file goes into its user. Members of a family do not count (a command, a chart, a sink, a rule, an endpoint: a
registry or a face lists them), nor what runs as a program of its own.
"""

LISTS = {"rollbook.server.openapi"}
"""Modules that list the members of a family by importing them."""

WRITING = {"Channel", "Receipt", "Turns", "Writer"}
"""What the journal offers to those that write; the reading wing imports none of it."""

READING_WING = {"book", "compare", "remote", "runs", "storage"}

TO_THE_GROUND = {"ground", "ground.values", "errors", "protocols"}
MOST_ARROWS_BETWEEN_WINGS = 43
"""The same without those that point to the ground."""


def room_of(module: str) -> str:
    """`rollbook.storage.live` -> `book`; `ground.values` is a room of its own; "" is the face of the package."""
    parts = module.split(".")[1:]
    return ".".join(parts[: 2 if parts[:2] == ["ground", "values"] else 1])


def modules() -> dict[str, Path]:
    """All modules of the package by their full name."""
    named = {}
    for file in SRC.rglob("*.py"):
        parts = file.relative_to(SRC.parent).with_suffix("").parts
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return named


class Widths:
    """Which names the rooms import from each other.

    Attributes:
      names: for each room the (module, name) that other rooms import when they run.
      typed: the same for those that only the type checker imports.
      arrows: (from, to) for all pairs of rooms.
      writing_readers: readers that import what writes a journal.
      importers: module -> the modules that import it or a name of it.
    """

    def __init__(self) -> None:
        self._modules = modules()
        self.names: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self.typed: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self.arrows: set[tuple[str, str]] = set()
        self.writing_readers: list[str] = []
        self.importers: dict[str, set[str]] = defaultdict(set)
        for module, file in self._modules.items():
            tree = tree_of(file.read_text(encoding="utf-8"))
            for target, name, typed in self._imports(tree, tree, typed=False):
                self._count(room_of(module), target, name, typed=typed)
                self.importers[target].add(module)
        for room, names in self.typed.items():
            names -= self.names[room]

    def _count(self, importer: str, module: str, name: str, *, typed: bool) -> None:
        room = room_of(module)
        if importer in READING_WING and room == "journal" and name in WRITING:
            self.writing_readers.append(f"{importer}: {name}")
        if room.partition(".")[0] != importer.partition(".")[0]:
            (self.typed if typed else self.names)[room].add((module, name))
            if importer and room:
                self.arrows.add((importer.partition(".")[0], room.partition(".")[0]))

    def _imports(self, tree: ast.AST, node: ast.AST, *, typed: bool) -> Iterator[tuple[str, str, bool]]:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rollbook":
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole not in self._modules:
                    yield node.module or "", alias.name, typed
                else:
                    for attribute in _attributes(tree, alias.asname or alias.name):
                        yield whole, attribute, typed
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "rollbook":
                    yield alias.name, "", typed
        checked = node.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" else []
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr):  # no import stands in one
                yield from self._imports(tree, child, typed=typed or child in checked)

    def small_files(self) -> list[str]:
        """ "<file> <- <file>" for each small file that one other file imports, and no face and no registry."""
        found = []
        for module, users in sorted(self.importers.items()):
            (user, *others) = sorted(users)
            file = self._modules.get(module)
            if others or file is None or file.name == "__init__.py" or self._modules[user].name == "__init__.py":
                continue
            text = file.read_text(encoding="utf-8")
            if text.count("\n") < SMALL and '__name__ == "__main__"' not in text and user not in LISTS:
                found.append(f"{module} <- {user}")
        return found

    def table(self) -> str:
        """A line for each room: its names, those for the type checker alone, the modules they stand in."""
        lines = [f"{'room':14} {'names':>5} {'typed':>5} {'modules':>7} {'most':>5}"]
        for room in sorted(WIDEST):
            both = self.names[room] | self.typed[room]
            lines.append(
                f"{room or 'rollbook':14} {len(self.names[room]):5} {len(self.typed[room]):5} "
                f"{len({module for module, _ in both}):7} {WIDEST[room]:5}"
            )
        between = {arrow for arrow in self.arrows if arrow[1] not in TO_THE_GROUND}
        lines.append(f"{len(self.arrows)} arrows, {len(between)} of them to no ground")
        return "\n".join(lines)


def _attributes(tree: ast.AST, local: str) -> set[str]:
    """Which attributes of the module called `local` here are used; "" if it is handed on as a whole."""
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == local
    }
    return used or {""}


@cache
def counted() -> Widths:
    """Of the tree as it is; counting takes seconds."""
    return Widths()


def test_no_face_grows_and_every_room_has_its_number() -> None:
    widths = counted()
    print(widths.table())
    rooms = {room_of(module) for module in modules()} - {"__main__"}
    assert rooms == set(WIDEST)
    wide = {room: len(widths.names[room] | widths.typed[room]) for room in rooms}
    assert {room: n for room, n in wide.items() if n > WIDEST[room]} == {}, "import less, or move what is used there"


def test_the_reading_wing_imports_nothing_that_writes_a_journal() -> None:
    assert counted().writing_readers == []


def test_no_room_comes_to_know_one_more() -> None:
    arrows = counted().arrows
    assert len(arrows) <= MOST_ARROWS, sorted(arrows)
    assert len([arrow for arrow in arrows if arrow[1] not in TO_THE_GROUND]) <= MOST_ARROWS_BETWEEN_WINGS


def test_a_small_file_that_one_other_imports_is_part_of_that_one() -> None:
    small = counted().small_files()
    assert len(small) <= MOST_SMALL, small


def test_the_docs_name_the_rooms_that_each_room_knows() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([^|]*) \|$", (DOCS / "internals.md").read_text(encoding="utf-8"), re.M)
    arrows = {arrow for arrow in counted().arrows if arrow[1] not in TO_THE_GROUND}
    rooms = {room for room in WIDEST if room} - {"errors", "protocols", "ground.values"}
    told = {
        room: set(re.findall(r"\w+", re.sub(r"`[^`]*`", "", knows))) & rooms for room, knows in rows if room in rooms
    }
    assert told == {room: {to for of, to in arrows if of == room} for room in rooms}


if __name__ == "__main__":
    print(Widths().table())
