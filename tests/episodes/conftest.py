"""A recorder that keeps everything in lists, and small environments whose episodes can be added up by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import rollbook
from new_runs import new_run as new_run


class Notebook:
    """A run of which one can ask what it was told, and what stands in its book. Its verbs are the run's own."""

    def __init__(self, root: Path) -> None:
        self.run = rollbook.init("p", "r", dir=root, sinks=[], keeper="import", rules=())
        self.messages: dict[str, str] = {}
        self.run.internals.writer.bill._deliver = self.messages.setdefault
        self.logged: list[dict[str, Any]] = []
        self.frames: list[tuple[str, Any, int]] = []
        self.videos: list[tuple[str, Any, float]] = []
        self.images: list[tuple[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.run, name)

    def log(self, values: dict[str, Any], **clocks: Any) -> None:
        self.logged.append({**values, **{f"clock:{name}": at for name, at in clocks.items()}})
        self.run.log(values, **clocks)

    def record(self, table: str, columns: Any, n: int = 1, **options: Any) -> int:
        self.frames.append((table, columns, n))
        return self.run.record(table, columns, n, **options)

    def log_video(self, key: str, frames: Any, fps: float = 30.0, **clocks: Any) -> None:
        self.videos.append((key, frames, fps))
        self.run.log_video(key, frames, fps=fps, **clocks)

    def log_image(self, key: str, image: Any, **clocks: Any) -> None:
        self.images.append((key, image))
        self.run.log_image(key, image, **clocks)

    @property
    def counts(self) -> dict[str, int]:
        return dict(self.run.internals.writer.bill.counts)

    def table(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table in the order in which they came, without empty cells; clocks are `clock:<name>`."""
        clocks = {name: f"clock:{name}" for name in self.run.internals.writer.clocks}
        rows = self.run.book.table(name).sort_by(
            [("writer", "ascending"), ("seq", "ascending"), ("index", "ascending")]
        )
        return [
            {clocks.get(column, column): cell for column, cell in row.items() if cell is not None}
            for row in rows.to_pylist()
        ]

    def columns(self, table: str, *names: str) -> list[tuple[Any, ...]]:
        return [tuple(row.get(name) for name in names) for row in self.table(table)]


@pytest.fixture(autouse=True)
def _sealing_has_tests_of_its_own(request: pytest.FixtureRequest) -> None:
    """Runs that a test records are not sealed, those of a module are; see `sealed`."""
    if "sealed" not in request.fixturenames:
        request.getfixturevalue("nothing_is_sealed")


@pytest.fixture
def notebook(tmp_path: Path, nothing_is_sealed: None) -> Iterator[Notebook]:
    notebook = Notebook(tmp_path / "runs")
    yield notebook
    notebook.run.finish()


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
