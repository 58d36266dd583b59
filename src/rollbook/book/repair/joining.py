"""Copies a part of a run, kept by a host in its own root, into the run's folder.

    join("/mnt/node-7/runs/ant/ppo-k3v9x2ab", "runs/ant/ppo-k3v9x2ab")

The part is not changed. Files are copied under a temporary name, then renamed. File names contain the writer's id, so
files of two hosts never clash, and files joined earlier are skipped.
"""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Iterator
from typing import Any

from rollbook.errors import BadInput, RunIsLive
from rollbook.journal import list_writers
from rollbook.schema import manifest
from rollbook.schema.finished import add, former_writers
from rollbook.schema.run_files import MANIFEST_FILE, PartName, RunFile, data_folder
from rollbook.schema.status import STALE_SECONDS, quiet_seconds
from rollbook.storage import join_damage, write_writers_file
from rollbook.system.files import is_regular, read_json, write_json
from rollbook.system.liveness import is_alive

_STAY = frozenset(
    {
        MANIFEST_FILE,
        "data/writers.json",
        "data/abandoned.parquet",
        "data/writers.parquet",
        "data/page.lock",
        f"data/{RunFile.DAMAGE}",
    }
)
_STAY_BELOW = ("data/keeper/", "data/pyramid/")
"""Files that the run's own folder has, or that are rebuilt from the others."""


class Joined:
    """The result of a join.

    Attributes:
      files, bytes: what was copied.
      known: files that were already there.
      clashes: files (media, checkpoints, logs) with the name of another file of the run; they stay in the part.
    """

    def __init__(self) -> None:
        self.files = self.bytes = self.known = 0
        self.clashes: list[str] = []


def join(part: str | os.PathLike[str], run: str | os.PathLike[str], *, force: bool = False) -> Joined:
    """Copy a part of a run into the run's folder. Can be repeated, also after an interruption.

    Args:
      part: the folder of the part, or a copy of it.
      run: the folder of the run.
      force: also join if a writer of the part cannot be judged dead or alive from here.
    Raises:
      BadInput: they belong to different runs, or are the same folder.
      RunIsLive: a process still writes the part.
      NotARun, NewerFormat: the run.json of one of them cannot be used.
      OSError: something cannot be copied; what was copied stays.
    """
    source, target = os.path.abspath(os.fspath(part)), os.path.abspath(os.fspath(run))
    theirs, ours = manifest.read(source), manifest.read(target)
    if os.path.realpath(source) == os.path.realpath(target):
        raise BadInput(f"join: {source} is the run's own folder; pass the folder of a part and that of the run")
    if not theirs.nonce or theirs.nonce != ours.nonce:
        raise BadInput(
            f"join: {source} is a part of run {theirs.id}, and {target} is run {ours.id} of another nonce.",
            "Pass the folder of the run that it is a part of",
        )
    _refuse_if_written(source, force)
    done = Joined()
    record = os.path.join(data_folder(target), "joined.json")
    joined: dict[str, Any] = read_json(record)
    for name in _files(source):
        path = os.path.join(source, name)
        stamp = [os.stat(path).st_size, os.stat(path).st_mtime_ns]
        label = f"{theirs.host or ''}:{name}"
        if joined.get(label, [None])[:2] == stamp:
            done.known += 1
            continue
        there = _name_for(target, name)
        at = os.path.join(target, there)
        if os.path.lexists(at):
            if is_regular(at) and filecmp.cmp(path, at, shallow=False):
                done.known += 1
                continue
            if not name.startswith("data/"):
                done.clashes.append(name)
                continue
        _copy(path, at)
        if there != name:  # a merged part has no unique name: record the new one for the next join
            joined[label] = [*stamp, there]
            write_json(record, joined, durable=True)
        done.files += 1
        done.bytes += stamp[0]
    _join_manifests(source, target)
    join_damage(source, target)
    write_writers_file(target, manifest.look(target))
    return done


def _refuse_if_written(part: str, force: bool) -> None:
    for info in list_writers(part):
        if info.closed is not None or info.about.get("keeper"):
            continue
        alive = is_alive(info.about)
        quiet = quiet_seconds(part, manifest.RunJson())
        if alive or (alive is None and not force and quiet <= STALE_SECONDS):
            raise RunIsLive(
                f"join({part!r}): writer {info.id} (process {info.pid} on {info.host or 'an unknown host'}) still "
                "writes it. Let it finish, or join a copy that nobody writes"
            )


def _files(part: str) -> Iterator[str]:
    """The files to copy, by name in the part; each writer's info file first, so that rows are never without it."""
    for folder, folders, names in os.walk(part):
        folders.sort()
        for name in sorted(names, key=lambda name: (name == RunFile.CLOSED, name != RunFile.WRITER, name)):
            inside = os.path.relpath(os.path.join(folder, name), part).replace(os.sep, "/")
            if inside in _STAY or inside.startswith(_STAY_BELOW) or name.endswith((".tmp", ".lock")):
                continue
            if is_regular(os.path.join(folder, name)):
                yield inside


def _name_for(run: str, name: str) -> str:
    """The target of a file of a part: a merged one gets the next free number."""
    folder, base = os.path.split(name)
    part = PartName.parse(base)
    if part is None or part.kind != "merged":
        return name
    number = part.first
    while os.path.lexists(os.path.join(run, folder, str(PartName("", -1, "merged", number)))):
        number += 1
    return f"{folder}/{PartName('', -1, 'merged', number)}"


def _copy(path: str, at: str) -> None:
    os.makedirs(os.path.dirname(at), exist_ok=True)
    temporary = f"{at}.joining.tmp"
    try:
        shutil.copyfile(path, temporary)
        if not filecmp.cmp(path, temporary, shallow=False):
            raise OSError(f"{path} changed while it was copied, or the copy is damaged; nothing was put in its place")
        os.replace(temporary, at)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _join_manifests(part: str, run: str) -> None:
    ours = former_writers(run)
    new = {writer: about for writer, about in former_writers(part).items() if writer not in ours}
    if new:
        add(run, "writers", new)
