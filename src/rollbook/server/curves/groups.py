"""Curves of groups of runs: rows are read once, `rollbook.compare` computes the numbers, this packs arrays."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Literal, NamedTuple
from weakref import WeakValueDictionary

import msgspec
import numpy as np
import numpy.typing as npt

from rollbook import compare
from rollbook.errors import BadInput, RollbookError
from rollbook.runs.groups import end_of, units_of
from rollbook.schema.status import ENDED_BADLY
from rollbook.server.asking import Group
from rollbook.server.curves.row_helpers import RowHelpers, Rows, keep, kept, rows_in
from rollbook.server.curves.series import EntryError, axis_name, version_of
from rollbook.server.frames import MEDIA_TYPE, Array, Frame
from rollbook.server.runs.columns import some_of
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint, Streamed
from rollbook.server.shared.rows import check_points, check_range, started
from rollbook.server.shared.shapes import Ask, Refused, plain, words_of
from rollbook.server.shared.state import ServerContext, stamp_of
from rollbook.values.array_types import NDArray


class CurvesAsk(Ask, kw_only=True):
    """Many keys of many groups of runs.

    Attributes:
      refine: where bands of many runs take long, a frame of few draws comes first for each key, then the full one.
    """

    groups: list[Group]
    keys: list[str]
    x: str | None = None
    points: int = 200
    start: float | None = None
    stop: float | None = None
    statistic: Literal["iqm", "mean", "median"] = "iqm"
    level: float = 0.95
    refine: bool = False


class CurveEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The curve of a group in the header of a frame.

    Attributes:
      arrays: x, centre, low, high (NaN where too few seeds stand for an interval), count (seeds at each point), min,
        max (over the seeds).
      band: "pointwise".
      method, claim: how low and high were found, and per cent of studies in which they hold at least.
      seeds: members that have the key; missing: those that have not.
      preliminary: whether the same entry with bands of more draws is on its way.
    """

    group: str
    key: str
    x: str
    kind: Literal["curve", "none"]
    n: int = 0
    arrays: dict[str, Array] = {}
    statistic: str = "iqm"
    level: float = 0.95
    band: str = "pointwise"
    method: str = ""
    claim: float | None = None
    sentence: str = ""
    seeds: int = 0
    missing: list[str] = []
    preliminary: bool = False
    error: EntryError | None = None
    version: str = ""


class RowsOfRun(NamedTuple):
    """A run's rows of a key.

    Attributes:
      axis: its name in the API.
      x, y: [rows].
      is_whole: whether these are all of its rows, as they were logged; means of long runs are not.
    """

    axis: str
    x: NDArray
    y: NDArray
    is_whole: bool = True


_MOST_KEYS, _MOST_AHEAD = 16, 1_000
_IN_TURN = 256
"""Requests for more unread runs take turns; one for fewer, such as the first curve of many, does not wait for them."""
_NOTHING = RowsOfRun("", np.zeros(0), np.zeros(0))
"""For a run without the key."""


def _unread(context: ServerContext, rows: Sequence[RunRow], key: str, x: str | None) -> int:
    """How many runs have no rows of a key in memory, not even older ones."""
    return sum(not context.group_rows.holds((row.folder, key, x)) for row in rows)


def _missing(
    context: ServerContext, rows: Sequence[RunRow], key: str, x: str | None, stamps: Mapping[str, object]
) -> list[RunRow]:
    """The runs whose newest rows of a key are not in memory."""
    return [row for row in rows if context.group_rows.get((row.folder, key, x), stamps[row.folder]) is None]


def rows_of_runs(
    context: ServerContext,
    rows: Sequence[RunRow],
    key: str,
    x: str | None,
    stamps: Mapping[str, object],
    ahead: Sequence[str] = (),
    *,
    own_axes: bool = False,
) -> dict[str, RowsOfRun]:
    """run -> its rows along one axis, without the runs that have none or cannot be read.

    Args:
      own_axes: without `x`, along each run's own axis.
      x: None: the axis of the first run that has rows.
      stamps: of each run, by its folder.
      ahead: further keys that will be requested: a few runs are read once for several of them.
    """
    if not rows:
        return {}
    together = [key, *(other_key for other_key in ahead if other_key != key)][
        : max(1, min(_MOST_KEYS, _MOST_AHEAD // len(rows)))
    ]
    read: dict[str, RowsOfRun] = {}
    now: dict[str, RowsOfRun] = {}  # by folder: a thousand long runs are more than the cache keeps
    axis = x
    new = _missing(context, rows, key, x, stamps)
    if len(new) > context.limits.kept_runs:
        with context.reading_many if len(new) > _IN_TURN else nullcontext():
            new = _missing(context, rows, key, x, stamps)  # another request may have read them meanwhile
            known = kept(context.catalogue.roots, key, x, {row.folder: stamps[row.folder] for row in new})
            for folder, of_run in known.items():
                now[folder] = RowsOfRun(*of_run)
                _remember(context, folder, key, x, stamps[folder], now[folder])
            new = [row for row in new if row.folder not in known]
            now |= _read_together(context, new, together, x, stamps)
    for row in rows:
        rows_of_run = now.get(row.folder) or _rows_of(context, row, together, x, stamps[row.folder])
        if len(rows_of_run.x) and axis is None:
            axis = rows_of_run.axis
        if (
            len(rows_of_run.x) and x is None and rows_of_run.axis != axis and not own_axes
        ):  # its own axis is another one
            rows_of_run = _rows_of(context, row, [key], axis, stamps[row.folder])
        if len(rows_of_run.x):
            read[row.key] = rows_of_run
    if len(new) > context.limits.kept_runs:
        done = {row.folder: (*read[row.key],) for row in rows if row.key in read and not row.is_live}
        keep(context.catalogue.roots, key, x, stamps, done)
    return read


def _read_together(
    context: ServerContext, new: Sequence[RunRow], keys: Sequence[str], x: str | None, stamps: Mapping[str, object]
) -> dict[str, RowsOfRun]:
    """folder -> the rows of the first key, of many runs. Those of the other keys are remembered, too. Very many runs
    are read in several processes."""
    of_folder = {row.folder: row for row in new}
    read: dict[str, RowsOfRun] = {}
    helpers = RowHelpers(list(of_folder), keys, "time" if x == "relative" else x, context.limits.helpers)
    try:
        for folder in helpers.mine:
            read[folder] = _rows_of(context, of_folder[folder], keys, x, stamps[folder])
        for (folder, key), rows in helpers.answers().items():
            taken = _take(context, of_folder[folder], key, x, stamps[folder], rows)
            if key == keys[0]:
                read[folder] = taken
    finally:
        helpers.close()
    return read


def _take(context: ServerContext, row: RunRow, key: str, x: str | None, stamp: object, rows: Rows) -> RowsOfRun:
    """Remember the rows of a run as it was read."""
    axis, places, values, is_whole = rows
    if x == "relative" and len(places):
        places = places - started(row)
    rows_of_run = RowsOfRun(axis_name(x, axis) if axis else "", places, values, is_whole)
    _remember(context, row.folder, key, x, stamp, rows_of_run)
    return rows_of_run


_axes: WeakValueDictionary[tuple[object, ...], NDArray] = WeakValueDictionary()
"""Axes in memory: seeds that log at the same steps share one."""


def _shared(x: NDArray) -> tuple[NDArray, int]:
    """An axis, or an equal one that is in memory; and how many bytes it adds."""
    name = (x.dtype.str, len(x), x[0].item(), x[-1].item()) if len(x) else ()
    known = _axes.get(name)
    if known is not None and np.array_equal(known, x):
        return known, 0
    _axes[name] = x
    return x, x.nbytes


def _remember(
    context: ServerContext, folder: str, key: str, x: str | None, stamp: object, rows_of_run: RowsOfRun
) -> None:
    axis, size = _shared(rows_of_run.x)
    rows_of_run, size = rows_of_run._replace(x=axis), size + rows_of_run.y.nbytes + 300
    for name in {x, rows_of_run.axis or x}:  # once the page knows the axis, it requests it by name
        context.group_rows.put((folder, key, name), stamp, rows_of_run, size)


def _rows_of(context: ServerContext, row: RunRow, keys: Sequence[str], x: str | None, stamp: object) -> RowsOfRun:
    """The rows of the first key; those of the other keys are remembered, too."""
    cache = context.group_rows
    rows_of_run: RowsOfRun | None = cache.get((row.folder, keys[0], x), stamp)
    if rows_of_run is not None:
        return rows_of_run
    try:
        with context.book(row) as book:
            read = rows_in(book, keys, "time" if x == "relative" else x)
    except (RollbookError, OSError):
        return _NOTHING
    of_key = {key: _take(context, row, key, x, stamp, rows) for key, rows in read.items()}
    return of_key[keys[0]]


FEW_DRAWS, DRAWS = 200, 1999


def gathered(context: ServerContext, groups: Sequence[Group]) -> dict[str, list[RunRow]]:
    """The runs of each group.

    Raises:
      Refused: more than may be asked for at once. BadInput: two groups of one name.
    """
    if sum(len(group.runs) for group in groups) > context.limits.runs:
        raise Refused("too_large", f"more than {context.limits.runs:,} runs at once", "Choose fewer.")
    rows_of_group: dict[str, list[RunRow]] = {}
    for group in groups:
        if group.name in rows_of_group:
            raise BadInput(f"two groups are called {group.name!r:.80}; give each a name of its own")
        rows_of_group[group.name] = context.rows(group.runs)
    return rows_of_group


def group_curves(context: ServerContext, ask: CurvesAsk) -> Streamed:
    """Frames, one a key, or two."""
    check_points(ask.points, 2_000)
    check_range(ask.start, ask.stop)
    if not 0.5 <= ask.level < 1:
        raise BadInput(f"level={ask.level}: from 0.5 to below 1")
    groups = gathered(context, ask.groups)
    keys = list(dict.fromkeys(ask.keys))
    if sum(map(len, groups.values())) * len(keys) > 4 * context.limits.series:
        raise Refused("too_large", f"{len(keys)} keys of so many runs are too many at once", "Ask in parts.")
    return Streamed(MEDIA_TYPE, _frames(context, groups, keys, ask))


def _frames(
    context: ServerContext, groups: dict[str, list[RunRow]], keys: list[str], ask: CurvesAsk
) -> Iterator[bytes]:
    if not keys or not groups:
        yield Frame().pack(last=True, took_ms=0.0)
    for number, key in enumerate(keys if groups else ()):
        began = time.perf_counter()
        try:
            for drawn in refined(context, groups, key, ask, keys[number + 1 :]):
                frame = Frame()
                frame.entries = [_entry(name, key, len(rows), drawn, ask, frame) for name, rows in groups.items()]
                last = number + 1 == len(keys) and not drawn.preliminary
                yield frame.pack(last=last, took_ms=round((time.perf_counter() - began) * 1e3, 1))
        except (RollbookError, OSError) as err:
            words = words_of(err)
            error = EntryError(code=words.code, message=words.message, hint=words.hint)
            frame = Frame()
            frame.entries = [CurveEntry(group=g, key=key, x=ask.x or "", kind="none", error=error) for g in groups]
            took = round((time.perf_counter() - began) * 1e3, 1)
            yield frame.pack(last=number + 1 == len(keys), took_ms=took)


class Drawn(NamedTuple):
    """The curves of a key, as they are kept.

    Attributes:
      curves: without the rows behind them; None if no run has any.
      bends: where the line of each group bends (`GroupCurve.vertices_P`); sentences: the description of each.
      missing: members without the key, by group.
      axis: of all; version: of their rows.
      is_part: whether it is made of some of the runs, because the others are still to be read.
    """

    curves: compare.Curves | None
    bends: dict[str, npt.NDArray[np.bool_]]
    sentences: dict[str, str]
    missing: dict[str, list[str]]
    axis: str
    version: str
    is_part: bool = False

    @property
    def preliminary(self) -> bool:
        """Whether a better answer will follow: of all runs, or with better bands."""
        return self.is_part or (self.curves is not None and self.curves.preliminary)


def refined(
    context: ServerContext, groups: dict[str, list[RunRow]], key: str, ask: CurvesAsk, ahead: Sequence[str] = ()
) -> Iterator[Drawn]:
    """The curves of a key, kept for a while. Preliminary ones come first if that was requested and the full ones take
    long.

    Args:
      ahead: keys that will be requested next.
    """
    members = tuple((name, tuple(row.folder for row in rows)) for name, rows in groups.items())
    known = ("curves", members, key, ask.x, ask.points, ask.start, ask.stop, ask.statistic, ask.level)
    every = [row for rows in groups.values() for row in rows]
    if ask.refine and not context.answers.holds(known) and _is_long(context, every, key, ask):
        with context.drawing:
            part = _first_of(context, groups, key, ask)
        if part is not None:
            yield part
    stamps = {row.folder: stamp_of(row.folder) for row in every}
    version = version_of(tuple(stamps.values()))
    kept: Drawn | None = context.answers.get(known, version)
    if kept is not None:
        yield kept
        return
    stages = (FEW_DRAWS, DRAWS) if ask.refine and len(every) * ask.points >= context.limits.draft_points else (DRAWS,)
    for drawn in _drawn(context, groups, key, ask, stamps, version, stages, ahead):
        if drawn.curves is not None and not drawn.preliminary:
            size = 200 * ask.points * len(groups) + 18 * len(drawn.curves.x_P) * len(every) + 1_000
            context.answers.put(known, version, drawn, size)
        yield drawn


def _is_long(context: ServerContext, rows: Sequence[RunRow], key: str, ask: CurvesAsk) -> bool:
    """Whether some of these runs are drawn first: many are still to be read, or another part of many is asked for."""
    if ask.start is not None or ask.stop is not None:
        return len(rows) > context.limits.many_runs
    return _unread(context, rows, key, ask.x) > context.limits.many_runs


def _first_of(context: ServerContext, groups: dict[str, list[RunRow]], key: str, ask: CurvesAsk) -> Drawn | None:
    """The curves of some runs of each group, with few resamples; None if those have no rows."""
    some = dict(zip(groups, some_of([*groups.values()], context.limits.first_runs), strict=True))
    stamps = {row.folder: stamp_of(row.folder) for rows in some.values() for row in rows}
    (drawn,) = _drawn(context, some, key, ask, stamps, version_of(tuple(stamps.values())), (FEW_DRAWS,))
    if drawn.curves is None:
        return None
    note = {
        name: f"{len(some[name]):,} of {len(rows):,} runs so far. {drawn.sentences[name]}"
        for name, rows in groups.items()
        if name in drawn.sentences
    }
    return drawn._replace(sentences=note, is_part=True)


def _drawn(
    context: ServerContext,
    groups: dict[str, list[RunRow]],
    key: str,
    ask: CurvesAsk,
    stamps: Mapping[str, object],
    version: str,
    stages: Sequence[int],
    ahead: Sequence[str] = (),
) -> Iterator[Drawn]:
    """The curves of these runs, one for each number of resamples."""
    every = [row for rows in groups.values() for row in rows]
    read = rows_of_runs(context, every, key, ask.x, stamps, ahead)
    missing = {name: [row.key for row in rows if row.key not in read] for name, rows in groups.items()}
    axis = next((rows_of_run.axis for rows_of_run in read.values()), "")
    if not read:
        yield Drawn(None, {}, {}, missing, axis, version)
        return
    unit_of: dict[str, str] = {}
    for rows in groups.values():
        abouts = [{**row.about, "path": row.folder} for row in rows]
        unit_of |= dict(zip((row.key for row in rows), units_of(abouts), strict=True))
    lines = {
        name: {
            row.key: compare.Line(
                read[row.key].x,
                read[row.key].y,
                row.status in ENDED_BADLY,
                row.folder,
                unit=unit_of[row.key],
                end=end_of(row.about, axis),
            )
            for row in rows
            if row.key in read
        }
        for name, rows in groups.items()
    }
    for curves in compare.refined_curves(
        lines, key=key, axis=axis, statistic=ask.statistic, points=ask.points, level=ask.level, stages=stages,
        **_grid(lines, ask),
    ):  # fmt: skip
        yield Drawn(
            _without_rows(curves),
            {group.label: group.vertices_P for group in curves.groups},
            {one.label: _sentences(one.band.legend(), one.aligned.sentences()) for one in curves.groups},
            missing,
            axis,
            version,
        )


def _without_rows(curves: compare.Curves) -> compare.Curves:
    groups = tuple(replace(group, aligned=replace(group.aligned, raw=())) for group in curves.groups)
    return replace(curves, groups=groups)


def _grid(lines: dict[str, dict[str, compare.Line]], ask: CurvesAsk) -> dict[str, Any]:
    """The grid of a part of the axis; {} for the whole of it."""
    if ask.start is None and ask.stop is None:
        return {}
    xs_by_group = [[line.x for line in runs.values()] for runs in lines.values()]
    return {"grid": compare.shared_grid(xs_by_group, max(2, ask.points), start=ask.start, stop=ask.stop)}


def _entry(name: str, key: str, members: int, drawn: Drawn, ask: CurvesAsk, frame: Frame) -> CurveEntry:
    entry = CurveEntry(
        group=name,
        key=key,
        x=plain(drawn.axis),
        kind="none",
        statistic=ask.statistic,
        level=ask.level,
        seeds=members - len(drawn.missing[name]),
        missing=drawn.missing[name],
        version=drawn.version,
    )
    if drawn.curves is None or name not in drawn.bends:
        return entry
    curve, bends = drawn.curves[name], drawn.bends[name]
    band = curve.band
    finite = band.centre_P[np.isfinite(band.centre_P)]
    base = float(np.median(finite)) if len(finite) else 0.0
    entry.kind, entry.n = "curve", int(bends.sum())
    entry.arrays = {
        "x": frame.exact(drawn.curves.x_P[bends]),
        "centre": frame.near(band.centre_P[bends], base),
        "low": frame.near(band.low_P[bends], base),
        "high": frame.near(band.high_P[bends], base),
        "min": frame.near(curve.min_P[bends], base),
        "max": frame.near(curve.max_P[bends], base),
        "count": frame.counts(curve.n_P[bends]),
    }
    claims = band.claim_P[np.isfinite(band.claim_P)]
    entry.band = band.kind
    entry.method = ", ".join(band.methods)
    entry.claim = float(claims.min()) if len(claims) else None
    entry.sentence = plain(drawn.sentences[name])
    entry.preliminary = drawn.is_part or band.preliminary
    return entry


ENDPOINTS = [
    Endpoint(
        "POST",
        "/api/curves",
        CurvesAsk,
        MEDIA_TYPE,
        group_curves,
        "Curves of groups, one frame a key, two where the first is preliminary",
        entries=CurveEntry,
    ),
]


def _sentences(legend: str, remarks: list[str]) -> str:
    """The legend, which has no full stop, and what is remarked, which has."""
    return ". ".join(filter(None, [legend, " ".join(remarks)]))
