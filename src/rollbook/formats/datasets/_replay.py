"""Writes trajectories into a run as if they had been recorded there; used by all imports of data sets."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rollbook.formats.datasets._cells import Cells, one_row, plain_cell
from rollbook.formats.datasets._source import Trajectory
from rollbook.protocols import Recorder
from rollbook.values.spaces import describe

_CHUNK_ROWS = 4096
_CHUNK_BYTES = 4 * 1024 * 1024


class Replay:
    """Writes trajectories as rows of `steps`, `episodes` and `rewards`.

    Args:
      recorder: a run or a scope.
    Attributes:
      episodes, steps: how many were written.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.episodes = self.steps = 0
        self._open: list[Trajectory] = []

    def add(self, trajectory: Trajectory) -> None:
        """Write the next trajectory; those of several agents in one episode must be consecutive."""
        if self._open and self._open[0].episode_id != trajectory.episode_id:
            self._close()
        self._write_steps(trajectory)
        # The episode's row only needs the sums later.
        slim = {name: trajectory.columns[name] for name in _SUMMED if name in trajectory.columns}
        self._open.append(
            Trajectory(
                trajectory.episode_id, trajectory.agent, trajectory.t, slim, {}, trajectory.times, trajectory.row
            )
        )

    def finish(self) -> None:
        """Write the row of the last episode."""
        if self._open:
            self._close()

    def spaces(self, observation: object, action: object, agent: str = "", env_id: str | None = None) -> None:
        """Store the spaces (and the environment's id), so that the run can be exported again."""
        end = f"/{agent}" if agent else ""
        texts = {
            f"env/observation_space{end}": describe(observation) if observation is not None else "",
            f"env/action_space{end}": describe(action) if action is not None else "",
            "env/id": env_id or "",
        }
        described = {key: text for key, text in texts.items() if text}
        if described:
            self._recorder.record("text", {"key": list(described), "text": list(described.values())}, len(described))

    def _write_steps(self, trajectory: Trajectory) -> None:
        n = len(trajectory)
        widest = sum(getattr(cells, "nbytes", 64 * n) for cells in trajectory.columns.values()) / max(1, n)
        step = max(1, min(_CHUNK_ROWS, int(_CHUNK_BYTES / max(1.0, widest))))
        for start in range(0, n, step):
            stop = min(n, start + step)
            cells = {name: column[start:stop] for name, column in trajectory.columns.items()}
            self._record(trajectory, trajectory.t[start:stop].tolist(), cells)
        if trajectory.last:
            last = {name: one_row(cell) for name, cell in trajectory.last.items()}
            self._record(trajectory, [int(trajectory.t[-1]) + 1 if n else 0], last)
        self.steps += n

    def _record(self, trajectory: Trajectory, t: list[int], cells: Mapping[str, Cells]) -> None:
        n = len(t)
        columns: dict[str, object] = {"episode_id": [trajectory.episode_id] * n, "t": t}
        if trajectory.agent:
            columns["agent"] = [trajectory.agent] * n
        for name, column in cells.items():
            if isinstance(column, np.ndarray) and column.ndim > 2:
                columns[f"shape/{name}"] = [",".join(map(str, column.shape[1:]))] * n
                column = np.ascontiguousarray(column).reshape(n, -1)
            columns[name] = column if isinstance(column, np.ndarray) else [plain_cell(cell) for cell in column]
        self._recorder.record("steps", columns, n)

    def _close(self) -> None:
        parts, self._open = self._open, []
        row = parts[0].row
        ends = [(_any(part, "terminated"), _any(part, "truncated")) for part in parts]
        with np.errstate(invalid="ignore"):
            returns = [float(np.sum(part.column("reward", 0.0).astype(np.float64))) for part in parts]
        terminated, truncated = any(end for end, _ in ends), any(cut for _, cut in ends)
        written = {
            "episode_id": parts[0].episode_id,
            "return": sum(returns),
            "length": max(len(part) for part in parts),
            "terminated": bool(row.get("terminated", terminated)),
            "truncated": bool(row.get("truncated", truncated)),
            "complete": bool(row.get("complete", terminated or truncated)),
            "seed": row.get("seed"),
            "env_index": row.get("env_index", 0),
            "options": row.get("options"),
            "steps_kept": "imported",
        }
        self._recorder.record("episodes", {name: [value] for name, value in written.items()}, 1)
        if any(part.agent for part in parts):
            n = len(parts)
            columns = {
                "episode_id": [part.episode_id for part in parts],
                "agent": [part.agent for part in parts],
                "component": [""] * n,
                "stage": ["final"] * n,
                "sum": returns,
                "n": [len(part) for part in parts],
            }
            self._recorder.record("rewards", columns, n)
        self.episodes += 1


_SUMMED = ("reward", "terminated", "truncated")


def _any(trajectory: Trajectory, name: str) -> bool:
    return bool(np.any(trajectory.column(name, False)))


def flat_tree(prefix: str, tree: object, columns: dict[str, object]) -> None:
    """Nested dicts and tuples of columns as `prefix/key` and `prefix/0`."""
    if isinstance(tree, Mapping):
        for name, part in tree.items():
            flat_tree(f"{prefix}/{name}", part, columns)
    elif isinstance(tree, tuple):
        for index, part in enumerate(tree):
            flat_tree(f"{prefix}/{index}", part, columns)
    else:
        columns[prefix] = tree
