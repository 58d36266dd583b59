"""The colours of runs and groups: chosen when first drawn, stored next to the runs, the same on the page, in charts and
in reports.

    <folder of the runs>/.rollbook/colours.json     {id of a run: [its colour alone, its colour in a group]}

Colours are numbers from 1 to 12, as in the style sheet; 0: none yet. A group has no name of its own that lasts: its
colour is the one that most of its runs have. Where nothing is kept and nothing can be written, a colour follows from
the id, unless another group that is drawn has it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from rollbook.errors import BadInput
from rollbook.runs.folder_files import FOLDER, alone_at
from rollbook.system.files import read_json, replacing

COLOURS = 12
_FIRST = 6
"""Those that a name alone can get."""
Row = Mapping[str, Any]
Kept = dict[str, tuple[int, int]]
"""Id of a run -> (its colour alone, its colour in a group)."""

_NONE: Mapping[str, int] = MappingProxyType({})
_FILE = os.path.join(FOLDER, "colours.json")
_MOST_BYTES = 8 << 20


def kept(rows: Iterable[Row]) -> Kept:
    """The stored colours of all runs in the folders of these ones."""
    found: Kept = {}
    for folder in dict.fromkeys(os.path.dirname(str(row["path"])) for row in rows):
        found |= _read(folder)
    return found


def keep(
    rows: Sequence[Row], alone: Mapping[str, int] = _NONE, grouped: Mapping[str, int] = _NONE, *, chosen: bool = False
) -> Kept:
    """Store the colours of some runs, by their ids. A stored colour stays, unless a person chose another.

    Args:
      rows: of the runs.
      alone, grouped: id -> the colour of a run alone, and as part of a group.
    Returns:
      All kept colours of these folders.
    Raises:
      BadInput: there is no such colour.
      OSError: they cannot be written. Those that are kept stay.
    """
    for colour in (*alone.values(), *grouped.values()):
        if not 1 <= colour <= COLOURS:
            raise BadInput(f"{colour} is not a colour; they have numbers from 1 to {COLOURS}")
    folders: dict[str, list[str]] = {}
    for row in rows if alone or grouped else ():
        folders.setdefault(os.path.dirname(str(row["path"])), []).append(str(row["id"]))
    for folder, names in folders.items():
        with alone_at(os.path.join(folder, _FILE)):
            before = _read(folder)
            after = dict(before)
            for name in names:
                old = before.get(name, (0, 0))
                new = alone.get(name, 0), grouped.get(name, 0)
                after[name] = (
                    (_first(new[0], old[0]), _first(new[1], old[1]))
                    if chosen
                    else (_first(old[0], new[0]), _first(old[1], new[1]))
                )
            if after != before:
                _write(folder, after)
    return kept(rows)


def colours_of_groups(groups: Sequence[Sequence[Row]], local: bool = True, drawn: bool = True) -> list[int]:
    """The colour of each group of runs. A group without one gets one that the others do not have.

    Args:
      local: whether colours may be stored next to the runs; else they follow from the ids, a different one per group.
      drawn: whether they are drawn now, so that new colours are stored. Else nothing is written.
    """
    rows = [row for group in groups for row in group]
    known = kept(rows) if local else {}
    ids = [[str(row["id"]) for row in group] for group in groups]
    colours = [_of_group(names, known) for names in ids]
    if local and 0 in colours:
        for index, colour in enumerate(colours):
            colours[index] = colour or _unlike(
                [other for other in colours if other], [each for _, each in known.values()]
            )
        if not drawn:
            return colours
        new = {name: colour for names, colour in zip(ids, colours, strict=True) for name in names}
        with suppress(OSError):
            known = keep(rows, {}, new)
            return [_of_group(names, known) for names in ids]
        colours = [_of_group(names, known) for names in ids]
    for index, names in enumerate(ids):
        wanted, drawn_now = _of_name(min(names, default="")), [other for other in colours if other]
        colours[index] = colours[index] or (_unlike(drawn_now, ()) if wanted in drawn_now else wanted)
    return colours


def _of_group(names: Sequence[str], known: Kept) -> int:
    """The colour that most of its runs have in a group; of several the lowest; 0 if none has one."""
    counts = Counter(known[name][1] for name in names if name in known and known[name][1])
    return min(counts, key=lambda colour: (-counts[colour], colour), default=0)


def _unlike(drawn: Sequence[int], every: Sequence[int]) -> int:
    """The colour that the fewest of those drawn have; then the fewest of all; then the lowest."""
    return min(range(1, COLOURS + 1), key=lambda colour: (drawn.count(colour), every.count(colour), colour))


def _of_name(name: str) -> int:
    """A colour that follows from a name alone (FNV-1a); the page computes the same."""
    mixed = 0x811C9DC5
    for byte in name.encode("utf-8", "surrogatepass"):
        mixed = (mixed ^ byte) * 0x01000193 & 0xFFFFFFFF
    return mixed % _FIRST + 1


def _first(one: int, other: int) -> int:
    return one or other


def _read(folder: str) -> Kept:
    """What is kept in a folder; entries that are no colours are left out."""
    path = os.path.join(folder, _FILE)
    with suppress(OSError):
        if os.path.getsize(path) <= _MOST_BYTES:
            return {
                name: (pair[0], pair[1])
                for name, pair in read_json(path).items()
                if isinstance(pair, list) and len(pair) == 2 and all(_is_colour(colour) for colour in pair)
            }
    return {}


def _is_colour(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= COLOURS


def _write(folder: str, colours: Kept) -> None:
    import json

    lines = ",\n".join(f"{json.dumps(name)}: [{own}, {group}]" for name, (own, group) in sorted(colours.items()))
    with replacing(os.path.join(folder, _FILE)) as temporary, open(temporary, "w", encoding="utf-8") as file:
        file.write(f"{{\n{lines}\n}}\n")
