"""The fields of a run's run.json, as it is now."""

from __future__ import annotations

import os
from typing import Any

from rollbook.schema import manifest
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.schema.manifest import RunJson


class RunFields:
    """The fields of a run's run.json; the file is read again when it has changed.

    Args:
      folder: the run's folder.
    Raises:
      NotARun: there is no readable run.json.
      NewerFormat: a later rollbook wrote the run.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._info: RunJson = manifest.read(folder)
        self._info_stamp = self._stamp()

    @property
    def info(self) -> RunJson:
        """The current content of run.json."""
        stamp = self._stamp()
        if stamp != self._info_stamp:
            self._info, self._info_stamp = manifest.read(self._folder), stamp
        return self._info

    @property
    def id(self) -> str:
        """The run's id."""
        return self.info.id

    @property
    def project(self) -> str:
        """Its project."""
        return self.info.project

    @property
    def name(self) -> str:
        """Its name, which need not be unique."""
        return self.info.name

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of the newest attempt; `attempts` has that of each one."""
        return dict(self.info.config)

    @property
    def seed(self) -> int | None:
        """Its seed."""
        return self.info.seed

    @property
    def tags(self) -> list[str]:
        """Its tags."""
        return list(self.info.tags)

    @property
    def group(self) -> str | None:
        """Its group."""
        return self.info.group

    @property
    def attempts(self) -> list[dict[str, Any]]:
        """The run's attempts, oldest first.

        Each is a dict: n, parent and cut (where it continues from), started, ended, status, writer, host, offsets, and
        what it was started with: config, seed, git and packages.
        """
        return manifest.attempts(self.info)

    @property
    def failure(self) -> dict[str, str] | None:
        """Why the newest attempt ended early; None if it did not, or if there was no time to record it.

        A dict of texts: type ("torch.OutOfMemoryError", "KeyboardInterrupt", "SIGTERM" …), message, traceback, and
        stderr (the last lines of the error output if that went to a file, else ""). If a `crashed` run has None, it was
        ended from outside: SIGKILL, the out-of-memory killer, a power loss.
        """
        return manifest.failure(self.info)

    @property
    def clocks(self) -> tuple[str, ...]:
        """All clocks of the run, the standard ones first."""
        return tuple(self.info.clocks)

    def _stamp(self) -> tuple[int, int]:
        with tolerating(OSError):
            stat = os.stat(manifest.path_of(self._folder))
            return stat.st_mtime_ns, stat.st_ino
        return (0, 0)
