"""Samples: searched and sorted in DuckDB; one with its tokens; the group of its prompt; its history; what was new."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from rollbook.book.questions import (
    Novelty,
    Samples,
    axis_values,
    cells_of,
    chosen_rows,
    clocks_of,
    counted_new,
    reward_column,
    row_id,
    seconds_column,
    see_samples,
)
from rollbook.schema.expressions import quoted
from rollbook.schema.run_files import table_names
from rollbook.server.asking import of_one_run, shape_of_one
from rollbook.server.curves.one_run import KeptRun
from rollbook.server.shared.catalogue import RunRow
from rollbook.server.shared.endpoint import Endpoint
from rollbook.server.shared.rows import IDENTITY, check_points, check_window, default_axis, shown_rows, started
from rollbook.server.shared.shapes import Answer, Cell, Num, OfRun, Refused, Row, TableColumn, columns_of, num, plain
from rollbook.server.shared.sql import Locked, with_tables
from rollbook.server.shared.state import ServerContext
from rollbook.values.array_types import Floats, NDArray

SamplesAsk = shape_of_one(Samples, ("columns", list[str] | None, None), defaults={"limit": 100})


class SampleRow(msgspec.Struct, kw_only=True):
    """One sample: its name in the API, and its cells."""

    id: str
    cells: Row


class SamplesAnswer(Answer, kw_only=True):
    """A window of the samples."""

    total: int
    matched: int
    offset: int
    columns: list[TableColumn]
    rows: list[SampleRow]


class OneSampleAsk(OfRun, kw_only=True):
    """One sample by its name in the API."""

    id: str


class Tokens(msgspec.Struct, kw_only=True):
    """A completion token by token.

    Attributes:
      text: the tokens, as texts or ids; columns: a number for each (logprob, sampler_logprob, gap, ratio, entropy …).
    """

    text: list[str]
    columns: dict[str, list[Num]]


class OneSampleAnswer(Answer, kw_only=True):
    """One sample, its texts whole."""

    id: str
    cells: Row
    group: str | None
    clocks: dict[str, int]
    tokens: Tokens | None


class GroupAnswer(Answer, kw_only=True):
    """The completions of one prompt at one moment.

    Attributes:
      right: how many have the highest reward; null if all rewards are equal.
      mean, sd: of the rewards (population).
    """

    group: str
    prompt: str | None
    clocks: dict[str, int]
    columns: list[TableColumn]
    rows: list[SampleRow]
    right: int | None
    mean: Num
    sd: Num


class SampleAxisAsk(OneSampleAsk, kw_only=True):
    """One sample along an axis."""

    x: str | None = None


class HistoryPoint(msgspec.Struct, kw_only=True):
    """One time that a prompt was seen."""

    id: str
    x: Num
    time: float | None
    reward: Num
    advantage: Num
    batch: int | None
    text: Cell


class HistoryGroup(msgspec.Struct, kw_only=True):
    """What a prompt scored in one batch.

    Attributes:
      all_equal: all its rewards are the same, so that it taught nothing.
    """

    x: Num
    n: int
    mean: Num
    all_equal: bool


class HistoryAnswer(Answer, kw_only=True):
    """One prompt or item over all of training."""

    item: str
    x: str
    times_seen: int
    points: list[HistoryPoint]
    groups: list[HistoryGroup]
    truncated: bool


NoveltyAsk = shape_of_one(Novelty, defaults={"points": 80})


class NoveltyPoint(msgspec.Struct, kw_only=True):
    """How much was new in a stretch."""

    x: Num
    rows: int
    new: int
    repeated: int


class NoveltyAnswer(Answer, kw_only=True):
    """New and repeated samples over training."""

    x: str
    points: list[NoveltyPoint]


T = TypeVar("T")

_CUT = 300
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


def ask_samples(
    context: ServerContext, row: RunRow, work: Callable[[Locked, list[str]], T], attempts: str = "effective"
) -> T:
    """The result of `work`, called with the columns of the view `samples`.

    The samples are scanned in their files. Advantages that came later, in a separate table, are joined to them.
    """
    names = ["samples", *(["advantages"] if "advantages" in table_names(row.folder) else [])]

    def joined(db: Locked) -> T:
        return work(db, see_samples(db))

    return with_tables(context, row, names, attempts, joined)


def samples(context: ServerContext, ask: OfRun) -> SamplesAnswer:
    """A window of the samples."""
    question, row = of_one_run(ask, Samples), context.row(ask.run)
    check_window(context.limits, question)
    page = chosen_rows(question, KeptRun(context, row), counted=True)
    columns: list[str] | None = getattr(ask, "columns", None)
    return SamplesAnswer(
        total=page.total,
        matched=page.matched,
        offset=question.offset,
        columns=columns_of(page.table.select([name for name in page.table.column_names if name not in IDENTITY])),
        rows=_sample_rows(
            page.table, None if columns is None else [n for n in columns if n in page.table.column_names], _CUT
        ),
    )


def _count(db: Locked, query: str, values: Sequence[object] = ()) -> int:
    return int(db.table(query, values)["n"][0].as_py())


def _sample_rows(table: pa.Table, names: Sequence[str] | None, longest: int | None) -> list[SampleRow]:
    samples = []
    for cells in shown_rows(table, None, longest):
        identity = cells.pop("id")
        samples.append(SampleRow(id=identity, cells=cells if names is None else {n: cells.get(n) for n in names}))
    return samples


def _one(context: ServerContext, row: RunRow, identity: str) -> pa.Table:
    """The sample of that name."""
    parts = identity.split(":")
    missing = Refused("not_found", f"there is no sample {identity!r:.80}", "Look at the table of samples.")
    if len(parts) != 4:
        raise missing

    def work(db: Locked, names: list[str]) -> pa.Table:
        conditions, values = ["true"], []
        for name, part in zip(("writer", "lane", "seq", "index"), parts, strict=True):
            if name in names and part == "":
                conditions.append(f"{quoted(name)} is null")
            elif name in names:
                conditions.append(f"cast({quoted(name)} as varchar) = ?")
                values.append(part)
        return db.table(f"select * from seen where {' and '.join(conditions)} limit 1", values)

    sample = ask_samples(context, row, work, "all")
    if not sample.num_rows:
        raise missing
    return sample


def one_sample(context: ServerContext, ask: OneSampleAsk) -> OneSampleAnswer:
    """One sample with its full texts."""
    row = context.row(ask.run)
    sample = _one(context, row, ask.id)
    (cells,) = cells_of(sample)
    (shown,) = _sample_rows(sample, None, None)
    with context.book(row) as book:
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
    columns: dict[str, list[float]] = {}
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


def group(context: ServerContext, ask: OneSampleAsk) -> GroupAnswer:
    """The completions of one prompt at one moment."""
    row = context.row(ask.run)
    sample = _one(context, row, ask.id)
    (cells,) = cells_of(sample)
    names = [n for n in ("group", "batch", "attempt") if cells.get(n) is not None]
    if "group" not in names:
        names = [n for n in ("prompt", "batch", "attempt") if cells.get(n) is not None]
    if "batch" not in names:
        names.append("time")
    values = [round(cells["time"] * 1e6) if name == "time" else cells[name] for name in names]
    conditions = " and ".join("epoch_us(time) = ?" if name == "time" else f"{quoted(name)} = ?" for name in names)
    order = ", ".join(quoted(name) for name in ("seq", "index") if name in sample.column_names)
    query = f"select * from seen where {conditions} order by {order} limit {_MOST_IN_GROUP}"
    rows = ask_samples(context, row, lambda db, _: db.table(query, values), "all")
    with context.book(row) as book:
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


def _numbers(table: pa.Table, name: str | None) -> Floats:
    if name is None or name not in table.column_names:
        return np.full(table.num_rows, math.nan)
    return np.array(
        [float(c) if isinstance(c, (int, float)) else math.nan for c in table[name].to_pylist()], dtype=np.float64
    )


def history(context: ServerContext, ask: SampleAxisAsk) -> HistoryAnswer:
    """One prompt (or item) over all of training."""
    row = context.row(ask.run)
    x = ask.x or default_axis(context, row)
    sample = _one(context, row, ask.id)
    (cells,) = cells_of(sample)
    # Later samples of the same question: by its prompt, else by what else it may have in common with them.
    by = next((n for n in ("prompt", "group", "content", "sample_id") if cells.get(n) is not None), None)
    if by is None:
        raise Refused("not_found", "this sample has neither prompt, group nor id to be found again by")
    order = ", ".join(quoted(name) for name in ("time", "seq", "index") if name in sample.column_names)
    same = f"from seen where {quoted(by)} = ?"

    def work(db: Locked, _: list[str]) -> tuple[int, pa.Table]:
        seen = _count(db, f"select count(*) as n {same}", [cells[by]])
        return seen, db.table(f"select * {same} order by {order} limit {_MOST_POINTS}", [cells[by]])

    seen, rows = ask_samples(context, row, work)
    positions, times = axis_values(rows, x, started(row)), seconds_column(rows)
    rewards, advantages = _numbers(rows, reward_column(rows.column_names)), _numbers(rows, "advantage")
    batches = rows["batch"].to_pylist() if "batch" in rows.column_names else [None] * rows.num_rows
    text = next((n for n in ("completion", "response", "output", "item") if n in rows.column_names), None)
    texts = rows[text].to_pylist() if text else [None] * rows.num_rows
    identities = [row_id(c) for c in rows.select([n for n in IDENTITY if n in rows.column_names]).to_pylist()]
    points = [
        HistoryPoint(
            id=identities[n],
            x=_there(positions[n]),
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
        groups=_by_batch(positions, rewards, batches),
        truncated=seen > len(points),
    )


def _there(value: float) -> Num:
    return None if math.isnan(value) else num(float(value))


def _by_batch(positions: NDArray, rewards: NDArray, batches: Sequence[object]) -> list[HistoryGroup]:
    members: dict[object, list[int]] = {}
    for n, batch in enumerate(batches):
        members.setdefault(batch if batch is not None else float(positions[n]), []).append(n)
    groups = []
    for rows in members.values():
        finite = [float(rewards[n]) for n in rows if math.isfinite(rewards[n])]
        equal = len(finite) > 1 and min(finite) == max(finite)
        mean = num(sum(finite) / len(finite)) if finite else None
        groups.append(HistoryGroup(x=_there(float(positions[rows[0]])), n=len(rows), mean=mean, all_equal=equal))
    return groups


def novelty(context: ServerContext, ask: OfRun) -> NoveltyAnswer:
    """New and repeated samples over training."""
    question, row = of_one_run(ask, Novelty), context.row(ask.run)
    check_points(question.points, 2_000)
    page = counted_new(question, KeptRun(context, row))
    points = [
        NoveltyPoint(x=cells[page.x], rows=cells["rows"], new=cells["new"], repeated=cells["repeated"])
        for cells in page.table.to_pylist()
    ]
    return NoveltyAnswer(x=plain(page.x), points=points)


ENDPOINTS = [
    Endpoint(
        "POST",
        "/api/runs/{run}/samples",
        SamplesAsk,
        SamplesAnswer,
        samples,
        "A window of the samples",
        lane="question",
    ),
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
        "GET", "/api/runs/{run}/novelty", NoveltyAsk, NoveltyAnswer, novelty, "New and repeated samples over training"
    ),
]
