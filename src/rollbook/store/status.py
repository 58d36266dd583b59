"""The status of a run as it is, not as it was last written: a run whose process vanished says "running" for ever."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from rollbook.journal import liveness
from rollbook.store.layout import journal_folder, read_json

__all__ = ["STALE_SECONDS", "status_of"]

STALE_SECONDS = 60.0
"""A writer elsewhere that cannot be judged counts as gone after this long without a heartbeat."""


def status_of(run: str | os.PathLike[str], about: Mapping[str, Any]) -> str:
    """running, finished, killed, crashed or stale.

    What run.json says, except that "running" is crashed if the main writer is known to be dead, and stale if it lives
    on another host (or in another pid namespace) and no heartbeat came for a minute. Cheap for runs that have ended.
    """
    written = str(about.get("status") or "crashed")
    if written != "running":
        return written
    folder = journal_folder(run)
    attempts = about.get("attempts")
    newest = attempts[-1] if isinstance(attempts, list) and attempts else {}
    writer = newest.get("writer") if isinstance(newest, Mapping) else None
    who = read_json(os.path.join(folder, str(writer), "writer.json")) if writer else None
    if who is None:  # its journal was sealed and removed, yet run.json was never written again
        return "crashed" if writer else _by_heartbeat(run)
    alive = liveness.is_alive(who)
    if alive is None:
        return _by_heartbeat(run)
    if alive and os.path.exists(os.path.join(folder, str(writer), "closed.json")):
        return "running"  # between the last row and the last word
    return "running" if alive else "crashed"


def _by_heartbeat(run: str | os.PathLike[str]) -> str:
    try:
        age = time.time() - os.stat(os.path.join(run, "data", "keeper", "heartbeat")).st_mtime
    except OSError:
        return "stale"
    return "running" if age < STALE_SECONDS else "stale"
