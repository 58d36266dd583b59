"""Samples: searched and sorted in DuckDB, one with its tokens, the group of its prompt, its history, what was new."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.errors import BadInput
from rollbook.server.catalogue import RunRow
from rollbook.server.cells import columns_of, num, plain
from rollbook.server.endpoint import Endpoint
from rollbook.server.hall import Hall
from rollbook.server.locked_sql import Locked, order_by, quoted
from rollbook.server.refusals import Refused
from rollbook.server.rows import (
    IDENTITY,
    axis_values,
    clocks_of,
    default_axis,
    row_id,
    seconds_column,
    shown_rows,
    table_of,
)
from rollbook.server.schemas.points import (
    GroupAnswer,
    HistoryAnswer,
    HistoryGroup,
    HistoryPoint,
    NoveltyAnswer,
    NoveltyPoint,
    OneSampleAnswer,
    OneSampleAsk,
    Reason,
    SampleAxisAsk,
    SampleRow,
    SamplesAnswer,
    SamplesAsk,
    TimingsAsk,
    Tokens,
    UnusedAnswer,
    UnusedAsk,
)
from rollbook.server.series import check_points, started

__all__ = ["ENDPOINTS", "samples_of"]

_CUT = 300
_MOST_WORDS = 12
_MOST_POINTS = 5_000
_MOST_IN_GROUP = 512
_TOKEN_TEXTS = ("tokens", "token_texts", "completion_tokens", "completion_ids", "token_ids")
_TOKEN_NUMBERS = {
    "logprob": ("logprobs", "logprob", "trainer_logprobs", "log_probs"),
    "sampler_logprob": ("sampler_logprobs", "sampling_logprobs", "rollout_logprobs", "vllm_logprobs"),
    "entropy": ("entropies", "entropy", "token_entropy"),
    "ratio": ("ratios", "ratio", "importance_ratio"),
    "gap": ("gaps", "logprob_gap"),
}


def samples_of(hall: Hall, row: RunRow, attempts: str = "effective") -> pa.Table:
    """The samples of a run; with their advantages where these came later and lie in a table of their own."""
    table = table_of(hall, row, "samples", attempts)
    if "advantage" in table.column_names or not table.num_rows:
        return table
    try:
        late = table_of(hall, row, "advantages", attempts)
    except BadInput:  # there is no such table
        return table
    if not late.num_rows or not {"sample_id", "advantage"} <= set(late.column_names):
        return table
    by_id = dict(zip(late["sample_id"].to_pylist(), late["advantage"].to_pylist(), strict=True))
    cells = [by_id.get(identity) for identity in table["sample_id"].to_pylist()]
    return table.append_column("advantage", pa.array(cells, pa.float64()))


def samples(hall: Hall, ask: SamplesAsk) -> SamplesAnswer:
    """A window of the samples."""
    if not 0 <= ask.limit <= hall.limits.rows or ask.offset < 0:
        raise Refused(
            "too_large", f"offset={ask.offset}, limit={ask.limit}: a window has 0 to {hall.limits.rows:,} rows"
        )
    row = hall.row(ask.run)
    table = samples_of(hall, row, ask.attempts)
    names = table.column_names
    conditions, values = _searched(table, ask.search)
    if ask.where and ask.where.strip():
        conditions.append(f"(\n{ask.where}\n)")
    where = f" where {' and '.join(conditions)}" if conditions else ""
    source = _unique(names) if ask.unique else "samples"
    default = ", ".join(f"{quoted(n)} desc" for n in ("time", "seq", "index") if n in names)
    order = order_by(ask.sort, names) or (f" order by {default}" if default else "")
    with Locked(hall.limits, {"samples": table}) as db:
        matched = (
            db.table(f"select count(*) as n from {source}{where}", values)["n"][0].as_py()
            if where or ask.unique
            else table.num_rows
        )
        found = db.table(f"select * from {source}{where}{order} limit {ask.limit} offset {ask.offset}", values)
    shown = [name for name in ask.columns if name in found.column_names] if ask.columns is not None else None
    return SamplesAnswer(
        total=table.num_rows,
        matched=int(matched),
        offset=ask.offset,
        columns=columns_of(found.select([name for name in found.column_names if name not in IDENTITY])),
        rows=_sample_rows(found, shown, _CUT),
    )


def _searched(table: pa.Table, search: str | None) -> tuple[list[str], list[str]]:
    """Conditions, with their values, that each word occurs in some text."""
    words = (search or "").split()
    if not words:
        return [], []
    if len(words) > _MOST_WORDS:
        raise BadInput(f"{len(words)} words to search for; at most {_MOST_WORDS}")
    texts = [column.name for column in columns_of(table) if column.type == "text" and column.name not in IDENTITY]
    if not texts:
        return ["false"], []
    whole = "lower(concat_ws(' ', " + ", ".join(quoted(name) for name in texts) + "))"
    return [f"contains({whole}, ?)" for _ in words], [word.lower() for word in words]


def _unique(names: Sequence[str]) -> str:
    from rollbook.book.sql import unique_samples

    return unique_samples(names)


def _sample_rows(table: pa.Table, names: Sequence[str] | None, longest: int | None) -> list[SampleRow]:
    found = []
    for cells in shown_rows(table, None, longest):
        identity = cells.pop("id")
        found.append(SampleRow(id=identity, cells=cells if names is None else {n: cells.get(n) for n in names}))
    return found


def _one(hall: Hall, row: RunRow, identity: str) -> tuple[pa.Table, pa.Table]:
    """(all samples, the row of that name)."""
    table = samples_of(hall, row, "all")
    parts = identity.split(":")
    if len(parts) != 4 or not table.num_rows:
        raise Refused("not_found", f"there is no sample {identity!r:.80}", "Look at the table of samples.")
    conditions, values = [], []
    for name, said in zip(("writer", "lane", "seq", "index"), parts, strict=True):
        if name not in table.column_names:
            continue
        if said == "":
            conditions.append(f"{quoted(name)} is null")
        else:
            conditions.append(f"cast({quoted(name)} as varchar) = ?")
            values.append(said)
    with Locked(hall.limits, {"samples": table}) as db:
        found = db.table(f"select * from samples where {' and '.join(conditions)} limit 1", values)
    if not found.num_rows:
        raise Refused("not_found", f"there is no sample {identity!r:.80}", "Look at the table of samples.")
    return table, found


def one_sample(hall: Hall, ask: OneSampleAsk) -> OneSampleAnswer:
    """One sample, its texts whole."""
    row = hall.row(ask.run)
    _, found = _one(hall, row, ask.id)
    (cells,) = found.to_pylist()
    (shown,) = _sample_rows(found, None, None)
    with hall.book(row) as book:
        clocks = book.clocks
    group = cells.get("group")
    return OneSampleAnswer(
        id=shown.id,
        cells=shown.cells,
        group=plain(str(group)) if group is not None else None,
        clocks=clocks_of(cells, clocks),
        tokens=_tokens(cells),
    )


def _tokens(cells: dict[str, Any]) -> Tokens | None:
    text = next((cells[name] for name in _TOKEN_TEXTS if isinstance(cells.get(name), list) and cells[name]), None)
    columns: dict[str, list[Any]] = {}
    for name, own in _TOKEN_NUMBERS.items():
        values = next((cells[n] for n in own if isinstance(cells.get(n), list) and cells[n]), None)
        if values is not None:
            columns[name] = [float(v) if isinstance(v, (int, float)) else math.nan for v in values]
    if text is None or not columns:
        return None
    if "gap" not in columns and {"logprob", "sampler_logprob"} <= set(columns):
        columns["gap"] = [a - b for a, b in zip(columns["logprob"], columns["sampler_logprob"], strict=False)]
    return Tokens(
        text=[plain(str(token)) for token in text],
        columns={name: [num(v) for v in values] for name, values in columns.items()},
    )


def group(hall: Hall, ask: OneSampleAsk) -> GroupAnswer:
    """The completions of one prompt at one moment."""
    row = hall.row(ask.run)
    table, found = _one(hall, row, ask.id)
    (cells,) = found.to_pylist()
    names = [n for n in ("group", "batch", "attempt") if n in table.column_names and cells.get(n) is not None]
    if "group" not in names:
        names = [n for n in ("prompt", "batch", "attempt") if n in table.column_names and cells.get(n) is not None]
    if "batch" not in names:
        names.append("time")
    conditions = " and ".join(f"{quoted(name)} = ?" for name in names)
    order = ", ".join(quoted(name) for name in ("seq", "index") if name in table.column_names)
    with Locked(hall.limits, {"samples": table}) as db:
        rows = db.table(
            f"select * from samples where {conditions} order by {order} limit {_MOST_IN_GROUP}",
            [cells[n] for n in names],
        )
    with hall.book(row) as book:
        clocks = book.clocks
    rewards = _numbers(rows, reward_column(rows.column_names))
    finite = rewards[np.isfinite(rewards)]
    top = finite.max() if len(finite) else math.nan
    right = int((finite == top).sum()) if len(finite) and finite.min() < top else None
    return GroupAnswer(
        group=plain(str(cells.get("group") if cells.get("group") is not None else "")),
        prompt=plain(str(cells["prompt"])) if cells.get("prompt") is not None else None,
        clocks=clocks_of(cells, clocks),
        columns=columns_of(rows.select([name for name in rows.column_names if name not in IDENTITY])),
        rows=_sample_rows(rows, None, None),
        right=right,
        mean=num(float(finite.mean())) if len(finite) else None,
        sd=num(float(finite.std())) if len(finite) else None,
    )


def reward_column(names: Sequence[str]) -> str | None:
    """The column that says how good a sample was."""
    if "reward" in names:
        return "reward"
    return next((name for name in names if name.startswith(("rewards/", "reward"))), None)


def _numbers(table: pa.Table, name: str | None) -> Any:
    if name is None or name not in table.column_names:
        return np.full(table.num_rows, math.nan)
    return np.array(
        [float(c) if isinstance(c, (int, float)) else math.nan for c in table[name].to_pylist()], dtype=np.float64
    )


def history(hall: Hall, ask: SampleAxisAsk) -> HistoryAnswer:
    """One prompt (or item) over all of training."""
    row = hall.row(ask.run)
    x = ask.x or default_axis(hall, row)
    _, found = _one(hall, row, ask.id)
    (cells,) = found.to_pylist()
    table = samples_of(hall, row)
    by = next(
        (
            n
            for n in ("prompt", "group", "content", "sample_id")
            if n in table.column_names and cells.get(n) is not None
        ),
        None,
    )
    if by is None:
        raise Refused("not_found", "this sample has neither prompt, group nor id to be found again by")
    order = ", ".join(quoted(name) for name in ("time", "seq", "index") if name in table.column_names)
    with Locked(hall.limits, {"samples": table}) as db:
        seen = int(db.table(f"select count(*) as n from samples where {quoted(by)} = ?", [cells[by]])["n"][0].as_py())
        rows = db.table(
            f"select * from samples where {quoted(by)} = ? order by {order} limit {_MOST_POINTS}", [cells[by]]
        )
    places, times = axis_values(rows, x, started(row)), seconds_column(rows)
    rewards, advantages = _numbers(rows, reward_column(rows.column_names)), _numbers(rows, "advantage")
    batches = rows["batch"].to_pylist() if "batch" in rows.column_names else [None] * rows.num_rows
    text = next((n for n in ("completion", "response", "output", "item") if n in rows.column_names), None)
    texts = rows[text].to_pylist() if text else [None] * rows.num_rows
    identities = [row_id(c) for c in rows.select([n for n in IDENTITY if n in rows.column_names]).to_pylist()]
    points = [
        HistoryPoint(
            id=identities[n],
            x=_there(places[n]),
            time=float(times[n]),
            reward=_there(rewards[n]),
            advantage=_there(advantages[n]),
            batch=batches[n] if isinstance(batches[n], int) else None,
            text=plain(texts[n], _CUT),
        )
        for n in range(rows.num_rows)
    ]
    return HistoryAnswer(
        item=plain(str(cells[by])),
        x=plain(x),
        times_seen=seen,
        points=points,
        groups=_by_batch(places, rewards, batches),
        truncated=seen > len(points),
    )


def _there(value: float) -> Any:
    return None if math.isnan(value) else num(float(value))


def _by_batch(places: Any, rewards: Any, batches: Sequence[Any]) -> list[HistoryGroup]:
    members: dict[Any, list[int]] = {}
    for n, batch in enumerate(batches):
        members.setdefault(batch if batch is not None else float(places[n]), []).append(n)
    found = []
    for rows in members.values():
        finite = [float(rewards[n]) for n in rows if math.isfinite(rewards[n])]
        equal = len(finite) > 1 and min(finite) == max(finite)
        mean = num(sum(finite) / len(finite)) if finite else None
        found.append(HistoryGroup(x=_there(float(places[rows[0]])), n=len(rows), mean=mean, all_equal=equal))
    return found


def novelty(hall: Hall, ask: TimingsAsk) -> NoveltyAnswer:
    """New and repeated samples over training."""
    check_points(ask.points, 2_000)
    row = hall.row(ask.run)
    x = ask.x or default_axis(hall, row)
    table = table_of(hall, row, "samples")
    places = axis_values(table, x, started(row))
    if not table.num_rows or not np.isfinite(places).any() or "is_new" not in table.column_names:
        return NoveltyAnswer(x=plain(x), points=[])
    new = np.array([bool(cell) for cell in table["is_new"].to_pylist()])
    finite = np.isfinite(places)
    low, high = float(places[finite].min()), float(places[finite].max())
    width = (high - low) / ask.points or 1.0
    stretch = np.clip(((places[finite] - low) / width).astype(np.int64), 0, ask.points - 1)
    rows = np.bincount(stretch, minlength=ask.points)
    fresh = np.bincount(stretch, weights=new[finite], minlength=ask.points).astype(np.int64)
    return NoveltyAnswer(
        x=plain(x),
        points=[
            NoveltyPoint(
                x=low + (n + 0.5) * width,
                rows=int(rows[n]),
                new=int(fresh[n]),
                repeated=int(rows[n] - fresh[n]),
                share_new=float(fresh[n] / rows[n]),
            )
            for n in np.flatnonzero(rows)
        ],
    )


def unused(hall: Hall, ask: UnusedAsk) -> UnusedAnswer:
    """What became of the groups of one batch: which were trained on, and which taught nothing."""
    row = hall.row(ask.run)
    x = ask.x or default_axis(hall, row)
    table = samples_of(hall, row)
    if not table.num_rows or "group" not in table.column_names:
        return UnusedAnswer(x=plain(x), at=None, groups=0, reasons=[])
    places = axis_values(table, x, started(row))
    if not np.isfinite(places).any():
        return UnusedAnswer(x=plain(x), at=None, groups=0, reasons=[])
    nearest = int(np.nanargmax(places) if ask.at is None else np.nanargmin(np.abs(places - ask.at)))
    at = float(places[nearest])
    here = table.take(pa.array(np.flatnonzero(places == at), pa.int64()))
    groups: dict[Any, list[dict[str, Any]]] = {}
    for cells in here.to_pylist():
        groups.setdefault(cells.get("group"), []).append(cells)
    reward = reward_column(here.column_names)
    fates: dict[str, list[list[dict[str, Any]]]] = {}
    for members in groups.values():
        fates.setdefault(_fate(members, reward), []).append(members)
    reasons = [
        Reason(
            reason=plain(reason),
            groups=len(found),
            rows=sum(map(len, found)),
            ids=[row_id(members[0]) for members in found[:50]],
        )
        for reason, found in sorted(fates.items(), key=lambda pair: (pair[0] != "trained on", -len(pair[1])))
    ]
    return UnusedAnswer(x=plain(x), at=at, groups=len(groups), reasons=reasons)


def _fate(members: list[dict[str, Any]], reward: str | None) -> str:
    """Why a group was not trained on, as the run says it, else as its rewards do."""
    for name in ("discard_reason", "discarded", "skip_reason", "not_trained"):
        said = next((cells[name] for cells in members if cells.get(name)), None)
        if said:
            return str(said) if isinstance(said, str) else name.replace("_", " ")
    scores = [cells.get(reward) for cells in members] if reward else []
    known = [float(score) for score in scores if isinstance(score, (int, float)) and math.isfinite(score)]
    if len(known) > 1 and min(known) == max(known):
        return f"all rewards equal, {known[0]:g}"
    return "trained on"


ENDPOINTS = [
    Endpoint("POST", "/api/runs/{run}/samples", SamplesAsk, SamplesAnswer, samples, "A window of the samples"),
    Endpoint("GET", "/api/runs/{run}/sample", OneSampleAsk, OneSampleAnswer, one_sample, "One sample, its texts whole"),
    Endpoint(
        "GET",
        "/api/runs/{run}/sample/group",
        OneSampleAsk,
        GroupAnswer,
        group,
        "The completions of one prompt at one moment",
    ),
    Endpoint(
        "GET",
        "/api/runs/{run}/sample/history",
        SampleAxisAsk,
        HistoryAnswer,
        history,
        "One prompt over all of training",
    ),
    Endpoint(
        "GET", "/api/runs/{run}/novelty", TimingsAsk, NoveltyAnswer, novelty, "New and repeated samples over training"
    ),
    Endpoint("GET", "/api/runs/{run}/unused", UnusedAsk, UnusedAnswer, unused, "What was not trained on, and why"),
]
