"""Returns and lengths of episodes as metrics, for a run whose own metrics do not have them.

Stable-Baselines3 logs no return before an algorithm's hundredth rollout, and a loop of one's own may only call
`log_episode`. The episodes are there all the same. A canonical name (`train/return`, `train/length`, and the same of
`test`) that no stored key stands for is therefore read from the table `episodes`: one row for each complete episode, at
the end of it, as `RecordEpisodes` logs them. Episodes of the run itself, outside of any scope, are training episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from rollbook.storage import IDENTITY, Piece, Pieces, RunFiles
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import take_table, to_numpy

T = TypeVar("T")

_SCOPES = {"train": "train", "": "train", "test": "test"}
"""Scope of an episode -> the first part of the names that it is read by."""

_COLUMNS = ("return", "length")
_NAMES = frozenset(f"{scope}/{column}" for scope in _SCOPES.values() for column in _COLUMNS)


def read_metrics(files: RunFiles, work: Callable[[Pieces], T], asked: Iterable[str | None] | None = None) -> T:
    """`RunFiles.read` of metrics, with what only the episodes know.

    Args:
      asked: the keys and the axis that `work` needs, None for all.
    """
    return files.read(["metrics"], lambda tables: work(with_episodes(files, tables, asked)))


def with_episodes(files: RunFiles, tables: Mapping[str, Pieces], asked: Iterable[str | None] | None = None) -> Pieces:
    """The pieces of metrics that `files.read` returned, and those of the asked names that only the episodes know."""
    metrics = tables["metrics"]
    names = _NAMES if asked is None else _NAMES.intersection(asked)
    if not names or not files.holds("episodes"):
        return metrics
    names = _without_a_key(names, {key for piece in metrics for key in piece.meta["keys"]})
    if not names:
        return metrics
    episodes = tables["episodes"] if "episodes" in tables else files.read(["episodes"], lambda read: read["episodes"])
    return [*metrics, *(each for piece in episodes for each in _as_metrics(piece, names))]


def _without_a_key(names: frozenset[str], keys: set[str]) -> frozenset[str]:
    """The names among them that none of these keys already covers."""
    if names <= keys:
        return frozenset()
    from rollbook.schema.aliases import resolve  # hundreds of names, which a run without episodes does not need

    return frozenset(name for name in names if not resolve(name, keys))


def _as_metrics(episodes: Piece, names: frozenset[str]) -> Pieces:
    """The complete episodes of a piece as rows of metrics: a piece for each scope."""
    scope = episodes.meta.get("scope")
    schema = episodes.without_rows().read().schema
    stored = {name: episodes.column_of(name) for name in (*_COLUMNS, "complete")}
    numbers = [
        name for name in _COLUMNS if stored[name] in schema.names and _is_number(schema.field(stored[name]).type)
    ]
    wanted = {f"{meant}/{name}": (meant, stored[name]) for meant in _SCOPES.values() for name in numbers}
    wanted = {key: source for key, source in wanted.items() if key in names}
    if not wanted or scope not in (None, *_SCOPES):
        return []
    shared = ["time", *episodes.meta["clocks"], *IDENTITY]
    rows = episodes.read([*shared, *(stored[name] for name in (*numbers, "complete"))])
    scopes = np.full(rows.num_rows, scope) if scope is not None else to_numpy(rows["scope"])[0].astype(str)
    over = _complete(rows, stored["complete"])
    made = []
    for meant in dict.fromkeys(_SCOPES.values()):
        columns = {key: column for key, (own, column) in wanted.items() if own == meant}
        mine = over & np.isin(scopes, [word for word, own in _SCOPES.items() if own == meant])
        if columns and mine.any():
            made.append(_piece(episodes, shared, take_table(rows, np.flatnonzero(mine)), columns))
    return made


def _piece(episodes: Piece, shared: Sequence[str], rows: pa.Table, columns: Mapping[str, str]) -> Piece:
    """Rows of episodes as a piece of metrics whose keys are read from these columns."""
    table = rows.select([name for name in shared if name in rows.column_names])
    for key, column in columns.items():
        table = table.append_column(key, rows[column])
    seqs = to_numpy(rows["seq"])[0]
    meta = {**episodes.meta, "table": "metrics", "group": "episodes", "keys": list(columns), "stored": {}, "fields": {}}
    meta.update(rows=rows.num_rows, first_seq=int(seqs.min()), last_seq=int(seqs.max()), deferred=[])
    return Piece.of_table(meta, table)


def _complete(rows: pa.Table, column: str) -> NDArray:
    """Which episodes are over, and not cut off by the end of the run."""
    if column not in rows.column_names or not pa.types.is_boolean(rows.schema.field(column).type):
        return np.ones(rows.num_rows, dtype=bool)
    cells, valid = to_numpy(rows[column])
    over: NDArray = cells if valid is None else cells | ~valid
    return over


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
