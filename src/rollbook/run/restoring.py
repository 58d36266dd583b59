"""Where in a run a checkpoint stands: its clocks and the place behind it, read from its row."""

from __future__ import annotations

import json

from rollbook.ground.foreign import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from rollbook.ground.shapes import CutJson

__all__ = ["known_clocks", "place_of", "through_clocks"]


def place_of(row: Mapping[str, Any]) -> tuple[int, CutJson]:
    """The attempt that saved a checkpoint, and the cut in it: exact for the writer that saved it, else by time.

    The checkpoint's own row stands behind its positions; the cut holds it, or a second restore would not find it.
    """
    read = {}
    with tolerating(ValueError):
        read = json.loads(row.get("positions") or "{}")
    positions = read if isinstance(read, dict) else {}
    lanes = positions.get(row.get("writer"))
    if isinstance(lanes, dict) and row.get("lane") is not None and row.get("seq") is not None:
        lanes[str(row["lane"])] = max(int(lanes.get(str(row["lane"]), 0)), int(row["seq"]))
    began = int(row["time_ns"]) - int(float(row.get("seconds") or 0.0) * 1e9)  # the row stands at the end of the save
    return int(row["attempt"]), {"time": began, "writers": positions}


def through_clocks(row: Mapping[str, Any]) -> dict[str, int]:
    """The clocks up to whose next reading a checkpoint reaches, each with its reading; {}: it ends at its save."""
    with tolerating(ValueError):
        read = json.loads(row.get("through") or "{}")
        if isinstance(read, dict):
            return {str(name): reading for name, reading in read.items() if type(reading) is int}
    return {}


def known_clocks(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, int]:
    """The clocks of a row of a table, without the unknown ones."""
    return {name: int(row[name]) for name in names if row.get(name) is not None}
