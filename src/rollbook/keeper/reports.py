"""The keeper's reports in files: how far it is, which sinks get nothing, and lines in its log."""

from __future__ import annotations

import os
import time

from rollbook.ground.files import read_json, write_json
from rollbook.ground.foreign import tolerating
from rollbook.ground.liveness import identity
from rollbook.keeper.own_files import keeper_folder, state_path, troubles_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Reports:
    """state.json, troubles.json and the log of one run's keeper. A file is replaced only when its content changes.

    Args:
      run_folder: the run's folder.
    Attributes:
      signal_name: the signal that wakes the keeper, "" if none does.
      entry: the file by which a keeper of many runs knows this one, "" in a keeper of one run.
    """

    def __init__(self, run_folder: str) -> None:
        self._folder = run_folder
        self.signal_name = self.entry = ""
        self._state: dict[str, object] = {}
        self._troubles = read_json(troubles_path(run_folder))  # troubles of an earlier keeper are over

    def state(self, phase: str, complete: Iterable[str]) -> None:
        """Report how far the keeper is: `finish()` in the training process reads it.

        Raises:
          OSError: the file cannot be written; the next call tries again.
        """
        state = {**identity(), "phase": phase, "complete": sorted(complete), "signal": self.signal_name}
        if self.entry:
            state["entry"] = self.entry
        if state != self._state:
            write_json(state_path(self._folder), state)
            self._state = state

    @property
    def has_troubles(self) -> bool:
        """Whether the last report had any trouble."""
        return bool(self._troubles)

    def troubles(self, troubles: Mapping[str, object]) -> None:
        """Report which sinks get nothing, and what else is not done: the training process and `rollbook show` read it.

        Raises:
          OSError: the file cannot be written; the next call tries again.
        """
        if troubles != self._troubles:
            write_json(troubles_path(self._folder), troubles)
            self._troubles = dict(troubles)

    def note(self, _cause: str, words: str) -> None:
        """Write a line to data/keeper/log."""
        line = f"{time.strftime('%Y-%m-%d %H:%M:%S')} {words}\n"
        path = os.path.join(keeper_folder(self._folder), "log")
        with tolerating(OSError), open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(line)
