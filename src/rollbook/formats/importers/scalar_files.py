"""Folders with one CSV file per metric and no header: d3rlpy's runs and TorchRL's CSVLogger."""

from __future__ import annotations

import os
from pathlib import Path

from rollbook.formats.importers._metadata import describe
from rollbook.formats.importers._plain import plain
from rollbook.formats.importers._tables import ended
from rollbook.protocols import ForeignRun, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_LONGEST_TEXT = 1_000_000


class ScalarFiles:
    """Folders with a CSV file for each metric: d3rlpy ("epoch,step,value") and TorchRL ("step,value" in `scalars/`).

    d3rlpy's step is the clock `gradient_step`, its epoch `epoch`; TorchRL's step is the clock `clock`. The files have
    no times: rows get the modification time of their file. d3rlpy's params.json and TorchRL's texts/hparams are the
    configuration.

    Args:
      clock: the clock that TorchRL's steps count.
    """

    name = "scalar_files"
    what = "d3rlpy or TorchRL logs"
    files = ("time_step.csv", "scalars/*.csv")
    gathers = True
    includes = ("csv",)

    def __init__(self, clock: str = "step") -> None:
        self._clock = clock

    def finds(self, path: Path) -> bool:
        """Whether there is such a folder."""
        return next(_run_folders(path), None) is not None

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """A run for each folder, with the folder's name."""
        base = path.resolve()
        for folder, scalars in sorted(_run_folders(path)):
            below = "-".join(folder.relative_to(base).parts)
            run = ForeignRun(below or folder.name, clocks=(self._clock,))
            run.folder = folder
            describe(run, folder, _hparams(folder / "texts"))
            if scalars != folder:
                files = sorted(scalars.rglob("*.csv"))
            else:
                files = sorted(file for file in folder.glob("*.csv") if _is_of_a_metric(file))
            run.files = files
            run.give(
                {
                    str(file.relative_to(scalars)): lambda file=file, run=run, scalars=scalars: self._rows(
                        file, scalars, run
                    )  # type: ignore[misc]
                    for file in files
                }
            )
            yield run

    def _rows(self, file: Path, scalars: Path, run: ForeignRun) -> Iterator[Row]:
        key = file.relative_to(scalars).as_posix().removesuffix(".csv")
        moment = os.stat(file).st_mtime
        with open(file, encoding="utf-8", errors="backslashreplace") as stream:
            header: list[str] = []
            for line in ended(stream, file, run):
                cells = line.rstrip("\n").split(",")
                if cells[:2] == ["epoch", "step"]:
                    header = cells[2:]
                elif (row := self._row(moment, key, cells, header)) is not None:
                    yield row
                else:
                    run.lose(f"lines of {file.name} that are no step and value")

    def _row(self, moment: float, key: str, cells: list[str], header: list[str]) -> Row | None:
        try:
            numbers = [float(cell) for cell in cells]
            if header and len(numbers) == len(header) + 2:
                values = {f"{key}/{name}": number for name, number in zip(header, numbers[2:], strict=True)}
                return Row(moment, {"epoch": int(cells[0]), "gradient_step": int(cells[1])}, values)
            if len(numbers) == 3:
                return Row(moment, {"epoch": int(cells[0]), "gradient_step": int(cells[1])}, {key: numbers[2]})
            if len(numbers) == 2:
                return Row(moment, {self._clock: int(cells[0])}, {key: numbers[1]})
        except ValueError:
            pass
        return None


def _run_folders(path: Path) -> Iterator[tuple[Path, Path]]:
    """(the run's folder, the folder of its files)."""
    if not path.is_dir():
        return
    base = path.resolve()
    for file in base.rglob("time_step.csv"):
        if (file.parent / "params.json").is_file():
            yield file.parent, file.parent
    for folder in ([base / "scalars"] if (base / "scalars").is_dir() else []) + [*base.rglob("*/scalars")]:
        if folder.is_dir() and (folder.parent / "texts").is_dir() and next(folder.rglob("*.csv"), None) is not None:
            yield folder.parent, folder


def _is_of_a_metric(file: Path) -> bool:
    """Whether a file in a folder of d3rlpy begins as d3rlpy's do: with a number, or the names of epoch and step."""
    try:
        with open(file, "rb") as stream:
            first = stream.read(11)
    except OSError:
        return False
    return first[:1] in b"0123456789" or first == b"epoch,step,"


def _hparams(texts: Path) -> dict[str, Any]:
    """TorchRL's hyper-parameters: lines "name: value"."""
    config: dict[str, Any] = {}
    try:
        for file in sorted(texts.glob("hparams*.txt")):
            if file.stat().st_size <= _LONGEST_TEXT:
                for line in file.read_text(encoding="utf-8", errors="backslashreplace").splitlines():
                    name, colon, value = line.partition(": ")
                    if colon:
                        config[name.strip()] = plain(value.strip())
    except OSError:
        pass
    return config
