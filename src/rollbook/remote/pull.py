"""Downloads runs from a remote into local folders. Resumable. A file that does not match its checksum is refused."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, NamedTuple

from rollbook.errors import NotARun, RemoteUnreachable, RunExists
from rollbook.remote import Remote, perform
from rollbook.remote.commit import NotShipped, RemoteManifest
from rollbook.remote.row_ranges import Cover, are_inside, held_by, left_of
from rollbook.remote.run_json import run_json_of
from rollbook.remote.snapshot import Snapshots, another_name
from rollbook.remote.steps import Away, Get, Missing, Steps, Stored, Unknown, message_of
from rollbook.remote.views import check_file, laid_out, run_json_and_manifests
from rollbook.schema import manifest
from rollbook.schema.addresses import is_copy, origin_of, pulled_from
from rollbook.schema.run_files import RunFile
from rollbook.schema.status import derived
from rollbook.system.files import pasted, write_json
from rollbook.system.guard import tolerating
from rollbook.system.texts import amount

_AT_ONCE = 16
_MOST_TRIES = 5


class Pulled:
    """What a pull did: files and bytes downloaded, and files that were here already."""

    def __init__(self) -> None:
        self.files = self.bytes = self.there = 0

    def __str__(self) -> str:
        return f"fetched {amount(self.files, 'file')} ({self.bytes:,} bytes); here already: {self.there:,}"


def pull(remote: Remote, run: str, root: str | os.PathLike[str]) -> Pulled:
    """Download what is missing of a run into <root>/<project>/<run>. Nothing in that folder is deleted; rows that it
    has in other files are not downloaded again.

    Args:
      run: <project>/<run>.
      root: the local folder of runs.
    Raises:
      NotARun: the remote has no such run. RunExists: another run has that folder.
      Damaged: a piece does not match its manifest.
      RemoteUnreachable: no answer; downloaded files stay, and the next pull continues from there.
    """
    folder = os.path.join(os.path.abspath(os.fspath(root)), *run.split("/"))
    report = Pulled()
    run_json: Stored | None = None
    try:
        for turn in range(_MOST_TRIES):
            run_json, manifests = perform(run_json_and_manifests(f"{run}/"), remote)
            if run_json is None:
                raise NotARun(
                    f"{remote.url}: there is no run {run!r}, or nothing of it has been shipped yet. Look what there is "
                    f"with: rollbook ls --dir {pasted(remote.url)}"
                )
            _check_same(folder, run, run_json.data)
            _note(folder, remote.url, manifests)
            if _fetch_all(remote, run, folder, manifests, report):
                break
            if turn == _MOST_TRIES - 1:
                raise RemoteUnreachable(f"{remote.url}: pieces of {run!r} keep moving; try again")
    except (Away, Unknown, NotShipped) as err:
        raise RemoteUnreachable(message_of(err, remote.url)) from None
    assert run_json is not None
    _keep_run_json(folder, run_json.data)
    return report


def _note(folder: str, url: str, manifests: dict[str, RemoteManifest]) -> None:
    """Note what the other origins have shipped, before any of it is here: a keeper that ships the folder meanwhile
    takes nothing of it for the folder's own."""
    origin = origin_of(folder)
    others = [manifest for id, manifest in manifests.items() if origin is None or id != origin.id]
    files = {path: file.sha256 for other in others for path, file in other.files.items() if not file.covers}
    covers = [cover for other in others for file in other.files.values() for cover in file.covers]
    os.makedirs(os.path.join(folder, RunFile.KEEPER), exist_ok=True)
    with manifest.ManifestLock(folder):
        content = {"url": url, "covers": covers, "files": files, "copy": is_copy(folder)}
        write_json(os.path.join(folder, RunFile.KEEPER, RunFile.PULLED), content, durable=True)


def _check_same(folder: str, run: str, run_json: bytes) -> None:
    here = manifest.look(folder)
    if not here.is_empty and here.nonce != run_json_of(run_json).nonce:
        raise RunExists(f"{folder} is another run than {run!r} in the remote. Pull into another folder with --dir")


def _keep_run_json(folder: str, run_json: bytes) -> None:
    """Write run.json last: a folder that has it has everything. A run.json that is written on this host is replaced
    only by a later one, and a host's partial copy of a run stays one."""
    with manifest.ManifestLock(folder):
        about, was_copy = manifest.look(folder), is_copy(folder)
        here, there = manifest.progress(about), manifest.progress(run_json_of(run_json))
        if about.is_empty:
            takes = True
        elif about.part:
            takes = False
        else:
            takes = here[0] <= there[0] if was_copy else here < there and derived(folder, about) != "running"
        pulled = {**pulled_from(folder), "copy": takes or was_copy}
        write_json(os.path.join(folder, RunFile.KEEPER, RunFile.PULLED), pulled, durable=True)
        if takes:
            write_json(manifest.path_of(folder), json.loads(run_json), durable=True, indent=1)


class _Wanted(NamedTuple):
    """A file to fetch.

    Attributes:
      entry: of `laid_out`.
      rows: those to keep of a part, if the folder has the others; () for the whole file.
      may_replace: a file of that name here.
    """

    entry: Any
    rows: tuple[Cover, ...] = ()
    may_replace: bool = True


def _fetch_all(remote: Remote, run: str, folder: str, manifests: dict[str, RemoteManifest], report: Pulled) -> bool:
    """Fetch everything that the manifests name. False if a piece has gone, so that they have to be read again."""
    wanted = _lacking(folder, manifests, report)
    paths = sorted(wanted, key=lambda path: (path.startswith("data/journal/"), path))
    for start in range(0, len(paths), _AT_ONCE):
        if not _fetch_some(
            remote, run, folder, {path: wanted[path] for path in paths[start : start + _AT_ONCE]}, report
        ):
            return False
    return True


def _lacking(folder: str, manifests: dict[str, RemoteManifest], report: Pulled) -> dict[str, _Wanted]:
    """The files that a folder lacks, by where they go.

    Where the run is written, its own files stay. Two folders of a run number their merged parts alike and may have
    merged the same rows with others: of a part only the missing rows are taken, under a free name.
    """
    covers = {entry.sha256: entry.covers for each in manifests.values() for entry in each.files.values()}
    is_ours = not manifest.look(folder).is_empty and not is_copy(folder)
    snapshots = Snapshots(folder, final=True)
    local = snapshots.look().files
    snapshots.keep()
    held = held_by(cover for file in local.values() for cover in file.covers)
    wanted: dict[str, _Wanted] = {}
    for path, entry in laid_out(manifests).items():
        here, rows = local.get(path), covers.get(entry[3], ())
        stays = is_ours and not (rows and path.endswith(".parquet"))
        is_known = here is not None and (stays or here.sha256 == entry[3])
        if is_known or (rows and are_inside(rows, held)) or _is_there(_below(folder, path), entry):
            report.there += 1
        elif stays or not is_ours:
            wanted[path] = _Wanted(entry)
        else:
            missing = tuple(left_of(rows, held))
            target, n = path, 0
            while target in wanted or os.path.lexists(_below(folder, target)):
                n += 1
                target = another_name(path, n)
            wanted[target] = _Wanted(entry, missing if missing != rows else (), may_replace=False)
    return wanted


def _below(folder: str, path: str) -> str:
    return os.path.join(folder, *path.split("/"))


def _is_there(path: str, file_entry: Any) -> bool:
    try:
        if os.path.getsize(path) != file_entry[1]:
            return False
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == str(file_entry[3])
    except OSError:
        return False


def _fetch_some(remote: Remote, run: str, folder: str, wanted: dict[str, _Wanted], report: Pulled) -> bool:
    """Fetch these files. False if one has gone from there, or another has come here under its name."""
    targets = {path: _below(folder, path) for path in wanted}
    for target in targets.values():
        os.makedirs(os.path.dirname(target), exist_ok=True)
    coming = {path: _coming(target) for path, target in targets.items()}
    answers = perform(_gets([(f"{run}/{each.entry[0]}", coming[path]) for path, each in wanted.items()]), remote)
    moved = False
    for (path, each), answer in zip(wanted.items(), answers, strict=True):
        if isinstance(answer, Missing):
            moved = True
        elif isinstance(answer, Exception):
            raise answer
        else:
            check_file(coming[path], each.entry)
            if each.rows:
                _keep_rows(coming[path], os.path.basename(targets[path]), each.rows)
            if not _put(coming[path], targets[path], each.may_replace):
                moved = True
                continue
            report.files += 1
            report.bytes += int(each.entry[1])
    return not moved


def _coming(target: str) -> str:
    """The name of a file until it is whole. Sealing, which may take place here, removes *.tmp."""
    folder, name = os.path.split(target)
    return os.path.join(folder, f".{name}.pull")


def _keep_rows(path: str, name: str, rows: tuple[Cover, ...]) -> None:
    from rollbook.remote.cutting import cut_part

    data, _ = cut_part(path, rows, name)
    with open(path, "wb") as file:
        file.write(data)


def _put(temporary: str, target: str, may_replace: bool) -> bool:
    """Give a file its name. False if another process has just given that name to a file of its own, as sealing does."""
    if may_replace:
        os.replace(temporary, target)
        return True
    try:
        os.link(temporary, target)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        if os.path.lexists(target):
            return False
        os.replace(temporary, target)
    finally:
        with tolerating(OSError):
            os.unlink(temporary)
    return True


def _gets(keys: list[tuple[str, str]]) -> Steps[list[object]]:
    answers: list[object] = yield [Get(key, into) for key, into in keys]
    return answers
