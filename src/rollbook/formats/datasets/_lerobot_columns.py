"""The columns of a LeRobot folder: the names of a trajectory's parts there, their descriptions, and the way back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.errors import BadInput, Damaged
from rollbook.formats.datasets._arrow import fixed_lists, to_cells
from rollbook.formats.datasets._cells import leaves_of
from rollbook.formats.datasets._png import pixels, png
from rollbook.formats.datasets._replay import Replay
from rollbook.formats.datasets._source import StepSource, Trajectory
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import from_numpy, strings
from rollbook.values.spaces import describe, is_picture, space_from

COUNTED = {
    "timestamp": "float32",
    "frame_index": "int64",
    "episode_index": "int64",
    "index": "int64",
    "task_index": "int64",
}
_MOST_AXES = 5


@dataclass(slots=True)
class FrameColumn:
    """One column of frames.

    Attributes:
      name: LeRobot's name.
      own: the name in `steps`.
      cells: [frames, *shape] numbers.
      is_picture: uint8 [frames, height, width] or [frames, height, width, channels], written as PNG.
    """

    name: str
    own: str
    cells: NDArray
    is_picture: bool = False

    @property
    def kind(self) -> tuple[str, np.dtype, tuple[int, ...], bool]:
        """The properties that are the same in all episodes of a folder."""
        return self.name, self.cells.dtype, self.cells.shape[1:], self.is_picture

    @property
    def feature(self) -> dict[str, object]:
        """The column's entry in meta/info.json."""
        shape = list(self.cells.shape[1:])
        if self.is_picture:
            return {"dtype": "image", "shape": [*shape, 1][:3], "names": ["height", "width", "channels"]}
        return {"dtype": self.cells.dtype.name, "shape": shape or [1], "names": None}

    def to_arrow(self) -> pa.Array:
        """As in Parquet: one number per frame if the shape is (1,), else lists, or the bytes of a PNG."""
        cells, n = self.cells, len(self.cells)
        if self.is_picture:
            data = [png(picture) for picture in cells]
            return pa.StructArray.from_arrays([_binary(data), strings([None] * n)], ["bytes", "path"])
        if cells.shape[1:] in ((), (1,)):
            return from_numpy(np.ascontiguousarray(cells).reshape(n))
        return fixed_lists(cells) if cells.ndim == 2 else lists(cells)

    def joined(self, others: Sequence[FrameColumn]) -> FrameColumn:
        """The cells of all columns under this one's name; all have one shape."""
        cells = others[0].cells if len(others) == 1 else np.concatenate([column.cells for column in others])
        return FrameColumn(self.name, self.own, cells, self.is_picture)


def columns_of(trajectory: Trajectory) -> list[FrameColumn]:
    """The columns of an episode, except those that only count.

    Raises:
      BadInput: values that are not numbers of one shape.
    """
    columns: list[FrameColumn] = []
    for path, cells in leaves_of(trajectory.columns, "obs").items():
        array = _numbers(cells, f"obs/{path}".rstrip("/"), trajectory)
        picture = array.ndim > 2 and is_picture(array[0])
        part = path.replace("/", ".") or ("image" if picture else "state")
        name = f"observation.{'images.' if picture else ''}{part}"
        columns.append(FrameColumn(name, f"obs/{path}".rstrip("/"), array, picture))
    for path, cells in leaves_of(trajectory.columns, "action").items():
        own = f"action/{path}".rstrip("/")
        columns.append(FrameColumn(own.replace("/", "."), own, _numbers(cells, own, trajectory)))
    reward: NDArray = trajectory.column("reward", 0.0).astype(np.float32)
    terminated: NDArray = np.asarray(trajectory.column("terminated", False), dtype=bool)
    truncated: NDArray = np.asarray(trajectory.column("truncated", False), dtype=bool)
    done: NDArray = np.logical_or(terminated, truncated)
    columns += [
        FrameColumn("next.reward", "reward", reward),
        FrameColumn("next.done", "done", done),
        FrameColumn("next.terminated", "terminated", terminated),
        FrameColumn("next.truncated", "truncated", truncated),
    ]
    _refuse_twins(tuple([column.name for column in columns]))
    return columns


@lru_cache(maxsize=64)
def _refuse_twins(names: tuple[str, ...]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadInput(f"to_lerobot(): two parts would be named {twice[0]}.", "Rename one of the parts of the space.")


def counted(numbers: Sequence[int], lengths: Sequence[int], first: int, fps: float) -> list[FrameColumn]:
    """The columns that count frames, for consecutive episodes.

    Args:
      numbers: [episodes] their numbers in the data set.
      lengths: [episodes] in frames.
      first: the number of the first frame in the data set.
    """
    sizes = np.asarray(lengths, dtype=np.int64)
    total = int(sizes.sum())
    frame = np.arange(total, dtype=np.int64) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    cells: dict[str, NDArray] = {
        "timestamp": (frame / fps).astype(np.float32),
        "frame_index": frame,
        "episode_index": np.repeat(np.asarray(numbers, dtype=np.int64), sizes),
        "index": np.arange(first, first + total, dtype=np.int64),
        "task_index": np.zeros(total, dtype=np.int64),
    }
    return [FrameColumn(name, "", array) for name, array in cells.items()]


def common_info(
    version: str, robot_type: str | None, episodes: int, frames: int, fps: float, features: Mapping[str, object]
) -> dict[str, object]:
    """The entries of meta/info.json that the layouts of both versions have; no videos, one task.

    Args:
      version: of the layout.
      episodes, frames: their numbers in the whole data set.
      features: of the recorded columns; those of the counting columns are added.
    """
    more = {name: {"dtype": dtype, "shape": [1], "names": None} for name, dtype in COUNTED.items()}
    return {
        "codebase_version": version,
        "robot_type": robot_type,
        "total_episodes": episodes,
        "total_frames": frames,
        "total_tasks": 1,
        "fps": int(fps) if float(fps).is_integer() else fps,
        "splits": {"train": f"0:{episodes}"},
        "video_path": None,
        "features": {**features, **more},
    }


def _numbers(cells: object, own: str, trajectory: Trajectory) -> NDArray:
    try:
        array = np.asarray(cells)
    except ValueError:  # no common shape
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        raise BadInput(f"to_lerobot(): {own} of episode {trajectory.episode_id} holds no numbers of one shape.")
    if array.ndim > 1 + _MOST_AXES:
        raise BadInput(f"to_lerobot(): {own} has {array.ndim - 1} axes; LeRobot has columns of up to {_MOST_AXES}.")
    return array


def _binary(data: list[bytes]) -> pa.Array:
    offsets = np.cumsum([0, *map(len, data)]).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(data), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(data))])


def lists(cells: NDArray) -> pa.Array:
    """[rows, *shape] as lists (of lists) of variable length type."""
    values = from_numpy(np.ascontiguousarray(cells).reshape(-1))
    for axis in range(cells.ndim - 1, 0, -1):
        rows = int(np.prod(cells.shape[:axis]))
        offsets = np.arange(rows + 1, dtype=np.int32) * cells.shape[axis]
        values = pa.ListArray.from_arrays(from_numpy(offsets), values)
    return values


# -- the way back


class OwnData:
    """Data for which LeRobot's files have no field, stored in meta/rollbook.json: names, shapes of one number, and the
    spaces.

    Attributes:
      columns: LeRobot's name -> (name in `steps`, shape).
    """

    PATH = Path("meta") / "rollbook.json"

    def __init__(self, columns: Mapping[str, tuple[str, tuple[int, ...]]], spaces: tuple[str, str, str]) -> None:
        self.columns, self._spaces = dict(columns), spaces

    @classmethod
    def of(cls, source: StepSource, columns: Sequence[FrameColumn]) -> OwnData:
        """What is stored of a run's trajectories."""
        agent = source.agents[0]
        observed, acted = (source.space(what, agent) for what in ("observation", "action"))
        texts = ["" if space is None else describe(space) for space in (observed, acted)]
        named = {column.name: (column.own, column.cells.shape[1:]) for column in columns if column.own != "done"}
        return cls(named, (texts[0], texts[1], source.env_id() or ""))

    @classmethod
    def read(cls, root: Path) -> OwnData:
        """What is stored in a folder; empty if another tool wrote it."""
        try:
            content = json.loads((root / cls.PATH).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return cls({}, ("", "", ""))
        except (OSError, ValueError) as err:
            raise Damaged(f"{root / cls.PATH} cannot be read: {err}") from None
        try:
            columns = {
                str(name): (str(column["name"]), tuple(int(axis) for axis in column["shape"]))
                for name, column in content["columns"].items()
            }
            spaces = [json.dumps(content[name]) if content.get(name) else "" for name in ("observation", "action")]
            return cls(columns, (spaces[0], spaces[1], str(content.get("env_id") or "")))
        except (KeyError, TypeError, ValueError, AttributeError) as err:
            raise Damaged(f"{root / cls.PATH} is not what rollbook writes: {err!r}") from None

    def write(self, root: Path) -> None:
        """Write it to a folder."""
        observed, acted, env_id = self._spaces
        content = {
            "columns": {name: {"name": own, "shape": list(shape)} for name, (own, shape) in self.columns.items()},
            "observation": json.loads(observed) if observed else None,
            "action": json.loads(acted) if acted else None,
            "env_id": env_id or None,
        }
        (root / self.PATH).write_text(json.dumps(content, indent=4) + "\n", encoding="utf-8")

    def begin_replay(self, replay: Replay) -> None:
        """Store the spaces with the imported trajectories."""
        observed, acted, env_id = self._spaces
        replay.spaces(space_from(observed) if observed else None, space_from(acted) if acted else None, "", env_id)


def trajectory_of(table: pa.Table, features: Mapping[str, Any], own_data: OwnData, episode_id: str) -> Trajectory:
    """The frames of an episode as a trajectory.

    Raises:
      Damaged: images that are not in the rows, or numbers of another shape than the recorded one.
    """
    n = table.num_rows
    columns: dict[str, Any] = {}
    for name in table.column_names:
        kind = (features.get(name) or {}).get("dtype")
        if name in COUNTED or kind == "video":
            continue
        cells: object = _pictures(table[name], name, episode_id) if kind == "image" else to_cells(table[name])
        own, shape = own_data.columns.get(name, (_own_name(name), None))
        if shape is not None:
            try:
                cells = np.asarray(cells).reshape(n, *shape)
            except ValueError:
                raise Damaged(f"episode {episode_id}: {name} does not have the recorded shape {shape}") from None
        columns[own] = cells
    done, ended, cut = (
        None if name not in columns else np.asarray(columns.pop(name), dtype=bool).reshape(n)
        for name in ("done", "terminated", "truncated")
    )
    columns["truncated"] = np.zeros(n, dtype=bool) if cut is None else cut
    if ended is None:
        ended = np.zeros(n, dtype=bool) if done is None else done & ~columns["truncated"]
    columns["terminated"] = ended
    columns["reward"] = np.asarray(columns.get("reward", np.zeros(n)), dtype=np.float64).reshape(n)
    return Trajectory(episode_id, "", np.arange(n), columns, {}, np.zeros(n, dtype=np.int64), {})


def _pictures(column: pa.ChunkedArray, name: str, episode_id: str) -> NDArray:
    cells = column.to_pylist()
    if any(not isinstance(cell, dict) or not cell.get("bytes") for cell in cells):
        raise Damaged(f"episode {episode_id}: the images of {name} are not in its rows, and only such images are read")
    return np.stack([pixels(cell["bytes"]) for cell in cells])


def _own_name(name: str) -> str:
    if name in ("observation.state", "observation.images.image"):
        return "obs"
    for start, own in (
        ("observation.images.", "obs/"),
        ("observation.", "obs/"),
        ("action.", "action/"),
        ("next.", ""),
    ):
        if name.startswith(start):
            return own + name[len(start) :].replace(".", "/")
    return name
