"""RLlib's offline data: plain Parquet with one row per step, which RLlib trains on; and its import into a run.

    to_rllib(book, "offline")
    config = MARWILConfig().environment(observation_space=…, action_space=…).offline_data(input_="offline")

Columns: eps_id, agent_id, module_id, t, obs, actions, rewards, new_obs, terminateds, truncateds, and action_logp if
it was recorded. RLlib 2.60 only reads single agents, so several agents get a folder each.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rollbook.errors import BadInput
from rollbook.formats.datasets._arrow import fixed_lists, to_cells
from rollbook.formats.datasets._cells import join_cells
from rollbook.formats.datasets._replay import Replay, flat_tree
from rollbook.formats.datasets._source import StepSource, Trajectory
from rollbook.formats.datasets._whole import Exported, whole_trajectories
from rollbook.system.optional import need
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import from_numpy, strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book import Book
    from rollbook.protocols import Recorder

_GROUP_BYTES = 16 * 1024 * 1024


def to_rllib(
    book: Book,
    folder: str | os.PathLike[str],
    *,
    episodes: Sequence[str] | Callable[[dict[str, Any]], bool] | None = None,
    agent: str | None = None,
    module_id: str = "default_policy",
    action_logp: float | None = None,
    flatten: bool = False,
    observation_space: object = None,
    rows_per_file: int = 500_000,
) -> Exported:
    """Write the trajectories of a run for RLlib's `offline_data(input_=folder)`.

    Args:
      book: the run.
      folder: new or empty; with several agents it gets one folder per agent.
      episodes: ids, or a function of an episode's row; None: all that have trajectories.
      agent: only this one.
      module_id: RLlib's name of the policy, for its column.
      action_logp: for steps without a recorded log-probability (a column action_logp or logp); None: leave the column
        out if none was recorded.
      flatten: write dict and tuple observations as one vector, in the order of `gymnasium.spaces.flatten`. Without it
        they are rejected, since RLlib's reader has no nested columns.
      observation_space: required by `flatten` if no space was recorded.
      rows_per_file: the number of rows after which a new file begins.
    Raises:
      BadInput: nothing to write, a folder that is not empty, or observations that RLlib cannot read.
    """
    root = Path(folder)
    if root.exists() and any(root.iterdir()):
        raise BadInput(f"to_rllib(…, {os.fspath(folder)!r}): the folder is not empty.", "Choose another one.")
    source = StepSource(book, episodes=episodes, agents=None if agent is None else [agent])
    exported = Exported()
    made = root.exists()
    try:
        for name in source.agents:
            target = root / _safe(name) if len(source.agents) > 1 else root
            space = observation_space if observation_space is not None else source.space("observation", name)
            writer = _Files(target, rows_per_file)
            for trajectory in whole_trajectories(source, exported, name):
                writer.add(_rows(trajectory, module_id, action_logp, space if flatten else None))
            exported.paths += writer.finish()
    except BaseException:
        shutil.rmtree(root, ignore_errors=True)
        if made:
            root.mkdir(exist_ok=True)
        raise
    return exported


class _Files:
    """Parquet files of bounded row groups; each becomes visible when it is complete.

    Episodes whose columns have the same types become one table: one table each would take longer than the writing.
    """

    def __init__(self, folder: Path, rows_per_file: int) -> None:
        self._folder, self._most = folder, rows_per_file
        self._waiting: list[_Rows] = []
        self._bytes = self._rows = 0
        self._writer: pq.ParquetWriter | None = None
        self._paths: list[str] = []

    def add(self, rows: _Rows) -> None:
        self._waiting.append(rows)
        self._bytes += rows.nbytes
        if self._bytes >= _GROUP_BYTES:
            self._flush()

    def finish(self) -> tuple[str, ...]:
        self._flush()
        self._close()
        return tuple(self._paths)

    def _flush(self) -> None:
        if not self._waiting:
            return
        alike = [list(group) for _, group in groupby(self._waiting, key=lambda rows: rows.kinds)]
        table = pa.concat_tables([_table(group) for group in alike], promote_options="default")
        self._waiting, self._bytes = [], 0
        if self._writer is not None and table.schema != self._writer.schema:
            self._close()
        if self._writer is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._paths.append(str(self._folder / f"part-{len(self._paths):05d}.parquet"))
            self._writer = pq.ParquetWriter(f"{self._paths[-1]}.tmp", table.schema, compression="zstd")
        self._writer.write_table(table)
        self._rows += table.num_rows
        if self._rows >= self._most:
            self._close()

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            os.replace(f"{self._paths[-1]}.tmp", self._paths[-1])
            self._writer, self._rows = None, 0


@dataclass
class _Rows:
    """The rows of one episode.

    Attributes:
      columns: name -> [n, …] numbers.
      kinds: their types; episodes of equal kinds fit into one table.
    """

    texts: tuple[str, str | None, str]
    n: int
    columns: dict[str, Any]

    def __post_init__(self) -> None:
        self.kinds = [(name, cells.dtype, cells.shape[1:]) for name, cells in self.columns.items()]
        self.nbytes = sum([cells.nbytes for cells in self.columns.values()])


def _table(episodes: Sequence[_Rows]) -> pa.Table:
    """The rows of episodes of equal kinds."""
    columns: dict[str, pa.Array] = {}
    episode_of_row = from_numpy(np.repeat(np.arange(len(episodes)), [rows.n for rows in episodes]))
    for number, name in enumerate(("eps_id", "agent_id", "module_id")):
        columns[name] = strings([rows.texts[number] for rows in episodes]).take(episode_of_row)
    for name in episodes[0].columns:
        parts = [rows.columns[name] for rows in episodes]
        cells = parts[0] if len(parts) == 1 else np.concatenate(parts)
        columns[name] = from_numpy(cells) if cells.ndim == 1 else fixed_lists(cells)
    return pa.table(columns)


def _rows(trajectory: Trajectory, module_id: str, logp: float | None, flat_space: object) -> _Rows:
    n = len(trajectory)
    plain = None if flat_space is not None else _plain_observations(trajectory)
    seen, after = plain or (
        _observed(trajectory.observations(flat_space), n, flat_space, trajectory),
        _observed(trajectory.next_observations(flat_space), n, flat_space, trajectory),
    )
    columns: dict[str, object] = {
        "t": trajectory.t.astype(np.int64, copy=False),
        "obs": seen,
        "actions": _cells(trajectory.actions(), "actions", trajectory),
        "rewards": trajectory.column("reward", 0.0).astype(np.float64, copy=False),
        "new_obs": after,
        "terminateds": trajectory.column("terminated", False).astype(bool, copy=False),
        "truncateds": trajectory.column("truncated", False).astype(bool, copy=False),
    }
    known = trajectory.columns.get("action_logp", trajectory.columns.get("logp"))
    if known is not None and isinstance(known, np.ndarray):
        columns["action_logp"] = known.astype(np.float32).reshape(n)
    elif logp is not None:
        columns["action_logp"] = np.full(n, logp, dtype=np.float32)
    return _Rows((trajectory.episode_id, trajectory.agent or None, module_id), n, columns)


def _plain_observations(trajectory: Trajectory) -> tuple[NDArray, NDArray] | None:
    """Observations and the ones after each step, if they are one array and its last element; else None."""
    cells, end = trajectory.columns.get("obs"), trajectory.last.get("obs")
    if (
        not (isinstance(cells, np.ndarray) and isinstance(end, (np.ndarray, np.generic)))
        or cells.dtype.kind not in "biuf"
    ):
        return None
    if len(trajectory.last) > 1 or end.dtype != cells.dtype or end.shape != cells.shape[1:]:
        return None
    if any(name.startswith(("obs/", "next_obs")) for name in trajectory.columns):
        return None
    after = np.empty_like(cells)
    after[:-1], after[-1] = cells[1:], end
    return cells, after


def _observed(cells: Any, n: int, flat_space: object, trajectory: Trajectory) -> object:
    if flat_space is not None and isinstance(cells, (dict, tuple)):
        cells = _flattened(cells, n, flat_space)
    return _cells(cells[:n] if not isinstance(cells, (dict, tuple)) else cells, "observations", trajectory)


def _flattened(cells: object, n: int, space: object) -> object:
    spaces = need("gymnasium", extra="gym", why="to_rllib(flatten=True)").spaces
    return np.stack([spaces.flatten(space, _at(cells, i)) for i in range(n)])


def _at(cells: Any, i: int) -> object:
    if isinstance(cells, dict):
        return {name: _at(part, i) for name, part in cells.items()}
    return tuple(_at(part, i) for part in cells) if isinstance(cells, tuple) else cells[i]


def _cells(cells: object, what: str, trajectory: Trajectory) -> object:
    if isinstance(cells, list):
        try:
            cells = np.asarray(cells)
        except ValueError:
            cells = np.zeros(0, dtype=object)
    if not isinstance(cells, np.ndarray) or cells.dtype.kind not in "biuf":
        why = "of several parts" if isinstance(cells, (dict, tuple)) else "of changing shape, or no numbers"
        raise BadInput(
            f"to_rllib(): the {what} of episode {trajectory.episode_id} are {why}; RLlib reads numbers of one shape.",
            "Pass flatten=True for dict and tuple observations.",
        )
    return cells


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name) or "agent"


def from_rllib(path: str | os.PathLike[str], recorder: Recorder) -> Exported:
    """Write RLlib's offline data (Parquet, one row per step) into a run, some rows in memory at a time.

    Args:
      path: a file, or a folder of files.
      recorder: the run or the scope that gets the episodes.
    Raises:
      BadInput: no such rows. Whole episodes and compressed columns (both are RLlib's defaults) are pickled and
        therefore not read: write with output_write_episodes=False and output_compress_columns=[].
    """
    files = sorted(Path(path).rglob("*.parquet")) if Path(path).is_dir() else [Path(path)]
    if not files or not all(file.exists() for file in files):
        raise BadInput(f"from_rllib({os.fspath(path)!r}): no Parquet file there.")
    replay = Replay(recorder)
    exported = Exported()
    ended: set[tuple[str, str]] = set()
    for trajectory in _trajectories(files):
        key = (trajectory.episode_id, trajectory.agent)
        if key in ended:  # RLlib 2.60 writes the rows of earlier rounds again with each round
            exported.repeated += 1
            continue
        if _is_over(trajectory.columns):
            ended.add(key)
        replay.add(trajectory)
    replay.finish()
    exported.episodes, exported.steps = replay.episodes, replay.steps
    return exported


def _is_over(columns: Mapping[str, Any]) -> bool:
    return any(name in columns and bool(columns[name][-1]) for name in ("terminated", "truncated"))


def _trajectories(files: Sequence[Path]) -> Iterator[Trajectory]:
    """Consecutive rows of one episode and agent, across files and batches."""
    waiting: dict[str, object] | None = None
    key: tuple[str, str] | None = None
    for table in _batches(files):
        columns = _columns(table)
        ids = list(zip(columns.pop("eps_id"), columns.pop("agent_id"), strict=True))
        n = len(ids)
        over = np.zeros(n, dtype=bool)
        for name in ("terminated", "truncated"):
            over |= np.asarray(columns.get(name, over), dtype=bool)
        edges = [0, *(i for i in range(1, n) if ids[i] != ids[i - 1] or over[i - 1]), n]
        for start, stop in pairwise(edges):
            part = {name: cells[start:stop] for name, cells in columns.items()}
            if waiting is not None and ids[start] == key and not _is_over(waiting):
                waiting = {name: _joined(waiting.get(name), cells) for name, cells in part.items()}
                continue
            if waiting is not None and key is not None:
                yield _trajectory(key, waiting)
            waiting, key = part, ids[start]
    if waiting is not None and key is not None:
        yield _trajectory(key, waiting)


def _batches(files: Sequence[Path]) -> Iterator[pa.Table]:
    for path in files:
        with pq.ParquetFile(path) as file:
            names = set(file.schema_arrow.names)
            missing = {"eps_id", "obs", "actions", "rewards"} - names
            if missing:
                hint = (
                    " It holds whole episodes; write them with output_write_episodes=False." if "item" in names else ""
                )
                raise BadInput(f"from_rllib(): {path} has no column {', '.join(sorted(missing))}.{hint}")
            kind = file.schema_arrow.field("obs").type
            if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
                raise BadInput(
                    f"from_rllib(): the observations in {path} are pickled and compressed, and reading never "
                    "unpickles.",
                    "Write them with offline_data(output_compress_columns=[]).",
                )
            for batch in file.iter_batches(batch_size=8192):
                if batch.num_rows:
                    yield pa.Table.from_batches([batch])


_NAMES = {
    "obs": "obs",
    "actions": "action",
    "rewards": "reward",
    "new_obs": "next_obs",
    "terminateds": "terminated",
    "truncateds": "truncated",
    "t": "t",
    "action_logp": "action_logp",
}


def _columns(table: pa.Table) -> dict[str, Any]:
    n = table.num_rows
    columns: dict[str, object] = {}
    for name in table.column_names:
        if name in ("eps_id", "agent_id"):
            columns[name] = ["" if value is None else str(value) for value in table[name].to_pylist()]
        elif name in _NAMES:
            flat_tree(_NAMES[name], to_cells(table[name]), columns)
        elif name == "dones" and "terminateds" not in table.column_names:
            columns["terminated"] = to_cells(table[name])
    columns.setdefault("agent_id", [""] * n)
    return columns


def _joined(first: Any, second: Any) -> object:
    return second if first is None else join_cells(first, second)


def _trajectory(key: tuple[str, str], columns: Mapping[str, Any]) -> Trajectory:
    columns_left = dict(columns)
    n = len(columns_left["reward"])
    columns_left["reward"] = np.asarray(columns_left["reward"], dtype=np.float64)
    for name in ("terminated", "truncated"):
        columns_left[name] = np.asarray(columns_left.get(name, np.zeros(n)), dtype=bool)
    t = np.asarray(columns_left.pop("t", np.arange(n)), dtype=np.int64)
    return Trajectory(key[0], key[1], t, columns_left, {}, np.zeros(n, dtype=np.int64), {})
