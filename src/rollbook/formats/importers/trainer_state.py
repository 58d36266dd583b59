"""Hugging Face's trainer_state.json: the log of transformers' Trainer (and so of TRL) up to a checkpoint."""

from __future__ import annotations

import functools
import json
import os
import re
from pathlib import Path

from rollbook.formats.importers._metadata import config_near
from rollbook.formats.importers._plain import flat
from rollbook.protocols import ForeignRun, Row
from rollbook.schema.seeds import named_seed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_LONGEST = 512 * 1024 * 1024
_NAME = "trainer_state.json"
_CHECKPOINT = re.compile(r"checkpoint-(\d+)")


class TrainerState:
    """Hugging Face's trainer_state.json (transformers, TRL): the log of the newest checkpoint below a folder.

    `step` is the clock `gradient_step`; `epoch` is a fraction and stays a value. The file has no times: all rows get
    its modification time. If the folder also holds the Trainer's event files, which have times, those are read instead.
    """

    name = "trainer_state"
    what = "transformers trainer state"
    files = (_NAME,)
    gathers = True

    def finds(self, path: Path) -> bool:
        """Whether there is such a file."""
        return bool(_newest(path))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """A run for each folder of checkpoints, with the folder's name."""
        base = path.resolve() if path.is_dir() else path.resolve().parent
        for folder, file in sorted(_newest(path).items()):
            try:
                below = "-".join(folder.relative_to(base).parts)
            except ValueError:
                below = ""
            if path.is_dir() and next((folder / "runs").glob("*/*tfevents*"), None) is not None:
                continue
            config = config_near(folder)
            run = ForeignRun(below or folder.name, config=config, seed=named_seed(config), files=[file])
            run.folder = folder
            run.rows = functools.partial(self._rows, file, run)
            yield run

    def _rows(self, file: Path, run: ForeignRun) -> Iterator[Row]:
        run.left_out.clear()
        try:
            moment = os.stat(file).st_mtime
            state = json.loads(file.read_bytes().decode("utf-8", "backslashreplace"))
            logged = state["log_history"]
            if not isinstance(logged, list):
                raise TypeError
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            run.lose("files that are no state of a Trainer")
            return
        for entry in logged:
            step = entry.get("step") if isinstance(entry, dict) else None
            if not isinstance(step, int):
                run.lose("entries without a step")
                continue
            values: dict[str, Any] = {}
            flat("", {key: value for key, value in entry.items() if key != "step"}, values, run.leave_out)
            if values:
                yield Row(moment, {"gradient_step": step}, values)


def _newest(path: Path) -> dict[Path, Path]:
    """Folder of checkpoints -> its most complete state: its own, else that of the last checkpoint."""
    files = [path] if path.is_file() and path.name == _NAME else []
    if path.is_dir():
        files = [file for file in path.rglob(_NAME) if file.is_file() and file.stat().st_size <= _LONGEST]
    newest: dict[Path, tuple[float, Path]] = {}
    for file in files:
        folder = file.resolve().parent
        match = _CHECKPOINT.fullmatch(folder.name)
        run_folder, order = (folder.parent, int(match[1])) if match and path.is_dir() else (folder, float("inf"))
        if run_folder not in newest or newest[run_folder][0] < order:
            newest[run_folder] = (order, file.resolve())
    return {run_folder: file for run_folder, (_order, file) in newest.items()}
