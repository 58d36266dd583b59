"""A copy of the folder of a run that is being written."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path


def copy_live(run: str | Path, folder: Path) -> Path:
    """Copy a folder whose run goes on: a lock or an unfinished file that is gone before its turn is left out."""

    def copied(source: str, target: str) -> None:
        with suppress(FileNotFoundError):
            shutil.copy2(source, target)

    return Path(shutil.copytree(run, folder, copy_function=copied))
