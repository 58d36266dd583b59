"""Files of other tools that a run of rollbook names as its own training's: they are shown once, as that run.

An adapter notes the folder in which its framework writes (`native` in run.json) when it opens or joins a run, so that
this holds from the first moment on. What was there before the run, or came after it, is a training of its own.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from rollbook.schema.manifest import RunJson

_SLACK_S = 60.0
"""A framework may open its files before the run, and close them after it."""


class Recorded:
    """The folders that runs name, each with when.

    Args:
      own: folders of runs of rollbook, each with its run.json.
    """

    def __init__(self, own: Mapping[str, RunJson]) -> None:
        self._spans: dict[str, list[tuple[float, float, bool]]] = {}
        for path, about in own.items():
            stop = float("inf") if about.ended is None else about.ended + _SLACK_S
            span = (about.created or 0.0) - _SLACK_S, stop
            for native in about.native or ():
                folder = os.path.normpath(os.path.join(path, native))
                holds_the_run = os.path.basename(native) == os.pardir  # deeper files may belong to anything
                self._spans.setdefault(folder, []).append((*span, holds_the_run))

    def holds(self, files: Iterable[Path]) -> bool:
        """Whether all of these files belong to trainings that runs recorded. Not if there are none."""
        files = list(files)
        return bool(self._spans) and bool(files) and all(map(self._is_one, files))

    def _is_one(self, file: Path) -> bool:
        try:
            changed = os.stat(file).st_mtime
        except OSError:
            return False
        parent = os.path.abspath(file.parent)
        for folder in (parent, *map(str, file.parent.absolute().parents)):
            for start, stop, holds_the_run in self._spans.get(folder, ()):
                if start <= changed <= stop and (folder == parent or not holds_the_run):
                    return True
        return False
