"""Which runs are in a remote: the run set of an address such as s3://bucket/prefix."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rollbook.errors import Damaged, ForeignRemote, NewerFormat, NotARun, RemoteUnreachable, RunNotFound
from rollbook.remote import Remote, perform
from rollbook.remote.catalogue import read_catalogue
from rollbook.remote.commit import Commits
from rollbook.remote.opening import PAGE, open_remote
from rollbook.remote.steps import Away, Missing, Unknown, message_of
from rollbook.remote.views import address_of, folders_of
from rollbook.runs.fields import FIELDS
from rollbook.runs.run_set import RunSet
from rollbook.schema import manifest
from rollbook.schema.addresses import check_remote, parts_of
from rollbook.schema.status import STALE_SECONDS
from rollbook.system.files import pasted


@contextmanager
def _without_collections() -> Iterator[None]:
    """Pause garbage collection: ten thousand rows are a hundred thousand live objects, and repeated collections take a
    third of a listing's time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@_without_collections()
def open_address(url: str, seconds: float = 60.0) -> RunSet:
    """All runs below an address: of a remote, of a project in it, or one run.

    Args:
      seconds: a catalogue of this age is new enough.
    Raises:
      RunNotFound: there is no such project or run.
      ForeignRemote: there is no rollbook data.
      RemoteError: the remote cannot be used.
    """
    remote, below = root_of(url)
    names = [name for name in below.split("/") if name]
    problems: list[str] = []
    as_of: float | None = None
    try:
        if len(names) >= 2:
            run = "/".join(names[:2])
            fields_of = {run: _fields(remote, run)}
        else:
            catalogue = read_catalogue(remote, seconds=seconds)
            as_of, problems = catalogue.written, [*catalogue.problems]
            fields_of = {
                run: fields
                for run, (_, fields) in catalogue.runs.items()
                if not names or run.startswith(f"{names[0]}/")
            }
        known = {run: fields for run, fields in fields_of.items() if fields is not None}
        folders = folders_of(remote.url, list(known))
        rows = [_row(folder, fields) for folder, fields in zip(folders, known.values(), strict=True)]
        _warn_of_stale(remote, rows)
    except (Away, Unknown) as err:
        raise RemoteUnreachable(message_of(err, remote.url)) from None
    if names and not rows:
        look = f"rollbook ls {pasted(remote.url)}"
        raise RunNotFound(f"open({url!r}): nothing is called so.", f"Look what there is with: {look}")
    runs = RunSet(rows, url, problems)
    runs.as_of = as_of
    return runs


def root_of(url: str) -> tuple[Remote, str]:
    """The remote that contains an address, and the part of the address below its root.

    Raises:
      ForeignRemote: neither the address nor a folder above it is a remote of runs.
    """
    url = check_remote(url)
    scheme, bucket, prefix = parts_of(url)
    names = prefix.split("/") if prefix else []
    least = len(names) if scheme == "file" and not names else 0
    for up in range(3):
        if len(names) - up < least:
            break
        head = "/".join(names[: len(names) - up])
        root = f"file://{head}" if scheme == "file" else f"{scheme}://{'/'.join(x for x in (bucket, head) if x)}"
        remote = open_remote(root, patience=20.0)
        try:
            remote.get(PAGE)
        except Missing:
            continue
        except (Away, Unknown) as err:
            raise RemoteUnreachable(message_of(err, remote.url)) from None
        return remote, "/".join(names[len(names) - up :])
    raise ForeignRemote(
        f"{url}: no runs of rollbook lie here: neither it nor what is above it has a {PAGE}. They come here with "
        "rollbook push, or init(remote=…)"
    )


def _fields(remote: Remote, run: str) -> dict[str, Any] | None:
    """The contents of run.json in the remote; None if there is none."""
    try:
        return manifest.listed(manifest.RunJson.of(json.loads(remote.get(f"{run}/run.json").data)))
    except Missing:
        return None
    except (ValueError, AttributeError, RecursionError):
        raise NotARun(f"{remote.url}/{run}: its run.json cannot be read") from None


def _row(folder: str, fields: dict[str, object]) -> dict[str, Any]:
    row = {name: fields.get(name) for name in FIELDS}
    for name in ("config", "summary", "total"):
        row[name] = row[name] if isinstance(row[name], dict) else {}
    row["tags"] = row["tags"] if isinstance(row["tags"], list) else []
    return {"path": folder, **row}


def _warn_of_stale(remote: Remote, rows: list[dict[str, Any]]) -> None:
    """Mark runs as stale that are listed as running and whose next upload is a minute late."""
    for row in [row for row in rows if row["status"] == "running"][:_MOST_LOOKED_AT]:
        run = address_of(str(row["path"]))[1]
        try:
            manifests = perform(Commits(f"{run}/", "").origins(), remote)
            last = max((version.promised_until() for version in manifests.values()), default=0.0)
            last = last or remote.get(f"{run}/run.json").modified or float(row.get("created") or 0.0)
        except (Damaged, NewerFormat, Missing):  # opening the run reports it
            continue
        if time.time() - last > STALE_SECONDS:
            row["status"] = "stale"


_MOST_LOOKED_AT = 32
