"""Defines tables: their columns, whether sinks get their rows, and how a row converts to a `Row`.

One entry per table. Sealing, `Book`, the row readers, the keeper, `rollbook show` and the docs use these. A new table
is one entry in `TABLES`, and a method of `Book` if useful. For other tables (any name may be recorded), `table_of`
returns an entry without fixed columns.

Standard library only: the training process and all readers load this.
"""

from __future__ import annotations

from rollbook.values import Histogram, Image, Value, Video
from rollbook.values.known import KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from rollbook.values.known import Kind

    Cells: TypeAlias = Mapping[str, Any]

HISTOGRAM_BINS = 64
"""Number of equal bins of raw values for a sink."""


class Table:
    """One table of a run.

    Attributes:
      name: its name in `run.record`, in `book.table` and on disk.
      columns: name -> kind ("text", "number", "integer", "boolean", "numbers" for a list of numbers) of the columns
        that exist even if nothing was logged, in addition to time, clocks and identity. Rows may add more.
      forwarded: whether its rows go to sinks.
      values: converts the cells of one row, by column, to the values of its `Row`, by key; {} if there are none. Raises
        KeyError, TypeError or ValueError for cells that cannot be a row of this table.
    """

    __slots__ = ("columns", "forwarded", "name", "values")

    def __init__(
        self,
        name: str,
        columns: Mapping[str, str],
        *,
        values: Callable[[Cells], dict[str, Value]] | None = None,
        forwarded: bool = False,
    ) -> None:
        self.name, self.columns, self.forwarded = name, columns, forwarded
        self.values = values or _every_cell

    def __repr__(self) -> str:
        return f"<Table {self.name!r}>"


def is_of_numbers(table: str, column: str) -> bool:
    """Whether a column of a table holds numbers alone; parts of the rewards of rollouts do, too."""
    kind = table_of(table).columns.get(column, "")
    return kind in ("number", "integer") or (table == "rollouts" and column.startswith("rewards/"))


def table_of(name: str) -> Table:
    """The table with this name; one without fixed columns if it is not in `TABLES`."""
    return TABLES.get(name) or Table(name, {})


def timing_key(name: str) -> str:
    """The key of a stage's duration in seconds, for sinks."""
    return f"time/{name}_seconds"


def timing_name(key: str) -> str | None:
    """The stage of such a key, None for any other key."""
    return key[5:-8] if key.startswith("time/") and key.endswith("_seconds") else None


# -- what a row of each table says


def _scalars(cells: Cells) -> dict[str, Value]:
    return {key: value for key, value in cells.items() if isinstance(value, (int, float, str))}


def _every_cell(cells: Cells) -> dict[str, Any]:
    return {name: value for name, value in cells.items() if value is not None}


def _text(cells: Cells) -> dict[str, Value]:
    return {str(cells["key"]): str(cells["text"])}


def _alert(cells: Cells) -> dict[str, Value]:
    return {f"alert/{cells['rule']}": f"{cells.get('level') or 'warn'}: {cells['message']}"}


def _timing(cells: Cells) -> dict[str, Value]:
    return {timing_key(str(cells["name"])): float(cells["seconds"])}


def _media(cells: Cells) -> dict[str, Value]:
    path, width, height = str(cells["path"]), int(cells.get("width") or 0), int(cells.get("height") or 0)
    thing: Image | Video = Image(path, width, height)
    if cells.get("kind") == "video":
        thing = Video(path, width, height, int(cells.get("frames") or 0), float(cells.get("fps") or 0))
    return {str(cells.get("key") or "media"): thing}


def _of_kind(kind: Kind) -> Callable[[Cells], dict[str, Value]]:
    """The values of a row in the table of one kind of value."""
    return lambda cells: {str(cells["key"]): kind.value(cells)}


def _histogram(cells: Cells) -> dict[str, Value]:
    edges, counts = _floats(cells.get("edges")), _floats(cells.get("counts"))
    if edges and counts:
        summary = {name: cells.get(name) for name in ("low", "high", "total", "total_squares")}
        return {str(cells["key"]): Histogram(edges, counts, **summary)}
    finite = [value for value in _floats(cells.get("values")) if value - value == 0]  # neither NaN nor infinite
    return {str(cells["key"]): _binned(finite)} if finite else {}


def _binned(values: list[float]) -> Histogram:
    low, high = min(values), max(values)
    first, last = (low, high) if low < high else (low - 0.5, high + 0.5)
    width = (last - first) / HISTOGRAM_BINS
    if not 0 < width < float("inf"):
        first, last, width = low, low + 1.0, 1.0 / HISTOGRAM_BINS
    tally = [0] * HISTOGRAM_BINS
    for value in values:
        tally[min(HISTOGRAM_BINS - 1, max(0, int((value - first) / width)))] += 1
    return Histogram(
        [first + i * width for i in range(HISTOGRAM_BINS)] + [last],
        tally,
        low=low,
        high=high,
        total=sum(values),
        total_squares=sum(value * value for value in values),
    )


def _floats(value: Any) -> list[float]:
    """A list, a journal array (which has `flat`), one number, or nothing, as numbers."""
    if value is None:
        return []
    if isinstance(value, (int, float)):
        return [float(value)]
    flat = getattr(value, "flat", None)
    return [float(item) for item in (flat() if callable(flat) else value) if item is not None]


# fmt: off
_EPISODE = {
    "episode_id": "text", "return": "number", "length": "integer", "seconds": "number", "terminated": "boolean",
    "truncated": "boolean", "seed": "integer", "env_index": "integer",
}
_REWARD = {
    "episode_id": "text", "agent": "text", "component": "text", "stage": "text", "sum": "number", "mean": "number",
    "min": "number", "max": "number", "n": "integer",
}
_SAMPLE = {"sample_id": "text", "item": "text", "group": "text", "is_new": "boolean", "batch": "integer"}
_HISTOGRAM = {
    "key": "text", "values": "numbers", "edges": "numbers", "counts": "numbers", "low": "number", "high": "number",
    "total": "number", "total_squares": "number",
}
_MEDIA = {"key": "text", "kind": "text", "path": "text", "width": "integer", "height": "integer"}
_CHECKPOINT = {
    "checkpoint_id": "text", "path": "text", "score": "number", "is_best": "boolean", "kept": "boolean",
    "positions": "text", "state": "text", "format": "text",
}
_TASK = {"task_id": "text", "env": "text", "prompt": "text", "messages": "text", "tools": "text"}
_ROLLOUT = {
    "rollout_id": "text", "task_id": "text", "group": "text", "batch": "text", "mode": "text", "episode_id": "text",
    "agent": "text", "parent": "text", "branch": "text", "status": "text", "stop_reason": "text", "error": "text",
    "policy_version_end": "integer", "turns": "integer", "prompt_tokens": "integer", "sampled_tokens": "integer",
    "other_tokens": "integer", "tool_calls": "integer", "tool_errors": "integer", "reward": "number",
    "started": "number", "seconds": "number", "seconds/model": "number", "seconds/tools": "number",
    "seconds/reward": "number", "seconds/queue": "number", "sampler": "text", "temperature": "number",
    "top_p": "number", "seed": "integer", "item": "text", "trimmed": "boolean",
}
_TURN = {
    "rollout_id": "text", "turn": "integer", "parent_turn": "integer", "role": "text", "name": "text", "text": "text",
    "calls": "text", "tokens": "integer", "trained": "boolean", "seconds": "number", "finish_reason": "text",
    "error": "text", "reward": "number", "item_path": "text", "item_size": "integer", "trimmed": "boolean",
}
_TOKENS = {
    "rollout_id": "text", "turn": "integer", "first": "integer", "ids": "numbers", "sampler_logprobs": "numbers",
    "trainer_logprobs": "numbers", "entropy": "numbers", "advantages": "numbers", "mask": "numbers",
    "trimmed": "boolean",
}
_FATE = {
    "rollout_id": "text", "used": "boolean", "reason": "text", "advantage": "number", "trained_version": "integer",
    "staleness": "integer", "in_queue": "number", "weight": "number", "ratio_mean": "number", "ratio_max": "number",
    "clipped": "number", "gap_mean": "number", "gap_max": "number", "kl": "number",
}
# fmt: on
_ALERT = {"rule": "text", "level": "text", "message": "text", "evidence": "text", "source": "text", "key": "text"}

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        Table("metrics", {}, values=_scalars, forwarded=True),
        Table("episodes", _EPISODE),
        Table("rewards", _REWARD),
        Table("steps", {"episode_id": "text", "t": "integer"}),
        Table("samples", _SAMPLE),
        Table("timings", {"name": "text", "seconds": "number"}, values=_timing, forwarded=True),
        Table("histograms", _HISTOGRAM, values=_histogram, forwarded=True),
        Table("media", _MEDIA, values=_media, forwarded=True),
        Table("checkpoints", _CHECKPOINT),
        Table("alerts", _ALERT, values=_alert, forwarded=True),
        Table("text", {"key": "text", "text": "text"}, values=_text, forwarded=True),
        Table("tasks", _TASK),
        Table("rollouts", _ROLLOUT),
        Table("turns", _TURN),
        Table("tokens", _TOKENS),
        Table("fates", _FATE),
    )
}
TABLES.update(
    (kind.table, Table(kind.table, {"key": "text", **kind.columns}, values=_of_kind(kind), forwarded=True))
    for kind in KINDS.values()
    if kind.table not in TABLES
)
"""Every standard table, in the order in which readers see them, even if empty."""

FORWARDED_MARKS = frozenset({"dump", "rewind", "final"})
"""The marks that sinks get; the others are only for the book."""

FORWARDED = frozenset(name for name, table in TABLES.items() if table.forwarded)
"""The tables whose rows go to sinks."""
