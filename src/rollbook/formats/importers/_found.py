"""A run of another tool, as the walk below a folder finds it."""

from __future__ import annotations

import contextlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from rollbook.formats.importers._paths import PathFacts
    from rollbook.protocols import ForeignRun


class FoundRun:
    """A run of another tool.

    Attributes:
      run: the run, with its name.
      format_name: the format that reads it; further ones may add to it.
      found_in: the folder or file that was given to the importer.
      identity: recognises it the next time, whatever its name has become.
      parts: the folders of its path below the folder that was opened.
      changed: when the newest of its files changed.
      path_facts: what its path says; None if the run is not one of a path.
    """

    __slots__ = ("changed", "format_name", "found_in", "identity", "parts", "path_facts", "run")

    def __init__(self, run: ForeignRun, format_name: str, found_in: Path) -> None:
        self.run, self.format_name, self.found_in = run, format_name, found_in
        folder = os.path.abspath(found_in if run.folder is None else run.folder)
        own = run.part if run.folder is not None else f"{run.project or ''}\0{run.name}"
        own = own if run.key is None else run.key
        self.identity = f"{format_name}\0{folder}\0{own}"
        self.parts: tuple[str, ...] = ()
        self.changed = 0
        self.path_facts: PathFacts | None = None

    @property
    def labelled(self) -> Path:
        """The file or folder that labels speak of: the file of a run that is one of several in a folder."""
        run = self.run
        return run.files[0] if run.files and (run.part or run.folder is None) else run.folder or self.found_in

    def stamp(self) -> None:
        """Note when the newest of its files changed."""
        with contextlib.suppress(OSError):
            self.changed = max((os.stat(file).st_mtime_ns for file in self.run.files), default=0)
