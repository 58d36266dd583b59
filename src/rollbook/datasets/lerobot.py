"""Folders in the layout of LeRobot's data sets (version 2.1), and such folders back into a run.

    meta/info.json  meta/episodes.jsonl  meta/tasks.jsonl  meta/episodes_stats.jsonl
    data/chunk-000/episode_000000.parquet        one row per frame

Observations of one part are `observation.state`, parts of dict observations `observation.<name>`, pictures
`observation.images.<name>` as PNG inside the rows. The layout has no place for the observation after an episode's last
step. Written from the description of the format; the package itself is not needed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rollbook.capture.episodes.infos import is_picture
from rollbook.datasets._arrow import fixed_lists, to_cells
from rollbook.datasets._cells import is_ragged, leaves_of
from rollbook.datasets._png import pixels, png
from rollbook.datasets._replay import Replay
from rollbook.datasets._source import StepSource, Trajectory
from rollbook.datasets._whole import Exported, whole_trajectories
from rollbook.errors import BadInput, Damaged
from rollbook.storage.columns import from_numpy, strings

if TYPE_CHECKING:
    from rollbook.book.book import Book
    from rollbook.protocols import Recorder

__all__ = ["from_lerobot", "to_lerobot"]

VERSION = "v2.1"
_CHUNK = 1000
_FIXED = ("timestamp", "frame_index", "episode_index", "index", "task_index")


def to_lerobot(
    book: Book,
    folder: str | os.PathLike[str],
    *,
    fps: float = 30.0,
    task: str | None = None,
    robot_type: str | None = None,
    episodes: Sequence[str] | Callable[[dict[str, Any]], bool] | None = None,
    agent: str | None = None,
) -> Exported:
    """Write the trajectories of a run as a folder in LeRobot's layout.

    Args:
      folder: new or empty.
      fps: frames per second: `timestamp` is the frame's number over it.
      task: what was to be done, in words; None: the id of the environment.
      episodes: ids, or a function of an episode's row; None: all that have trajectories.
      agent: only this one; needed where there are several.
    Raises:
      BadInput: nothing to write, several agents, a folder that is not empty, or episodes of unlike columns.
    """
    root = Path(folder)
    if fps <= 0:
        raise BadInput(f"to_lerobot(fps={fps}): give frames per second, more than 0.")
    if root.exists() and any(root.iterdir()):
        raise BadInput(f"to_lerobot(…, {os.fspath(folder)!r}): the folder is not empty. Choose another one.")
    source = StepSource(book, episodes=episodes, agents=None if agent is None else [agent])
    if len(source.agents) > 1:
        raise BadInput(f"to_lerobot(): the run has the agents {', '.join(source.agents)}; name one with agent=.")
    for what in ("observation", "action"):
        space = source.space(what, source.agents[0])
        if space is not None and is_ragged(space):
            raise BadInput(
                f"to_lerobot(): the {what}s are of {space}, whose values have no numbers of one shape; LeRobot's "
                "columns do. Use to_jsonl, which keeps them as they are."
            )
    made = root.exists()
    try:
        return _write(root, source, fps, task or source.env_id() or "", robot_type)
    except BaseException:
        shutil.rmtree(root, ignore_errors=True)
        if made:
            root.mkdir(exist_ok=True)
        raise


def _write(root: Path, source: StepSource, fps: float, task: str, robot_type: str | None) -> Exported:
    (root / "meta").mkdir(parents=True, exist_ok=True)
    told = Exported(paths=(str(root),))
    features: dict[str, Any] = {}
    frames = count = 0
    with (
        open(root / "meta" / "episodes.jsonl", "w", encoding="utf-8") as listed,
        open(root / "meta" / "episodes_stats.jsonl", "w", encoding="utf-8") as stats,
    ):
        for number, trajectory in enumerate(whole_trajectories(source, told)):
            columns, own = _frames(trajectory)
            if features and own != features:
                raise BadInput(
                    f"to_lerobot(): episode {trajectory.episode_id} has other columns than the ones before "
                    f"({_differing(own, features)}). Choose episodes of one environment."
                )
            features = own
            n = len(trajectory)
            columns.update(
                timestamp=from_numpy((np.arange(n) / fps).astype(np.float32)),
                frame_index=from_numpy(np.arange(n, dtype=np.int64)),
                episode_index=from_numpy(np.full(n, number, dtype=np.int64)),
                index=from_numpy(np.arange(frames, frames + n, dtype=np.int64)),
                task_index=from_numpy(np.zeros(n, dtype=np.int64)),
            )
            path = root / _data_path(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table(columns), path, compression="zstd")
            entry = {"episode_index": number, "tasks": [task], "length": n, "episode_id": trajectory.episode_id}
            listed.write(json.dumps(entry) + "\n")
            stats.write(json.dumps({"episode_index": number, "stats": _stats(trajectory)}) + "\n")
            frames += n
            count = number + 1
    (root / "meta" / "tasks.jsonl").write_text(json.dumps({"task_index": 0, "task": task}) + "\n", encoding="utf-8")
    info = {
        "codebase_version": VERSION,
        "robot_type": robot_type,
        "total_episodes": count,
        "total_frames": frames,
        "total_tasks": 1,
        "total_videos": 0,
        "total_chunks": -(-count // _CHUNK),
        "chunks_size": _CHUNK,
        "fps": fps,
        "splits": {"train": f"0:{count}"},
        "data_path": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
        "video_path": None,
        "features": {
            **features,
            "timestamp": {"dtype": "float32", "shape": [1], "names": None},
            **{name: {"dtype": "int64", "shape": [1], "names": None} for name in _FIXED[1:]},
        },
    }
    (root / "meta" / "info.json").write_text(json.dumps(info, indent=4) + "\n", encoding="utf-8")
    return told


def _data_path(number: int) -> str:
    return f"data/chunk-{number // _CHUNK:03d}/episode_{number:06d}.parquet"


def _frames(trajectory: Trajectory) -> tuple[dict[str, pa.Array], dict[str, Any]]:
    """The columns of an episode and the features that describe them."""
    columns: dict[str, pa.Array] = {}
    features: dict[str, Any] = {}
    for name, cells in _named(trajectory):
        if isinstance(cells, np.ndarray) and cells.ndim > 2 and is_picture(cells[0]):
            data = [png(picture) for picture in cells]
            columns[name] = pa.StructArray.from_arrays([_binary(data), strings([None] * len(data))], ["bytes", "path"])
            shape = cells.shape[1:] if cells.ndim == 4 else (*cells.shape[1:], 1)
            features[name] = {"dtype": "image", "shape": list(shape), "names": ["height", "width", "channels"]}
            continue
        array = _array(cells)
        if array is None or array.dtype.kind not in "biuf":
            raise BadInput(f"to_lerobot(): {name} of episode {trajectory.episode_id} holds no numbers of one shape.")
        columns[name] = from_numpy(array) if array.ndim == 1 else fixed_lists(array)
        features[name] = {"dtype": array.dtype.name, "shape": list(array.shape[1:]) or [1], "names": None}
    return columns, features


def _array(cells: Any) -> Any:
    """Cells as one array; None where they have no common shape."""
    try:
        return np.asarray(cells)
    except ValueError:
        return None


def _named(trajectory: Trajectory) -> Iterator[tuple[str, Any]]:
    for path, cells in leaves_of(trajectory.columns, "obs").items():
        picture = isinstance(cells, np.ndarray) and cells.ndim > 2 and is_picture(cells[0])
        part = path.replace("/", ".") or ("image" if picture else "state")
        yield f"observation.{'images.' if picture else ''}{part}", cells
    for path, cells in leaves_of(trajectory.columns, "action").items():
        yield f"action{'.' if path else ''}{path.replace('/', '.')}", cells
    yield "next.reward", trajectory.column("reward", 0.0).astype(np.float32)
    terminated, truncated = trajectory.column("terminated", False), trajectory.column("truncated", False)
    yield "next.done", np.logical_or(terminated, truncated)
    yield "next.truncated", np.asarray(truncated, dtype=bool)


def _binary(data: list[bytes]) -> pa.Array:
    offsets = np.cumsum([0, *map(len, data)]).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(data), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(data))])


def _stats(trajectory: Trajectory) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, cells in _named(trajectory):
        array = np.asarray(cells)
        if array.dtype.kind not in "biuf":
            continue
        array = array.astype(np.float64)
        axes: tuple[int, ...] = ()
        if name.startswith("observation.images."):  # per channel, in [0, 1], with the axes of the pictures kept
            array = array.reshape(-1, array.shape[-1] if array.ndim == 4 else 1) / 255.0
            axes = (array.shape[1], 1, 1)
        elif array.ndim == 1:
            array = array[:, None]
        numbers = {"min": array.min(0), "max": array.max(0), "mean": array.mean(0), "std": array.std(0)}
        found[name] = {key: (value.reshape(axes) if axes else value).tolist() for key, value in numbers.items()}
        found[name]["count"] = [len(trajectory)]
    return found


def _differing(own: dict[str, Any], others: dict[str, Any]) -> str:
    names = [name for name in {**own, **others} if own.get(name) != others.get(name)]
    return ", ".join(f"{name}: {own.get(name)} after {others.get(name)}" for name in names[:2])


def from_lerobot(
    folder: str | os.PathLike[str], recorder: Recorder, *, episodes: Sequence[int] | None = None
) -> Exported:
    """Write a folder in LeRobot's layout (2.0 or 2.1) into a run, one episode in memory at a time. Films are not read.

    Args:
      episodes: their indices; None: all.
    Raises:
      BadInput: not such a folder. Damaged: a file that is missing or is not what meta/info.json says.
    """
    root = Path(folder)
    try:
        info = json.loads((root / "meta" / "info.json").read_text(encoding="utf-8"))
        version, count = str(info["codebase_version"]), int(info["total_episodes"])
        features, size = dict(info["features"]), int(info["chunks_size"])
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise BadInput(f"from_lerobot({os.fspath(folder)!r}): no meta/info.json of a data set there ({err}).") from None
    if not version.startswith("v2."):
        raise BadInput(
            f"from_lerobot(): {root} has version {version}; v2.0 and v2.1 are read. Convert it with LeRobot's own "
            "tools."
        )
    names = _episode_ids(root)
    replay = Replay(recorder)
    for number in range(count) if episodes is None else episodes:
        path = root / f"data/chunk-{number // size:03d}/episode_{number:06d}.parquet"
        try:
            table = pq.read_table(path)
        except (OSError, pa.ArrowException) as err:
            raise Damaged(f"{path} cannot be read: {err}") from None
        replay.add(_trajectory(table, features, names.get(number, f"{root.name}#{number}")))
    replay.finish()
    return Exported(replay.episodes, replay.steps)


def _episode_ids(root: Path) -> dict[int, str]:
    found: dict[int, str] = {}
    try:
        for line in (root / "meta" / "episodes.jsonl").read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if "episode_id" in entry:
                found[int(entry["episode_index"])] = str(entry["episode_id"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found


def _trajectory(table: pa.Table, features: dict[str, Any], episode_id: str) -> Trajectory:
    n = table.num_rows
    columns: dict[str, Any] = {}
    for name in table.column_names:
        kind = (features.get(name) or {}).get("dtype")
        if name in _FIXED or kind == "video":
            continue
        if kind == "image":
            cells: Any = np.stack([pixels(cell["bytes"]) for cell in table[name].to_pylist()])
        else:
            cells = to_cells(table[name])
        columns[_own_name(name)] = cells
    done = np.asarray(columns.pop("done", np.zeros(n)), dtype=bool).reshape(n)
    cut = np.asarray(columns.pop("truncated", np.zeros(n)), dtype=bool).reshape(n)
    columns["truncated"], columns["terminated"] = cut, done & ~cut
    columns["reward"] = np.asarray(columns.get("reward", np.zeros(n)), dtype=np.float64).reshape(n)
    return Trajectory(episode_id, "", np.arange(n), columns, {}, np.zeros(n, dtype=np.int64), {})


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
