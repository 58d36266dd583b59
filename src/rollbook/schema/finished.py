"""data/keeper/finished.json: in one file what a run needs of its writers and its keeper when its journal is sealed.

    {"writers": {writer: its writer.json, and closed.json as `closed`},
     "sealed": {writer: {table/lane/group: the last number that was sealed}},
     "plan": plan.json, "rules": rules.json, "checksum": CRC-32 of all this}

While a run is written, plan.json and rules.json are files of their own; one that is there is newer than the entry here.
Sealing adds `writers` and `sealed`, and the keeper that finishes a run moves the rest here (`keeper/sweeping.py`).
Earlier rollbooks had all four as files of their own, `writers` in data/writers.json, and so has a run from a remote.
"""

from __future__ import annotations

import json
import os
import zlib

from rollbook.schema.manifest import ManifestLock
from rollbook.schema.run_files import RunFile
from rollbook.system.files import exists, make_folders, read_json, write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_FILES = {"writers": os.path.join("data", RunFile.WRITERS), "sealed": os.path.join(RunFile.KEEPER, RunFile.SEALED)}
_CHECKSUM = "checksum"
_ENTRIES = {RunFile.PLAN: "plan", RunFile.RULES: "rules"}

FOLDED = (*_FILES.values(), os.path.join(RunFile.KEEPER, RunFile.PLAN), os.path.join(RunFile.KEEPER, RunFile.RULES))
"""The files, below the run's folder, whose content `folded` has."""


def finished_path(run: str | os.PathLike[str]) -> str:
    """The path of the file."""
    return os.path.join(run, RunFile.KEEPER, RunFile.FINISHED)


def former_writers(run: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """Writers whose folder in the journal was removed when all was sealed: id -> writer.json with `closed`."""
    return _both(run, "writers", read_json(finished_path(run)))


def sealed_lasts(run: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """How far each stream was sealed in this folder: writer -> {table/lane/group: last number}."""
    return _both(run, "sealed", read_json(finished_path(run)))


def keeper_file(run: str | os.PathLike[str], name: str) -> dict[str, Any]:
    """The content of plan.json or rules.json, also after the end of the run; {} if there is none."""
    own = read_json(os.path.join(run, RunFile.KEEPER, name))
    if own:
        return own
    entry = read_json(finished_path(run)).get(_ENTRIES[name])
    return entry if isinstance(entry, dict) else {}


def add(run: str | os.PathLike[str], entry: str, content: Mapping[str, Any]) -> None:
    """Add writers to the entry `writers` or `sealed`; one that is there already is replaced.

    Raises:
      OSError: the disk is full, or the folder cannot be written.
    """
    with ManifestLock(os.fspath(run)):
        path = finished_path(run)
        make_folders(os.path.dirname(path), inside=run)
        here = read_json(path)
        known = here.get(entry)
        write(run, {**here, entry: {**(known if isinstance(known, dict) else {}), **content}})


def write(run: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
    """Replace the file, on the disk, too: nothing else says what it says. The caller has the lock of run.json.

    Raises:
      OSError: the disk is full, or the folder cannot be written. The old file then stays.
    """
    write_json(finished_path(run), {**content, _CHECKSUM: _checksum(content)}, durable=True)


def damage(run: str | os.PathLike[str]) -> str:
    """What is wrong with the file, a sentence; "" if nothing is, or if there is none."""
    path = finished_path(run)
    here = read_json(path)
    if here.get(_CHECKSUM) == _checksum(here) or (not here and not exists(path)):
        return ""
    return f"{path} is damaged: which files of sealed rows were moved away, and which writers the run had, is not known"


def _checksum(content: Mapping[str, Any]) -> int:
    rest = {entry: part for entry, part in content.items() if entry != _CHECKSUM}
    return zlib.crc32(json.dumps(rest, sort_keys=True, default=repr).encode())


def folded(run: str | os.PathLike[str]) -> dict[str, Any]:
    """The content that the file has once nothing else is needed."""
    here = read_json(finished_path(run))
    whole = {entry: _both(run, entry, here) for entry in _FILES}
    for name, entry in _ENTRIES.items():
        whole[entry] = keeper_file(run, name)
    return {**here, **{entry: content for entry, content in whole.items() if content}}


def _both(run: str | os.PathLike[str], entry: str, here: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """An entry, with what its own file of an earlier rollbook has."""
    own, known = read_json(os.path.join(run, _FILES[entry])), here.get(entry)
    both: dict[str, Any] = {**own, **(known if isinstance(known, dict) else {})}
    return {writer: content for writer, content in both.items() if isinstance(content, dict)}
