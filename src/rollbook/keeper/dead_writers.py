"""Writes the status of a run whose main process has gone and can no longer write it."""

from __future__ import annotations

import time

from rollbook.ground import manifest

__all__ = ["mark_crashed", "tell_of_the_dead"]


def mark_crashed(run_folder: str, writer: str) -> bool:
    """Write `crashed` into run.json, if `writer` is still the main writer of the newest attempt and wrote no status.

    Returns:
      True if it was written.
    Raises:
      OSError: run.json cannot be replaced.
    """
    with manifest.ManifestLock(run_folder):
        fields = manifest.look(run_folder)
        newest = manifest.newest(fields)
        if int(fields.get("format") or 0) > manifest.FORMAT:  # of a later rollbook: do not clean its fields
            return False
        if fields.get("status") != "running" or newest.get("writer") != writer:
            return False
        now = time.time()
        newest["status"], newest["ended"] = "crashed", now
        fields["status"], fields["ended"] = "crashed", now
        manifest.write(run_folder, fields, durable=True)
    return True


def tell_of_the_dead(run_folder: str, host: str, n: int) -> None:
    """Note in run.json that `n` side writers of this host ended without closing, for `ls` and `show`.

    Raises:
      OSError: run.json cannot be replaced.
    """
    with manifest.ManifestLock(run_folder):
        fields = manifest.look(run_folder)
        if not fields or int(fields.get("format") or 0) > manifest.FORMAT:
            return
        died = fields.get("writers_died")
        counted = died if isinstance(died, dict) else {}
        if counted.get(host, 0) != n:
            manifest.write(run_folder, {**fields, "writers_died": {**counted, host: n}}, durable=True)
