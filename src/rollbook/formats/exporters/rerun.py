"""Rerun recordings (`.rrd`), written by Rerun's own SDK, a column at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rollbook.errors import BadInput
from rollbook.formats.datasets import StepSource
from rollbook.formats.datasets._png import png
from rollbook.formats.exporters._steps import Signals, signals_of
from rollbook.formats.exporters.mcap import facts_of
from rollbook.system.optional import need
from rollbook.system.texts import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from rollbook.runs.run_set import RunSet


class Rerun:
    """Rerun: recorded episodes as a recording, one entity a column, on the timelines `step` and `time`.

    The columns of an episode are below `/episodes/<id>` (with several agents `/episodes/<id>/<agent>`): `obs`,
    `action`, `reward` as scalars (arrays as several, in order), texts as text, images as images. The row of an episode
    (return, length, seed …) is a text at its own entity; the run's own facts are the recording's properties.

    Args:
      episodes: ids of the episodes to write; all by default.
    """

    name = "rerun"
    table = "steps"

    def __init__(self, episodes: Sequence[str] | str | None = None) -> None:
        self._episodes = [episodes] if isinstance(episodes, str) else episodes

    def write(self, runs: RunSet, out: Path) -> dict[str, int]:
        """Write the trajectories of the newest of the runs."""
        rr = need("rerun", extra="rerun", why="export to rerun")
        book = runs.last()
        source = StepSource(book, episodes=self._episodes)
        counts = {"episodes": 0, "steps": 0, "pictures": 0}
        recording = rr.RecordingStream(f"rollbook/{book.project}", recording_id=book.id)
        recording.save(str(out))
        recording.send_recording_name(book.name)
        recording.send_property("run", rr.AnyValues(**facts_of(book, source)))
        written: set[str] = set()
        for trajectory in source:
            above = ["episodes", trajectory.episode_id]
            if trajectory.episode_id not in written:
                written.add(trajectory.episode_id)
                counts["episodes"] += 1
                if trajectory.row:
                    facts = rr.TextDocument(json_text(trajectory.row, indent=1))
                    recording.log(rr.new_entity_path(above), facts, static=True, strict=True)
            where = [*above, trajectory.agent] if trajectory.agent else above
            left_out = _columns(rr, recording, where, signals_of(trajectory), counts)
            if left_out:
                words = "values that are neither numbers, texts nor pictures"
                counts[words] = counts.get(words, 0) + left_out
            counts["steps"] += len(trajectory)
        recording.flush()
        recording.disconnect()
        if not out.exists():
            raise BadInput(f"export to rerun: Rerun wrote no file at {out}; is it switched off by $RERUN?")
        return counts


def _columns(rr: Any, recording: Any, above: list[str], signals: Signals, counts: dict[str, int]) -> int:
    """Send the columns of one episode. Returns the number of cells that cannot be stored there."""
    left_out = 0

    def send(name: str, rows: Any, columns: Any) -> None:
        indexes = [
            rr.TimeColumn("step", sequence=signals.t[rows]),
            rr.TimeColumn("time", timestamp=signals.times[rows].astype("datetime64[ns]")),
        ]
        recording.send_columns(rr.new_entity_path([*above, *name.split("/")]), indexes, columns, strict=True)

    for name, cells in signals.values.items():
        there = [row for row, cell in enumerate(cells) if cell is not None]
        kept = cells if len(there) == len(cells) else [cells[row] for row in there]
        if there and all(isinstance(cell, str) for cell in kept):
            send(name, there, rr.TextLog.columns(text=list(kept)))
            continue
        numbers = _numbers(kept)
        if numbers is None:
            left_out += len(there)
            continue
        scalars = rr.Scalars.columns(scalars=np.concatenate(numbers) if numbers else np.zeros(0))
        send(name, there, scalars.partition([len(one) for one in numbers]))
    for name, pictures in signals.pictures.items():
        data = [png(picture) for picture in pictures]
        send(name, list(range(len(data))), rr.EncodedImage.columns(blob=data, media_type=["image/png"] * len(data)))
        counts["pictures"] += len(data)
    return left_out


def _numbers(cells: Any) -> list[Any] | None:
    """Each cell as a flat array of doubles; None if one is not a number or an array of numbers."""
    flat = []
    for cell in cells:
        try:
            array = np.asarray(cell)
        except ValueError:
            return None
        if array.dtype.kind not in "biuf":
            return None
        flat.append(array.reshape(-1).astype(np.float64))
    return flat
