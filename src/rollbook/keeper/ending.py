"""What is left to write when the process that opened a run is gone: its status, which it can no longer write itself."""

from __future__ import annotations

import os
import time

from rollbook.journal.locks import PageLock
from rollbook.keeper.places import read_json, write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["mark_crashed", "run_status"]


def run_status(run_folder: str) -> str:
    """The status as last written, "" if there is no run.json."""
    status = read_json(os.path.join(run_folder, "run.json")).get("status")
    return status if isinstance(status, str) else ""


def mark_crashed(run_folder: str, writer: str) -> bool:
    """Write `crashed` into run.json, if `writer` is still the main writer of the newest attempt and said nothing.

    Returns:
      True if it was written.
    Raises:
      OSError: run.json cannot be replaced.
    """
    with PageLock(run_folder):
        path = os.path.join(run_folder, "run.json")
        info = read_json(path)
        attempts = info.get("attempts")
        newest: dict[str, Any] = attempts[-1] if isinstance(attempts, list) and attempts else {}
        if info.get("status") != "running" or not isinstance(newest, dict) or newest.get("writer") != writer:
            return False
        now = time.time()
        newest["status"], newest["ended"] = "crashed", now
        info["status"], info["ended"] = "crashed", now
        write_json(path, info, durable=True)
    return True
