"""run.json in a store: made once, later replaced only if it is unchanged since it was read, and never by an older
one."""

from __future__ import annotations

import json

from rollbook.errors import RunExists
from rollbook.remote.commit import NotShipped
from rollbook.remote.steps import Get, Missing, Put, Refused, Steps, Unknown
from rollbook.schema import manifest
from rollbook.schema.manifest import RunJson
from rollbook.system.files import read_regular


def put_run_json(key: str, folder: str, *, create_only: bool = False) -> Steps[bool]:
    """Put run.json into the store, unless a later one is there (`manifest.progress`). Returns whether it is there now.

    Args:
      create_only: only if there is none: the folder is a copy.
    Raises:
      RunExists: it belongs to another run. NotShipped: the store did not accept it.
    """
    path = manifest.path_of(folder)
    for _ in range(6):
        own = manifest.read(folder)  # before its bytes: what is judged is never later than what is put
        data = read_regular(path)
        etag: str | None = None
        try:
            stored = yield Get(key)
            etag = stored.etag
            if stored.data == data:
                return True
            there = run_json_of(stored.data)
            if there.nonce != own.nonce:
                raise RunExists(
                    f"{key} is another run of that name (id {there.id!r}, on {there.host}). Nothing "
                    "of it is changed; give this run another name or another remote"
                )
            if create_only or manifest.progress(there) > manifest.progress(own):
                return False
        except Missing:
            pass
        try:
            yield Put(key, lambda data=data: data, create=etag is None, etag=etag)  # type: ignore[misc]
            return True
        except (Refused, Unknown):
            continue
    raise NotShipped(f"{key} could not be put")


def run_json_of(data: bytes) -> RunJson:
    """A run.json from a store, `is_empty` if it is none."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return RunJson()
    return RunJson.of(content) if isinstance(content, dict) else RunJson()
