"""MCAP files, recordings of robots: Foxglove, Lichtblick, Rerun and ROS tools open them.

Messages are JSON with a JSON schema, which these tools show without a definition of ours. Images are
`foxglove.CompressedImage` (https://docs.foxglove.dev/docs/sdk/schemas/compressed-image).
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np

from rollbook.formats.datasets import StepSource
from rollbook.formats.datasets._cells import plain_cell
from rollbook.formats.datasets._png import png
from rollbook.formats.exporters._steps import Signals, signals_of
from rollbook.system.optional import need
from rollbook.system.texts import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from rollbook.book import Book
    from rollbook.runs.run_set import RunSet

_IMAGE = {
    "type": "object",
    "title": "foxglove.CompressedImage",
    "properties": {
        "timestamp": {
            "type": "object",
            "title": "time",
            "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}},
        },
        "frame_id": {"type": "string"},
        "data": {"type": "string", "contentEncoding": "base64"},
        "format": {"type": "string"},
    },
}
_KINDS = {"b": "boolean", "i": "integer", "u": "integer", "f": "number"}


class Mcap:
    """MCAP: recorded episodes for Foxglove and other viewers of robots; a message a step, pictures as pictures.

    Each step is a message of the topic `/step` (with several agents `/<agent>/step`) at the time when it was recorded:
    `episode`, `t`, the observation, `action`, `reward` and everything else that was recorded, nested like the spaces.
    The observation after the last step is a separate message. Each image is a message of a topic named like its column,
    such as `/obs`. The row of each episode is a message of `/episode`; the run's own facts are the metadata `rollbook`.
    NaN and infinities are the texts "NaN", "Infinity" and "-Infinity".

    Args:
      episodes: ids of the episodes to write; all by default.
    """

    name = "mcap"
    table = "steps"

    def __init__(self, episodes: Sequence[str] | str | None = None) -> None:
        self._episodes = [episodes] if isinstance(episodes, str) else episodes

    def write(self, runs: RunSet, out: Path) -> dict[str, int]:
        """Write the trajectories of the newest of the runs; memory is bounded by one episode."""
        writing = need("mcap.writer", extra="mcap", why="export to mcap")
        source = StepSource(runs.last(), episodes=self._episodes)
        counts = {"episodes": 0, "steps": 0, "pictures": 0}
        with open(out, "wb") as file:
            writer = writing.Writer(file)
            writer.start(profile="", library="rollbook")
            writer.add_metadata("rollbook", facts_of(runs.last(), source))
            topics = _Topics(writer)
            announced: set[str] = set()
            for trajectory in source:
                signals = signals_of(trajectory)
                prefix = f"/{trajectory.agent}" if trajectory.agent else ""
                _steps(topics, prefix, trajectory.episode_id, signals)
                counts["pictures"] += _pictures(topics, prefix, trajectory.episode_id, signals)
                counts["steps"] += len(trajectory)
                if trajectory.row and trajectory.episode_id not in announced and len(signals.times):
                    topics.add("/episode", trajectory.row, int(signals.times[-1]))
                if trajectory.episode_id not in announced:
                    announced.add(trajectory.episode_id)
                    counts["episodes"] += 1
            writer.finish()
        return counts


def facts_of(book: Book, source: StepSource) -> dict[str, str]:
    """The facts about a run, as texts."""
    facts: Mapping[str, object] = {
        "project": book.project,
        "name": book.name,
        "id": book.id,
        "seed": book.seed,
        "group": book.group,
        "config": book.config,
        "env_id": source.env_id(),
    }
    return {
        name: value if isinstance(value, str) else json_text(value)
        for name, value in facts.items()
        if value is not None
    }


class _Topics:
    """The channels of a file, each with the schema of its first message."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self._channels: dict[str, int] = {}
        self._numbers: dict[str, int] = {}

    def add(
        self, topic: str, message: Mapping[str, object], nanos: int, schema: Mapping[str, Any] | None = None
    ) -> None:
        """Write a message."""
        channel = self._channels.get(topic)
        if channel is None:
            chosen = schema or _schema(message)
            name = str(chosen.get("title") or f"rollbook{topic.replace('/', '.')}")
            made = self._writer.register_schema(name, "jsonschema", json.dumps(chosen).encode())
            channel = self._channels[topic] = self._writer.register_channel(topic, "json", made)
        number = self._numbers[topic] = self._numbers.get(topic, -1) + 1
        data = json_text(message).encode()
        self._writer.add_message(channel, log_time=nanos, publish_time=nanos, data=data, sequence=number)


def _steps(topics: _Topics, prefix: str, episode: str, signals: Signals) -> None:
    names = list(signals.values)
    cells = [column.tolist() if isinstance(column, np.ndarray) else column for column in signals.values.values()]
    paths = [name.split("/") for name in names]
    leaves = [_leaf(path, paths) for path in paths]
    for row, (t, nanos) in enumerate(zip(signals.t.tolist(), signals.times.tolist(), strict=True)):
        message: dict[str, Any] = {"episode": episode, "t": t}
        for path, column in zip(leaves, cells, strict=True):
            if row < len(column) and column[row] is not None:
                level = message
                for part in path[:-1]:
                    level = level.setdefault(part, {})
                level[path[-1]] = plain_cell(column[row])
        topics.add(f"{prefix}/step", message, nanos)


def _leaf(path: list[str], among: list[list[str]]) -> list[str]:
    """The path of a column; if other columns are below it, such as `obs/a` below `obs`, it becomes `obs/value`."""
    is_above = any(other[: len(path)] == path and len(other) > len(path) for other in among)
    return [*path, "value"] if is_above else path


def _pictures(topics: _Topics, prefix: str, episode: str, signals: Signals) -> int:
    written = 0
    for name, pictures in signals.pictures.items():
        for picture, nanos in zip(pictures, signals.times.tolist(), strict=False):
            data = base64.b64encode(png(picture)).decode("ascii")
            stamp = {"sec": nanos // 10**9, "nsec": nanos % 10**9}
            message = {"timestamp": stamp, "frame_id": episode, "data": data, "format": "png"}
            topics.add(f"{prefix}/{name}", message, nanos, _IMAGE)
            written += 1
    return written


def _schema(value: object) -> dict[str, Any]:
    """The JSON schema of a value."""
    if isinstance(value, dict):
        return {"type": "object", "properties": {str(name): _schema(inner) for name, inner in value.items()}}
    if isinstance(value, (list, tuple)):
        return {"type": "array", "items": _schema(value[0])} if value else {"type": "array"}
    kind = np.asarray(value).dtype.kind if isinstance(value, (bool, int, float)) else ""
    return {"type": _KINDS[kind]} if kind in _KINDS else {"type": "string"}
