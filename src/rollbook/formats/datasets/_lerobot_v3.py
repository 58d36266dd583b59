"""LeRobot's layout of version 3.0: many episodes per file.

    meta/info.json   meta/stats.json   meta/tasks.parquet   meta/episodes/chunk-000/file-000.parquet
    data/chunk-000/file-000.parquet              one row per frame

Episodes are collected until they fill a row group, which is then described, converted and written at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rollbook.errors import BadInput, Damaged
from rollbook.formats.datasets._lerobot_columns import FrameColumn, OwnData, common_info, counted, lists, trajectory_of
from rollbook.formats.datasets._lerobot_stats import Stats, episode_stats, pooled
from rollbook.formats.datasets._source import Trajectory
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import from_numpy, strings, to_numpy

VERSION = "v3.0"
_GROUP_BYTES = 8 * 1024 * 1024
"""The largest row group; of small files a tenth."""
_PATH = "chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"


class V3Writer:
    """Writes episodes into a folder.

    Args:
      root: exists and is empty.
      fps: frames per second.
      task: the task in words.
      file_mb: a file that would become larger ends, and a new one begins.
      chunk_files: how many files are in one folder.
    """

    def __init__(
        self,
        root: Path,
        fps: float,
        task: str,
        robot_type: str | None,
        *,
        file_mb: float = 100,
        chunk_files: int = 1000,
    ) -> None:
        self._file_mb, self._chunk_files = file_mb, chunk_files
        self._group_bytes = min(_GROUP_BYTES, int(file_mb * 1024 * 1024 / 10))
        self._root, self._fps, self._task, self._robot_type = root, fps, task, robot_type
        self._episodes = self._frames = 0
        self._waiting: list[tuple[str, int, list[FrameColumn]]] = []
        self._waiting_bytes = 0
        self._totals: dict[str, Stats] = {}
        self._features: dict[str, object] = {}
        self._open = ExitStack()
        self._data = self._open.enter_context(_Files(root / "data", file_mb, chunk_files))
        self._listed = self._open.enter_context(_Files(root / "meta" / "episodes", file_mb, chunk_files))

    def __enter__(self) -> V3Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def add(self, trajectory: Trajectory, columns: list[FrameColumn]) -> None:
        """Add the next episode; it has the same columns as the others."""
        self._waiting.append((trajectory.episode_id, len(trajectory), columns))
        self._waiting_bytes += sum([column.cells.nbytes for column in columns])
        if self._waiting_bytes >= self._group_bytes:
            self._flush()

    def finish(self) -> None:
        """Write the remaining episodes and the files that describe the whole data set."""
        self._flush()
        self._open.close()
        stats = {
            name: {key: _whole(array[0]) if key == "count" else array[0].tolist() for key, array in totals.items()}
            for name, totals in self._totals.items()
        }
        _write_json(self._root / "meta" / "stats.json", stats)
        _write_tasks(self._root / "meta" / "tasks.parquet", [self._task])
        info = {
            **common_info(VERSION, self._robot_type, self._episodes, self._frames, self._fps, self._features),
            "chunks_size": self._chunk_files,
            "data_files_size_in_mb": self._file_mb,
            "video_files_size_in_mb": 200,
            "data_path": f"data/{_PATH}",
        }
        _write_json(self._root / "meta" / "info.json", info)

    def _flush(self) -> None:
        if not self._waiting:
            return
        ids, lengths = [name for name, _, _ in self._waiting], [n for _, n, _ in self._waiting]
        episodes = [columns for _, _, columns in self._waiting]
        columns = [same[0].joined(same) for same in zip(*episodes, strict=True)]
        self._waiting, self._waiting_bytes = [], 0
        self._features = {column.name: column.feature for column in columns}
        numbers = range(self._episodes, self._episodes + len(ids))
        columns += counted(numbers, lengths, self._frames, self._fps)
        table = pa.table({column.name: column.to_arrow() for column in columns})
        chunk, file = self._data.file_for(table.nbytes)
        self._data.write(table)
        stats = {column.name: episode_stats(column, lengths) for column in columns}
        for name, column_stats in stats.items():
            self._totals[name] = pooled([self._totals[name], column_stats] if name in self._totals else [column_stats])
        self._list(ids, lengths, stats, chunk, file)
        self._episodes += len(ids)
        self._frames += sum(lengths)

    def _list(self, ids: list[str], lengths: list[int], stats: Mapping[str, Stats], chunk: int, file: int) -> None:
        n = len(ids)
        ends = self._frames + np.cumsum(np.asarray(lengths, dtype=np.int64))
        columns: dict[str, pa.Array] = {
            "episode_index": from_numpy(np.arange(self._episodes, self._episodes + n, dtype=np.int64)),
            "tasks": pa.ListArray.from_arrays(from_numpy(np.arange(n + 1, dtype=np.int32)), strings([self._task] * n)),
            "length": from_numpy(np.asarray(lengths, dtype=np.int64)),
            "data/chunk_index": _same(chunk, n),
            "data/file_index": _same(file, n),
            "dataset_from_index": from_numpy(ends - lengths),
            "dataset_to_index": from_numpy(ends),
        }
        for name, column_stats in stats.items():
            for key, array in column_stats.items():
                columns[f"stats/{name}/{key}"] = lists(array.astype(np.int64) if key == "count" else array)
        columns["episode_id"] = strings(ids)
        table = pa.table(columns)
        for name, index in zip(("chunk_index", "file_index"), self._listed.file_for(table.nbytes), strict=True):
            table = table.append_column(f"meta/episodes/{name}", _same(index, n))
        self._listed.write(table)


def _same(number: int, n: int) -> pa.Array:
    return from_numpy(np.full(n, number, dtype=np.int64))


def _whole(array: NDArray) -> list[int]:
    return [int(number) for number in array]


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=4, ensure_ascii=False) + "\n", encoding="utf-8")


def _write_tasks(path: Path, tasks: list[str]) -> None:
    """A table of tasks that pandas reads with the tasks as its index."""
    table = pa.table({"task_index": from_numpy(np.arange(len(tasks), dtype=np.int64)), "task": strings(tasks)})
    columns = [
        {"name": name, "field_name": name, "pandas_type": kind, "numpy_type": numpy_type, "metadata": None}
        for name, kind, numpy_type in (("task_index", "int64", "int64"), ("task", "unicode", "object"))
    ]
    over = {
        "name": None,
        "field_name": None,
        "pandas_type": "unicode",
        "numpy_type": "object",
        "metadata": {"encoding": "UTF-8"},
    }
    pandas_meta = {"index_columns": ["task"], "column_indexes": [over], "columns": columns, "pandas_version": "2.0.0"}
    pq.write_table(table.replace_schema_metadata({"pandas": json.dumps(pandas_meta)}), path)


class _Files:
    """Parquet files from chunk-000/file-000.parquet on. A new one begins where a table would make one too large."""

    def __init__(self, root: Path, file_mb: float, chunk_files: int) -> None:
        self._root, self._number = root, 0
        self._file_bytes, self._chunk_files = file_mb * 1024 * 1024, chunk_files
        self._file: BinaryIO | None = None
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> _Files:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def file_for(self, nbytes: int) -> tuple[int, int]:
        """The number of the chunk, and of the file in it, for the next table, which has `nbytes` bytes."""
        if self._file is not None and self._file.tell() + nbytes > self._file_bytes:
            self._close()
            self._number += 1
        return divmod(self._number, self._chunk_files)

    def write(self, table: pa.Table) -> None:
        """Write a row group to the file from `file_for`."""
        if self._writer is None:
            chunk, file = divmod(self._number, self._chunk_files)
            path = self._root / _PATH.format(chunk_index=chunk, file_index=file)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(path, "wb")  # noqa: SIM115 (closed in _close)
            self._writer = pq.ParquetWriter(self._file, table.schema, compression="zstd")
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def _close(self) -> None:
        writer, self._writer = self._writer, None
        file, self._file = self._file, None
        try:
            if writer is not None:
                writer.close()
        finally:
            if file is not None:
                file.close()


# -- the way back


def read_v3(
    root: Path, info: Mapping[str, Any], own_data: OwnData, episodes: Sequence[int] | None
) -> Iterator[Trajectory]:
    """The episodes of a folder in the order of its files, with one row group in memory at a time.

    Raises:
      BadInput: an episode does not exist.
      Damaged: a file is missing or differs from the folder's description of it.
    """
    listed = _listed(root)
    missing = sorted(set(episodes or ()) - set(listed))
    if missing:
        raise BadInput(f"from_lerobot(): {root} has no episode {missing[0]}; it has {len(listed)}.")
    wanted = set(listed if episodes is None else episodes)
    files: dict[tuple[int, int], list[int]] = {}
    for number in sorted(wanted):
        files.setdefault(listed[number].file, []).append(number)
    for (chunk, file), inside in files.items():
        path = root / "data" / _PATH.format(chunk_index=chunk, file_index=file)
        left = set(inside)
        for number, table in _episodes_in(path, left):
            if number in left:
                left.discard(number)
                if table.num_rows != listed[number].length:
                    raise Damaged(
                        f"{path} has {table.num_rows} frames of episode {number}; meta/episodes says "
                        f"{listed[number].length}"
                    )
                yield trajectory_of(table, info["features"], own_data, listed[number].name or f"{root.name}#{number}")
        if left:
            raise Damaged(f"{path} has no frame of episode {min(left)}, which meta/episodes says is there")


class _Entry:
    __slots__ = ("file", "length", "name")

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.file = (int(row["data/chunk_index"]), int(row["data/file_index"]))
        self.length = int(row["length"])
        self.name = str(row.get("episode_id") or "")


def _listed(root: Path) -> dict[int, _Entry]:
    """The entries of meta/episodes, without the statistics."""
    entries: dict[int, _Entry] = {}
    paths = sorted((root / "meta" / "episodes").glob("chunk-*/file-*.parquet"))
    if not paths:
        raise Damaged(f"{root / 'meta' / 'episodes'} holds no chunk-000/file-000.parquet")
    for path in paths:
        try:
            with pq.ParquetFile(path) as file:
                names = ["episode_index", "data/chunk_index", "data/file_index", "length", "episode_id"]
                table = file.read(columns=[name for name in names if name in file.schema_arrow.names])
            for row in table.to_pylist():
                entries[int(row["episode_index"])] = _Entry(row)
        except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as err:
            raise Damaged(f"{path} cannot be read: {err!r}") from None
    return entries


def _episodes_in(path: Path, wanted: set[int]) -> Iterator[tuple[int, pa.Table]]:
    """(number, frames) of the episodes of a file; row groups without a wanted one are not read."""
    try:
        with pq.ParquetFile(path) as file:
            schema = file.metadata.schema
            columns = [i for i in range(len(schema)) if schema.column(i).path == "episode_index"]
            if not columns:
                raise Damaged(f"{path} has no column episode_index")
            number, parts = -1, list[pa.Table]()
            for group in range(file.num_row_groups):
                bounds = file.metadata.row_group(group).column(columns[0]).statistics
                known = bounds is not None and bounds.has_min_max
                if known and not any(bounds.min <= episode <= bounds.max for episode in (*wanted, number)):
                    continue
                table = file.read_row_group(group)
                whose = to_numpy(table["episode_index"])[0]
                for start, stop in pairwise([0, *(np.flatnonzero(np.diff(whose)) + 1).tolist(), len(whose)]):
                    if parts and stop > start and whose[start] != number:
                        yield number, pa.concat_tables(parts)
                        parts = []
                    if stop > start:
                        number = int(whose[start])
                        parts.append(table.slice(start, stop - start))
            if parts:
                yield number, pa.concat_tables(parts)
    except (OSError, pa.ArrowException) as err:
        raise Damaged(f"{path} cannot be read: {err}") from None
