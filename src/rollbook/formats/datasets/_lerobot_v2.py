"""LeRobot's layouts of version 2: one file per episode.

meta/info.json   meta/tasks.jsonl   meta/episodes.jsonl   meta/episodes_stats.jsonl (2.1)
data/chunk-000/episode_000000.parquet        one row per frame
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rollbook.errors import Damaged
from rollbook.formats.datasets._lerobot_columns import FrameColumn, OwnData, common_info, counted, trajectory_of
from rollbook.formats.datasets._lerobot_stats import episode_stats
from rollbook.formats.datasets._source import Trajectory

VERSION = "v2.1"
_CHUNK = 1000


class V21Writer:
    """Writes episodes into a folder.

    Args:
      root: exists and is empty.
      fps: frames per second.
      task: the task in words.
    """

    def __init__(self, root: Path, fps: float, task: str, robot_type: str | None) -> None:
        self._root, self._fps, self._task, self._robot_type = root, fps, task, robot_type
        self._episodes = self._frames = 0
        self._features: dict[str, object] = {}
        meta = root / "meta"
        meta.mkdir(parents=True, exist_ok=True)
        self._open = ExitStack()
        self._listed, self._stats = (
            self._open.enter_context((meta / name).open("w", encoding="utf-8"))
            for name in ("episodes.jsonl", "episodes_stats.jsonl")
        )

    def __enter__(self) -> V21Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def add(self, trajectory: Trajectory, columns: list[FrameColumn]) -> None:
        """Write the next episode; it has the same columns as the others."""
        n, number = len(trajectory), self._episodes
        self._features = {column.name: column.feature for column in columns}
        every = [*columns, *counted([number], [n], self._frames, self._fps)]
        path = self._root / _data_path(number, _CHUNK)
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({column.name: column.to_arrow() for column in every}), path, compression="zstd")
        entry = {"episode_index": number, "tasks": [self._task], "length": n, "episode_id": trajectory.episode_id}
        self._listed.write(json.dumps(entry) + "\n")
        stats = {column.name: _plain(column, n) for column in columns}
        self._stats.write(json.dumps({"episode_index": number, "stats": stats}) + "\n")
        self._episodes += 1
        self._frames += n

    def finish(self) -> None:
        """Write the files that describe the whole data set."""
        self._open.close()
        tasks = json.dumps({"task_index": 0, "task": self._task}) + "\n"
        (self._root / "meta" / "tasks.jsonl").write_text(tasks, encoding="utf-8")
        info = {
            **common_info(VERSION, self._robot_type, self._episodes, self._frames, self._fps, self._features),
            "total_videos": 0,
            "total_chunks": -(-self._episodes // _CHUNK),
            "chunks_size": _CHUNK,
            "data_path": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
        }
        (self._root / "meta" / "info.json").write_text(json.dumps(info, indent=4) + "\n", encoding="utf-8")


def _data_path(number: int, size: int) -> str:
    return f"data/chunk-{number // size:03d}/episode_{number:06d}.parquet"


def _plain(column: FrameColumn, n: int) -> dict[str, object]:
    """The statistics of one episode, without quantiles, which this version does not have."""
    stats = episode_stats(column, [n])
    return {**{key: stats[key][0].tolist() for key in ("min", "max", "mean", "std")}, "count": [n]}


# -- the way back


def read_v2(
    root: Path, info: Mapping[str, Any], own_data: OwnData, episodes: Sequence[int] | None
) -> Iterator[Trajectory]:
    """The episodes of a folder, one in memory at a time.

    Raises:
      Damaged: a file is missing or cannot be read.
    """
    size, names = int(info["chunks_size"]), _episode_ids(root)
    for number in range(int(info["total_episodes"])) if episodes is None else episodes:
        path = root / _data_path(number, size)
        try:
            table = pq.read_table(path)
        except (OSError, pa.ArrowException) as err:
            raise Damaged(f"{path} cannot be read: {err}") from None
        yield trajectory_of(table, info["features"], own_data, names.get(number, f"{root.name}#{number}"))


def _episode_ids(root: Path) -> dict[int, str]:
    ids: dict[int, str] = {}
    try:
        for line in (root / "meta" / "episodes.jsonl").read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if "episode_id" in entry:
                ids[int(entry["episode_index"])] = str(entry["episode_id"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return ids
