"""Selects rows of metrics: keys, ranges, an axis, an order."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.book.axis import OtherHosts, Placed, in_order, place
from rollbook.book.metrics import Within, all_keys, joined, wide_metrics
from rollbook.book.read_context import Context
from rollbook.errors import AmbiguousKey, BadInput, UnknownKey, did_you_mean
from rollbook.storage import IDENTITY, Pieces
from rollbook.values.array_types import NDArray
from rollbook.values.arrow import cast, from_numpy, take_table, to_numpy


def select_metrics(
    pieces: Pieces,
    run: Context,
    keys: Sequence[str] | None,
    *,
    x: str | None = None,
    start: float | None = None,
    stop: float | None = None,
    since: float | datetime | None = None,
    until: float | datetime | None = None,
    exact: bool | None = None,
) -> pa.Table:
    """See `Book.metrics`."""
    if x is None and (start is not None or stop is not None):
        raise BadInput(
            f"start={start!r}, stop={stop!r} without x.", "Name the clock or key they count in, such as x='env_step'"
        )
    labels = all_keys(pieces, run.clocks)
    if x == "time" and x not in labels:  # unix seconds, which every row has: the same question as since and until
        table = select_metrics(
            pieces, run, keys, since=_latest(since, start), until=_earliest(until, stop), exact=exact
        )
        return table if exact else table.append_column("inferred", from_numpy(np.zeros(table.num_rows, dtype=bool)))
    asked = _asked_keys(keys, x, labels, run)
    # What the pieces themselves can leave out. An axis that is a key may come from other rows, so it is cut later.
    span = (-np.inf if start is None else start, np.inf if stop is None else stop)
    within = _within(x if asked.axis_key is None else None, span, since, until)
    # Rows of several hosts need to know their writer: each has a clock of its own.
    hosts = {} if x is None or exact else run.hosts()
    several_clocks = len({host.clock for host in hosts.values()}) > 1
    table, attempt, writers = _read(pieces, run, asked, within, with_writers=several_clocks)
    mask = np.ones(table.num_rows, dtype=bool)
    if since is not None or until is not None:
        times = to_numpy(table["time"])[0]
        mask &= (times >= _ns(since, -(2**62))) & (times < _ns(until, 2**62))
    if asked.has_axis_besides:  # leave out rows that only have the axis
        mask &= _have_any(table, [labels[name] for name in asked.keys])
    if x is None:
        return _as_asked(_without_unknown(in_order(_rows(table, mask), None), run.clocks, ""), asked)
    # Each row's reading on the axis: its own, or that of the newest row that has one.
    axis = x if asked.axis_key is None else labels[asked.axis_key]
    others = None if writers is None else OtherHosts(writers, hosts, by_time=exact is False)
    placed = place(table, attempt, axis, pieces, run, exact=bool(exact), span=span, others=others)
    mask &= placed.there
    if start is not None:
        mask &= placed.x >= start
    if stop is not None:
        mask &= placed.x < stop
    table = _on_axis(table, axis, placed, mask, with_inferred=not exact)
    return _as_asked(_without_unknown(table, run.clocks, x), asked)


@dataclass(frozen=True)
class _AskedKeys:
    """The keys of a request, and the columns that they have in its answer.

    Attributes:
      keys: those that were asked for, each once, by their own names.
      columns: the columns to read: of those, and of the axis if it is a key.
      axis_key: the key that is the axis; None if a clock is the axis, or there is none.
      aliases: canonical name that was asked for -> the column of its key.
      plain: the columns that were asked for by their own names.
      all: whether no keys were named.
    """

    keys: list[str]
    columns: list[str]
    axis_key: str | None
    aliases: dict[str, str]
    plain: set[str]
    all: bool

    @property
    def has_axis_besides(self) -> bool:
        """Whether the axis is a key that was not asked for itself."""
        return self.axis_key is not None and self.axis_key not in self.keys

    @property
    def to_read(self) -> list[str] | None:
        """The keys to read, that of the axis last; None for all."""
        if self.all:
            return None
        return [*self.keys, self.axis_key] if self.has_axis_besides else self.keys  # type: ignore[list-item]


def _asked_keys(keys: Sequence[str] | None, x: str | None, labels: dict[str, str], run: Context) -> _AskedKeys:
    own = list(labels) if keys is None else resolve_keys(keys, labels, run.path)
    axis_key = _axis_key(x, labels, run)
    named = [*(keys or ()), *((x,) if axis_key is not None and x is not None else ())]
    aliases = _aliases(named, labels, run.path)
    plain = set(labels.values()) if keys is None else {labels.get(key, key) for key in keys if key not in aliases}
    columns = [labels[key] for key in own]
    if axis_key is not None and axis_key not in own:
        columns.append(labels[axis_key])
    return _AskedKeys(own, sorted(columns) if keys is None else columns, axis_key, aliases, plain, keys is None)


def _read(
    pieces: Pieces, run: Context, asked: _AskedKeys, within: Within, *, with_writers: bool
) -> tuple[pa.Table, NDArray, NDArray | None]:
    """(wide table of the rows that have one of the keys, the attempt of each, its writer if it is needed)."""
    wides = wide_metrics(pieces, asked.to_read, run, within=within, with_identity=with_writers)
    table, attempt = joined(wides, asked.columns, run.clocks)
    if not with_writers:
        return table, attempt, None
    writers = to_numpy(table["writer"])[0] if "writer" in table.column_names else None
    return table.select([name for name in table.column_names if name not in IDENTITY]), attempt, writers


def _on_axis(table: pa.Table, axis: str, placed: Placed, mask: NDArray, *, with_inferred: bool) -> pa.Table:
    """The rows of the mask in the order of the axis, with their readings of it.

    Args:
      with_inferred: with the column `inferred`, too; a key of this name is then the column value/inferred.
    """
    if placed.inferred.any():
        table = _with_readings(table, axis, placed.x, placed.there)
    if with_inferred:
        table = table.rename_columns(["value/inferred" if n == "inferred" else n for n in table.column_names])
    rows = np.flatnonzero(mask)
    return in_order(_rows(table, mask), placed.x[rows], placed.inferred[rows] if with_inferred else None)


def resolve_keys(keys: Sequence[str], labels: dict[str, str], path: str) -> list[str]:
    """The requested keys, each once; value/<key> and canonical names (`schema.aliases`) are accepted.

    A key with exactly this name wins over an alias.

    Raises:
      UnknownKey: a key that the book does not have.
      AmbiguousKey: a canonical name that matches several keys of the book.
    """
    by_label = {label: key for key, label in labels.items()}
    natives = []
    for key in keys:
        native = key if key in labels else by_label.get(key)
        natives.append(_native(key, labels, path) if native is None else native)
    return list(dict.fromkeys(natives))


def canonical_keys(labels: dict[str, str]) -> dict[str, str]:
    """{canonical name: the column it is read from}, for every name with one key in this book."""
    return dict(_canonical_of(tuple(labels.items())))


@functools.lru_cache(maxsize=64)
def _canonical_of(columns: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """The same of ((key, column), …). The runs of a study mostly have the same keys."""
    from rollbook.schema.aliases import TABLE, candidates, canonical, scoped

    labels = dict(columns)
    names = {name for key in labels for name in (key, canonical(key))}
    below = {scope_and_name for key in labels if (scope_and_name := scoped(key)) is not None}
    names |= {name for _, name in below}
    fitting = [(entry.name, candidates(entry.name, labels)) for entry in TABLE if entry.name in names]
    fitting += [(name, candidates(name, labels)) for name in sorted(map("/".join, below)) if name not in labels]
    return {name: labels[keys[0]] for name, keys in fitting if len(keys) == 1}


def _native(name: str, labels: dict[str, str], path: str) -> str:
    """The key of a canonical name in this book."""
    from rollbook.schema.aliases import candidates, native_names

    fitting = candidates(str(name), labels)
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise AmbiguousKey(
            f"{path}: {name!r} stands for {len(fitting)} keys of this book: {', '.join(fitting)}. Ask for one of them."
        )
    known = native_names(str(name))
    spelled = f", nor any that frameworks write for it ({', '.join(known[:3])}, …)" if known else ""
    raise UnknownKey(f"{path} has no key {name!r}{spelled}.", did_you_mean(str(name), list(labels)))


def _aliases(names: Sequence[str], labels: dict[str, str], path: str) -> dict[str, str]:
    """{canonical name: column of its key}, for names that are not keys of this book."""
    taken = set(labels.values())
    free = [name for name in names if name not in taken]
    foreign = {name: labels[_native(name, labels, path)] for name in free if name not in labels}
    # The column of a key value/time is renamed if another key needs it, but a request by its name still finds it.
    return foreign | {name: labels[name] for name in free if name in labels and name[:6] == "value/"}


def _as_asked(table: pa.Table, asked: _AskedKeys) -> pa.Table:
    """Name the columns of canonical names as requested; `plain` ones keep a column with their own name, too."""
    for name, column in asked.aliases.items():
        if column in asked.plain:
            table = table.append_column(name, table[column])
        else:
            table = table.rename_columns([name if existing == column else existing for existing in table.column_names])
    return table


def _axis_key(x: str | None, labels: dict[str, str], run: Context) -> str | None:
    """The key that `x` names; None if it is a clock (or empty)."""
    if x is None or x in run.clocks:
        return None
    try:
        return resolve_keys([x], labels, run.path)[0]
    except UnknownKey:
        near = did_you_mean(x, [*run.clocks, *labels])
        raise UnknownKey(f"x={x!r}: {run.path} has no such clock or key.", near) from None


def _with_readings(table: pa.Table, axis: str, x: NDArray, there: NDArray) -> pa.Table:
    """The table with these readings as its column `axis`: those of the rows, and those inferred for others."""
    readings = pa.chunked_array([from_numpy(x, there)])
    kind = readings.type if pa.types.is_floating(readings.type) else table.schema.field(axis).type
    return table.set_column(table.column_names.index(axis), axis, cast(readings, kind))


def _within(clock: str | None, span: tuple[float, float], since: Any, until: Any) -> list[tuple[str, float, float]]:
    """The ranges (column, first, behind the last) in which alone the pieces need to be read."""
    within: list[tuple[str, float, float]] = []
    if clock is not None and span != (-np.inf, np.inf):
        within.append((clock, *span))
    if since is not None or until is not None:
        within.append(("time", _ns(since, -(2**62)), _ns(until, 2**62)))
    return within


def _rows(table: pa.Table, mask: NDArray) -> pa.Table:
    return table if mask.all() else take_table(table, np.flatnonzero(mask))


def _have_any(table: pa.Table, columns: Sequence[str]) -> NDArray:
    """Which rows have at least one of these columns."""
    there = np.zeros(table.num_rows, dtype=bool)
    for name in columns:
        valid = to_numpy(table[name])[1]
        if valid is None:
            return np.ones(table.num_rows, dtype=bool)
        there |= valid
    return there


def _without_unknown(table: pa.Table, clocks: tuple[str, ...], keep: str) -> pa.Table:
    """Remove clocks that none of the rows knows."""
    unknown = [c for c in clocks if c != keep and table[c].null_count == table.num_rows]
    return table.drop_columns(unknown) if unknown else table


def _ns(moment: Any, default: int) -> int:
    """Unix seconds, or a datetime, as unix ns."""
    seconds = moment.timestamp() if hasattr(moment, "timestamp") else moment
    if seconds is None:
        return default
    try:
        ns: int = max(-(2**62), min(2**62, round(seconds * 1e9)))
    except (TypeError, ValueError, OverflowError):
        if isinstance(seconds, float) and seconds in (float("inf"), float("-inf")):
            return 2**62 if seconds > 0 else -(2**62)
        raise BadInput(f"{moment!r:.80} must be a moment: pass unix seconds or a datetime") from None
    return ns


def _latest(*moments: object) -> Any:
    return max((moment for moment in moments if moment is not None), key=lambda moment: _ns(moment, 0), default=None)


def _earliest(*moments: object) -> Any:
    return min((moment for moment in moments if moment is not None), key=lambda moment: _ns(moment, 0), default=None)
