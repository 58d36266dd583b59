"""The contract of importers."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from rollbook.protocols import ForeignRun, Importer, Row, Scalars
from rollbook.testing.naming import naming
from rollbook.testing.rows import folder_of_check
from rollbook.values.spool.picture_files import PNG_SIGNATURE

MakeImporter: TypeAlias = Callable[[], Importer]


def check_importer(make_importer: MakeImporter, sample: Path, tmp_path: Path) -> None:
    """Run every check of `IMPORTER_CHECKS`.

    Args:
      make_importer: makes a new importer.
      sample: a source that it reads, with at least three rows in one file.
      tmp_path: an empty folder, or none yet.
    Raises:
      AssertionError: a check failed. A note names the rule, also at what the importer itself raises.
      ValueError: there is no sample, or `tmp_path` is no empty folder.
    """
    if not Path(sample).exists():
        raise ValueError(f"there is no sample {sample}: pass a file or folder that the importer reads")
    for name, check in IMPORTER_CHECKS.items():
        with naming(name, check):
            check(make_importer, sample, folder_of_check(tmp_path, name))


def finds_its_own_and_nothing_else(make_importer: MakeImporter, sample: Path, folder: Path) -> None:
    """It recognises what it can read and ignores the rest; neither ever raises."""
    importer = make_importer()
    if not importer.name or not (type(importer).__doc__ or "").strip():
        raise AssertionError("an importer has a name, and a docstring whose first line says what it reads")
    if not importer.finds(sample):
        raise AssertionError(f"it does not find what it reads: {sample}")
    (folder / "empty").mkdir()
    (folder / "picture.png").write_bytes(PNG_SIGNATURE)
    for stranger in (folder / "empty", folder / "picture.png", folder / "nowhere"):
        if importer.finds(stranger):
            raise AssertionError(f"it believes that it reads {stranger.name}")


def gives_rows_with_times_and_the_same_ones_each_time(make_importer: MakeImporter, sample: Path, folder: Path) -> None:
    """Rows have their own times and some content, and always come in the same order: an import resumes where it
    stopped."""
    first = [(run.name, list(run.rows())) for run in make_importer().runs(sample)]
    if not first or not any(rows for _name, rows in first):
        raise AssertionError(f"it reads no rows from {sample}")
    if len({name for name, _rows in first}) != len(first):
        raise AssertionError(f"two runs have one name: {[name for name, _rows in first]}")
    for _name, rows in first:
        for row in rows:
            if not isinstance(row, Row) or not math.isfinite(row.time) or not row.values:
                raise AssertionError(f"a row needs a time and values, and is a rollbook.protocols.Row: {row!r}")
    second = [(run.name, list(run.rows())) for run in make_importer().runs(sample)]
    if repr(first) != repr(second):
        raise AssertionError("a second reading gave other rows")
    for run, (_name, rows) in zip(make_importer().runs(sample), first, strict=True):
        if run.columns is not None:
            single = [row for item in run.columns() for row in (item.rows() if isinstance(item, Scalars) else [item])]
            if repr(single) != repr(rows):
                raise AssertionError(f"`columns` of {run.name} gives other rows than `rows`")


def reads_what_can_be_read_of_a_damaged_source(make_importer: MakeImporter, sample: Path, folder: Path) -> None:
    """If the source is cut anywhere or has changed bytes, it returns what is readable, raises nothing, and counts the
    rest."""
    whole = _rows(make_importer, sample)[0]
    for n, (path, damaged) in enumerate(_damaged(sample, folder)):
        rows, left_out = _rows(make_importer, path)
        if len(rows) > len(whole) + 1:
            raise AssertionError(f"damaged ({damaged}, {n}) it gives {len(rows)} rows, whole {len(whole)}")
        if len(rows) < len(whole) and damaged == "bytes changed" and not left_out:
            raise AssertionError(
                f"damaged ({damaged}) it gives {len(rows)} of {len(whole)} rows and does not report the others"
            )


def changes_no_byte_of_its_source(make_importer: MakeImporter, sample: Path, folder: Path) -> None:
    """Files, their times and names stay unchanged; no other file appears, such as a database's journal."""
    watched = sample if sample.is_dir() else sample.parent
    before = _contents(watched)
    importer = make_importer()
    importer.finds(sample)
    for run in importer.runs(sample):
        for _row in run.read_details().rows():
            pass
    after = _contents(watched)
    if after != before:
        changed = sorted({name for name, _what in before.items() ^ after.items()})
        raise AssertionError(f"reading changed its source: {', '.join(changed)}")


IMPORTER_CHECKS: dict[str, Callable[[MakeImporter, Path, Path], None]] = {
    check.__name__: check
    for check in (
        finds_its_own_and_nothing_else,
        gives_rows_with_times_and_the_same_ones_each_time,
        reads_what_can_be_read_of_a_damaged_source,
        changes_no_byte_of_its_source,
    )
}
"""Name -> check(make_importer, sample, empty folder)."""


def _contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Each file below a folder with its content; each folder with the time of its last change."""
    return {
        str(path.relative_to(folder)): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in [folder, *folder.rglob("*")]
    }


def _rows(make_importer: MakeImporter, path: Path) -> tuple[list[Row], dict[str, int]]:
    rows: list[Row] = []
    left_out: dict[str, int] = {}
    runs: list[ForeignRun] = list(make_importer().runs(path))
    for run in runs:
        rows += run.rows()
        left_out.update(run.left_out)
    return rows, left_out


def _damaged(sample: Path, folder: Path) -> list[tuple[Path, str]]:
    """Copies of a sample whose largest file is cut short, or has changed bytes in its middle."""
    import shutil

    copies = []
    for n, share in enumerate((0.0, 0.1, 0.5, 0.9, 0.99)):
        for damaged in ("cut", "bytes changed"):
            copy = folder / f"{n}-{damaged[0]}" / sample.name
            copy.parent.mkdir()
            if sample.is_dir():
                shutil.copytree(sample, copy)
            else:
                shutil.copyfile(sample, copy)
            largest = max((p for p in [copy, *copy.rglob("*")] if p.is_file()), key=lambda path: path.stat().st_size)
            data = largest.read_bytes()
            at = int(share * len(data))
            changed = data[:at] + bytes(byte ^ 0xA5 for byte in data[at : at + 12]) + data[at + 12 :]
            largest.write_bytes(data[:at] if damaged == "cut" else changed)
            copies.append((copy, damaged))
    return copies
