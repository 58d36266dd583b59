"""What run.json says of a run, as it stands now."""

from __future__ import annotations

import os
from typing import Any

from rollbook.ground import manifest
from rollbook.ground.foreign import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.ground.shapes import RunJson

__all__ = ["RunFields"]


class RunFields:
    """The fields of a run's run.json; the file is read again when it has changed.

    Args:
      folder: the run's folder.
    Raises:
      NotARun: there is no readable run.json. NewerFormat: a later rollbook wrote it.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._info: RunJson = manifest.read(folder)
        self._info_stamp = self._stamp()

    @property
    def info(self) -> RunJson:
        """The content of run.json, as it stands now."""
        stamp = self._stamp()
        if stamp != self._info_stamp:
            self._info, self._info_stamp = manifest.read(self._folder), stamp
        return self._info

    @property
    def id(self) -> str:
        """The run's id."""
        return self.info["id"]

    @property
    def project(self) -> str:
        """The project it belongs to."""
        return self.info["project"]

    @property
    def name(self) -> str:
        """Its name, which need not be unique."""
        return self.info["name"]

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of the newest life; that of each one is in `attempts`."""
        return dict(self.info["config"])

    @property
    def seed(self) -> int | None:
        """Its seed."""
        return self.info.get("seed")

    @property
    def tags(self) -> list[str]:
        """Its tags."""
        return list(self.info["tags"])

    @property
    def group(self) -> str | None:
        """Its group."""
        return self.info.get("group")

    @property
    def attempts(self) -> list[dict[str, Any]]:
        """The run's lives, oldest first.

        Each is a dict: n, parent and cut (where it goes on from), started, ended, status, writer, host, offsets, and
        what it was started with: config, seed, git and packages.
        """
        return manifest.attempts(self.info)

    @property
    def failure(self) -> dict[str, str] | None:
        """What ended the newest attempt before its time; None if nothing did, or if it had no time to be noted.

        A dict of texts: type ("torch.OutOfMemoryError", "KeyboardInterrupt", "SIGTERM" …), message, traceback, and
        stderr: the last lines of the error output where that went into a file, else "". A `crashed` run without one
        was ended from outside: SIGKILL, the out-of-memory killer, a power loss.
        """
        return manifest.failure(self.info)

    @property
    def clocks(self) -> tuple[str, ...]:
        """All clocks of the run, the standard ones first."""
        return tuple(self.info["clocks"])

    def _stamp(self) -> tuple[int, int]:
        with tolerating(OSError):
            stat = os.stat(manifest.path_of(self._folder))
            return stat.st_mtime_ns, stat.st_ino
        return (0, 0)
