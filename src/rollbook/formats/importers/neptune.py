"""Neptune's runs as neptune-exporter wrote them: `<data>/<project>/<run>_part_<n>.parquet`.

Its schema is one long table: an attribute's path and type, step, time, and a column for each kind of value
(neptune-exporter 0.1, src/neptune_exporter/model.py). A run is complete once its part 0 exists.
"""

from __future__ import annotations

import functools
import itertools
import re
from pathlib import Path

from rollbook.formats.importers._media import media_row
from rollbook.formats.importers._metadata import with_own_names
from rollbook.formats.importers._plain import nested
from rollbook.protocols import ForeignRun, Row, Scalars
from rollbook.schema.seeds import named_seed
from rollbook.values import Histogram

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_PART = re.compile(r"(?P<run>.+)_part_(?P<n>\d+)\.parquet")
_WANTED = {"project_id", "run_id", "attribute_path", "attribute_type", "step", "timestamp", "float_value"}
_VALUES = {
    "float": "float_value",
    "int": "int_value",
    "string": "string_value",
    "bool": "bool_value",
    "datetime": "datetime_value",
    "string_set": "string_set_value",
}
_OF_NEPTUNE = ("sys/", "source_code/", "monitoring/")
_BATCH = 16_384
_LATEST = 7e9
_LARGEST_FILE = 64 * 1024 * 1024


class Neptune:
    """Exports of neptune-exporter (`*_part_<n>.parquet`): metrics, texts, histograms, configuration, tags, status.

    Values below `monitoring/` are `system/…`. Steps that are not whole numbers are kept as `clock/step`. Pictures are
    read from `files/` next to the folder of the data, if they are there.

    Args:
      clock: the clock that Neptune's steps count.
    """

    name = "neptune"
    what = "Neptune export"
    files = ("*_part_0.parquet",)

    def __init__(self, clock: str = "step") -> None:
        self._clock = clock

    def finds(self, path: Path) -> bool:
        """Whether there is such an export."""
        return next(iter(_files(path)), None) is not None

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """A run for each part 0, with its recorded name, and its id if two have the same name."""
        made = [self._run(parts) for parts in _files(path)]
        return with_own_names((run, _attributes(run.files).get("sys/id") or run.files[0].stem) for run in made)

    def _run(self, parts: tuple[Path, ...]) -> ForeignRun:
        attributes = _attributes(parts)
        run = ForeignRun(
            str(
                attributes.get("sys/name")
                or attributes.get("sys/custom_run_id")
                or attributes.get("sys/id")
                or attributes.get("run_id")
            )
        )
        run.config = nested({path: value for path, value in attributes.items() if not path.startswith(_OF_NEPTUNE)})
        for name in ("run_id", "project_id"):
            run.config.pop(name, None)
        run.seed = named_seed(run.config)
        run.project = str(attributes.get("project_id") or "neptune").rpartition("/")[2]
        groups = attributes.get("sys/group_tags")
        run.group = str(groups[0]) if isinstance(groups, list) and groups else None
        run.tags = tuple(map(str, attributes.get("sys/tags") or ()))
        run.notes = str(attributes.get("sys/description") or "")
        run.status = "crashed" if attributes.get("sys/failed") is True else "finished"
        run.clocks, run.files = (self._clock,), parts
        run.columns = lambda: self._columns(run, parts)
        run.rows = lambda: (row for item in self._columns(run, parts) for row in _each(item))
        return run

    def _columns(self, run: ForeignRun, parts: tuple[Path, ...]) -> Iterator[Row | Scalars]:
        run.left_out.clear()
        for part in parts:
            yield from self._of_part(run, part)

    def _of_part(self, run: ForeignRun, part: Path) -> Iterator[Row | Scalars]:
        import numpy as np
        import pyarrow as pa

        try:
            for batch in _batches(part):
                kinds = batch["attribute_type"].to_numpy(zero_copy_only=False)
                edges = [0, *(np.flatnonzero(kinds[1:] != kinds[:-1]) + 1).tolist(), len(kinds)]
                for start, stop in itertools.pairwise(edges):
                    kind, rows = str(kinds[start]), batch.slice(start, stop - start)
                    if kind == "float_series":
                        yield from self._numbers(rows, run)
                    elif kind not in _VALUES:
                        yield from self._others(kind, rows, run, part)
        except (pa.ArrowException, OSError, KeyError, ValueError):  # of a name that is no UTF-8
            run.lose("parts that cannot be read")

    def _numbers(self, rows: Any, run: ForeignRun) -> Iterator[Row | Scalars]:
        """A stretch of single numbers, as a block; as rows if no block can hold them."""
        import numpy as np
        import pyarrow as pa

        encoded = rows["attribute_path"].dictionary_encode()
        keys = [_key(str(path)) for path in encoded.dictionary.to_pylist()]
        times = rows["timestamp"].cast(pa.int64()).to_numpy(zero_copy_only=False) / 1000.0
        steps = rows["step"].cast(pa.float64()).to_numpy(zero_copy_only=False)
        numbers = rows["float_value"].to_numpy(zero_copy_only=False)
        usable = (times >= 0) & (times < _LATEST) & (steps >= 0) & (steps < 2**53) & (steps == np.floor(steps))
        whole = np.where(usable, steps, 0).astype(np.int64)
        key_R = encoded.indices.to_numpy(zero_copy_only=False)
        if usable.all() and not rows["float_value"].null_count:
            yield Scalars(self._clock, keys, key_R, times, whole, numbers.astype(np.float64))
            return
        known = rows["float_value"].is_valid().to_numpy(zero_copy_only=False)
        for n, is_known in enumerate(known.tolist()):
            moment = float(times[n])
            if not is_known or not 0 <= moment < _LATEST:
                run.lose("points without a value or a time")
                continue
            yield Row(moment, *self._at(float(steps[n]), {keys[int(key_R[n])]: float(numbers[n])}))

    def _at(self, step: float, values: dict[str, Any]) -> tuple[dict[str, int], dict[str, Any]]:
        if 0 <= step < 2**53 and step == int(step):
            return {self._clock: int(step)}, values
        return {}, values if step != step else {**values, f"clock/{self._clock}": step}

    def _others(self, kind: str, rows: Any, run: ForeignRun, part: Path) -> Iterator[Row]:
        for cells in rows.to_pylist():
            key, stamp = _key(str(cells["attribute_path"])), cells["timestamp"]
            moment = stamp.timestamp() if stamp is not None else part.stat().st_mtime
            clocks, more = self._at(float("nan") if cells["step"] is None else float(cells["step"]), {})
            if kind == "string_series" and cells["string_value"] is not None:
                yield Row(moment, clocks, {key: cells["string_value"], **more})
            elif kind == "histogram_series" and (made := _histogram(cells["histogram_value"])) is not None:
                yield Row(moment, clocks, {key: made, **more})
            elif kind in ("file", "file_series") and (picture := _picture(cells, part)) is not None:
                row = media_row(moment, clocks, key, picture)
                if row is not None:
                    yield row
                else:
                    run.leave_out("files")
            else:
                run.leave_out("files" if "file" in kind or kind == "artifact" else f"values of the type {kind!r}")


def _each(item: Row | Scalars) -> Iterable[Row]:
    return item.rows() if isinstance(item, Scalars) else (item,)


def _key(path: str) -> str:
    """The key of an attribute; host metrics, `monitoring/<hash>/<name>`, are `system/<name>`."""
    if path.startswith("monitoring/"):
        return "system/" + path.split("/", 2)[-1]
    return path


def _histogram(cell: Any) -> Histogram | None:
    try:
        return Histogram(cell["edges"], cell["values"])
    except (ValueError, TypeError, KeyError):
        return None


def _picture(cells: dict[str, Any], part: Path) -> bytes | None:
    """The bytes of a file of the export, in `files/` next to the folder of the data; None if it is not there."""
    name = (cells.get("file_value") or {}).get("path")
    files = part.parent.parent.parent / "files"
    try:
        file = (files / str(name)).resolve()
        if not name or not file.is_relative_to(files.resolve()) or file.stat().st_size > _LARGEST_FILE:
            return None
        return file.read_bytes()
    except (OSError, ValueError):
        return None


def _attributes(parts: Iterable[Path]) -> dict[str, Any]:
    """The single values of a run, by path, with its `project_id` and `run_id`."""
    attributes: dict[str, Any] = {}
    for part in parts:
        stat = part.stat()
        attributes.update(_single(str(part), stat.st_size, stat.st_mtime_ns))
    return attributes


@functools.lru_cache(maxsize=4096)
def _single(part: str, size: int, mtime: int) -> dict[str, Any]:
    """See `_attributes`. Kept until the file changes: pages refresh every two seconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    attributes: dict[str, Any] = {}
    try:
        for batch in _batches(Path(part)):
            if not attributes and batch.num_rows:
                attributes = {name: batch[name][0].as_py() for name in ("project_id", "run_id")}
            single = pc.is_in(batch["attribute_type"], value_set=pa.array(list(_VALUES)))
            for cells in batch.filter(single).to_pylist():
                value = cells[_VALUES[cells["attribute_type"]]]
                attributes[cells["attribute_path"]] = value.isoformat() if hasattr(value, "isoformat") else value
    except (pa.ArrowException, OSError, KeyError, ValueError):  # of a name that is no UTF-8
        pass
    return attributes


def _batches(part: Path) -> Iterator[Any]:
    """The record batches of a part, read without the memory of the whole file."""
    import pyarrow.parquet as pq

    with open(part, "rb") as file:
        yield from pq.ParquetFile(file).iter_batches(_BATCH)


def _files(path: Path) -> list[tuple[Path, ...]]:
    """The parts of each run below a path, in order; runs without a part 0 are incomplete."""
    there = [path] if path.is_file() else path.rglob("*_part_*.parquet") if path.is_dir() else []
    runs: dict[tuple[Path, str], dict[int, Path]] = {}
    for file in sorted(there):
        match = _PART.fullmatch(file.name)
        if match is not None:
            runs.setdefault((file.parent, match["run"]), {})[int(match["n"])] = file
    return [tuple(parts[n] for n in sorted(parts)) for parts in runs.values() if (0 in parts and _is_export(parts[0]))]


def _is_export(file: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open(file, "rb") as opened:
            return set(pq.read_schema(opened).names) >= _WANTED
    except (pa.ArrowException, OSError, ValueError):
        return False
