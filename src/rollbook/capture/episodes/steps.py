"""Rows of the `steps` table: collected by column and written in chunks, so that a killed run keeps the written part.

A chunk is written when it has enough rows or bytes, or when its first row is one second old. A column whose arrays
agree in type and shape is stored as one array. Images and other arrays with several axes are stored flat, with their
shape as text in the column `shape/<name>`. A column that changes its shape within a chunk is stored as lists. Missing
cells are None. Nothing here raises for unusual data.
"""

from __future__ import annotations

from rollbook.capture.storable import UNSTORABLE, flat, is_array
from rollbook.schema.clocks import now
from rollbook.values.walk import ATOMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rollbook.protocols import Recorder

CHUNK_ROWS = 512
CHUNK_BYTES = 1024 * 1024
CHUNK_NS = 1_000_000_000

_ALWAYS = ("running/", "media/")
"""Columns that are stored for every step, even without its episode's trajectory."""


class Unstorable:
    """Counts values that could not be stored, and reports each name once."""

    most_names = 32

    __slots__ = ("_names", "_recorder")

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._names: set[str] = set()

    def __call__(self, name: str, value: object) -> None:
        """`value`, found at `name`, was not stored."""
        if name not in self._names and len(self._names) >= self.most_names:
            name = "others"
        self._names.add(name)
        self._recorder.count(
            f"unstorable/{name}",
            1,
            f"{name!r} holds a {type(value).__module__}.{type(value).__qualname__}, which a table cannot hold; it was "
            "left out, everything else was kept. Return numbers, text, arrays, lists or dicts of those",
        )


class StepChunks:
    """The trajectory of one episode on its way to the `steps` table.

    Args:
      episode_id: written to every row.
      hold: keep everything in memory until `keep()` or `drop()`; for episodes chosen at their end.
      most_rows: further rows are counted and left out.
      most_held_bytes: a held trajectory larger than this is dropped (counted).
      clocks: the clocks to write with, or None for the run's own.
    """

    __slots__ = (
        "_bytes",
        "_clocks",
        "_first_ns",
        "_held",
        "_held_bytes",
        "_recorder",
        "_rows",
        "_times",
        "_unstorable",
        "episode_id",
        "hold",
        "lost",
        "most_held_bytes",
        "most_rows",
        "written",
    )

    def __init__(
        self,
        recorder: Recorder,
        episode_id: str,
        *,
        hold: bool = False,
        most_rows: int = 1_000_000,
        most_held_bytes: int = 64 * 1024 * 1024,
        unstorable: Unstorable | None = None,
        clocks: Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        self._recorder, self.episode_id, self.hold = recorder, episode_id, hold
        self.most_rows, self.most_held_bytes = most_rows, most_held_bytes
        self._unstorable = unstorable if unstorable is not None else Unstorable(recorder)
        self._clocks = clocks
        self._held: list[tuple[dict[str, Any], int, list[int]]] = []
        self._held_bytes = 0
        self.written = 0
        self.lost = False
        self._begin()

    def _begin(self) -> None:
        self._rows: list[Mapping[str, object]] = []
        self._times: list[int] = []
        self._bytes = self._first_ns = 0

    def add(self, cells: Mapping[str, object]) -> None:
        """Add one row without a copy: `cells` and its arrays must belong to the row alone (see `add_flat`)."""
        if self.lost:
            cells = {name: value for name, value in cells.items() if name == "t" or name.startswith(_ALWAYS)}
            if len(cells) < 2:
                return
        n = len(self._rows)
        if self.written + n >= self.most_rows:
            self._recorder.count(
                "steps_beyond_limit",
                1,
                f"episode {self.episode_id} has more than {self.most_rows:,} recorded steps; the later ones "
                "were not kept. Raise most_steps=, or end the episode",
            )
            return
        size = 16
        for value in cells.values():
            size += 16 if type(value) in ATOMS else getattr(value, "nbytes", 64)
        self._rows.append(cells)
        moment = now()
        self._times.append(moment)
        self._bytes += size
        if not n:
            self._first_ns = moment
        if n + 1 >= CHUNK_ROWS or self._bytes >= CHUNK_BYTES or (moment - self._first_ns >= CHUNK_NS and not self.hold):
            self.flush()

    def add_flat(self, prefix: str, value: Any, cells: dict[str, Any]) -> None:
        """Put `value` into `cells` under `prefix`, its parts under `prefix/…`. Reports parts that cannot be stored."""
        kind = type(value)
        if kind in ATOMS:
            cells[prefix] = value
            return
        if kind.__name__ == "ndarray" and is_array(value):
            cells[prefix] = value.copy()
            return
        leaves: dict[str, object] = {}
        flat(prefix, value, leaves)
        for name, cell in leaves.items():
            if cell is UNSTORABLE:
                self._unstorable(name, value)
            else:
                cells[name] = cell

    def flush(self) -> None:
        """Write (or hold) the collected rows. Called between rows of different kinds, and at the end."""
        rows = self._rows
        n = len(rows)
        if not n:
            return
        names = dict.fromkeys(rows[0])
        for row in rows:
            if len(row) != len(names) or row.keys() != names.keys():
                names.update(dict.fromkeys(row))
        columns: dict[str, object] = {"episode_id": [self.episode_id] * n}
        for name in names:
            column = _column([row.get(name) for row in rows])
            axes = getattr(column, "shape", ())
            if len(axes) > 2:  # tables store lists of one axis; the shape goes into a separate column
                columns[f"shape/{name}"] = [",".join(map(str, axes[1:]))] * n
                column = column.reshape(n, -1)
            columns[name] = column
        times, size = self._times, self._bytes
        self._begin()
        if not self.hold:
            self._write(columns, n, times)
            return
        self._held.append((columns, n, times))
        self._held_bytes += size
        self.written += n
        if self._held_bytes > self.most_held_bytes:
            self.drop()
            self.lost = True
            self._recorder.count(
                "held_episode_too_large",
                1,
                f"episode {self.episode_id} is held in memory until it is known whether it is the best or worst, and "
                f"grew beyond {self.most_held_bytes:,} bytes; its steps were given up. Raise held_bytes=, or choose "
                "by first and every",
            )

    def keep(self) -> None:
        """Write all held rows, and from now on write directly."""
        self.flush()
        self.hold = False
        held, self._held, self._held_bytes = self._held, [], 0
        self.written = 0
        for columns, n, times in held:
            self._write(columns, n, times)

    def drop(self) -> None:
        """Drop the held rows, except running data and media. Written rows stay."""
        self.flush()
        self.hold = False
        held, self._held, self._held_bytes = self._held, [], 0
        self.written = 0
        for columns, n, times in held:
            wanted = {
                name: column for name, column in columns.items() if name.removeprefix("shape/").startswith(_ALWAYS)
            }
            if wanted:
                self._write({"episode_id": columns["episode_id"], "t": columns["t"], **wanted}, n, times)

    def _write(self, columns: dict[str, Any], n: int, times: list[int]) -> None:
        self.written += n
        clocks = self._clocks() if self._clocks is not None else {}
        self._recorder.record("steps", columns, n, time_column=times, **clocks)


def _column(values: list[Any]) -> Any:
    """One array if all values are arrays of one type and shape; otherwise the list, its arrays as lists."""
    first = values[0]
    dtype = getattr(first, "dtype", None)
    if dtype is None:
        if type(first) in ATOMS and {type(value) for value in values} <= ATOMS:
            return values
    else:
        shape = first.shape
        if all(getattr(value, "dtype", None) == dtype and value.shape == shape for value in values):
            import numpy

            return numpy.stack(values)
    return [value.tolist() if hasattr(value, "tolist") else value for value in values]
