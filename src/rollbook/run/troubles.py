"""Counts failing sinks, as the keeper reports them, in the run's bill; reports each once."""

from __future__ import annotations

import os

from rollbook.schema.run_files import RunFile
from rollbook.system.files import read_json
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Protocol

    from rollbook.run.open_run import OpenRun
    from rollbook.run.process_state import Parts

    class _CountingRun(OpenRun, Protocol):
        """What else is needed of the run."""

        def count(self, cause: str, n: int = 1, message: str = "", name: str = "") -> None: ...


_CAUSES = {"remote": "remote", "seal": "seal_failures"}
"""Other work of the keeper -> the cause under which its failures are counted."""


class Troubles:
    """Reads data/keeper/troubles.json of a run that is being written, and remembers what was read."""

    def __init__(self, run: _CountingRun) -> None:
        self._run = run
        self._stamp = self._written()  # troubles of an earlier attempt are in its own bill
        self._reported: dict[str, int] = {}

    def poll(self) -> bool:
        """Count new troubles; returns whether there were any."""
        stamp = self._written()
        if stamp in (0, self._stamp):
            return False
        is_new = False
        for name, trouble in read_json(self._path).items():
            failures = trouble.get("failures") if isinstance(trouble, dict) else None
            if type(failures) is int and failures > self._reported.get(name, 0):
                message = f"{trouble.get('words')}. See data/keeper/log in the run's folder"
                cause = _CAUSES.get(name) or f"sink_{name}"
                self._run.count(cause, failures - self._reported.get(name, 0), message=message)
                self._reported[name] = failures
                is_new = True
        self._stamp = stamp
        return is_new

    def _written(self) -> int:
        with tolerating(OSError):
            return os.stat(self._path).st_mtime_ns
        return 0

    @property
    def _path(self) -> str:
        return os.path.join(self._run.folder, RunFile.KEEPER, RunFile.TROUBLES)


def keeper_bill(folder: Path, parts: Parts) -> dict[str, object]:
    """The keeper's part of `Run.bill`; {} for a writer without a keeper."""
    if not parts.keeper:
        return {}
    from rollbook.keeper.own_files import Lock, troubles_path

    troubles = read_json(troubles_path(str(folder)))
    return {
        "at_work": Lock(str(folder)).taken(),
        "restarts": parts.keeper_watch.starts if parts.keeper_watch is not None else 0,
        "troubles": {what: str(why.get("words")) for what, why in troubles.items() if isinstance(why, dict)},
    }
