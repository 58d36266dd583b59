"""The earlier rows of a run, read from its journal with the standard library: what going back needs with rollbook-core.

Where numpy and pyarrow are installed, `Book` answers the same questions, of sealed rows too. A journal is never cut
with rollbook-core, so it has every row, unless a full rollbook recorded part of the run.
"""

from __future__ import annotations

import os
from pathlib import Path

from rollbook.errors import Damaged, MissingExtra, NewerFormat
from rollbook.journal import FrameFile, JournalReader, last_numbers, list_writers
from rollbook.keeper.rewinds import effective_rows
from rollbook.keeper.sealed import LazySealed
from rollbook.schema import cuts, manifest
from rollbook.schema.checkpoint_rows import CheckpointHistory, counts_in
from rollbook.schema.run_files import parse_name
from rollbook.schema.tables import TABLES
from rollbook.system.files import names_in
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    from rollbook.journal import WriterInfo
    from rollbook.schema.manifest import Cut
    from rollbook.values import Histogram

    RowId: TypeAlias = tuple[int, str, int, int]  # unix ns, writer, lane, seq
    Row: TypeAlias = Any  # protocols.Row
    Scope: TypeAlias = tuple[str, str]  # scope, checkpoint
    StoredValues: TypeAlias = list[float | Histogram]

_NEVER = (0, "", 0, 0)


class OwnPast:
    """The part of `Book` that a run needs of itself. Reads the whole journal at each call.

    Args:
      folder: the run's folder.
    Raises:
      MissingExtra: each method, if part of the run is sealed: a full rollbook recorded it.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = os.fspath(folder)
        self._about = manifest.look(self._folder)
        self._effective = effective_rows(self._folder, self._about)
        self._own_writers = manifest.main_writers(self._about)

    def checkpoint_history(self) -> CheckpointHistory:
        """See `Book.checkpoint_history`."""
        rows = [
            {**row.values, **row.clocks, "attempt": row.attempt, "writer": row.writer, "lane": row.lane}
            | {"seq": row.seq, "time_ns": _ns(row)}
            for row in self._rows("checkpoints")
        ]
        return CheckpointHistory(rows, Path(self._folder))

    def cut_behind(self, checkpoint: Mapping[str, Any]) -> tuple[int, Cut]:
        """See `Book.cut_behind`."""
        return cuts.cut_behind(self._for_cuts(), checkpoint)

    def cut_at(self, clock: str, value: int) -> tuple[int, Cut, dict[str, int]]:
        """See `Book.cut_at`."""
        return cuts.cut_at(self._for_cuts(), clock, value, self._about.clocks)

    def reached(self) -> dict[str, int]:
        """See `Book.reached`."""
        return cuts.reached(self._for_cuts(), self._about.clocks)

    def _for_cuts(self) -> _RowsForCuts:
        return _RowsForCuts(
            [row for row in self._rows() if not row.at], self._effective.chain, self._folder, self._own_writers
        )

    def undumped(self) -> dict[tuple[str, str], dict[str, StoredValues]]:
        """See `Book.undumped`."""
        since, arrays = self._since_dumps()
        cells: dict[Scope, dict[str, list[tuple[RowId, float | Histogram]]]]
        cells = {at: {key: [] for key in keys} for at, keys in since.items()}
        for row in self._rows("metrics") if since else ():
            row_id, scope = (_ns(row), row.writer, row.lane, row.seq), (row.scope, row.at)
            for key, value in row.values.items() if row.writer in self._own_writers else ():
                mark = since.get(scope, {}).get(key)
                if isinstance(value, (int, float)) and mark is not None and _is_behind(row_id, mark):
                    cells[scope][key].append((row_id, float(value)))
        for row_id, scope, columns in arrays:
            key = str(columns.get("key"))
            mark = since.get(scope, {}).get(key)
            if mark is not None and _is_behind(row_id, mark):
                cells[scope][key] += [(row_id, value) for value in _values_of(columns)]
        return {
            scope: {key: [value for _, value in sorted(found, key=lambda cell: cell[0])] for key, found in keys.items()}
            for scope, keys in cells.items()
        }

    def _since_dumps(self) -> tuple[dict[Scope, dict[str, RowId]], list[tuple[RowId, Scope, Mapping[str, Any]]]]:
        """The keys that go through `store`, each with the row of its last dump; and all histograms."""
        since: dict[Scope, dict[str, RowId]] = {}
        dumped: dict[Scope, dict[str, RowId]] = {}
        arrays: list[tuple[RowId, Scope, Mapping[str, Any]]] = []
        for info, lane, seq, time_ns, frame in self._frames():
            scope = (str(frame.get("scope") or ""), str(frame.get("at") or ""))
            if info.id not in self._own_writers:
                continue
            if not self._effective.has(_attempt_of(frame, info), info.id, lane, seq, time_ns, scope[1]):
                continue
            row_id, keys, columns = (time_ns, info.id, lane, seq), frame.get("keys") or (), frame.get("columns")
            if frame.get("mark") == "store":
                since.setdefault(scope, {}).update(dict.fromkeys(map(str, keys), _NEVER))
            elif frame.get("mark") == "dump":
                dumped.setdefault(scope, {}).update(dict.fromkeys(map(str, keys), row_id))
            elif frame.get("table") == "histograms" and isinstance(columns, dict):
                arrays.append((row_id, scope, columns))
        for scope, last in since.items():
            last.update({key: row_id for key, row_id in dumped.get(scope, {}).items() if key in last})
        return since, arrays

    def marks(self) -> list[dict[str, Any]]:
        """See `Book.marks`."""
        return [
            {"mark": frame["mark"], "attempt": _attempt_of(frame, info), "writer": info.id, "lane": lane}
            | {"seq": seq, "payload": frame}
            for info, lane, seq, _, frame in sorted(self._frames(), key=lambda found: found[3])
            if frame.get("mark")
        ]

    @property
    def own_summary(self) -> dict[str, object]:
        """See `Book.own_summary`, after an attempt that did not end cleanly."""
        summary: dict[str, object] = dict(self._about.summary)
        for mark in self.marks():
            if mark["mark"] == "summary":
                manifest.follow_summary(summary, mark["payload"])
        return summary

    def latest(self) -> dict[str, tuple[Any, dict[str, int], float]]:
        """See `Book.latest`."""
        newest: dict[str, tuple[tuple[int, int], Any, dict[str, int], float]] = {}
        for row in self._rows("metrics"):
            age = (row.attempt, _ns(row))
            for key, value in row.values.items():
                if key not in newest or newest[key][0] <= age:
                    newest[key] = (age, value, dict(row.clocks), row.time)
        return {key: newest[key][1:] for key in sorted(newest)}

    def episode_counts(self) -> list[tuple[str, object, object]]:
        """See `Book.episode_counts`."""
        saved = [count for row in self._rows("checkpoints") for count in counts_in(row.values)]
        rows = self._rows("episodes")
        return [*saved, *((row.scope, row.values.get("number"), row.values.get("counted_env_step")) for row in rows)]

    # -- what the methods above use

    def _rows(self, *tables: str) -> Iterator[Row]:
        """The rows of the effective history, by time; without names, of all tables."""
        self._refuse_sealed()
        names = tables or {*TABLES, *(str(frame["table"]) for *_, frame in self._frames() if "table" in frame)}
        with JournalReader(self._folder, tables=frozenset(names)) as reader:
            for rows, _cursor in reader.batches({}):
                for row in rows:
                    row_id = (row.attempt, row.writer, row.lane, row.seq, _ns(row), row.at)
                    if not row.mark and self._effective.has(*row_id):
                        yield row

    def _frames(self) -> Iterator[tuple[WriterInfo, int, int, int, dict[str, Any]]]:
        """(writer, lane, seq, unix ns, payload) of every readable frame."""
        self._refuse_sealed()
        for info in list_writers(self._folder):
            for name in names_in(info.folder):
                parsed = parse_name(name)
                if parsed is None or parsed[0] == "seg":
                    continue
                path = os.path.join(info.folder, name)
                with tolerating(OSError, Damaged, NewerFormat), FrameFile(path, info.time_offset) as file:
                    for seq, time_ns, payload, _end in file.frames():
                        yield info, file.lane, seq, time_ns, payload

    def _refuse_sealed(self) -> None:
        if LazySealed(self._folder).lanes():
            raise MissingExtra(
                f"going back in the run {self._folder} needs numpy and pyarrow: a full rollbook sealed part of it, and "
                "rollbook-core alone is here. pip install 'rollbook-core[full]'; or load a checkpoint yourself, and log"
            )


class _RowsForCuts:
    """See `cuts.RunRows`."""

    def __init__(
        self, rows: list[Row], chain: Mapping[int, manifest.Cut | None], folder: str, mains: Collection[str]
    ) -> None:
        self._lanes: dict[tuple[int, str, int], list[Row]] = {}
        for row in sorted(rows, key=lambda row: int(row.seq)):
            self._lanes.setdefault((row.attempt, row.writer, row.lane), []).append(row)
        self.chain, self.mains = chain, frozenset(mains)
        writers = list_writers(folder)
        self.hosts = {info.id: (info.boot_id or info.host, info.time_offset) for info in writers}
        self.ends = {info.id: last_numbers(info) for info in writers}

    def lanes(self, clocks: Sequence[str], attempt: int | None = None, but: str = "") -> Iterator[_Lane]:
        for (number, writer, lane), rows in self._lanes.items():
            if attempt in (None, number):
                yield _Lane(number, writer, lane, rows)


class _Lane:
    """See `cuts.LaneRows`."""

    def __init__(self, attempt: int, writer: str, lane: int, rows: list[Row]) -> None:
        self.attempt, self.writer, self.lane, self._rows = attempt, writer, lane, rows

    def last_seq(self) -> int:
        return int(self._rows[-1].seq)

    def extremes(self, clock: str) -> tuple[int, int] | None:
        known = [known[clock] for _, known in self._known() if clock in known]
        return (min(known), max(known)) if known else None

    def first_beyond(self, readings: Mapping[str, int], after: int = 0) -> tuple[int, int] | None:
        for row, known in self._known():
            if row.seq > after and any(known.get(clock, reading) > reading for clock, reading in readings.items()):
                return int(row.seq), _ns(row)
        return None

    def first_since(self, moment: int) -> int | None:
        return next((int(row.seq) for row in self._rows if _ns(row) >= moment), None)

    def last_known(self, clock: str, up_to: int) -> tuple[int, int, dict[str, int]] | None:
        known = [(row, known) for row, known in self._known() if clock in known and row.seq <= up_to]
        return (_ns(known[-1][0]), int(known[-1][0].seq), known[-1][1]) if known else None

    def _known(self) -> Iterator[tuple[Row, dict[str, int]]]:
        for row in self._rows:
            yield row, {} if row.values.get("kept") is False and row.table == "checkpoints" else dict(row.clocks)


def _ns(row: Row) -> int:
    seconds: float = row.time
    return round(seconds * 1e9)


def _attempt_of(frame: Mapping[str, object], info: WriterInfo) -> int:
    attempt = frame.get("attempt")
    return attempt if type(attempt) is int else info.attempt


def _is_behind(row_id: RowId, mark: RowId) -> bool:
    """By sequence number if both are in one lane, else by time."""
    return row_id[3] > mark[3] if row_id[1:3] == mark[1:3] else row_id[0] > mark[0]


def _values_of(columns: Mapping[str, Any]) -> StoredValues:
    """The numbers of a stored array, or its histogram if it was too large to keep them."""
    from rollbook.values import Histogram

    def plain(cells: Any) -> list[Any]:
        return list(cells.flat()) if hasattr(cells, "flat") else list(cells or ())

    if len(plain(columns.get("counts"))):
        summary = {name: columns.get(name) for name in ("low", "high", "total", "total_squares")}
        return [Histogram(plain(columns["edges"]), plain(columns["counts"]), **summary)]
    return [float(value) for value in plain(columns.get("values")) if value is not None]
