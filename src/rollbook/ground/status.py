"""The status a reader shows: what run.json says, corrected by who still lives."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from rollbook.ground import manifest
from rollbook.ground.files import read_json
from rollbook.ground.foreign import tolerating
from rollbook.ground.liveness import is_alive

__all__ = ["STALE_SECONDS", "derived", "quiet_seconds", "why_unsealed"]

STALE_SECONDS = 60.0
"""A writer that cannot be judged from here counts as stale when its run's heartbeat is older than this; in a place,
when the next shipment is late by so much."""


def derived(run: str, about: Mapping[str, object]) -> str:
    """running, finished, killed, crashed or stale; or part: what a host keeps that does not see the run's own folder.

    "running" becomes "crashed" if the main writer is known to be dead, "stale" if it cannot be judged from here and
    nothing has been heard of the run for a minute.
    """
    if about.get("part"):
        return "part"
    status = str(about.get("status") or "running")
    if status != "running":
        return status
    writer = _main_writer(run, about)
    if writer is None:
        return status if quiet_seconds(run, about) <= STALE_SECONDS else "stale"
    alive = is_alive(writer)
    if alive is None:
        return "running" if quiet_seconds(run, about) <= STALE_SECONDS else "stale"
    return "running" if alive else "crashed"


def _main_writer(run: str, about: Mapping[str, object]) -> dict[str, object] | None:
    """writer.json of the newest attempt's main writer; the run's own page has most of it if the folder is gone."""
    entry = manifest.newest(about)
    name = str(entry.get("writer") or "")
    if name and os.sep not in name:
        for path, inside in (
            (os.path.join(run, "data", "journal", name, "writer.json"), None),
            (os.path.join(run, "data", "writers.json"), name),
        ):
            info = read_json(path)
            writer = info if inside is None else info.get(inside)
            if isinstance(writer, dict) and writer:
                return writer
    return {**about, **entry} if "pid" in entry else None


def quiet_seconds(run: str, about: Mapping[str, object]) -> float:
    """Seconds since anything was heard of the run; in a place, since more of it was due."""
    heard = 0.0
    for path in (os.path.join(run, "data", "keeper", "heartbeat"), os.path.join(run, "run.json")):
        with tolerating(OSError):
            heard = max(heard, os.stat(path).st_mtime)
    created = about.get("created")  # by the clock of the run's host: only where no file tells
    return time.time() - (heard or (float(created) if isinstance(created, (int, float)) else 0.0))


def why_unsealed(run: str | os.PathLike[str]) -> str:
    """Why the keeper could not turn what lies in a run's journal into Parquet, one sentence; "" if it could, or was not
    asked to yet."""
    folder = os.fspath(run)
    trouble = read_json(os.path.join(folder, "data", "keeper", "troubles.json")).get("seal")
    words = trouble.get("words") if isinstance(trouble, dict) else None
    if not isinstance(words, str):
        return ""
    journal = os.path.join(folder, "data", "journal")
    with tolerating(OSError):
        for writer in os.listdir(journal):
            with tolerating(OSError):
                if any(name.endswith((".seg", ".log")) for name in os.listdir(os.path.join(journal, writer))):
                    return f"{folder}: {words}"
    return ""
