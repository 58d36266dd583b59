"""Curves of groups of runs. The numbers are `rollbook.compare`'s; here rows are gathered and arrays packed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rollbook import compare
from rollbook.errors import BadInput, RollbookError
from rollbook.server.catalogue import RunRow
from rollbook.server.cells import plain
from rollbook.server.endpoint import Endpoint, Streamed
from rollbook.server.frames import MEDIA_TYPE, Frame
from rollbook.server.hall import Hall
from rollbook.server.readers import stamp_of
from rollbook.server.refusals import Refused, words_of
from rollbook.server.schemas.curves import CurveEntry, CurvesAsk, EntryError, Group
from rollbook.server.series import Reach, axis_name, check_points, check_range, read_series, version_of

__all__ = ["ENDED_BADLY", "ENDPOINTS", "curves_of", "gathered", "group_curves"]

ENDED_BADLY = ("crashed", "killed", "stale")
ROWS_A_RUN = 5_000
"""Runs of four times so many rows are taken as they are, longer ones as the means of so many stretches."""


def gathered(hall: Hall, groups: Sequence[Group]) -> dict[str, list[RunRow]]:
    """The runs of each group.

    Raises:
      Refused: more than may be asked for at once. BadInput: two groups of one name.
    """
    if sum(len(group.runs) for group in groups) > hall.limits.runs:
        raise Refused("too_large", f"more than {hall.limits.runs:,} runs at once", "Choose fewer.")
    found: dict[str, list[RunRow]] = {}
    for group in groups:
        if group.name in found:
            raise BadInput(f"two groups are called {group.name!r:.80}; give each a name of its own")
        found[group.name] = hall.rows(group.runs)
    return found


def group_curves(hall: Hall, ask: CurvesAsk) -> Streamed:
    """Frames, one a key."""
    check_points(ask.points, 2_000)
    check_range(ask.start, ask.stop)
    if not 0.5 <= ask.level < 1:
        raise BadInput(f"level={ask.level}: from 0.5 to below 1")
    groups = gathered(hall, ask.groups)
    keys = list(dict.fromkeys(ask.keys))
    if sum(map(len, groups.values())) * len(keys) > 4 * hall.limits.series:
        raise Refused("too_large", f"{len(keys)} keys of so many runs are too many at once", "Ask in parts.")
    return Streamed(MEDIA_TYPE, _frames(hall, groups, keys, ask))


def _frames(hall: Hall, groups: dict[str, list[RunRow]], keys: list[str], ask: CurvesAsk) -> Iterator[bytes]:
    if not keys or not groups:
        yield Frame().pack(last=True, took_ms=0.0)
    for number, key in enumerate(keys if groups else ()):
        began = time.perf_counter()
        frame = Frame()
        try:
            made, missing, axis, version = curves_of(hall, groups, key, ask)
        except (RollbookError, OSError) as err:
            words = words_of(err)
            error = EntryError(code=words.code, message=words.message, hint=words.hint)
            frame.entries = [CurveEntry(group=g, key=key, x=ask.x or "", kind="none", error=error) for g in groups]
        else:
            for name, rows in groups.items():
                curve = None if made is None else next((group for group in made.groups if group.label == name), None)
                frame.entries.append(
                    _entry(name, key, axis, len(rows), made, curve, missing[name], version, ask, frame)
                )
        yield frame.pack(last=number + 1 == len(keys), took_ms=round((time.perf_counter() - began) * 1e3, 1))


def curves_of(
    hall: Hall, groups: dict[str, list[RunRow]], key: str, ask: CurvesAsk
) -> tuple[compare.Curves | None, dict[str, list[str]], str, str]:
    """(the curves, members without the key by group, the axis, the version of their rows), kept a while."""
    stamps = tuple(stamp_of(row.folder) for rows in groups.values() for row in rows)
    members = tuple((name, tuple(row.folder for row in rows)) for name, rows in groups.items())
    known = ("curves", members, key, ask.x, ask.points, ask.start, ask.stop, ask.statistic, ask.level)
    found = hall.shelf.get(known, stamps)
    if found is not None:
        return found  # type: ignore[no-any-return]
    reach = Reach(ask.x, ROWS_A_RUN, None, None)
    lines: dict[str, dict[str, compare.Line]] = {}
    missing: dict[str, list[str]] = {name: [] for name in groups}
    axis = ""
    for name, rows in groups.items():
        lines[name] = {}
        for row in rows:
            read = read_series(hall, row, [key], reach)
            series = read.found.get(key)
            if series is None or not len(series.series):
                missing[name].append(row.key)
                continue
            axis = axis or axis_name(ask.x, series.series.axis)
            if axis_name(ask.x, series.series.axis) != axis:  # its own axis is another one
                series = read_series(hall, row, [key], reach._replace(x=axis)).found.get(key, series)
            crashed = row.status in ENDED_BADLY
            lines[name][row.key] = compare.Line(series.series.x, series.series.mean, crashed, row.folder)
    made = None
    if any(lines.values()):
        made = compare.curves(
            lines, key=key, axis=axis, statistic=ask.statistic, points=ask.points, level=ask.level, **_grid(lines, ask)
        )
    answer = (made, missing, axis, version_of(stamps))
    hall.shelf.put(known, stamps, answer, 200 * ask.points * len(groups) + 16 * ask.points * len(stamps) + 1_000)
    return answer


def _grid(lines: dict[str, dict[str, compare.Line]], ask: CurvesAsk) -> dict[str, Any]:
    """The grid of a part of the axis; {} for the whole of it."""
    if ask.start is None and ask.stop is None:
        return {}
    xs = [line.x for runs in lines.values() for line in runs.values()]
    return {"grid": compare.shared_grid(xs, max(2, ask.points), start=ask.start, stop=ask.stop)}


def _entry(
    name: str,
    key: str,
    axis: str,
    members: int,
    made: compare.Curves | None,
    curve: compare.GroupCurve | None,
    missing: list[str],
    version: str,
    ask: CurvesAsk,
    frame: Frame,
) -> CurveEntry:
    entry = CurveEntry(
        group=name,
        key=key,
        x=plain(axis),
        kind="none",
        statistic=ask.statistic,
        level=ask.level,
        seeds=members - len(missing),
        missing=missing,
        version=version,
    )
    if made is None or curve is None:
        return entry
    band = curve.band
    finite = band.centre_P[np.isfinite(band.centre_P)]
    base = float(np.median(finite)) if len(finite) else 0.0
    bends = curve.vertices_P
    entry.kind, entry.n = "curve", int(bends.sum())
    entry.arrays = {
        "x": frame.exact(made.x_P[bends]),
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
    entry.sentence = plain(". ".join([band.legend(), *curve.aligned.sentences()]))
    return entry


ENDPOINTS = [
    Endpoint(
        "POST",
        "/api/curves",
        CurvesAsk,
        MEDIA_TYPE,
        group_curves,
        "Curves of groups, one frame a key",
        entries=CurveEntry,
    )
]
