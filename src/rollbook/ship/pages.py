"""run.json in a store: made once, later replaced on the condition that nobody else has, never by a former life."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rollbook import manifest
from rollbook.errors import RunExists
from rollbook.files import read_regular
from rollbook.storage.places.commit import NotShipped
from rollbook.storage.places.steps import Get, Missing, Put, Refused, Steps, Unknown

__all__ = ["page_of", "put_page"]


def put_page(key: str, folder: str) -> Steps[bool]:
    """Bring run.json into the store, unless a later life of the run is there. Whether it was changed."""
    path = manifest.path_of(folder)
    for _ in range(6):
        data = read_regular(path)
        own = manifest.read(folder)
        etag: str | None = None
        try:
            stored = yield Get(key)
            etag = stored.etag
            if stored.data == data:
                return False
            there = page_of(stored.data)
            if there.get("nonce") != own.get("nonce"):
                raise RunExists(
                    f"{key} is another run of that name (id {there.get('id')!r}, on {there.get('host')}). Nothing "
                    "of it is changed; give this run another name or another place"
                )
            if _lives(there) > _lives(own):
                return False
        except Missing:
            pass
        try:
            yield Put(key, lambda data=data: data, create=etag is None, etag=etag)  # type: ignore[misc]
            return True
        except (Refused, Unknown):
            continue
    raise NotShipped(f"{key} could not be put")


def page_of(data: bytes) -> dict[str, Any]:
    """The fields of a run.json as it lies in a store; {} if it is none."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _lives(page: Mapping[str, object]) -> int:
    listed = page.get("attempts")
    numbers = [entry.get("n") for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return max((number for number in numbers if type(number) is int), default=0)
