"""Curves of groups of runs: `runs.curving` answers from the rows in memory, this packs arrays."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from rollbook import compare
from rollbook.book.questions import check_range
from rollbook.errors import RollbookError, UnknownKey
from rollbook.runs.curving import FEW_DRAWS, refined
from rollbook.runs.groups import grouped
from rollbook.runs.questions import Curves
from rollbook.runs.usual_score import usual_score
from rollbook.server.asking import asked_of, shape_of
from rollbook.server.curves.memory import Memory, unread
from rollbook.server.curves.series import EntryError, version_of
from rollbook.server.frames import MEDIA_TYPE, Array, Frame
from rollbook.server.runs.columns import some_of
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint, Streamed
from rollbook.server.shared.rows import check_points
from rollbook.server.shared.shapes import Ask, Refused, plain, words_of
from rollbook.server.shared.state import ServerContext, Stamps

CurvesAsk = shape_of(
    Curves,
    (
        "refine",
        Annotated[
            bool,
            msgspec.Meta(
                description="where bands of many runs take long, a frame of few draws comes first for each key, then "
                "the full one."
            ),
        ],
        False,
    ),
    several={"key": "keys"},
)


class CurveEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The curve of a group in the header of a frame.

    Attributes:
      arrays: x, centre, low, high (NaN with too few seeds for an interval), count (seeds at each point), min,
        max (over the seeds).
      band: "pointwise".
      method, claim: how low and high were found, and per cent of studies in which they hold at least.
      seeds: members that have the key; missing: those without it.
      sentence: how low and high were found, and what is remarked about the group; remarks: the latter alone.
      notes: in the entries of the first group, remarks about all.
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
    remarks: list[str] = []
    notes: list[str] = []
    seeds: int = 0
    missing: list[str] = []
    preliminary: bool = False
    error: EntryError | None = None
    version: str = ""


_MOST_POINTS, _MOST_DRAWS = 2_000, 10_000


def group_curves(context: ServerContext, ask: Ask) -> Streamed:
    """Frames, one a key, or two."""
    asked: Any = ask
    check_points(asked.points, _MOST_POINTS)
    check_range(asked.start, asked.stop)
    if not 1 <= asked.draws <= _MOST_DRAWS:
        raise Refused("too_large", f"draws={asked.draws:,}; from 1 to {_MOST_DRAWS:,}")
    keys = [key for key in dict.fromkeys(asked.keys) if key]
    question, rows = asked_of(context, ask, Curves, key="")
    if len(rows) * len(keys) > 4 * context.limits.series:
        raise Refused("too_large", f"{len(keys)} keys of so many runs are too many at once", "Ask in parts.")
    remarks: list[str] = []
    if not keys and rows:
        source = Memory(context, rows)
        usual = usual_score(source, source.rows, "curves")
        keys, remarks = [usual.values["metric"]], [usual.remark]
    return Streamed(MEDIA_TYPE, _frames(context, rows, keys, question, asked.refine, remarks))


def _frames(
    context: ServerContext,
    rows: list[RunRow],
    keys: list[str],
    question: Curves,
    refine: bool,
    remarks: Sequence[str],
) -> Iterator[bytes]:
    if not keys or not rows:
        yield Frame().pack(last=True, took_ms=0.0)
    name_of = {row.folder: row.key for row in rows}
    groups = question.by if isinstance(question.by, Mapping) else {}
    asked = {name: [name_of[path] for path in paths] for name, paths in groups.items()}
    stamps = Stamps()
    for number, key in enumerate(keys if rows else ()):
        began = time.perf_counter()
        ask = msgspec.structs.replace(question, key=key)
        try:
            for found in answers(context, rows, ask, stamps, keys[number + 1 :], refine=refine):
                frame = Frame()
                entries = [_entry(name, found, ask, frame) for name in asked or found.members]
                entries[0].notes = [*map(plain, remarks), *entries[0].notes]
                frame.entries = [*entries]
                last = number + 1 == len(keys) and not found.preliminary
                yield frame.pack(last=last, took_ms=round((time.perf_counter() - began) * 1e3, 1))
        except (RollbookError, OSError) as err:
            words = words_of(err)
            error = EntryError(code=words.code, message=words.message, hint=words.hint)
            frame = Frame()
            frame.entries = [
                CurveEntry(group=name, key=key, x=ask.x or "", kind="none", error=error, missing=runs)
                for name, runs in (asked or {"all runs": [row.key for row in rows]}).items()
            ]
            took = round((time.perf_counter() - began) * 1e3, 1)
            yield frame.pack(last=number + 1 == len(keys), took_ms=took)


class KeptCurves(NamedTuple):
    """The curves of a key, as they are kept.

    Attributes:
      members: the runs of each group, as the API names them; missing: those without the key.
      curves: without the rows behind them.
      bends: where the line of each group bends (`GroupCurve.vertices_P`).
      remarks: about each group; sentences: the same, with what the band is.
      version: of the rows.
      is_part: whether it is made of some of the runs, because the others are still to be read.
    """

    members: dict[str, list[str]]
    missing: dict[str, list[str]]
    curves: compare.Curves
    bends: dict[str, npt.NDArray[np.bool_]]
    remarks: dict[str, list[str]]
    sentences: dict[str, str]
    version: str
    is_part: bool = False

    @property
    def preliminary(self) -> bool:
        """Whether a better answer will follow: of all runs, or with better bands."""
        return self.is_part or self.curves.preliminary


def answers(
    context: ServerContext,
    rows: list[RunRow],
    ask: Curves,
    stamps: Stamps,
    ahead: Sequence[str] = (),
    *,
    refine: bool = False,
) -> Iterator[KeptCurves]:
    """The curves of a key, from a cache or computed.

    Args:
      stamps: stamps of the runs, in the order in which the runs are drawn.
      ahead: keys that will be requested next.
      refine: if the curves take long, yield preliminary ones first.
    """
    known = ("curves", tuple(row.folder for row in rows), msgspec.json.encode(ask))
    if refine and not context.answers.holds(known) and _is_long(context, rows, ask):
        with context.drawing:
            part = _first_of(context, rows, ask, stamps)
        if part is not None:
            yield part
    version = version_of(tuple(stamps[row.folder] for row in rows))
    kept: KeptCurves | None = context.answers.get(known, version)
    if kept is not None:
        yield kept
        return
    few = refine and len(rows) * ask.points >= context.limits.draft_points
    stages = (FEW_DRAWS, ask.draws) if few and ask.draws > FEW_DRAWS else (ask.draws,)
    for found in _found(context, rows, ask, stamps, stages, ahead):
        if not found.preliminary:
            size = 200 * ask.points * len(found.members) + 18 * len(found.curves.x_P) * len(rows) + 1_000
            context.answers.put(known, version, found, size)
        yield found


def _is_long(context: ServerContext, rows: Sequence[RunRow], ask: Curves) -> bool:
    """Whether curves of some of the runs come first: many are unread, or a part of the axis of many is asked for."""
    if ask.start is not None or ask.stop is not None:
        return len(rows) > context.limits.many_runs
    return unread(context, rows, ask.key, ask.x) > context.limits.many_runs


def _first_of(context: ServerContext, rows: list[RunRow], ask: Curves, stamps: Stamps) -> KeptCurves | None:
    """The curves of some runs of each group, with few resamples; None if those have no rows."""
    about = {row.folder: row for row in rows}
    every, labels = grouped(Memory(context, rows).rows, ask.by, f"curves({ask.key!r})")
    groups: dict[str, list[RunRow]] = {}
    for each, label in zip(every, labels, strict=True):
        groups.setdefault(label, []).append(about[str(each["path"])])
    some = dict(zip(groups, some_of([*groups.values()], context.limits.first_runs), strict=True))
    few = msgspec.structs.replace(ask, by={label: [row.folder for row in chosen] for label, chosen in some.items()})
    chosen = [row for members in some.values() for row in members]
    try:
        (found,) = _found(context, chosen, few, stamps, (FEW_DRAWS,))
    except UnknownKey:
        return None
    note = {
        name: f"{len(some[name]):,} of {len(members):,} runs so far. {found.sentences[name]}"
        for name, members in groups.items()
        if name in found.sentences
    }
    return found._replace(sentences=note, is_part=True, members={n: [r.key for r in m] for n, m in groups.items()})


def _found(
    context: ServerContext,
    rows: list[RunRow],
    ask: Curves,
    stamps: Stamps,
    stages: Sequence[int],
    ahead: Sequence[str] = (),
) -> Iterator[KeptCurves]:
    """The curves of these runs, one for each number of resamples."""
    source = Memory(context, rows, ahead, stamps)
    version = version_of(tuple(stamps[row.folder] for row in rows))
    for curves in refined(ask, source, stages):
        members = {label: [source.key_of[path] for path in paths] for label, paths in curves.members.items()}
        missing = {label: [source.key_of[path] for path in paths] for label, paths in curves.missing.items()}
        yield KeptCurves(
            members,
            missing,
            _without_rows(curves),
            {group.label: group.vertices_P for group in curves.groups},
            {group.label: group.aligned.sentences() for group in curves.groups},
            {group.label: _sentences(group.band.legend(), group.aligned.sentences()) for group in curves.groups},
            version,
        )


def _without_rows(curves: compare.Curves) -> compare.Curves:
    groups = tuple(replace(group, aligned=replace(group.aligned, raw=())) for group in curves.groups)
    return replace(curves, groups=groups)


def _entry(name: str, found: KeptCurves, ask: Curves, frame: Frame) -> CurveEntry:
    members, missing = found.members.get(name, []), found.missing.get(name, [])
    entry = CurveEntry(
        group=name,
        key=ask.key,
        x=plain(found.curves.axis),
        kind="none",
        statistic=ask.statistic,
        level=ask.level,
        seeds=len(members) - len(missing),
        missing=missing,
        version=found.version,
    )
    if name == next(iter(found.members)):
        entry.notes = [plain(note) for note in found.curves.notes]
    if name not in found.bends:
        return entry
    curve, bends = found.curves[name], found.bends[name]
    band = curve.band
    finite = band.centre_P[np.isfinite(band.centre_P)]
    base = float(np.median(finite)) if len(finite) else 0.0
    entry.kind, entry.n = "curve", int(bends.sum())
    entry.arrays = {
        "x": frame.exact(found.curves.x_P[bends]),
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
    entry.sentence = plain(found.sentences[name])
    entry.remarks = [plain(remark) for remark in found.remarks[name]]
    entry.preliminary = found.is_part or band.preliminary
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
