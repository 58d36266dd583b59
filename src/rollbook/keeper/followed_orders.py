"""The keeper's orders for a run: data/keeper/plan.json and run.json, followed as they change."""

from __future__ import annotations

import os

from rollbook.keeper.own_files import keeper_folder
from rollbook.schema import manifest
from rollbook.schema.finished import keeper_file
from rollbook.schema.run_files import MANIFEST_FILE, RunFile
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass


class FollowedOrders:
    """Both files as they were last read.

    Args:
      run_folder: the run's folder.
    Attributes:
      info: run.json.
      sinks, rules: what plan.json lists; none where another host's keeper forwards, or run.json cannot be read.
      host_seconds: how often the host is sampled; None: never.
      x: the clock for sinks with one step axis.
    """

    def __init__(self, run_folder: str) -> None:
        self._folder = run_folder
        self._paths = (
            os.path.join(keeper_folder(run_folder), RunFile.PLAN),
            os.path.join(run_folder, MANIFEST_FILE),
        )
        self._stamp: tuple[object, ...] | None = None
        self._asked: tuple[object, ...] | None = None
        self.info = manifest.RunJson()
        self.sinks: list[dict[str, object]] = []
        self.rules: list[dict[str, object]] = []
        self.host_seconds: float | None = None
        self.x = ""

    def follow(self, forwards: bool) -> bool:
        """Read the files if they have changed. True when the orders differ from before.

        Args:
          forwards: this keeper is the one that feeds sinks and asks rules.
        """
        stamp = (forwards, *map(_stamp, self._paths))
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        plan, self.info = keeper_file(self._folder, RunFile.PLAN), manifest.look(self._folder)
        asked = (forwards, plan, self.attempt, not self.info.is_empty)
        if asked == self._asked:
            return False
        self._asked = asked
        seconds = plan.get("host_seconds", 10)
        self.host_seconds = float(seconds) if isinstance(seconds, (int, float)) else None
        self.x = str(plan.get("x") or "")
        is_ours = forwards and not self.info.is_empty
        self.sinks = _entries(plan.get("sinks")) if is_ours else []
        self.rules = _entries(plan.get("rules")) if is_ours else []
        return True

    def forget(self) -> None:
        """What was made from the orders has been closed: the next `follow` returns True."""
        self._stamp = self._asked = None

    @property
    def attempt(self) -> int:
        """The number of the newest attempt, from 1."""
        return len(self.info.attempts) or 1

    @property
    def main_writer(self) -> str:
        """The id of the writer that opened it; "" if run.json does not name it."""
        return manifest.newest(self.info).writer


def _entries(listed: object) -> list[dict[str, object]]:
    if not isinstance(listed, list):
        return []
    return [entry for entry in listed if isinstance(entry, dict) and "name" in entry]


def _stamp(path: str) -> tuple[int, int] | None:
    with tolerating(OSError):
        stat = os.stat(path)
        return stat.st_ino, stat.st_mtime_ns
    return None
