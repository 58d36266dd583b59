"""Folders in the layout of LeRobot's data sets (version 3.0, or 2.1 on request), and their import into a run.

Observations without parts are `observation.state`, parts of dict observations `observation.<name>`, images
`observation.images.<name>` as PNG inside the rows. An episode's end is `next.done`; `next.terminated` and
`next.truncated` give the kind of end. The layout has no place for the observation after an episode's last step.
Written from the description of the format; the package itself is not needed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from rollbook.errors import BadInput
from rollbook.formats.datasets._cells import is_ragged
from rollbook.formats.datasets._lerobot_columns import FrameColumn, OwnData, columns_of
from rollbook.formats.datasets._lerobot_v2 import V21Writer, read_v2
from rollbook.formats.datasets._lerobot_v3 import V3Writer, read_v3
from rollbook.formats.datasets._replay import Replay
from rollbook.formats.datasets._source import StepSource
from rollbook.formats.datasets._whole import Exported, whole_trajectories

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book import Book
    from rollbook.protocols import Recorder

_VERSIONS = ("v3.0", "v2.1")


def to_lerobot(
    book: Book,
    folder: str | os.PathLike[str],
    *,
    fps: float = 30.0,
    task: str | None = None,
    robot_type: str | None = None,
    episodes: Sequence[str] | Callable[[dict[str, Any]], bool] | None = None,
    agent: str | None = None,
    version: Literal["v3.0", "v2.1"] = "v3.0",
    data_files_size_in_mb: float = 100,
    chunks_size: int = 1000,
) -> Exported:
    """Write the trajectories of a run as a folder in LeRobot's layout.

    Args:
      book: the run.
      folder: new or empty.
      fps: frames per second: `timestamp` is the frame's number divided by it.
      task: the task in words; None: the id of the environment.
      robot_type: LeRobot's field of that name. None: not set.
      episodes: ids, or a function of an episode's row; None: all that have trajectories.
      agent: only this one; required if there are several.
      version: of the layout. LeRobot reads only v3.0 from 0.4 on, and only v2.1 before.
      data_files_size_in_mb, chunks_size: of v3.0, as LeRobot calls them: the size of a file from which a new one
        begins, and the number of files in a folder.
    Raises:
      BadInput: nothing to write, several agents, a folder that is not empty, episodes with different columns, values
        that are not numbers of one shape, another version, or sizes that are not above 0.
    """
    root = Path(folder)
    if fps <= 0:
        raise BadInput(f"to_lerobot(fps={fps}): give frames per second, more than 0.")
    if version not in _VERSIONS:
        raise BadInput(f"to_lerobot(version={version!r}): give one of {', '.join(_VERSIONS)}.")
    if not data_files_size_in_mb > 0 or chunks_size < 1:
        raise BadInput(f"to_lerobot({data_files_size_in_mb=}, {chunks_size=}): give numbers above 0.")
    if root.exists() and any(root.iterdir()):
        raise BadInput(f"to_lerobot(…, {os.fspath(folder)!r}): the folder is not empty.", "Choose another one.")
    source = StepSource(book, episodes=episodes, agents=None if agent is None else [agent])
    if len(source.agents) > 1:
        raise BadInput(f"to_lerobot(): the run has the agents {', '.join(source.agents)}.", "Name one with agent=.")
    for what in ("observation", "action"):
        space = source.space(what, source.agents[0])
        if space is not None and is_ragged(space):
            raise BadInput(
                f"to_lerobot(): the {what}s are of {space}, whose values have no numbers of one shape; LeRobot's "
                "columns do.",
                "Use to_jsonl, which keeps them as they are.",
            )
    made = root.exists()
    try:
        root.mkdir(parents=True, exist_ok=True)
        words = task or source.env_id() or ""
        writer: V3Writer | V21Writer
        if version == "v3.0":
            writer = V3Writer(root, fps, words, robot_type, file_mb=data_files_size_in_mb, chunk_files=chunks_size)
        else:
            writer = V21Writer(root, fps, words, robot_type)
        with writer:
            return _write(root, source, writer)
    except BaseException:
        shutil.rmtree(root, ignore_errors=True)
        if made:
            root.mkdir(exist_ok=True)
        raise


def _write(root: Path, source: StepSource, writer: V3Writer | V21Writer) -> Exported:
    exported = Exported(paths=(str(root),))
    first: list[FrameColumn] = []
    kinds: list[object] = []
    own_data: OwnData | None = None
    for trajectory in whole_trajectories(source, exported):
        columns = columns_of(trajectory)
        if own_data is None:
            first, own_data = columns, OwnData.of(source, columns)
            kinds = [column.kind for column in first]
        elif [column.kind for column in columns] != kinds:
            columns = _in_order(columns, first)
            if [column.kind for column in columns] != kinds:
                raise BadInput(
                    f"to_lerobot(): episode {trajectory.episode_id} has other columns than the ones before "
                    f"({_differing(columns, first)}).",
                    "Choose episodes of one environment.",
                )
        writer.add(trajectory, columns)
    if own_data is None:
        raise BadInput(f"to_lerobot(): none of {exported.with_gaps} trajectories is whole: each lacks steps or an end.")
    writer.finish()
    own_data.write(root)
    return exported


def _differing(columns: Sequence[FrameColumn], others: Sequence[FrameColumn]) -> str:
    own, before = ({column.name: column.feature for column in some} for some in (columns, others))
    names = [name for name in {**own, **before} if own.get(name) != before.get(name)]
    return ", ".join(f"{name}: {own.get(name)} after {before.get(name)}" for name in names[:2])


def _in_order(columns: Sequence[FrameColumn], others: Sequence[FrameColumn]) -> list[FrameColumn]:
    """The columns in the order of the others; additional columns at the end."""
    index_of = {column.name: index for index, column in enumerate(others)}
    return sorted(columns, key=lambda column: index_of.get(column.name, len(index_of)))


def from_lerobot(
    folder: str | os.PathLike[str], recorder: Recorder, *, episodes: Sequence[int] | None = None
) -> Exported:
    """Write a folder in LeRobot's layout (3.0, 2.1 or 2.0) into a run. Videos are not read.

    Memory holds one row group of 3.0, where many episodes share a file, or one episode of 2.x.

    Args:
      folder: the data set's folder.
      recorder: the run or the scope that gets the episodes.
      episodes: their indices; None: all. Those of 3.0 come in the order of the files.
    Raises:
      BadInput: not such a folder, or an episode does not exist in it.
      Damaged: a file is missing or differs from the folder's description of it.
    """
    root = Path(folder)
    try:
        info = json.loads((root / "meta" / "info.json").read_text(encoding="utf-8"))
        version, features = str(info["codebase_version"]), dict(info["features"])
        info = {
            **info,
            "features": features,
            "total_episodes": int(info["total_episodes"]),
            "chunks_size": int(info["chunks_size"]),
        }
    except (OSError, ValueError, KeyError, TypeError) as err:
        raise BadInput(f"from_lerobot({os.fspath(folder)!r}): no meta/info.json of a data set there ({err}).") from None
    if not version.startswith(("v2.", "v3.0")):
        raise BadInput(f"from_lerobot(): {root} has version {version}; v3.0, v2.1 and v2.0 are read.")
    own_data, replay = OwnData.read(root), Replay(recorder)
    own_data.begin_replay(replay)
    read = read_v3 if version.startswith("v3") else read_v2
    for trajectory in read(root, info, own_data, episodes):
        replay.add(trajectory)
    replay.finish()
    return Exported(replay.episodes, replay.steps)
