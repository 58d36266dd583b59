"""The files of a finished small run: which there are whatever opened it."""

from __future__ import annotations

import os
from pathlib import Path

FEW = {
    "data/abandoned.parquet",
    "data/keeper/finished.json",
    "data/marks",
    "data/metrics/long",
    "data/metrics/long/0.columns.parquet",
    "data/metrics/wide/0.columns.parquet",
    "data/writers.parquet",
    "run.json",
}
"""Those of a run of one row; for the files of rows their folders, of which each has one."""


def files_of(folder: Path) -> list[str]:
    """All files of a run."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def without_names(folder: Path) -> list[str]:
    """The same, for the files of rows their folders."""
    is_rows = (".L00.", "/merged.")
    return sorted(os.path.dirname(name) if any(mark in name for mark in is_rows) else name for name in files_of(folder))


def empty_folders(folder: Path) -> list[Path]:
    """Folders of a run with nothing in them."""
    return [path for path in folder.rglob("*") if path.is_dir() and not any(path.iterdir())]
