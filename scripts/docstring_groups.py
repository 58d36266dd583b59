"""Docstrings that name several parameters or attributes together, "start, stop: …", as mkdocstrings reads them.

An extension of griffe, named in mkdocs.yml: each name gets an item with the same words. In the source they stay so.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

_SECTION = re.compile(r"^( *)(Args|Attributes):$")
_GROUP = re.compile(r"^( *)(\*{0,2}\w+(?:, \*{0,2}\w+)+):(.*)$")


def separated(text: str) -> str:
    """A docstring with an item for each name of its sections Args and Attributes."""
    lines, found, indent = text.splitlines(), [], None
    place = 0
    while place < len(lines):
        line = lines[place]
        place += 1
        depth = len(line) - len(line.lstrip())
        if section := _SECTION.match(line):
            indent = len(section[1])
        elif line.strip() and indent is not None and depth <= indent:
            indent = None
        group = _GROUP.match(line) if indent is not None and not section else None
        if group is None or len(group[1]) <= (indent or 0):
            found.append(line)
            continue
        more = []
        while place < len(lines) and (not lines[place].strip() or lines[place].startswith(group[1] + " ")):
            if not lines[place].strip():
                break
            more.append(lines[place])
            place += 1
        for name in group[2].split(", "):
            found += [f"{group[1]}{name}:{group[3]}", *more]
    return "\n".join(found)


class Groups(Extension):
    """Separates the names of every docstring, before it is parsed."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Called by griffe for each object that it has loaded."""
        if not obj.is_alias and obj.docstring is not None:
            obj.docstring.value = separated(obj.docstring.value)
