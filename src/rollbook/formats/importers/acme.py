"""Acme's folders: `logs/<label>/logs.csv`, one file each for the learner, each actor and the evaluator."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

from rollbook.formats.importers._metadata import describe
from rollbook.formats.importers.csv import Csv
from rollbook.protocols import ForeignRun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rollbook.protocols import Row


class Acme:
    """Acme's folders (`logs/<label>/logs.csv`): a run for each, whose keys begin with the label, "learner/loss".

    Counters and times are detected as in other CSV files.
    """

    name = "acme"
    what = "Acme logs"
    files = ("logs.csv",)
    gathers = True

    def finds(self, path: Path) -> bool:
        """Whether there is such a folder."""
        return bool(_run_folders(path))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """A run for each folder that holds `logs/`, with the folder's name."""
        base = path.resolve()
        for folder, files in sorted(_run_folders(path).items()):
            below = "-".join(folder.relative_to(base).parts) if folder != base and base in folder.parents else ""
            run = ForeignRun(below or folder.name, files=files)
            run.folder = folder
            describe(run, folder)
            parts: dict[str, Callable[[], Iterable[Row]]] = {}
            for file in files:
                inner = Csv().of_files(file.parent, [file])
                inner.left_out = run.left_out
                label = file.parent.name
                parts[label] = functools.partial(_under, label, inner.parts[file.name])
            run.give(parts)
            yield run


def _under(label: str, rows: Callable[[], Iterable[Row]]) -> Iterator[Row]:
    for row in rows():
        yield dataclasses.replace(row, values={f"{label}/{key}": value for key, value in row.values.items()})


def _run_folders(path: Path) -> dict[Path, list[Path]]:
    """The folder of each run, with its files."""
    folders: dict[Path, list[Path]] = {}
    if path.is_dir():
        base = path.resolve()
        for file in sorted(base.rglob("logs.csv")):
            if file.parent.parent.name == "logs" and file.is_file():
                folders.setdefault(file.parents[2], []).append(file)
    return folders
