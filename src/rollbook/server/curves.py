"""Curves of groups of runs. `rollbook.compare` computes the numbers; this module gathers rows and packs arrays."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rollbook import compare
from rollbook.errors import BadInput, RollbookError
from rollbook.runs.groups import units_of
from rollbook.server.catalogue import RunRow
from rollbook.server.cells import plain
from rollbook.server.endpoint import Endpoint, Streamed
from rollbook.server.frames import MEDIA_TYPE, Frame
from rollbook.server.group_rows import rows_of_runs, unread
from rollbook.server.readers import stamp_of
from rollbook.server.refusals import Refused, words_of
from rollbook.server.schemas.curves import CurveEntry, CurvesAsk, EntryError, Group
from rollbook.server.series import check_points, check_range, version_of
from rollbook.server.shared_state import Hall

__all__ = ["ENDED_BADLY", "ENDPOINTS", "gathered", "group_curves", "refined"]

ENDED_BADLY = ("crashed", "killed", "stale")
FEW_DRAWS, DRAWS = 200, 1999


def gathered(hall: Hall, groups: Sequence[Group]) -> dict[str, list[RunRow]]:
    """The runs of each group.

    Raises:
      Refused: more than may be asked for at once. BadInput: two groups of one name.
    """
    if sum(len(group.runs) for group in groups) > hall.limits.runs:
        raise Refused("too_large", f"more than {hall.limits.runs:,} runs at once", "Choose fewer.")
    rows_of_group: dict[str, list[RunRow]] = {}
    for group in groups:
        if group.name in rows_of_group:
            raise BadInput(f"two groups are called {group.name!r:.80}; give each a name of its own")
        rows_of_group[group.name] = hall.rows(group.runs)
    return rows_of_group


def group_curves(hall: Hall, ask: CurvesAsk) -> Streamed:
    """Frames, one a key, or two."""
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
        try:
            for drawn in refined(hall, groups, key, ask, keys[number + 1 :]):
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
    hall: Hall, groups: dict[str, list[RunRow]], key: str, ask: CurvesAsk, ahead: Sequence[str] = ()
) -> Iterator[Drawn]:
    """The curves of a key, kept for a while. Preliminary ones come first if that was requested and the full ones take
    long.

    Args:
      ahead: keys that will be requested next.
    """
    stamps = {row.folder: stamp_of(row.folder) for rows in groups.values() for row in rows}
    version = version_of(tuple(stamps.values()))
    members = tuple((name, tuple(row.folder for row in rows)) for name, rows in groups.items())
    known = ("curves", members, key, ask.x, ask.points, ask.start, ask.stop, ask.statistic, ask.level)
    kept: Drawn | None = hall.shelf.get(known, version)
    if kept is not None:
        yield kept
        return
    every = [row for rows in groups.values() for row in rows]
    if ask.refine and len(unread(hall, every, key, ask.x, stamps)) > hall.limits.many_runs:
        step = len(every) // hall.limits.first_runs
        some = {name: rows[::step] for name, rows in groups.items()}
        for drawn in _drawn(hall, some, key, ask, stamps, version, (FEW_DRAWS,)):
            if drawn.curves is not None:
                told = {
                    name: f"{len(some[name]):,} of {len(rows):,} runs so far. {drawn.sentences[name]}"
                    for name, rows in groups.items()
                    if name in drawn.sentences
                }
                yield drawn._replace(sentences=told, is_part=True)
    stages = (FEW_DRAWS, DRAWS) if ask.refine and len(every) * ask.points >= hall.limits.draft_points else (DRAWS,)
    for drawn in _drawn(hall, groups, key, ask, stamps, version, stages, ahead):
        if drawn.curves is not None and not drawn.preliminary:
            size = 200 * ask.points * len(groups) + 18 * len(drawn.curves.x_P) * len(every) + 1_000
            hall.shelf.put(known, version, drawn, size)
        yield drawn


def _drawn(
    hall: Hall,
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
    read = rows_of_runs(hall, every, key, ask.x, stamps, ahead)
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
                read[row.key].x, read[row.key].y, row.status in ENDED_BADLY, row.folder, unit=unit_of[row.key]
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
            {group.label: ". ".join([group.band.legend(), *group.aligned.sentences()]) for group in curves.groups},
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
    )
]
