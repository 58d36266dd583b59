"""Once a second: sync what was logged, so that it survives a power loss, record how far, and signal that rows arrive.

Writes to a mapped file reach the disk at any time and in any order, and raise no event that others could wait for. So
the keeper syncs the changed files, writes the durable mark (after a reboot, only rows up to it count), and replaces
data/keeper/heartbeat, the one file that tails, catalogs and dashboards watch.
"""

from __future__ import annotations

import os
import sys

from rollbook.journal import Positions
from rollbook.keeper.own_files import keeper_folder
from rollbook.keeper.writers import GRAIN_NS
from rollbook.schema.run_files import RunFile, heartbeat_path, journal_folder
from rollbook.system.files import is_loose, read_json, write_json
from rollbook.system.guard import tolerating
from rollbook.system.liveness import boot_id, host_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from rollbook.keeper.writers import KnownWriter

_HEARTBEAT_SECONDS = 15.0
"""How often the heartbeat is renewed while a writer lives but logs nothing; readers call a run stale after 60 s."""
_WRITTEN_SECONDS = 60.0
"""How often the heartbeat includes the writers' positions when no keeper on another host reads them: they are then only
for people."""


class Durable:
    """Syncs and publishes the positions of all writers on this host (and in this pid namespace).

    Args:
      run_folder: the run's folder.
      clock: seconds, monotonic.
      sync_file: writes the data of a file to the disk.
    Attributes:
      lanes: {writer: {lane: last sequence number}} at the last step, of this host's writers.
      marks: the same, of what is safe on the disk.
      held_back: durable.json still has marks from before this machine's last reboot, and rows in the journal are judged
        by them. It must not be replaced before those rows are sealed.
    """

    def __init__(
        self, run_folder: str, clock: Callable[[], float], *, sync_file: Callable[[str], None] | None = None
    ) -> None:
        self._sync_file = sync_file or _sync_file
        folder = keeper_folder(run_folder)
        self._journal = journal_folder(run_folder)
        self._heartbeat_path = heartbeat_path(os.path.abspath(run_folder))
        self._durable_path = os.path.join(folder, RunFile.DURABLE)
        self._clock, self._boot = clock, boot_id()
        self._positions: dict[str, Positions] = {}
        self._beat_at = self._own_at = -1e9
        self._published: dict[str, dict[str, int]] = {}
        self._written_at, self._written = -1e9, frozenset[str]()  # when the heartbeat was replaced, with which writers
        self.lanes: dict[str, dict[str, int]] = {}
        self.marks: dict[str, dict[str, int]] = {}
        self.held_back = self._is_of_former_boot()

    def step(
        self, writers: Iterable[KnownWriter], *, alive: bool, alone: bool, sync: bool = True, own: str = ""
    ) -> list[str]:
        """Sync and publish what is new.

        Args:
          writers: the writers on this host.
          alive: one of them may still write; then the heartbeat goes on without rows.
          alone: no writers on other hosts have entries in the two files that must be kept.
          sync: write new data to the disk; otherwise only signal that rows arrive.
          own: the keeper's own writer. While others live, its rows are synced only as often as the heartbeat of silent
            writers.
        Returns:
          The writers with new rows, without `own`.
        Raises:
          OSError: a file of the keeper cannot be written. What was synced counts at the next step.
        """
        changed: list[str] = []
        present = set()
        now = self._clock()
        due = alive and now - self._beat_at >= _HEARTBEAT_SECONDS
        own_due = not alive or now - self._own_at >= _HEARTBEAT_SECONDS
        for writer in writers:
            present.add(writer.id)
            if writer.id == own:
                if not own_due:
                    continue
                self._own_at = now
            positions = self._positions.setdefault(writer.id, Positions(writer.folder, GRAIN_NS))
            lanes = positions.look()
            positions.settle()
            before = self.lanes.get(writer.id, {})
            if any(seq > before.get(lane, 0) for lane, seq in lanes.items()):
                if writer.id != own:
                    changed.append(writer.id)
                # The sequence numbers of a sealed file are gone from the folder; the lane's last number must not go
                # back.
                self.lanes[writer.id] = {**before, **{k: max(v, before.get(k, 0)) for k, v in lanes.items()}}
            if sync and self._sync(positions) and writer.id in self.lanes:
                self.marks[writer.id] = dict(self.lanes[writer.id])
        for gone in self._positions.keys() - present:
            self._positions.pop(gone).let_go()
            self.lanes.pop(gone, None)
            self.marks.pop(gone, None)
        if self.marks != self._published and not self.held_back:
            self._publish(self._durable_path, {"boot_id": self._boot, "marks": self.marks}, "marks", alone)
            self._published = {writer: dict(lanes) for writer, lanes in self.marks.items()}
        if changed or due:
            self._beat(alone)
        return changed

    def quiet(self, own: str) -> bool:
        """Whether no writer on this host except the keeper's wrote anything, or closed, since the last step. Takes
        microseconds."""
        return all(positions.quiet() for id, positions in self._positions.items() if id != own)

    def let_go(self) -> None:
        """Close the files that are kept open to check quickly for new rows."""
        for positions in self._positions.values():
            positions.let_go()

    def waiting(self, writers: Iterable[KnownWriter], own: str = "") -> list[tuple[str, int]]:
        """(path, bytes) of the journal files that can be sealed: their writers have left them or have gone. `own`, the
        keeper's writer, has not."""
        waiting: list[tuple[str, int]] = []
        for writer in writers:
            positions = self._positions.get(writer.id)
            gone = writer.id != own and (writer.closed or writer.dead)
            for file in positions.files.values() if positions is not None else ():
                if file.left or (gone and file.last):
                    waiting.append((file.path, file.size))
        return waiting

    def unsealed_bytes(self) -> int:
        """The size of all journal files of this host."""
        return sum(file.size for positions in self._positions.values() for file in positions.files.values())

    def _is_of_former_boot(self) -> bool:
        noted = read_json(self._durable_path)
        former, marks = noted.get("boot_id"), noted.get("marks")
        if former == self._boot or not isinstance(marks, dict):
            return False
        for writer in marks:
            about = read_json(os.path.join(self._journal, str(writer), RunFile.WRITER))
            if about.get("boot_id") == former and about.get("host") == host_name():
                return True
        return False

    def _sync(self, positions: Positions) -> bool:
        """Sync the changed files. If one cannot be synced, returns False: then nothing new counts as durable."""
        for file in positions.files.values():
            if not file.changed:
                continue
            file.changed = False
            # A file that was sealed in between is gone, which is even safer.
            with tolerating(OSError) as failed, tolerating(FileNotFoundError):
                self._sync_file(file.path)
            if failed:
                file.changed = True
                return False
        with tolerating(OSError):
            for folder in (positions.folder, self._journal) if positions.new_names else ():
                _sync_folder(folder)
            positions.new_names = False
            return True
        return False

    def _beat(self, alone: bool) -> None:
        """Signal that rows arrive. Watchers look at the file's time: touching it costs a tenth of replacing it. The
        file holds the positions for keepers on other hosts."""
        self._beat_at = now = self._clock()
        if alone and now - self._written_at < _WRITTEN_SECONDS and self.lanes.keys() == self._written:
            with tolerating(OSError):
                os.utime(self._heartbeat_path)
                return
        self._publish(self._heartbeat_path, dict(self.lanes), "", alone)
        self._written_at, self._written = now, frozenset(self.lanes)

    def _publish(self, path: str, data: dict[str, Any], inside: str, alone: bool) -> None:
        if not alone:
            # Keepers on other hosts write here too: keep their entries. Two writes at one moment may lose one for a
            # second.
            noted = read_json(path)
            theirs = noted.get(inside) if inside else noted
            mine = data[inside] if inside else data
            present = set(os.listdir(self._journal))
            of_others = {w: lanes for w, lanes in theirs.items() if w in present} if isinstance(theirs, dict) else {}
            merged = {**of_others, **mine}
            data = {**data, inside: merged} if inside else merged
        write_json(path, data)


def _sync_file(path: str) -> None:
    if is_loose():
        return
    fd = os.open(path, (os.O_RDWR if os.name == "nt" else os.O_RDONLY) | getattr(os, "O_CLOEXEC", 0))
    try:
        if sys.platform == "darwin":  # fsync there stops at the drive's own cache
            import fcntl

            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        else:
            getattr(os, "fdatasync", os.fsync)(fd)
    finally:
        os.close(fd)


def _sync_folder(path: str) -> None:
    if os.name == "nt" or is_loose():  # folders cannot be opened there
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
