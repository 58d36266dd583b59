"""The status that readers show: that of run.json, corrected by which processes still live."""

from __future__ import annotations

import os
import time

from rollbook.schema import manifest
from rollbook.schema.finished import former_writers
from rollbook.schema.manifest import RunJson
from rollbook.schema.run_files import MANIFEST_FILE, RunFile, heartbeat_path, journal_folder
from rollbook.system.files import read_json
from rollbook.system.guard import tolerating
from rollbook.system.liveness import is_alive

ENDED_BADLY = ("crashed", "killed", "stale")
"""The statuses of runs that did not come to their end."""

STALE_SECONDS = 60.0
"""A writer that cannot be judged from here counts as stale if its run's heartbeat is older than this; in a remote, if
the
next shipment is late by this much."""


def derived(run: str, about: RunJson) -> str:
    """running, finished, killed, crashed or stale; or part: one host's part of a run whose folder it does not see.

    "running" becomes "crashed" if the main writer is known to be dead, and "stale" if it cannot be judged from here and
    the run has shown no sign of life for a minute.
    """
    if about.part:
        return "part"
    status = about.status or "running"
    if status != "running":
        return status
    writer = _main_writer(run, about)
    if writer is None:
        return status if quiet_seconds(run, about) <= STALE_SECONDS else "stale"
    alive = is_alive(writer)
    if alive is None:
        return "running" if quiet_seconds(run, about) <= STALE_SECONDS else "stale"
    return "running" if alive else "crashed"


def _main_writer(run: str, about: RunJson) -> dict[str, object] | None:
    """writer.json of the newest attempt's main writer; if the folder is gone, most of it from run.json."""
    entry = manifest.newest(about)
    name = entry.writer
    if name and os.sep not in name:
        writer = read_json(os.path.join(journal_folder(run), name, RunFile.WRITER)) or former_writers(run).get(name)
        if writer:
            return writer
    return {**about.as_json(), **entry.as_json()} if "pid" in entry.others else None


def quiet_seconds(run: str, about: RunJson) -> float:
    """Seconds since the last sign of life of the run; in a remote, since the next shipment was due."""
    # `created` is by the clock of the run's host: only if no file has a time
    return time.time() - (heard_at(run) or about.created or 0.0)


def heard_at(run: str) -> float | None:
    """When the run gave its last sign of life, in unix seconds; None if no file has a time."""
    heard = 0.0
    for path in (heartbeat_path(run), os.path.join(run, MANIFEST_FILE)):
        with tolerating(OSError):
            heard = max(heard, os.stat(path).st_mtime)
    return heard or None


def why_unsealed(run: str | os.PathLike[str]) -> str:
    """Why the keeper could not seal a run's journal to Parquet, one sentence; "" if it could, or has not tried yet."""
    folder = os.fspath(run)
    trouble = read_json(os.path.join(folder, RunFile.KEEPER, RunFile.TROUBLES)).get("seal")
    words = trouble.get("words") if isinstance(trouble, dict) else None
    if not isinstance(words, str):
        return ""
    journal = journal_folder(folder)
    with tolerating(OSError):
        for writer in os.listdir(journal):
            with tolerating(OSError):
                if any(name.endswith((".seg", ".log")) for name in os.listdir(os.path.join(journal, writer))):
                    return f"{folder}: {words}"
    return ""
