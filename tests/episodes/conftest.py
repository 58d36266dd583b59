"""A recorder that keeps everything in lists, and small environments whose episodes can be added up by hand."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest


def is_column(value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, np.ndarray) and value.shape[:1] == (1,))


class Notebook:
    """Stands in for a run's scope: `rows[table]` is a list of dicts, one per row."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or Path(".")
        self.name = "train"
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.frames: list[tuple[str, dict[str, Any], int]] = []
        self.logged: list[dict[str, Any]] = []
        self.counts: dict[str, int] = {}
        self.messages: dict[str, str] = {}
        self.clocks: dict[str, int] = {}
        self.videos: list[tuple[str, Any, float]] = []
        self.images: list[tuple[str, Any]] = []

    def log(self, values: dict[str, Any], **clocks: Any) -> None:
        self.logged.append({**values, **{f"clock:{name}": at for name, at in {**self.clocks, **clocks}.items()}})

    def record(
        self,
        table: str,
        columns: dict[str, Any],
        n: int = 1,
        *,
        clock_columns: dict[str, Any] | None = None,
        time_column: Any = None,
        **clocks: Any,
    ) -> int:
        columns = {name: column if n > 1 or is_column(column) else [column] for name, column in columns.items()}
        for name, column in columns.items():
            assert len(column) == n, (table, name, len(column), n)
        for name, column in (clock_columns or {}).items():
            assert len(column) == n, name
        assert time_column is None or len(time_column) == n
        self.frames.append((table, columns, n))
        for i in range(n):
            row = {name: column[i] for name, column in columns.items()}
            row.update({f"clock:{name}": at for name, at in {**self.clocks, **clocks}.items()})
            row.update({f"clock:{name}": column[i] for name, column in (clock_columns or {}).items()})
            self.rows.setdefault(table, []).append(row)
        return len(self.frames)

    def clocks_now(self) -> dict[str, int]:
        return dict(self.clocks)

    def count(self, cause: str, n: int = 1, message: str = "") -> None:
        self.counts[cause] = self.counts.get(cause, 0) + n
        self.messages.setdefault(cause, message)

    def clock(self, **clocks: int) -> None:
        self.clocks.update(clocks)

    def log_video(self, key: str, frames: Any, fps: float = 30.0, **clocks: Any) -> None:
        self.videos.append((key, frames, fps))

    def log_image(self, key: str, image: Any, **clocks: Any) -> None:
        self.images.append((key, image))

    def table(self, name: str) -> list[dict[str, Any]]:
        return self.rows.get(name, [])

    def columns(self, table: str, *names: str) -> list[tuple[Any, ...]]:
        return [tuple(row.get(name) for name in names) for row in self.table(table)]


@pytest.fixture
def notebook() -> Notebook:
    return Notebook()


def counting_env(
    lengths: list[int], *, reward: float = 1.0, info: Any = None, truncate: bool = False, fresh: bool = False
) -> Any:
    """An environment whose episodes have the given lengths, one after the other, and then again."""
    import gymnasium

    class Counting(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(-1000, 1000, (2,), np.float32)
        action_space = gymnasium.spaces.Discrete(3)
        metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 20}
        spec = None

        def __init__(self) -> None:
            self.episode, self.t = -1, 0
            self.render_mode = "rgb_array"
            self.custom = "mine"
            self._buffer = np.zeros(2, np.float32)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            super().reset(seed=seed)
            self.episode, self.t = self.episode + 1, 0
            return self._obs(), {}

        def step(self, action: Any) -> Any:
            self.t += 1
            over = self.t >= lengths[self.episode % len(lengths)]
            said = {} if info is None else info(self.t, over)
            return self._obs(), reward, over and not truncate, over and truncate, said

        def _obs(self) -> Any:
            self._buffer[:] = self.episode, self.t  # written in place, as many environments do
            return self._buffer.copy() if fresh else self._buffer

        def render(self) -> Any:
            return np.full((16, 24, 3), self.t, np.uint8)

    return Counting()


@pytest.fixture
def make_env() -> Any:
    return counting_env


class FileNotebook(Notebook):
    """Writes rows as JSON lines into a file, from whatever process it was pickled or forked into."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.path = folder / "rows.jsonl"

    def record(self, table: str, columns: dict[str, Any], n: int = 1, **more: Any) -> int:
        self.rows = {}
        super().record(table, columns, n, **more)
        lines = [
            json.dumps({"table": table, "pid": os.getpid(), **row}, default=lambda x: x.tolist())
            for row in self.rows[table]
        ]
        with open(self.path, "a") as file:
            file.write("".join(line + "\n" for line in lines))
        return 1

    def log(self, values: dict[str, Any], **clocks: Any) -> None:
        self.record("metrics", dict(values), **clocks)

    def read(self, table: str) -> list[dict[str, Any]]:
        rows = [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []
        return [row for row in rows if row["table"] == table]


@pytest.fixture
def file_notebook(tmp_path: Path) -> FileNotebook:
    return FileNotebook(tmp_path)
